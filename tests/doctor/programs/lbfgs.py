"""A small fit with L-BFGS and its closure.

Fault (step-before-backward, accumulated): the closure does not compute gradients.
"""

import torch
import torch.nn as nn

torch.manual_seed(29)

t = torch.linspace(0, 1, 40).unsqueeze(1)
signal = torch.exp(-3 * t) * torch.cos(12 * t)


class Damped(nn.Module):
    def __init__(self):
        super().__init__()
        self.decay = nn.Parameter(torch.tensor(1.0))
        self.freq = nn.Parameter(torch.tensor(10.0))
        self.amp = nn.Parameter(torch.tensor(0.5))

    def forward(self, t):
        return self.amp * torch.exp(-self.decay * t) * torch.cos(self.freq * t)


model = Damped()
criterion = nn.MSELoss()
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=10)


def closure():
    optimizer.zero_grad()
    loss = criterion(model(t), signal)
    loss.backward()  # healthy
    return loss


for i in range(4):
    loss = optimizer.step(closure)  # cause
    print("STEP", i, "loss:", loss.item())
