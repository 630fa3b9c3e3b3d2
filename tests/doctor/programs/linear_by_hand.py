"""Linear regression without nn: two tensors, mean squared error, updates by hand.

Fault (accumulated): the gradients are never zeroed.
"""

import torch

torch.manual_seed(0)

x = torch.rand(100, 1)
y = 3 * x + 2 + 0.05 * torch.randn(100, 1)

w = torch.randn(1, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
lr = 0.3

for epoch in range(50):
    y_pred = x.mm(w) + b
    loss = (y_pred - y).pow(2).mean()
    loss.backward()  # cause
    with torch.no_grad():
        w -= lr * w.grad  # cause
        b -= lr * b.grad
        w.grad.zero_()  # healthy
        b.grad.zero_()  # healthy

print("w", w.item(), "b", b.item(), "loss", loss.item())
