"""Logarithms, roots, quotients and exponentials that cannot reach a point where they are infinite, or are far from it."""

from __future__ import annotations

from planting import Table

ROWS = Table()

ROWS.healthy(
    "the stable functions",
    """
    x, y = torch.randn(16, 5), torch.arange(16) % 3
    w = torch.randn(5, 3, requires_grad=True)
    z = x @ w
    loss = F.cross_entropy(z, y) - F.log_softmax(z, 1)[torch.arange(16), y].mean() - F.logsigmoid(z).mean()
    loss = loss + torch.logsumexp(z, 1).mean() + F.softplus(z).mean() + (torch.softmax(z, 1) * torch.log_softmax(z, 1)).mean()
    loss = loss + F.binary_cross_entropy_with_logits(z[:, 0], (y > 0).float())
    loss.backward()
    """,
    learns="norm(w.grad) > 0",
)
ROWS.healthy(
    "logarithms of probabilities with a small number or a clamp",
    """
    z = torch.randn(20, 4, requires_grad=True)
    p, eps = torch.softmax(z, 1), 1e-8
    entropy = -(p * torch.log(p + eps)).sum(1).mean()
    s = torch.sigmoid(z[:, 0])
    t = (torch.arange(20) % 2).float()
    bce = -(t * torch.log(s + 1e-7) + (1 - t) * torch.log(1 - s + 1e-7)).mean()
    clamped = -torch.log(torch.softmax(z * 3, 1).clamp(min=1e-10)).mean() - torch.log(s.clamp(eps, 1 - eps)).mean()
    (entropy + bce + clamped).backward()
    """,
    learns="norm(z.grad) > 0",
)
ROWS.healthy(
    "a softmax by hand with the largest element subtracted",
    """
    x, W = torch.randn(12, 5), torch.randn(5, 3, requires_grad=True)
    y = torch.arange(12) % 3
    logits = x @ W
    norm_logits = logits - logits.max(1, keepdim=True).values
    counts = norm_logits.exp()
    probs = counts / counts.sum(1, keepdim=True)
    loss = -probs[range(12), y].log().mean()
    loss.backward()
    """,
    learns="norm(W.grad) > 0",
)
ROWS.healthy(
    "a temperature, and the largest element subtracted without its gradient",
    """
    z = torch.randn(6, 4, requires_grad=True)
    s = z / 0.1
    e = torch.exp(s - s.amax(1, keepdim=True).detach())
    p = e / e.sum(1, keepdim=True)
    m = z.max()
    free = m + torch.log(torch.exp(z - m).sum())
    ((p * z).sum() + free).backward()
    """,
    learns="norm(z.grad) > 0",
)
ROWS.healthy(
    "kernel regression",
    """
    t, centres = torch.linspace(0, 1, 15), torch.linspace(0, 1, 6)
    width, values = torch.tensor(1.5, requires_grad=True), torch.randn(6, requires_grad=True)
    k = torch.exp(-(((t[:, None] - centres) / width) ** 2) / 2)
    out = (k / k.sum(1, keepdim=True)) @ values
    loss = ((out - torch.sin(6 * t)) ** 2).mean()
    loss.backward()
    """,
    learns="norm(values.grad) > 0",
)
ROWS.healthy(
    "Gumbel noise",
    """
    z = torch.randn(8, 5, requires_grad=True)
    u = torch.rand(8, 5)
    g = -torch.log(-torch.log(u + 1e-20) + 1e-20)
    y = torch.softmax((z + g) / 0.7, dim=-1)
    loss = (y * torch.arange(5.0)).sum(-1).mean()
    loss.backward()
    """,
    learns="norm(z.grad) > 0",
)
ROWS.healthy(
    "a Gaussian likelihood with a learned log-variance",
    """
    net = nn.Linear(3, 2)
    x, y = torch.randn(30, 3), torch.randn(30)
    mu, logvar = net(x).unbind(1)
    sigma = torch.exp(0.5 * logvar)
    loss = (torch.log(sigma) + (y - mu) ** 2 / (2 * sigma ** 2)).mean()
    loss = loss + 0.5 * (mu ** 2 + logvar.exp() - logvar - 1).mean() + torch.log(F.softplus(logvar) + 1e-4).mean()
    loss.backward()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "normalisations by hand with a small number",
    """
    W, gamma = torch.randn(5, 6, requires_grad=True), torch.ones(6, requires_grad=True)
    x = torch.randn(20, 5)
    h = x @ W
    h = gamma * (h - h.mean(0)) / torch.sqrt(h.var(0, unbiased=False) + 1e-5)
    h = (h - h.mean(1, keepdim=True)) / (h.std(1, keepdim=True) + 1e-6)
    h = h * torch.rsqrt((h ** 2).mean(1, keepdim=True) + 1e-6)
    loss = (h ** 3).mean() + (h / (h.norm(dim=1, keepdim=True) + 1e-8)).mean()
    loss.backward()
    """,
    learns="norm(W.grad) > 0",
)
ROWS.healthy(
    "Adam by hand, with a root outside the graph",
    """
    w, m, v = torch.zeros(4, requires_grad=True), torch.zeros(4), torch.zeros(4)
    x, y = torch.randn(20, 4), torch.randn(20)
    for t in range(1, 4):
        loss = ((x @ w - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            m, v = 0.9 * m + 0.1 * w.grad, 0.999 * v + 0.001 * w.grad ** 2
            w -= 0.1 * (m / (1 - 0.9 ** t)) / ((v / (1 - 0.999 ** t)).sqrt() + 1e-8)
            w.grad = None
    """,
    learns="norm(w) > 0",
)
ROWS.healthy(
    "attention by hand with a softmax and a mask",
    """
    q, k = nn.Linear(6, 6), nn.Linear(6, 6)
    x = torch.randn(7, 6)
    scores = q(x) @ k(x).T / math.sqrt(6)
    scores = scores.masked_fill(torch.ones(7, 7).triu(1) > 0, float("-inf"))
    loss = (torch.softmax(scores, -1) @ x).pow(2).mean()
    loss.backward()
    """,
    learns="norm(q.weight.grad) > 0",
)
ROWS.healthy(
    "roots that stay away from 0",
    """
    w = torch.zeros(4, requires_grad=True)
    x, y = torch.randn(25, 4), torch.randn(25)
    r = x @ w - y
    huber = (torch.sqrt(1 + r ** 2) - 1).mean()
    rmse = torch.sqrt(F.mse_loss(x @ w, y))
    charbonnier = ((w ** 2 + 1e-12) ** 0.5).sum()
    loss = huber + rmse + 0.01 * charbonnier + w.norm()
    loss.backward()
    """,
    learns="norm(w.grad) > 0",
)
ROWS.healthy(
    "the stable form of a binary cross entropy by hand",
    """
    X, w = torch.randn(30, 4), torch.randn(4, requires_grad=True)
    y = (torch.arange(30) % 2).float()
    z = 20 * (X @ w)
    loss = (torch.relu(z) - z * y + torch.log1p(torch.exp(-z.abs()))).mean()
    loss = loss + torch.log(1 + torch.exp(-torch.abs(z))).mean()
    loss.backward()
    """,
    learns="norm(w.grad) > 0",
)
ROWS.healthy(
    "BCELoss of a sigmoid",
    """
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())
    opt, loss_fn = optim.Adam(net.parameters()), nn.BCELoss()
    x = torch.randn(24, 4)
    y = (x[:, :1] > 0).float()
    # %%
    for step in range(3):
        opt.zero_grad()
        loss = loss_fn(net(x), y)
        loss.backward()
        opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "similarities of unit vectors in exponentials",
    """
    enc = nn.Linear(6, 4)
    x = torch.randn(8, 6)
    z = F.normalize(enc(x), dim=1)
    e = torch.exp(z @ z.T / 0.5)
    loss = -torch.log(e.diagonal() / e.sum(1)).mean()
    u = enc(x)
    u = u / u.norm(dim=1, keepdim=True)
    k = torch.exp(u @ u.T)
    loss = loss + ((k / k.sum(1, keepdim=True)) ** 2).sum()
    loss.backward()
    """,
    learns="norm(enc.weight.grad) > 0",
)
ROWS.healthy(
    "logits that a tanh or a clamp keeps small",
    """
    W = (0.1 * torch.randn(5, 3)).requires_grad_()
    x, y = torch.randn(12, 5), torch.arange(12) % 3
    z = 10 * torch.tanh(x @ W)
    loss = -torch.log(torch.softmax(z, 1))[range(12), y].mean() - torch.log(1 - torch.sigmoid(z)).mean()
    loss = loss + torch.log(torch.exp((x @ W).clamp(-30, 30)).sum(1)).mean()
    h = 1 / (1 + torch.exp(-z))
    loss = loss - torch.log(h).mean() - torch.log(1 - h).mean()
    loss.backward()
    """,
    learns="norm(W.grad) > 0",
)
ROWS.healthy(
    "angles with a clamp, and cosines",
    """
    u = torch.tensor([[1.0, 2.0], [3.0, -1.0]], requires_grad=True)
    v = torch.tensor([[1.0, 2.0001], [0.5, 1.0]])
    cos = (u * v).sum(1) / (u.norm(dim=1) * v.norm(dim=1))
    angle = torch.acos(cos.clamp(-1 + 1e-6, 1 - 1e-6))
    loss = angle.sum() + F.cosine_similarity(u, v).sum()
    loss.backward()
    """,
    learns="infs(u.grad) == 0 and norm(u.grad) > 0",
)
ROWS.healthy(
    "a Poisson regression and logarithms of data",
    """
    w = torch.zeros(3, requires_grad=True)
    x, counts = torch.randn(30, 3), torch.randint(0, 6, (30,)).float()
    for i in range(5):
        eta = x @ w
        loss = (torch.exp(eta) - counts * eta + torch.log1p(counts)).mean()
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w.grad = None
    """,
    learns="norm(w) > 0",
)
ROWS.healthy(
    "a Dice loss, and a mean over a mask",
    """
    net = nn.Linear(4, 3)
    x, t = torch.randn(10, 4), (torch.arange(30).reshape(10, 3) % 2).float()
    p = torch.sigmoid(net(x))
    dice = 1 - (2 * (p * t).sum() + 1.0) / (p.sum() + t.sum() + 1.0)
    share = (p * t).sum(0) / p.sum(0)
    odds = torch.log(p.mean(0) / (1 - p.mean(0)))
    (dice + share.mean() + 0.1 * odds.sum()).backward()
    """,
    learns="norm(net.weight.grad) > 0",
)
ROWS.healthy(
    "a numerator and a divisor that are guarded by where",
    """
    x = torch.tensor([0.0, 1e-9, 2.0, -1.0], requires_grad=True)
    safe = torch.where(x > 1e-6, x, torch.ones_like(x))
    loss = torch.where(x > 1e-6, torch.log(safe) + 1 / safe + safe.sqrt(), torch.zeros_like(x)).sum()
    loss = loss + torch.log(torch.maximum(x, torch.tensor(1e-7))).sum()
    loss.backward()
    """,
    learns="infs(x.grad) == nans(x.grad) == 0",
)
ROWS.healthy(
    "norms of rows of a wide ReLU, of a tanh, and of normalised rows",
    """
    fc, out = nn.Linear(6, 64), nn.Linear(6, 3)
    x = torch.randn(12, 6)
    h = torch.relu(fc(x))
    unit = h / h.norm(dim=1, keepdim=True)
    g = torch.tanh(out(x))
    g = g / (g ** 2).sum(1, keepdim=True).sqrt()
    k = F.normalize(torch.relu(out(x)), dim=1)
    loss = (unit[:, :3] * g).sum() + k.sum() + (h.std(0) + 1e-6).log().mean()
    loss.backward()
    """,
    learns="norm(fc.weight.grad) > 0",
)
