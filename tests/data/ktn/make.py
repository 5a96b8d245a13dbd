#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tiny_{encoder,decoder,metadata}.ktn.model: a model as Keras and frugally-deep write it,
with numbers of our own. The outputs of its tests are computed here, in double, from Keras's
definitions: gates i f c o, kernels [inputs][outputs]. Prints what test_model_ktn.c expects."""
import base64
import json
import math
import pathlib
import struct

T = I = 8
D, H, E = 2, (3, 2), 2
TUNINGS = [-1, 2, 1, 4, 2, 1, 16, 8, 32, -1]
POSITIONS = [(1, 2, 3), (4, 5), (6, 7, 8)]
V = len(TUNINGS)
CHUNK = 6  # floats of one text

state = 12345


def f32(v):
    return struct.unpack("<f", struct.pack("<f", v))[0]


def draw(n, scale):
    """n numbers in [-scale, scale), as floats."""
    global state
    out = []
    for _ in range(n):
        state = (state * 1103515245 + 12345) % 2**31
        out.append(f32((state / 2**30 - 1) * scale))
    return out


def matrix(rows, cols, scale=0.9):
    flat = draw(rows * cols, scale)
    return [flat[i * cols:(i + 1) * cols] for i in range(rows)]


def flat(m):
    return [v for row in m for v in row] if m and isinstance(m[0], list) else m


def times(x, w):
    return [sum(x[i] * w[i][j] for i in range(len(x))) for j in range(len(w[0]))]


def plus(*vs):
    return [sum(t) for t in zip(*vs)]


def sigmoid(v):
    return 1 / (1 + math.exp(-v))


class Lstm:
    def __init__(self, inputs, units):
        self.n = units
        self.w = matrix(inputs, 4 * units)
        self.u = matrix(units, 4 * units)
        self.b = draw(4 * units, 0.5)

    def step(self, x, h, c):
        n = self.n
        a = plus(times(x, self.w), times(h, self.u), self.b)
        i, f, g, o = a[:n], a[n:2 * n], a[2 * n:3 * n], a[3 * n:]
        c = [sigmoid(f[k]) * c[k] + sigmoid(i[k]) * math.tanh(g[k]) for k in range(n)]
        h = [sigmoid(o[k]) * math.tanh(c[k]) for k in range(n)]
        return h, c


def encode(x):
    seq = [times(row, dense) for row in x]
    states = []
    for l in enc:
        h, c = [0.0] * l.n, [0.0] * l.n
        out = []
        for row in seq:
            h, c = l.step(row, h, c)
            out.append(h)
        seq = out
        states += [h, c]
    return states


def decode(token, states):
    x = embed[token]
    after = []
    for k, l in enumerate(dec):
        h, c = l.step(x, states[2 * k], states[2 * k + 1])
        after += [h, c]
        x = h
    return plus(times(x, out_w), out_b), after


def texts(m):
    values = flat(m)
    chunks = [values[i:i + CHUNK] for i in range(0, len(values), CHUNK)]
    return [base64.b64encode(struct.pack(f"<{len(c)}f", *c)).decode() for c in chunks]


def array(m, shape):
    return {"shape": shape, "values": texts(m)}


def node(name, *edges, **config):
    kind = config.pop("kind")
    return {"class_name": kind, "config": {"name": name, **config}, "name": name,
            "inbound_nodes": [[[e, 0, 0, {}] for e in edges]] if edges else []}


def lstm_node(name, units, *edges):
    return node(name, *edges, kind="LSTM", units=units, activation="tanh",
                recurrent_activation="sigmoid", use_bias=True, go_backwards=False,
                stateful=False, return_sequences=True, return_state=True)


def lstm_params(l):
    return {"weights": texts(l.w), "recurrent_weights": texts(l.u), "bias": texts(l.b)}


def states_out(names):
    return [[n, 0, k] for n in names for k in (1, 2)]


def write(name, layers, inputs, outputs, params, tests):
    j = {"architecture": {"class_name": "Functional",
                          "config": {"name": name, "layers": layers,
                                     "input_layers": [[i, 0, 0] for i in inputs],
                                     "output_layers": outputs}},
         "image_data_format": "channels_last", "tests": tests, "trainable_params": params}
    (here / f"tiny_{name}.ktn.model").write_text(json.dumps(j) + "\n")


here = pathlib.Path(__file__).parent
dense = matrix(I, D, 0.02)
enc = [Lstm(D, H[0]), Lstm(H[0], H[1])]
embed = matrix(V, E)
dec = [Lstm(E, H[0]), Lstm(H[0], H[1])]
out_w, out_b = matrix(H[-1], V, 3.0), draw(V, 0.3)

x = matrix(T, I, 2.0)
write("encoder",
      [node("input_1", kind="InputLayer", batch_input_shape=[None, T, I]),
       node("dense", "input_1", kind="Dense", units=D, activation="linear", use_bias=False),
       lstm_node("lstm", H[0], "dense"), lstm_node("lstm_1", H[1], "lstm")],
      ["input_1"], states_out(["lstm", "lstm_1"]),
      {"dense": {"weights": texts(dense)}, "lstm": lstm_params(enc[0]),
       "lstm_1": lstm_params(enc[1])},
      [{"inputs": [array(x, [T, I])],
        "outputs": [array(s, [len(s)]) for s in encode(x)]}])

before = [draw(n, 1.0) for n in (H[0], H[0], H[1], H[1])]
scores, after = decode(7, before)
names = [f"input_{i}" for i in range(2, 7)]
sizes = [H[0], H[0], H[1], H[1]]
write("decoder",
      [node(names[0], kind="InputLayer", batch_input_shape=[None, 1]),
       node("embedding", names[0], kind="Embedding", input_dim=V, output_dim=E,
            mask_zero=False)] +
      [node(n, kind="InputLayer", batch_input_shape=[None, s])
       for n, s in zip(names[1:], sizes)] +
      [lstm_node("lstm_2", H[0], "embedding", names[1], names[2]),
       lstm_node("lstm_3", H[1], "lstm_2", names[3], names[4]),
       node("dense_1", "lstm_3", kind="Dense", units=V, activation="linear", use_bias=True)],
      names, [["dense_1", 0, 0]] + states_out(["lstm_2", "lstm_3"]),
      {"embedding": {"weights": texts(embed)}, "lstm_2": lstm_params(dec[0]),
       "lstm_3": lstm_params(dec[1]),
       "dense_1": {"weights": texts(out_w), "bias": texts(out_b)}},
      [{"inputs": [array([7.0], [1])] + [array(s, [len(s)]) for s in before],
        "outputs": [array(scores, [V])] + [array(s, [len(s)]) for s in after]}])

(here / "tiny_metadata.ktn.model").write_text(json.dumps(
    {"predict_type": 0, "num_tuning_params": {"fwd": 3, "bwd": 3},
     "decodings": {"tunings": {str(i): str(v) for i, v in enumerate(TUNINGS)}}},
    indent=1) + "\n")


def problem(direction, half, sizes):
    diagonal = [1 if half else 2, int(direction == "F"), int(direction == "B")] + sizes
    return [[float(diagonal[i]) if i == j else 0.0 for j in range(I)] for i in range(T)]


def walk(x, choose):
    """Tokens and the logarithm of their probability among the positions' tokens."""
    states, token, logp, tokens = encode(x), 0, 0.0, []
    for p, mine in enumerate(POSITIONS):
        scores, states = decode(token, states)
        token = choose(p, scores)
        if token in mine:
            logp += scores[token] - math.log(sum(math.exp(scores[t]) for t in mine))
        tokens.append(token)
    return tokens, logp


for args in (("F", False, [64, 256, 14, 28, 32]), ("B", True, [512, 8, 7, 7, 4])):
    x = problem(*args)
    best = walk(x, lambda p, s: max(range(V), key=lambda t: s[t]))
    print(args, "greedy", [TUNINGS[t] for t in best[0]], best[0])
    every = []
    for a in POSITIONS[0]:
        for b in POSITIONS[1]:
            for c in POSITIONS[2]:
                every.append((walk(x, lambda p, s: (a, b, c)[p])[1],
                              [TUNINGS[t] for t in (a, b, c)]))
    for logp, values in sorted(every, reverse=True)[:4]:
        print("  %.9f" % logp, values)
