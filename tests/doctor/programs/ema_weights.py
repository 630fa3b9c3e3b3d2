"""A classifier whose weights are averaged exponentially for evaluation.

Fault (update-ratio, exploding): the learning rate is four orders of magnitude too large.
"""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(27)


class EMA:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = copy.deepcopy(model).eval()
        for p in self.shadow.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters(), strict=True):
            s.mul_(self.decay).add_(p, alpha=1 - self.decay)


cfg = {"lr": 5e-2, "steps": 40, "decay": 0.95}  # healthy
# faulty: cfg = {"lr": 5e2, "steps": 40, "decay": 0.95}

model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
ema = EMA(model, cfg["decay"])
optimizer = torch.optim.SGD(model.parameters(), lr=cfg["lr"], momentum=0.9)

for step in range(cfg["steps"]):
    inputs = torch.randn(64, 6)
    labels = inputs[:, :3].argmax(dim=1)
    loss = F.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # cause
    ema.update(model)

with torch.no_grad():
    inputs = torch.randn(500, 6)
    acc = (ema.shadow(inputs).argmax(1) == inputs[:, :3].argmax(1)).float().mean()
print(f"loss {loss.item():.3f}, averaged weights' accuracy {acc:.2f}")
