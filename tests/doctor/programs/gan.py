"""A generative adversarial network on points of a ring.

Fault (detached): the generator, too, learns from a detached fake.
"""

import math

import torch
import torch.nn as nn

torch.manual_seed(0)

latent_dim = 8
lr = 2e-4
n_steps = 12

generator = nn.Sequential(nn.Linear(latent_dim, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 2))
discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1), nn.Sigmoid())

adversarial_loss = nn.BCELoss()
optimizer_G = torch.optim.Adam(generator.parameters(), lr=lr, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=lr, betas=(0.5, 0.999))


def sample_real(n):
    angle = 2 * math.pi * torch.rand(n)
    return torch.stack([torch.cos(angle), torch.sin(angle)], dim=1) + 0.05 * torch.randn(n, 2)


for step in range(n_steps):
    real = sample_real(64)
    valid = torch.ones(64, 1)
    fake_label = torch.zeros(64, 1)

    # ---- train the discriminator
    z = torch.randn(64, latent_dim)
    gen = generator(z)
    optimizer_D.zero_grad()
    d_loss = (adversarial_loss(discriminator(real), valid) + adversarial_loss(discriminator(gen.detach()), fake_label)) / 2
    d_loss.backward()
    optimizer_D.step()

    # ---- train the generator
    optimizer_G.zero_grad()
    g_loss = adversarial_loss(discriminator(gen), valid)  # healthy
    # faulty: g_loss = adversarial_loss(discriminator(gen.detach()), valid)
    g_loss.backward()
    optimizer_G.step()

    print(f"[{step}/{n_steps}] D {d_loss.item():.4f} G {g_loss.item():.4f}")
