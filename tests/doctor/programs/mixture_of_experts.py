"""A mixture of experts: a gate chooses the two best of four, with a balancing term.

Fault (non-differentiable): the gate's weights are rounded to yes and no.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(14)


class Expert(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, h), nn.ReLU(), nn.Linear(h, d))

    def forward(self, x):
        return self.net(x)


class MoE(nn.Module):
    def __init__(self, d=8, h=16, n_experts=4, k=2):
        super().__init__()
        self.experts = nn.ModuleList(Expert(d, h) for _ in range(n_experts))
        self.gate = nn.Linear(d, n_experts, bias=False)
        self.k = k

    def forward(self, x):
        weights = F.softmax(self.gate(x), dim=-1)
        top, chosen = weights.topk(self.k, dim=-1)
        top = top / top.sum(-1, keepdim=True)
        # faulty: top = (top > 0.5).float()
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            token, slot = torch.where(chosen == e)
            if len(token):
                out = out.index_add(0, token, top[token, slot, None] * expert(x[token]))
        return out


moe = MoE()
readout = nn.Linear(8, 1)
params = list(moe.parameters()) + list(readout.parameters())
optimizer = torch.optim.Adam(params, lr=5e-3)

for step in range(20):
    x = torch.randn(64, 8)
    y = torch.where(x[:, :1] > 0, x[:, 1:2] * 2, -x[:, 2:3])
    loss = F.mse_loss(readout(moe(x)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.4f}")
