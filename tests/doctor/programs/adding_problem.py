"""A recurrent network that must remember over sixty steps.

Fault (recurrent, vanishing): the recurrent weights start far too small.
"""

import torch
import torch.nn as nn

torch.manual_seed(34)
T = 60


class VanillaRNN(nn.Module):
    def __init__(self, n_in=2, n_hidden=24):
        super().__init__()
        self.W_xh = nn.Linear(n_in, n_hidden)
        self.W_hh = nn.Linear(n_hidden, n_hidden, bias=False)
        self.W_hy = nn.Linear(n_hidden, 1)
        nn.init.orthogonal_(self.W_hh.weight)  # healthy
        # faulty: nn.init.normal_(self.W_hh.weight, std=0.02)

    def forward(self, x):
        h = torch.zeros(x.size(0), self.W_hh.in_features)
        for t in range(x.size(1)):
            h = torch.tanh(self.W_xh(x[:, t]) + self.W_hh(h))  # cause
        return self.W_hy(h).squeeze(1)


def batch(n=32):
    numbers, marks = torch.rand(n, T), torch.zeros(n, T)
    marks[torch.arange(n), torch.randint(0, T // 2, (n,))] = 1
    marks[torch.arange(n), torch.randint(T // 2, T, (n,))] = 1
    return torch.stack([numbers, marks], dim=2), (numbers * marks).sum(1)


rnn = VanillaRNN()
optim = torch.optim.Adam(rnn.parameters(), lr=1e-3)
for step in range(6):
    x, y = batch()
    loss = nn.functional.mse_loss(rnn(x), y)
    optim.zero_grad()
    loss.backward()
    optim.step()
    print(step, loss.item())
