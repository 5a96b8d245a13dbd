# SPDX-License-Identifier: MIT
# What libkopt exports is what docs/abi.txt lists, and every one is declared in a public header.
nm -D --defined-only "$LIBKOPT" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' |
    grep -v '^__\(asan\|ubsan\|tsan\|odr\)' | LC_ALL=C sort >exported
diff "$SOURCE/docs/abi.txt" exported
nm -D --defined-only "$LIBKOPT" | awk '$2 != "T" && $2 != "A" { print "not a function: " $3 }' |
    grep -v '__odr_asan'
cat "$SOURCE"/include/kopt/*.h >headers
while read -r f; do
    grep -q "\b$f(" headers || echo "$f is not declared"
done <exported
true
