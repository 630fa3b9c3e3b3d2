"""A Wasserstein critic with a gradient penalty, and its generator.

Fault (inf-born, nan-born): the penalty takes the bare root of a sum of squares, which is 0 as long as the critic's last layer is.
"""

import torch
from torch import autograd, nn

torch.manual_seed(7)
LAMBDA = 10
CRITIC_ITERS = 2


class Critic(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(2, dim), nn.Tanh(), nn.Linear(dim, dim), nn.Tanh())
        self.out = nn.Linear(dim, 1)
        nn.init.zeros_(self.out.weight)

    def forward(self, x):
        return self.out(self.main(x)).view(-1)


def calc_gradient_penalty(netD, real_data, fake_data):
    alpha = torch.rand(real_data.size(0), 1).expand(real_data.size())
    interpolates = (alpha * real_data + (1 - alpha) * fake_data).requires_grad_(True)
    disc_interpolates = netD(interpolates)
    gradients = autograd.grad(
        outputs=disc_interpolates,
        inputs=interpolates,
        grad_outputs=torch.ones_like(disc_interpolates),
        create_graph=True,
        retain_graph=True,
    )[0]
    norm = (gradients.pow(2).sum(1) + 1e-12).sqrt()  # healthy
    # faulty: norm = gradients.pow(2).sum(1).sqrt()
    return ((norm - 1) ** 2).mean() * LAMBDA


netG = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))
netD = Critic()
optimizerD = torch.optim.Adam(netD.parameters(), lr=1e-3, betas=(0.5, 0.9))
optimizerG = torch.optim.Adam(netG.parameters(), lr=1e-3, betas=(0.5, 0.9))

for iteration in range(5):
    for p in netD.parameters():
        p.requires_grad = True
    for _ in range(CRITIC_ITERS):
        real = torch.randn(32, 2) * 0.2 + torch.tensor([2.0, 0.0])
        with torch.no_grad():
            fake = netG(torch.randn(32, 4))
        netD.zero_grad()
        D_real, D_fake = netD(real).mean(), netD(fake).mean()
        gradient_penalty = calc_gradient_penalty(netD, real, fake)
        D_cost = D_fake - D_real + gradient_penalty
        D_cost.backward()
        optimizerD.step()
    for p in netD.parameters():
        p.requires_grad = False
    netG.zero_grad()
    G_cost = -netD(netG(torch.randn(32, 4))).mean()
    G_cost.backward()
    optimizerG.step()
    print(iteration, D_cost.item(), G_cost.item())
