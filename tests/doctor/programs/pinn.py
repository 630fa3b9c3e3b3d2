"""A physics-informed network for u'' = -u, u(0) = 0, u'(0) = 1.

Note (detached): the second derivative is taken without its graph, so the equation teaches nothing.
"""

import torch
import torch.nn as nn

torch.manual_seed(123)


class PINN(nn.Module):
    def __init__(self, hidden=20):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, t):
        return self.net(t)


def derivative(y, x):
    return torch.autograd.grad(y, x, grad_outputs=torch.ones_like(y), create_graph=True)[0]  # healthy
    # faulty: return torch.autograd.grad(y, x, grad_outputs=torch.ones_like(y), retain_graph=True)[0]


pinn = PINN()
t_boundary = torch.zeros(1, 1, requires_grad=True)
t_physics = torch.linspace(0, 3, 30).view(-1, 1).requires_grad_(True)
optimizer = torch.optim.Adam(pinn.parameters(), lr=1e-3)

for i in range(40):
    optimizer.zero_grad()
    u = pinn(t_boundary)
    dudt = torch.autograd.grad(u, t_boundary, torch.ones_like(u), create_graph=True)[0]
    loss1 = u.squeeze() ** 2 + (dudt.squeeze() - 1) ** 2

    u = pinn(t_physics)
    d2udt2 = derivative(torch.autograd.grad(u, t_physics, torch.ones_like(u), create_graph=True)[0], t_physics)
    loss2 = torch.mean((d2udt2 + u) ** 2)

    loss = loss1 + 1e-1 * loss2
    loss.backward()
    optimizer.step()
    if i % 10 == 0:
        print(i, loss1.item(), loss2.item())
