"""A deep narrow network on two moons.

Fault (vanishing, saturated): sigmoids between all of its fourteen layers, at PyTorch's default initial weights.
"""

import torch
import torch.nn as nn

torch.manual_seed(37)


def two_moons(n=128, noise=0.1):
    angle = torch.pi * torch.rand(n)
    upper = torch.arange(n) % 2
    x = torch.where(upper == 1, angle.cos(), 1 - angle.cos())
    y = torch.where(upper == 1, angle.sin(), 0.5 - angle.sin())
    return torch.stack([x, y], 1) + noise * torch.randn(n, 2), upper.float().unsqueeze(1)


def build(depth=14, width=24):
    layers, n_in = [], 2
    for _ in range(depth):
        linear = nn.Linear(n_in, width)
        nn.init.kaiming_normal_(linear.weight)  # healthy
        layers += [linear, nn.ReLU()]  # healthy
        # faulty: layers += [linear, nn.Sigmoid()]
        n_in = width
    return nn.Sequential(*layers, nn.Linear(width, 1))


net = build()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
bce = nn.BCEWithLogitsLoss()
for epoch in range(8):
    X, y = two_moons()
    loss = bce(net(X), y)  # cause
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
