#!/bin/sh
# SPDX-License-Identifier: MIT
# Format, layers, licence lines, forbidden functions; without --quick also clang-tidy, spelling and the
# shell scripts. --fix formats in place.
set -eu
cd "$(dirname "$0")/.."
mode=${1:-full}
files=$(git ls-files '*.c' '*.h' | grep -v '^examples/.*_ref\.c$' || true)
status=0

if [ "$mode" = --fix ]; then
    # shellcheck disable=SC2086
    clang-format -i $files
    exit 0
fi

# shellcheck disable=SC2086
clang-format --dry-run --Werror $files || status=1
python3 tools/check_layers.py || status=1

for f in $files; do
    head -n 1 "$f" | grep -q 'SPDX-License-Identifier: MIT' || { echo "$f: no SPDX line"; status=1; }
done

# Functions whose length or failure nobody can see.
banned='\b(strcpy|strcat|strncpy|strncat|vsprintf|gets|strtok|atoi|atol|atof|gmtime|localtime|asctime|ctime|tmpnam|mktemp|rand|srand)\('
# shellcheck disable=SC2086
if grep -nE "$banned" $files | grep -vE '_r\(|//|^\S+:\s*\*'; then
    echo "banned functions"
    status=1
fi
# The heap has one door.
# shellcheck disable=SC2046
if grep -nE '\b(malloc|calloc|realloc|free)\(' $(git ls-files 'src/*.c' | grep -vE '^src/(base/alloc|device/fake/(driver|kernel|script)).c$') | grep -vE 'realpath|own malloc|kp_|LSAN|dlsym'; then
    echo "the heap is used past base/alloc.h"
    status=1
fi
[ "$mode" = --quick ] && exit $status

for f in $(git ls-files 'src/*.c' 'cli/*.c'); do
    clang-tidy --quiet -p build/release "$f" 2>/dev/null || status=1
done
# Words of the language, of CUDA, and of tests.
# shellcheck disable=SC2046
codespell -q 3 -L inout,optin,statics,nax,nd $(git ls-files '*.md' '*.c' '*.h') || status=1
shellcheck tools/*.sh bench/*.sh || status=1
exit $status
