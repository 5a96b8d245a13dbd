#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write golden.json: inputs, results and gradients of small networks, computed by PyTorch in double precision.

    golden.py            # needs torch; see README.md beside this file

A function with @case makes one case and returns a dictionary from array names to tensors, arrays or numbers. Each case
draws from a generator of its own, so that another case changes nothing in the ones that are there. In the file:

    {"case": {"array": {"shape": [2, 3], "data": [...]}, ...}, ...}
"""
import json
import pathlib
import zlib

import torch
import torch.nn.functional as F

CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


class Draw:
    """Random leaves. They are rounded to single precision, since that is what the C code gets."""

    def __init__(self, name):
        self.g = torch.Generator().manual_seed(zlib.crc32(name.encode()))

    def normal(self, *shape, scale=1.0):
        x = torch.randn(*shape, generator=self.g, dtype=torch.float32) * scale
        return x.double().requires_grad_()

    def ids(self, high, *shape):
        return torch.randint(0, high, shape, generator=self.g)


def backward(y, dy, **leaves):
    """Gradients of sum(y * dy), as dNAME for each leaf."""
    grads = torch.autograd.grad(y, list(leaves.values()), dy)
    return {"d" + k: g for k, g in zip(leaves, grads)}


@case
def linear(d):
    x, w, b, dy = d.normal(5, 7), d.normal(3, 7), d.normal(3), d.normal(5, 3)
    y = F.linear(x, w, b)
    return {"x": x, "w": w, "b": b, "y": y, "dy": dy, **backward(y, dy, x=x, w=w, b=b)}


@case
def embed(d):
    table, ids, dy = d.normal(6, 5), d.ids(6, 9), d.normal(9, 5)
    y = F.embedding(ids, table)
    return {"table": table, "ids": ids, "y": y, "dy": dy, **backward(y, dy, table=table)}


@case
def activations(d):
    x, dy = d.normal(37, scale=2), d.normal(37)
    out = {"x": x, "dy": dy}
    for name, f in (("relu", F.relu), ("tanh", torch.tanh), ("silu", F.silu)):
        y = f(x)
        out[name] = y
        out["d" + name] = backward(y, dy, x=x)["dx"]
    return out


@case
def layernorm(d):
    x, g, b, dy = d.normal(4, 19), d.normal(19), d.normal(19), d.normal(4, 19)
    y = F.layer_norm(x + 3, (19,), g, b, 1e-5)
    return {"x": x + 3, "g": g, "b": b, "y": y, "dy": dy, **backward(y, dy, x=x, g=g, b=b)}


@case
def cross_entropy(d):
    """Row 2 has no target."""
    z, target, smoothing = d.normal(6, 23, scale=2), d.ids(23, 6), 0.1
    weight = torch.tensor([1.0, 0.5, 1.0, 2.0, 0.0, 0.25], dtype=torch.float64)
    target[2] = -1
    rows = F.cross_entropy(z, target, reduction="none", label_smoothing=smoothing, ignore_index=-1)
    loss, plain = (rows * weight).sum(), F.cross_entropy(z, target, reduction="sum", ignore_index=-1)
    return {"z": z, "target": target, "weight": weight, "smoothing": smoothing, "loss": loss, "plain": plain,
            "dz": torch.autograd.grad(loss, z)[0], "dz_plain": torch.autograd.grad(plain, z)[0],
            "right": ((z.argmax(1) == target) & (target >= 0)).sum(), "log_softmax": F.log_softmax(z, 1)}


@case
def conv(d):
    """PyTorch's own layout is [B][I][T] and [O][I][K]."""
    x, w, b, dy = d.normal(7, 2, 3), d.normal(4, 5, 3), d.normal(4), d.normal(7, 2, 4)
    y = F.conv1d(x.permute(1, 2, 0), w.permute(0, 2, 1), b, padding=2).permute(2, 0, 1)
    return {"x": x, "w": w, "b": b, "y": y, "dy": dy, **backward(y, dy, x=x, w=w, b=b)}


def ten_steps(d, decay, clip):
    start, grads = d.normal(33), d.normal(10, 33)
    x = start.detach().clone().requires_grad_()
    opt = torch.optim.AdamW([x], lr=0.01, betas=(0.9, 0.999), eps=1e-8, weight_decay=decay)
    trace = []
    for g in grads:
        x.grad = g.detach().clone()
        if clip:
            torch.nn.utils.clip_grad_norm_([x], clip)
        opt.step()
        trace.append(x.detach().clone())
    return {"start": start, "grads": grads, "trace": torch.stack(trace)}


