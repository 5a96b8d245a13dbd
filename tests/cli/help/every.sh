# SPDX-License-Identifier: MIT
# Each command explains itself, by --help and by help.
for c in devices space tune compare store train eval predict export completion help version; do
    kopt $c --help >one && kopt help $c >two && cmp one two && head -1 one
done
for c in list show result best failures runs compare export import; do
    kopt store $c --help >one && kopt help store $c >two && cmp one two && head -1 one
done
grep -c . one >/dev/null
