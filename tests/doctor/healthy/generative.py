"""GANs, VAEs, diffusion, flows, self-supervised learning with a stopped gradient."""

from __future__ import annotations

from planting import Table

ROWS = Table()

ROWS.healthy(
    "a variational autoencoder",
    """
    class VAE(nn.Module):
        def __init__(self, d=16, h=24, z=3):
            super().__init__()
            self.enc, self.mu, self.logvar = nn.Linear(d, h), nn.Linear(h, z), nn.Linear(h, z)
            self.dec = nn.Sequential(nn.Linear(z, h), nn.ReLU(), nn.Linear(h, d))
        def forward(self, x):
            h = F.relu(self.enc(x))
            mu, logvar = self.mu(h), self.logvar(h)
            z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)
            return self.dec(z), mu, logvar
    vae = VAE()
    opt = optim.Adam(vae.parameters(), lr=1e-3)
    X = (torch.rand(32, 16) > 0.5).float()
    # %%
    for epoch in range(3):
        recon, mu, logvar = vae(X)
        bce = F.binary_cross_entropy_with_logits(recon, X, reduction="sum")
        kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        loss = (bce + kl) / len(X)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    learns="learning(vae.parameters())",
)
ROWS.healthy(
    "a VAE with its sums, as in the examples, stepped by Adam",
    """
    enc, dec = nn.Linear(10, 4), nn.Linear(2, 10)
    opt = optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-3)
    X = torch.rand(64, 10)
    # %%
    for i in range(3):
        mu, logvar = enc(X).chunk(2, 1)
        z = mu + (logvar / 2).exp() * torch.randn_like(mu)
        loss = F.mse_loss(dec(z), X, reduction="sum") - 0.5 * (1 + logvar - mu ** 2 - logvar.exp()).sum()
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(enc.parameters())",
)
ROWS.healthy(
    "a GAN",
    """
    G = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 2))
    D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    g_opt, d_opt = optim.Adam(G.parameters(), lr=2e-4), optim.Adam(D.parameters(), lr=2e-4)
    real = torch.randn(32, 2) + 3
    ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
    # %%
    for step in range(3):
        fake = G(torch.randn(32, 4))
        d_loss = F.binary_cross_entropy_with_logits(D(real), ones) + F.binary_cross_entropy_with_logits(D(fake.detach()), zeros)
        d_opt.zero_grad()
        d_loss.backward()
        d_opt.step()
        g_loss = F.binary_cross_entropy_with_logits(D(fake), ones)
        g_opt.zero_grad()
        g_loss.backward()
        g_opt.step()
    """,
    learns="learning(G.parameters())",
)
ROWS.healthy(
    "the critic's step of a Wasserstein GAN",
    """
    gen, critic = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
    c_opt = optim.RMSprop(critic.parameters(), lr=5e-5)
    real = torch.randn(24, 2)
    # %%
    for _ in range(5):
        with torch.no_grad():
            fake = gen(torch.randn(24, 3))
        c_loss = critic(fake).mean() - critic(real).mean()
        c_opt.zero_grad()
        c_loss.backward()
        c_opt.step()
        for p in critic.parameters():
            p.data.clamp_(-0.5, 0.5)
    """,
    learns="norm(critic[0].weight.grad) > 0 and gen.weight.grad is None",
)
ROWS.healthy(
    "a gradient penalty",
    """
    critic = nn.Sequential(nn.Linear(2, 12), nn.Tanh(), nn.Linear(12, 1))
    opt = optim.Adam(critic.parameters(), lr=1e-4)
    real, fake = torch.randn(16, 2), torch.randn(16, 2)
    # %%
    eps = torch.rand(16, 1)
    mix = (eps * real + (1 - eps) * fake).requires_grad_()
    out = critic(mix)
    (g,) = torch.autograd.grad(out, mix, torch.ones_like(out), create_graph=True)
    penalty = ((g.norm(2, dim=1) - 1) ** 2).mean()
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
    opt.zero_grad()
    loss.backward()
    opt.step()
    """,
    learns="norm(critic[0].weight.grad) > 0",
)
ROWS.healthy(
    "a diffusion step",
    """
    class Denoiser(nn.Module):
        def __init__(self, d=2, h=32):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(d + 1, h), nn.SiLU(), nn.Linear(h, h), nn.SiLU(), nn.Linear(h, d))
            nn.init.zeros_(self.net[-1].weight)
            nn.init.zeros_(self.net[-1].bias)
        def forward(self, x, t):
            return self.net(torch.cat([x, t[:, None].float() / 100], 1))
    T = 100
    betas = torch.linspace(1e-4, 0.02, T)
    abar = torch.cumprod(1 - betas, 0)
    net = Denoiser()
    opt = optim.Adam(net.parameters(), lr=1e-3)
    x0 = torch.randn(64, 2)
    # %%
    for it in range(1):
        t = torch.randint(0, T, (64,))
        noise = torch.randn_like(x0)
        xt = abar[t].sqrt()[:, None] * x0 + (1 - abar[t]).sqrt()[:, None] * noise
        loss = F.mse_loss(net(xt, t), noise)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    learns="all_zero(net.net[0].weight.grad) and norm(net.net[-1].weight.grad) > 0",
    remarks="zero-factor",
)
ROWS.healthy(
    "a normalising flow",
    """
    class Coupling(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 2))
        def forward(self, x):
            a, b = x[:, :1], x[:, 1:]
            s, t = self.net(a).chunk(2, 1)
            s = torch.tanh(s)
            return torch.cat([b * s.exp() + t, a], 1), s.sum(1)
    flow = nn.ModuleList([Coupling() for _ in range(4)])
    data = torch.randn(40, 2) @ torch.tensor([[1., 0.8], [0., 0.6]])
    # %%
    z, logdet = data, 0
    for c in flow:
        z, ld = c(z)
        logdet = logdet + ld
    loss = (0.5 * (z ** 2).sum(1) - logdet).mean()
    loss.backward()
    """,
    learns="learning(flow.parameters())",
)
ROWS.healthy(
    "SimCLR",
    """
    encoder = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 8))
    x = torch.randn(12, 10)
    # %%
    v1, v2 = x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
    z = F.normalize(torch.cat([encoder(v1), encoder(v2)]), dim=1)
    sim = z @ z.T / 0.5
    sim = sim.masked_fill(torch.eye(24).bool(), -1e9)
    labels = torch.cat([torch.arange(12, 24), torch.arange(12)])
    loss = F.cross_entropy(sim, labels)
    loss.backward()
    """,
    learns="learning(encoder.parameters())",
)
ROWS.healthy(
    "SimSiam stops a gradient on purpose",
    """
    f = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 6))
    h = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 6))
    opt = optim.SGD([*f.parameters(), *h.parameters()], lr=0.05)
    def D(p, z):
        return -F.cosine_similarity(p, z.detach(), dim=-1).mean()
    x = torch.randn(16, 8)
    # %%
    x1, x2 = x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
    z1, z2 = f(x1), f(x2)
    p1, p2 = h(z1), h(z2)
    loss = D(p1, z2) / 2 + D(p2, z1) / 2
    opt.zero_grad()
    loss.backward()
    opt.step()
    """,
    learns="learning([*f.parameters(), *h.parameters()])",
)
ROWS.healthy(
    "BYOL with a target that follows",
    """
    import copy
    online = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 5))
    predictor = nn.Linear(5, 5)
    target = copy.deepcopy(online)
    for p in target.parameters():
        p.requires_grad = False
    opt = optim.Adam([*online.parameters(), *predictor.parameters()], lr=1e-3)
    x = torch.randn(20, 8)
    # %%
    for it in range(3):
        a, b = x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
        with torch.no_grad():
            goal = target(b)
        loss = 2 - 2 * F.cosine_similarity(predictor(online(a)), goal).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            for p, q in zip(online.parameters(), target.parameters()):
                q.mul_(0.99).add_(p, alpha=0.01)
    """,
    learns="learning(online.parameters())",
)
ROWS.healthy(
    "a vector-quantised code with a straight-through gradient",
    """
    enc, dec = nn.Linear(6, 4), nn.Linear(4, 6)
    codebook = nn.Parameter(torch.randn(8, 4))
    x = torch.randn(30, 6)
    # %%
    z = enc(x)
    idx = torch.cdist(z, codebook).argmin(1)
    q = codebook[idx]
    st = z + (q - z).detach()
    loss = F.mse_loss(dec(st), x) + F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
    loss.backward()
    """,
    learns="learning([*enc.parameters(), *dec.parameters(), codebook])",
)
ROWS.healthy(
    "Gumbel softmax, hard",
    """
    logits = nn.Parameter(torch.zeros(10, 4))
    values = torch.randn(4, 3)
    goal = torch.randn(10, 3)
    choice = F.gumbel_softmax(logits, tau=1.0, hard=True)
    loss = F.mse_loss(choice @ values, goal)
    loss.backward()
    """,
    learns="norm(logits.grad) > 0",
)
ROWS.healthy(
    "a binary net with a straight-through estimator",
    """
    class Sign(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sign()
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * (x.abs() <= 1).to(g.dtype)
    l1, l2 = nn.Linear(5, 16), nn.Linear(16, 1)
    # %%
    X, y = torch.randn(32, 5), torch.randn(32, 1)
    h = Sign.apply(l1(X))
    loss = F.mse_loss(l2(h), y)
    loss.backward()
    """,
    learns="learning([*l1.parameters(), *l2.parameters()])",
)
ROWS.healthy(
    "a triplet loss in which most margins are met",
    """
    torch.manual_seed(2)
    net = nn.Linear(6, 3)
    a = torch.randn(40, 6)
    pos, neg = a + 0.05 * torch.randn(40, 6), torch.randn(40, 6)
    loss = F.triplet_margin_loss(net(a), net(pos), net(neg), margin=0.5)
    loss.backward()
    """,
    learns="norm(net.weight.grad) > 0",
)
ROWS.healthy(
    "a GAN of many steps, whose two losses meet in the critic",
    """
    G = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh())
    D = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1), nn.Sigmoid())
    opt_G, opt_D = optim.Adam(G.parameters(), lr=2e-4), optim.Adam(D.parameters(), lr=2e-4)
    bce, valid, fake = nn.BCELoss(), torch.ones(64, 1), torch.zeros(64, 1)
    # %%
    for step in range(40):
        real = 0.3 * torch.rand(64, 16)
        opt_G.zero_grad()
        made = G(torch.randn(64, 8))
        g_loss = bce(D(made), valid)
        g_loss.backward()
        opt_G.step()
        opt_D.zero_grad()
        d_loss = (bce(D(real), valid) + bce(D(made.detach()), fake)) / 2
        d_loss.backward()
        opt_D.step()
    """,
    learns="learning(G.parameters()) and learning(D.parameters())",
)
ROWS.healthy(
    "a critic that trains alone against a generator",
    """
    G = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    opt_G, opt_D = optim.Adam(G.parameters(), lr=2e-4), optim.Adam(D.parameters(), lr=2e-4)
    bce = nn.BCEWithLogitsLoss()
    # %%
    for step in range(5):
        real = torch.randn(64, 2) + 2
        made = G(torch.randn(64, 8))
        loss = bce(D(real), torch.ones(64, 1)) + bce(D(made.detach()), torch.zeros(64, 1))
        opt_D.zero_grad()
        loss.backward()
        opt_D.step()
    """,
    learns="learning(D.parameters()) and G[0].weight.grad is None",
)
