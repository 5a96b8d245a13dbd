# SPDX-License-Identifier: MIT
export KOPT_FAKE_LIBRARY=$FAKE
# A second run of the same command measures nothing again; a wider one only what is new.
kopt tune "$DATA/copy.cl" N=1024 BN=32,64 -d fake:0 --store s.db --json -q | json_lines outcome from_store race >one
kopt tune "$DATA/copy.cl" N=1024 BN=32,64 -d fake:0 --store s.db --json -q | json_lines outcome from_store race >two
kopt tune "$DATA/copy.cl" N=1024 -d fake:0 --store s.db --json -q --resume | json_lines outcome from_store race >three
kopt tune "$DATA/copy.cl" N=1024 BN=32,64 -d fake:0 --store s.db --json -q --fresh | json_lines outcome from_store race >four
for f in one two three four; do
    echo "$f: $(grep -c 'from_store=false race=false' $f) measured, $(grep -c 'from_store=true race=false' $f) known"
done
