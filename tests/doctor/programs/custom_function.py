"""A quantised autoencoder with a straight-through estimator written as an autograd.Function.

Fault (non-differentiable, zero-factor): the codes are rounded without the estimator, so no gradient reaches the encoder.
"""

import torch
from torch import nn
from torch.autograd import Function

torch.manual_seed(26)


class RoundSTE(Function):
    @staticmethod
    def forward(ctx, x, levels):
        return torch.round(x * levels) / levels

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None


class Quantiser(nn.Module):
    def __init__(self, levels=8):
        super().__init__()
        self.levels = levels

    def forward(self, x):
        return RoundSTE.apply(x, self.levels)  # healthy
        # faulty: return torch.round(x * self.levels) / self.levels


encoder = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 4), nn.Tanh())
quantise = Quantiser()
decoder = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 12))
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
basis = torch.randn(4, 12)
for step in range(30):
    batch = torch.randn(64, 4) @ basis
    codes = quantise(encoder(batch))
    loss = (decoder(codes) - batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("reconstruction", loss.item())
