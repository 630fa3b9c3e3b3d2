"""Denoising diffusion in two dimensions, with an embedding of the time.

Fault (no_grad): the time's embedding is computed under no_grad, and its layers never learn.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(99)

T = 50
betas = torch.linspace(1e-4, 0.02, T)
alphas_bar = torch.cumprod(1 - betas, dim=0)


def sinusoidal(t: torch.Tensor, dim: int = 16) -> torch.Tensor:
    freqs = torch.exp(-torch.arange(dim // 2) * 0.7)
    args = t.float()[:, None] * freqs[None]
    return torch.cat([torch.sin(args), torch.cos(args)], dim=-1)


class Denoiser(nn.Module):
    def __init__(self, dim: int = 2, hidden: int = 48) -> None:
        super().__init__()
        self.time_mlp = nn.Sequential(nn.Linear(16, hidden), nn.SiLU(), nn.Linear(hidden, hidden))
        self.inp = nn.Linear(dim, hidden)
        self.mid = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, dim)

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        emb = self.time_mlp(sinusoidal(t))  # healthy
        # faulty: with torch.no_grad():
        # faulty:     emb = self.time_mlp(sinusoidal(t))
        h = F.silu(self.inp(x) + emb)
        h = F.silu(self.mid(h)) + h
        return self.out(h)


def q_sample(x0: torch.Tensor, t: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    ab = alphas_bar[t][:, None]
    return ab.sqrt() * x0 + (1 - ab).sqrt() * noise


def training_step(model: nn.Module, x0: torch.Tensor) -> torch.Tensor:
    t = torch.randint(0, T, (x0.shape[0],))
    noise = torch.randn_like(x0)
    return F.mse_loss(model(q_sample(x0, t, noise), t), noise)


model = Denoiser()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(30):
    theta = 6 * torch.rand(64)
    x0 = torch.stack([theta.cos() * theta, theta.sin() * theta], dim=1) / 3
    loss = training_step(model, x0)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"final loss {loss.item():.4f}")
