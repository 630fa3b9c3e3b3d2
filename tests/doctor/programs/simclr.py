"""Contrastive learning in the manner of SimCLR: two noisy views, the NT-Xent loss.

Fault (nan-born, inf-born): exponentials of the similarities are summed by hand, and overflow at this temperature.
"""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(17)
TEMPERATURE = 0.01


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU())
        self.projector = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        return self.projector(self.backbone(x))


def nt_xent(z_i, z_j):
    n = z_i.size(0)
    z = F.normalize(torch.cat([z_i, z_j]), dim=1)
    sim = z @ z.T / TEMPERATURE
    own = torch.eye(2 * n, dtype=torch.bool)
    sim = sim.masked_fill(own, float("-inf"))
    partner = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(sim, partner)  # healthy
    # faulty: e = torch.exp(sim)
    # faulty: return -torch.log(e[torch.arange(2 * n), partner] / e.sum(dim=1)).mean()


def augment(x):
    return x * (torch.rand_like(x) > 0.1) + 0.1 * torch.randn_like(x)


data = torch.randn(256, 20)
model = Encoder()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
for epoch in range(4):
    for batch in data[torch.randperm(256)].split(64):
        loss = nt_xent(model(augment(batch)), model(augment(batch)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f}")
