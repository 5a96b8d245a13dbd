#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write curve.json: the losses of ten training steps of small networks, by PyTorch in double precision.

    curve.py            # needs torch; see tests/unit/nn/README.md

Parameters, inputs and targets come from the formulas below, which test_model_curve.c has too. A network is a function
from the parameters by their names, tokens[T][B], features[B][F] and targets[P][B] to the logits of each target."""
import json
import math
import pathlib

import torch
import torch.nn.functional as F

T, VOCAB, FEATURES, VALUES, B = 3, 11, 5, (3, 2, 4, 3), 6
D, H, LAYERS, K = 6, 8, 2, 3
E, M, P, V = H // 2, H // 2, len(VALUES), sum(VALUES)
STEPS, SMOOTHING = 10, 0.1
ADAM = {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.05}
CLIP = 0.2  # less than the first norms, more than the last


def value(tensor, i, around):
    return around + 0.4 * math.sin(1.7 * tensor + 0.9 * i + 0.3)


TOKENS = torch.tensor([[(7 * b + 3 * t) % VOCAB for b in range(B)] for t in range(T)])
INPUT = torch.tensor([[math.cos(1.1 * (b * FEATURES + k)) for k in range(FEATURES)] for b in range(B)]).float().double()
TARGETS = torch.tensor([[(5 * b + 3 * p + b // 3) % VALUES[p] for b in range(B)] for p in range(P)])
FIRST = [sum(VALUES[:p]) for p in range(P)]


def lstm(x, w, name, h, c, reverse=False):
    """torch.nn.LSTM with one layer's weights; its second bias is zero."""
    G = w[f"{name}.wh"].shape[0]
    flat = [w[f"{name}.wx"], w[f"{name}.wh"], w[f"{name}.b"].reshape(-1), torch.zeros(G, dtype=torch.float64)]
    x = x.flip(0) if reverse else x
    y, _, _ = torch._VF.lstm(x, (h[None], c[None]), flat, True, 1, 0.0, True, False, False)
    return y.flip(0) if reverse else y


