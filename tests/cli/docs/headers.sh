# SPDX-License-Identifier: MIT
# Each public header stands alone, in C and in C++.
for h in "$SOURCE"/include/kopt/*.h; do
    cc -std=c99 -Wall -Wextra -Wpedantic -Werror -I"$SOURCE/include" -fsyntax-only -x c "$h" 2>&1 |
        grep -v 'pragma once'
    if command -v c++ >/dev/null; then
        c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -I"$SOURCE/include" -fsyntax-only -x c++ "$h"
    fi
done
true
