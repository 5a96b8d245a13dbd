#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Problems as real networks pose them, one a line, for surfaces.py: problems.py gemm|convolution|softmax

The sizes are those of published networks: widths and token counts of transformers, feature maps of
convolutional networks as products, images for filters, rows of attention and of vocabularies. Every kernel has a
few sizes that no tile divides. The order is shuffled (the same way always), so that a list that is cut short still
covers them all."""
import random
import sys

# (name, hidden, inner, heads' width times groups, vocabulary) of transformers
WIDTHS = {"bert-base": (768, 3072), "bert-large": (1024, 4096), "gpt2": (768, 3072), "gpt2-xl": (1600, 6400),
          "llama-7b": (4096, 11008), "mistral-7b": (4096, 14336), "qwen-1.5b": (1536, 8960), "phi-2": (2560, 10240),
          "whisper-small": (768, 3072), "t5-base": (768, 2048), "vit-l": (1024, 4096)}
TOKENS = [16, 64, 128, 256, 512, 1024, 2048, 4096]
# output channels, pixels of a feature map, input channels times filter area: ResNet-50's layers as products
RESNET = [(64, 56, 64), (64, 56, 576), (256, 56, 64), (128, 28, 256), (128, 28, 1152), (512, 28, 128), (256, 14, 512),
          (256, 14, 2304), (1024, 14, 256), (512, 7, 1024), (512, 7, 4608), (2048, 7, 512)]


def gemm():
    found = set()
    for hidden, inner in WIDTHS.values():
        for tokens in TOKENS:
            found |= {(tokens, hidden, hidden), (tokens, 3 * hidden, hidden), (tokens, inner, hidden),
                      (tokens, hidden, inner)}
    for out, side, k in RESNET:
        for batch in (1, 8, 32):
            found.add((align(batch * side * side, 32), out, k))
    for n in (128, 256, 512, 1024, 2048, 3072, 4096):
        found.add((n, n, n))
    found |= {(128, 128, 65536), (256, 256, 16384), (8192, 64, 64), (16384, 128, 64), (64, 16384, 1024),
              (32, 32000, 4096), (128, 32000, 2048), (512, 512, 64), (4096, 256, 256), (4096, 1024, 64)}
    kept = [m for m in sorted(found) if m[0] * m[1] * m[2] <= 4096 ** 3]
    odd = [(197, 768, 768), (197, 3072, 768), (577, 1024, 1024), (77, 768, 768), (50, 512, 2048), (1500, 384, 384),
           (100, 100, 100), (1000, 1000, 1000)]
    return shuffled(kept)[:172] + odd, "M={} N={} K={}"


def convolution():
    sides = [(56, 56), (112, 112), (224, 224), (256, 256), (384, 384), (512, 512), (640, 480), (640, 640), (800, 600),
             (1024, 768), (1024, 1024), (1280, 720), (1536, 1024), (1920, 1080), (2048, 1024), (2048, 2048), (2560, 1440),
             (3072, 2048), (3840, 2160), (4096, 4096), (128, 4096), (4096, 128), (299, 299), (331, 331), (1000, 1000)]
    filters = [(3, 3), (5, 5), (7, 7), (9, 9), (11, 11), (1, 9), (15, 15)]
    return shuffled([(w, h, a, b) for w, h in sides for a, b in filters]), "W={} H={} FW={} FH={}"


def softmax():
    columns = [64, 128, 197, 256, 384, 512, 768, 1000, 1024, 1500, 2048, 4096, 8192, 16384, 30522, 32000, 50257]
    rows = [1, 8, 32, 96, 128, 384, 512, 1024, 2048, 4096, 12288, 32768, 65536, 196608]
    return shuffled([(r, c) for r in rows for c in columns if r * c <= 1 << 27]), "R={} C={}"


def align(a, b):
    return (a + b - 1) // b * b


def shuffled(items):
    random.Random(1).shuffle(items)
    return items


if __name__ == "__main__":
    makers = {"gemm": gemm, "convolution": convolution, "softmax": softmax}
    if len(sys.argv) != 2 or sys.argv[1] not in makers:
        sys.exit(__doc__)
    problems, form = makers[sys.argv[1]]()
    for p in problems:
        print(form.format(*p))