def recurrent(w, conv):
    x = F.embedding(TOKENS, w["enc.embed"])
    if conv:
        kernel = w["enc.conv.w"].reshape(H // 2, K, D).permute(0, 2, 1)
        y = F.conv1d(x.permute(1, 2, 0), kernel, w["enc.conv.b"].reshape(-1), padding=K // 2)
        side = torch.relu(y.permute(2, 0, 1))
    zero = torch.zeros(B, E, dtype=torch.float64)
    fwd = lstm(x, w, "enc.fwd", zero, zero)
    bwd = lstm(x, w, "enc.bwd", zero, zero, reverse=True)
    enc = torch.cat((fwd, bwd), 2)
    start = fwd[-1] @ w["dec.init.fwd"].T + bwd[0] @ w["dec.init.bwd"].T + w["dec.init.b"]
    if conv:
        enc = torch.relu(enc @ w["enc.join.rnn"].T + side @ w["enc.join.conv"].T + w["enc.join.b"])
        start = start + side[-1] @ w["dec.init.conv"].T
    h0, c0 = torch.tanh(start).chunk(2, 1)
    words = torch.cat((torch.zeros_like(TARGETS[:1]), TARGETS[:-1] + 1 + torch.tensor(FIRST[:-1])[:, None]))
    h = lstm(F.embedding(words, w["dec.embed"]), w, "dec", h0.contiguous(), c0.contiguous())
    query, keys = (h @ w["attention.q"].T).transpose(0, 1), enc.transpose(0, 1)
    context = F.scaled_dot_product_attention(query, keys, keys).transpose(0, 1)
    out = torch.tanh(h @ w["mix.h"].T + context @ w["mix.context"].T + w["mix.b"])
    return [out[p] @ w["heads.w"][f:f + n].T + w["heads.b"][0, f:f + n] for p, (f, n) in enumerate(zip(FIRST, VALUES))]


def recurrent_shapes(conv):
    rnn = lambda name, I, H: {f"{name}.wx": (4 * H, I), f"{name}.b": (1, 4 * H), f"{name}.wh": (4 * H, H)}
    shapes = {"enc.embed": (VOCAB, D)}
    if conv:
        shapes |= {"enc.conv.w": (H // 2, K * D), "enc.conv.b": (1, H // 2)}
    shapes |= rnn("enc.fwd", D, E) | rnn("enc.bwd", D, E)
    if conv:
        shapes |= {"enc.join.rnn": (H, H), "enc.join.conv": (H, H // 2), "enc.join.b": (1, H),
                   "dec.init.conv": (2 * H, H // 2)}
    shapes |= {"dec.init.fwd": (2 * H, E), "dec.init.bwd": (2 * H, E), "dec.init.b": (1, 2 * H),
               "dec.embed": (V + 1, D)} | rnn("dec", D, H)
    return shapes | {"attention.q": (H, H), "mix.h": (H, H), "mix.context": (H, H), "mix.b": (1, H),
                     "heads.w": (V, H), "heads.b": (1, V)}


def factored(w):
    x = torch.cat((INPUT, F.embedding(TOKENS, w["in.embed"]).permute(1, 0, 2).reshape(B, T * D)), 1)
    norm = lambda h, name: F.layer_norm(h, (H,), w[f"{name}.g"].reshape(-1), w[f"{name}.b"].reshape(-1), 1e-5)
    h = F.silu(x @ w["in.w"].T + w["in.b"])
    for n in range(LAYERS):
        h = h + F.silu(norm(h, f"layer{n}.norm") @ w[f"layer{n}.w"].T + w[f"layer{n}.b"])
    h = norm(h, "heads.norm")
    logits = []
    for p, (f, n) in enumerate(zip(FIRST, VALUES)):
        part = slice(p * M, (p + 1) * M)
        u = h @ w["heads.a"][part].T + w["heads.a_bias"][0, part]
        for q in range(p):
            u = u + w[f"heads.prefix{p}"][FIRST[q] + TARGETS[q]]
        y = F.silu(u)
        y = y + F.silu(y @ w["heads.c"][part].T + w["heads.c_bias"][0, part])
        logits.append(y @ w["heads.w"][f:f + n].T + w["heads.b"][0, f:f + n])
    return logits


def factored_shapes():
    shapes = {"in.embed": (VOCAB, D), "in.w": (H, FEATURES + T * D), "in.b": (1, H)}
    for n in range(LAYERS):
        shapes |= {f"layer{n}.norm.g": (1, H), f"layer{n}.norm.b": (1, H), f"layer{n}.w": (H, H), f"layer{n}.b": (1, H)}
    shapes |= {"heads.norm.g": (1, H), "heads.norm.b": (1, H), "heads.a": (P * M, H), "heads.a_bias": (1, P * M),
               "heads.c": (P * M, M), "heads.c_bias": (1, P * M), "heads.w": (V, M), "heads.b": (1, V)}
    return shapes | {f"heads.prefix{p}": (FIRST[p], M) for p in range(1, P)}


def curve(network, shapes):
    w = {}
    for t, (name, (rows, cols)) in enumerate(shapes.items()):
        around = 1.0 if name.endswith("norm.g") else 0.0
        flat = torch.tensor([value(t, i, around) for i in range(rows * cols)], dtype=torch.float64)
        w[name] = flat.float().double().reshape(rows, cols).requires_grad_()
    adam = torch.optim.AdamW(w.values(), **ADAM)
    losses, norms = [], []
    for _ in range(STEPS):
        rows = [F.cross_entropy(z, TARGETS[p], label_smoothing=SMOOTHING) for p, z in enumerate(network(w))]
        loss = torch.stack(rows).mean()
        adam.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(w.values(), CLIP).item())
        adam.step()
        losses.append(loss.item())
    return {"losses": [float(f"{x:.10g}") for x in losses], "norms": [float(f"{x:.10g}") for x in norms]}


def main():
    curves = {"attention": curve(lambda w: recurrent(w, False), recurrent_shapes(False)),
              "hybrid2": curve(lambda w: recurrent(w, True), recurrent_shapes(True)),
              "factored": curve(factored, factored_shapes())}
    lines = [f'"{name}": {json.dumps(c)}' for name, c in curves.items()]
    pathlib.Path(__file__).with_name("curve.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
