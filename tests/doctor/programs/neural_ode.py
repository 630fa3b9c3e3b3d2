"""A neural differential equation solved by Euler steps, fitted to a spiral.

Fault (exploding, recurrent): the step is 1 instead of 1 over their number.
"""

import torch
import torch.nn as nn

torch.manual_seed(15)


class ODEFunc(nn.Module):
    def __init__(self, dim=2, hidden=16):
        super().__init__()
        self.linear1 = nn.Linear(dim, hidden)
        self.linear2 = nn.Linear(hidden, dim)

    def forward(self, t, y):
        return self.linear2(torch.nn.functional.elu(self.linear1(y))) + 0.5 * y


def odeint(func, y0, steps):
    dt = 1.0 / steps  # healthy
    # faulty: dt = 1.0
    y, t = y0, 0.0
    for _ in range(steps):
        y = y + dt * func(t, y)  # cause
        t += dt
    return y


A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
y0 = torch.randn(32, 2)
y1 = y0 @ torch.matrix_exp(A).T

func = ODEFunc()
optimizer = torch.optim.RMSprop(func.parameters(), lr=1e-3)
for itr in range(5):
    optimizer.zero_grad()
    pred = odeint(func, y0, steps=30)
    loss = torch.mean(torch.abs(pred - y1))
    loss.backward()
    optimizer.step()
    print("Iter {:04d} | Total Loss {:.6f}".format(itr, loss.item()))
