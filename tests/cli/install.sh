# SPDX-License-Identifier: MIT
# An installed tree works from wherever it is moved to, and a program builds against it by
# pkg-config alone.
cmake --install "$BUILD" --prefix "$PWD/first" >/dev/null || exit
mv first second
root=$PWD/second
PATH=$root/bin:/usr/local/bin:/usr/bin:/bin
export KOPT_FAKE_LIBRARY=$FAKE
kopt tune "$DATA/copy.cl" N=64 -d fake:0 --store s.db -q | head -1
ls second/share/kopt/kernels/miopen | head -2
kopt train gone.csv --rules gone -o m.model 2>&1 | grep -c 'built in: ConvAsm1x1U'
ls second/share/man/man1 second/share/zsh/site-functions second/share/bash-completion/completions
if nm -D "$LIBKOPT" | grep -q '__[atu]\+san_init'; then
    exit # the compiler below would have to bring the sanitizer
fi
PKG_CONFIG_PATH=$(dirname "$(find "$root" -name kopt.pc)")
export PKG_CONFIG_PATH
cc -std=c11 -Wall -Wextra -Wpedantic -Werror -o embed "$SOURCE/examples/embed.c" \
    $(pkg-config --cflags --libs kopt) "-Wl,-rpath,$(pkg-config --variable=libdir kopt)" || exit
./embed "$DATA/copy.cl" fake:0 N=64 >out && grep -c '^select: measured' out >/dev/null || exit
# README's program that predicts: what it prints is what the command predicts.
sed -n '/^.. predict\.c/,/^```$/p' "$SOURCE/README.md" | grep -v '^```' >predict.c
cc -std=c11 -Wall -Wextra -Wpedantic -Werror -o predict predict.c \
    $(pkg-config --cflags --libs kopt) "-Wl,-rpath,$(pkg-config --variable=libdir kopt)" || exit
./predict "$(pkg-config --variable=models kopt)/h200/gemm.model" >predicted || exit
kopt predict gemm M=300 N=4096 K=1024 --top 5 --json |
    python3 -c 'import json, sys; [print(",".join(f"{k}={v}" for k, v in json.loads(l)["config"].items())) for l in sys.stdin]' |
    cmp - predicted && test "$(wc -l <predicted)" = 5
