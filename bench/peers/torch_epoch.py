# SPDX-License-Identifier: MIT
"""Seconds of an epoch of the encoder-decoder network of src/model/seq.c (`attention`) in PyTorch, on random rows.

    torch_epoch.py eager|compile ROWS THREADS

A line with the number of parameters, then one with the seconds of an epoch for each line that comes in."""
import os
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

TOKENS, WORDS, BATCH = 8, 304, 128
VALUES = (4, 5, 8, 5, 4, 3, 3, 4)
EMBED, HIDDEN, DROPOUT, SMOOTHING = 48, 224, 0.2, 0.05


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        total = sum(VALUES)
        self.embed = nn.Embedding(WORDS, EMBED)
        self.encoder = nn.LSTM(EMBED, HIDDEN // 2, bidirectional=True)
        self.start = nn.Linear(HIDDEN, 2 * HIDDEN)
        self.out_embed = nn.Embedding(total + 1, EMBED)
        self.decoder = nn.LSTM(EMBED, HIDDEN)
        self.query = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.mix = nn.Linear(2 * HIDDEN, HIDDEN)
        self.heads = nn.ModuleList(nn.Linear(HIDDEN, n) for n in VALUES)
        firsts = [1 + sum(VALUES[:p]) for p in range(len(VALUES) - 1)]
        self.register_buffer("firsts", torch.tensor(firsts).unsqueeze(1))

    def forward(self, tokens, targets):  # [T][B], [P][B]
        x = F.dropout(self.embed(tokens), DROPOUT, self.training)
        enc, (h, _) = self.encoder(x)  # [T][B][H]
        enc = F.dropout(enc, DROPOUT, self.training)
        h0, c0 = torch.tanh(self.start(torch.cat((h[0], h[1]), 1))).chunk(2, 1)
        words = torch.cat((torch.zeros_like(targets[:1]), targets[:-1] + self.firsts))
        h, _ = self.decoder(self.out_embed(words), (h0.unsqueeze(0).contiguous(), c0.unsqueeze(0).contiguous()))
        keys = enc.transpose(0, 1)  # [B][T][H]
        weights = torch.softmax(torch.bmm(self.query(h).transpose(0, 1), keys.transpose(1, 2)) / HIDDEN ** 0.5, 2)
        context = torch.bmm(weights, keys).transpose(0, 1)
        out = F.dropout(torch.tanh(self.mix(torch.cat((h, context), 2))), DROPOUT, self.training)
        losses = [F.cross_entropy(head(out[p]), targets[p], label_smoothing=SMOOTHING) for p, head in enumerate(self.heads)]
        return torch.stack(losses).mean()


def main():
    mode, rows, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = Attention()
    step = torch.compile(model) if mode == "compile" else model
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    tokens = torch.randint(WORDS, (rows, TOKENS))
    targets = torch.stack([torch.randint(n, (rows,)) for n in VALUES], 1)
    print(sum(p.numel() for p in model.parameters()), "parameters,", "torch", torch.__version__, mode, flush=True)
    for _ in sys.stdin:
        begun = time.perf_counter()
        total = 0.0
        for i in torch.randperm(rows).split(BATCH):
            loss = step(tokens[i].T.contiguous(), targets[i].T.contiguous())
            adam.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()
            total += loss.item() * len(i)
        print(f"{time.perf_counter() - begun:.6f}", flush=True)


if __name__ == "__main__":
    main()