@case
def adam(d):
    return ten_steps(d, 0.0, None)


@case
def adam_decay_clip(d):
    return ten_steps(d, 0.1, 5.5)


def recurrent(d, kind, reverse):
    """PyTorch's layer with the identity for W_x, so that its input's gradient is that of pre = x + biases. Of the GRU's
    biases beside h W_h' only the one of n stays apart."""
    T, B, H = 4, 2, 17
    n_gates = {"LSTM": 4, "GRU": 3}[kind]
    G = n_gates * H
    x, w_h, bias_x, bias_h = d.normal(T, B, G), d.normal(G, H, scale=0.3), d.normal(G), d.normal(G)
    h0, c0 = d.normal(B, H), d.normal(B, H)
    dh, dh_end, dc_end = d.normal(T, B, H), d.normal(B, H), d.normal(B, H)
    net = getattr(torch.nn, kind)(G, H, dtype=torch.float64)
    net.requires_grad_(False)
    net.weight_ih_l0.copy_(torch.eye(G))
    net.bias_ih_l0.copy_(bias_x)
    net.weight_hh_l0.copy_(w_h)
    net.bias_hh_l0.copy_(bias_h)
    net.requires_grad_()
    steps = x.flip(0) if reverse else x
    state = h0[None]
    if kind == "LSTM":
        y, (h_end, c_end) = net(steps, (state, c0[None]))
    else:
        y, h_end = net(steps, state)
    h = y.flip(0) if reverse else y
    loss = (h * dh).sum() + (h_end * dh_end).sum()
    leaves = {"pre": x, "w_h": net.weight_hh_l0, "h0": h0}
    out = {"w_h": w_h, "h0": h0, "h": h, "dh": dh, "dh_end": dh_end}
    with torch.no_grad():
        pre = x + bias_x + bias_h
        if kind == "GRU":
            pre[..., 2 * H:] -= bias_h[2 * H:]
    if kind == "LSTM":
        loss = loss + (c_end * dc_end).sum()
        leaves["c0"] = c0
        out |= {"c0": c0, "c_end": c_end, "dc_end": dc_end}
    else:
        leaves["bias"] = net.bias_hh_l0
        out["b_n"] = bias_h[2 * H:]
    grads = backward(loss, None, **leaves)
    if kind == "GRU":
        grads["db_n"] = grads.pop("dbias")[2 * H:]
    return {"pre": pre, **out, **grads}


@case
def lstm(d):
    return recurrent(d, "LSTM", False)


@case
def lstm_reverse(d):
    return recurrent(d, "LSTM", True)


@case
def gru(d):
    return recurrent(d, "GRU", False)


@case
def gru_reverse(d):
    return recurrent(d, "GRU", True)


def attend(d, score):
    """Queries q[Q][B][H] over keys k[S][B][H] and values[S][B][C]."""
    Q, S, B, H, C = 3, 5, 2, 19, 21
    q, k, values, dcontext = d.normal(Q, B, H), d.normal(S, B, H), d.normal(S, B, C), d.normal(Q, B, C)
    rows = [x.transpose(0, 1) for x in (q, k, values)]
    if score == "dot":
        context = F.scaled_dot_product_attention(*rows)
        weights = (rows[0] @ rows[1].transpose(1, 2) / H**0.5).softmax(2)
        leaves, out = {}, {}
    else:
        v = d.normal(H)
        weights = (torch.tanh(rows[0][:, :, None] + rows[1][:, None]) @ v).softmax(2)
        context = weights @ rows[2]
        leaves, out = {"v": v}, {"v": v}
    context = context.transpose(0, 1)
    return {"q": q, "k": k, "values": values, **out, "weights": weights.transpose(0, 1), "context": context,
            "dcontext": dcontext, **backward(context, dcontext, q=q, k=k, values=values, **leaves)}


@case
def attention_dot(d):
    return attend(d, "dot")


@case
def attention_additive(d):
    return attend(d, "additive")


def flat(x):
    """Ten digits, more than single precision holds."""
    t = torch.as_tensor(x).detach()
    data = t.reshape(-1).tolist()
    return {"shape": list(t.shape), "data": data if not t.is_floating_point() else [float(f"{v:.10g}") for v in data]}


def main():
    cases = {name: {k: flat(v) for k, v in f(Draw(name)).items()} for name, f in CASES.items()}
    lines = []
    for name in sorted(cases):
        arrays = ",\n".join(f'  "{k}": {json.dumps(v)}' for k, v in cases[name].items())
        lines.append(f'"{name}": {{\n{arrays}}}')
    path = pathlib.Path(__file__).with_name("golden.json")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
