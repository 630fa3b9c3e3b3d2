"""Logistic regression without nn: two clouds of points, updates by hand.

Fault (rebound-leaf, no_grad): the update makes a new tensor under no_grad, which no longer requires a gradient.
"""

import torch

torch.manual_seed(4)
n = 80
X = torch.cat([torch.randn(n, 2) + 1.5, torch.randn(n, 2) - 1.5])
y = torch.cat([torch.ones(n), torch.zeros(n)])

theta = torch.zeros(2, requires_grad=True)
bias = torch.zeros(1, requires_grad=True)


def sigmoid(z):
    return 1 / (1 + torch.exp(-z))


def cost(h, y):
    return -(y * torch.log(h + 1e-7) + (1 - y) * torch.log(1 - h + 1e-7)).mean()


alpha = 0.5
for i in range(60):
    J = cost(sigmoid(X @ theta + bias), y)
    J.backward()
    with torch.no_grad():
        theta -= alpha * theta.grad  # healthy
        # faulty: theta = theta - alpha * theta.grad
        bias -= alpha * bias.grad
        theta.grad = None
        bias.grad = None
    if i % 20 == 0:
        print(f"{i}: J = {J.item():.4f}")
