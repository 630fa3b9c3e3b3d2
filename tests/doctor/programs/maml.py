"""Meta-learning in the manner of MAML: sine waves, one inner step, second order.

Fault (detached): the adapted weights start from `.data`, so the outer loss reaches no weight.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(31)


class SineNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.vars = nn.ParameterList()
        for n_out, n_in in ((20, 1), (20, 20), (1, 20)):
            w = nn.Parameter(torch.empty(n_out, n_in))
            nn.init.kaiming_normal_(w)
            self.vars.append(w)
            self.vars.append(nn.Parameter(torch.zeros(n_out)))

    def forward(self, x, vars=None):
        if vars is None:
            vars = list(self.vars)
        x = F.relu(F.linear(x, vars[0], vars[1]))
        x = F.relu(F.linear(x, vars[2], vars[3]))
        return F.linear(x, vars[4], vars[5])


def sample_task():
    amplitude, phase = 0.1 + 4.9 * torch.rand(()), math.pi * torch.rand(())
    x = 10 * torch.rand(20, 1) - 5
    y = amplitude * torch.sin(x + phase)
    return x[:10] / 5, y[:10], x[10:] / 5, y[10:]


net = SineNet()
meta_optim = torch.optim.Adam(net.parameters(), lr=1e-3)
update_lr, task_num = 0.01, 4

for step in range(8):
    losses_q = 0
    for _ in range(task_num):
        x_spt, y_spt, x_qry, y_qry = sample_task()
        loss = F.mse_loss(net(x_spt), y_spt)
        grad = torch.autograd.grad(loss, list(net.vars), create_graph=True)
        fast_weights = [p - update_lr * g for p, g in zip(net.vars, grad, strict=True)]  # healthy
        # faulty: fast_weights = [(p.data - update_lr * g.data).requires_grad_() for p, g in zip(net.vars, grad)]
        losses_q = losses_q + F.mse_loss(net(x_qry, fast_weights), y_qry)
    loss_q = losses_q / task_num
    meta_optim.zero_grad()
    loss_q.backward()
    meta_optim.step()
    print("step:", step, "loss:", loss_q.item())
