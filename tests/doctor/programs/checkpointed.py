"""Blocks whose activations are computed again in the backward pass.

Fault (checkpoint-without-grad): the reentrant form is given inputs that require no gradient, and the first block never learns.
"""

import warnings

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

warnings.simplefilter("ignore")
torch.manual_seed(25)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.ff = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        return x + self.ff(self.norm(x))


class DeepNet(nn.Module):
    def __init__(self, width=16, depth=4):
        super().__init__()
        self.layers = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = checkpoint(layer, x, use_reentrant=False)  # healthy
            # faulty: x = checkpoint(layer, x, use_reentrant=(i == 0))
        return self.head(x)


model = DeepNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(10):
    x = torch.randn(32, 16)
    y = (x.sum(1) > 0).long()
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
