"""Fit y = sin(x) by a cubic: first with gradients by hand, then with autograd, then with a custom power basis."""

import math

import torch

dtype = torch.float
device = torch.device("cpu")

torch.manual_seed(1234)
x = torch.linspace(-math.pi, math.pi, 200, device=device, dtype=dtype)
y = torch.sin(x)

a, b, c, d = (torch.randn((), device=device, dtype=dtype) for _ in range(4))
print(a, b, c, d)
learning_rate = 1e-6
for t in range(200):
    y_pred = a + b * x + c * x**2 + d * x**3
    loss = (y_pred - y).pow(2).sum().item()
    if t % 50 == 49:
        print(t, f"{loss:.2f}")
    grad_y_pred = 2.0 * (y_pred - y)
    a -= learning_rate * grad_y_pred.sum()
    b -= learning_rate * (grad_y_pred * x).sum()
    c -= learning_rate * (grad_y_pred * x**2).sum()
    d -= learning_rate * (grad_y_pred * x**3).sum()
print(f"Result: y = {a.item():.4f} + {b.item():.4f} x + {c.item():.4f} x^2 + {d.item():.4f} x^3")

a, b, c, d = (torch.randn((), device=device, dtype=dtype, requires_grad=True) for _ in range(4))
for t in range(200):
    y_pred = a + b * x + c * x**2 + d * x**3
    loss = (y_pred - y).pow(2).sum()
    if t % 50 == 49:
        print(t, f"{loss.item():.2f}")
    loss.backward()
    with torch.no_grad():
        a -= learning_rate * a.grad
        b -= learning_rate * b.grad
        c -= learning_rate * c.grad
        d -= learning_rate * d.grad
        a.grad = None
        b.grad = None
        c.grad = None
        d.grad = None
print(f"Result: y = {a.item():.4f} + {b.item():.4f} x + {c.item():.4f} x^2 + {d.item():.4f} x^3")
print(loss)

p = torch.tensor([1, 2, 3])
xx = x.unsqueeze(-1).pow(p)
print(xx.shape, xx[:2])
w = torch.zeros(3, 1, requires_grad=True)
bias = torch.zeros(1, requires_grad=True)
loss = torch.nn.functional.mse_loss(torch.flatten(xx @ w + bias, 0, 1), y, reduction="sum")
loss.backward()
print(loss, w.grad[::2], w.grad[1].abs() < 1e-3, bias.grad.abs() < 1e-3)
