"""Everyday training code: loops, helpers and losses as other people write them, with nothing wrong."""

from __future__ import annotations

from planting import Table

ROWS = Table()

ROWS.healthy(
    "a step in a function that writes into its arguments",
    """
    def sgd(params, lr):
        for p in params:
            p.data -= lr * p.grad
            p.grad = None
    # %%
    W, b = torch.randn(3, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
    X, y = torch.randn(32, 3), torch.randn(32, 1)
    for _ in range(5):
        loss = ((X @ W + b - y) ** 2).mean()
        loss.backward()
        sgd([W, b], 0.05)
    """,
    learns="b.item() != 0",
)
ROWS.healthy(
    "a functional step that detaches",
    """
    def updated(w, g, lr=0.1):
        return (w - lr * g).detach().requires_grad_()
    # %%
    w = torch.zeros(2, requires_grad=True)
    X, y = torch.randn(20, 2), torch.randn(20)
    for _ in range(4):
        loss = ((X @ w - y) ** 2).mean()
        loss.backward()
        w = updated(w, w.grad)
    """,
    learns="norm(w) > 0",
)
ROWS.healthy(
    "a dictionary of parameters written in place",
    """
    P = {"W1": torch.randn(4, 6, requires_grad=True), "W2": torch.randn(6, 1, requires_grad=True)}
    X, y = torch.randn(30, 4), torch.randn(30, 1)
    for _ in range(5):
        loss = ((torch.tanh(X @ P["W1"]) @ P["W2"] - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for k in P:
                P[k] -= 0.01 * P[k].grad
                P[k].grad.zero_()
    """,
    learns="P['W1'].is_leaf",
)
ROWS.healthy(
    "a model class without Module",
    """
    class Regression:
        def __init__(self, n):
            self.w = torch.zeros(n, requires_grad=True)
        def fit(self, X, y, lr=0.1, steps=6):
            for _ in range(steps):
                loss = ((X @ self.w - y) ** 2).mean()
                loss.backward()
                with torch.no_grad():
                    self.w -= lr * self.w.grad
                self.w.grad = None
            return loss
    r = Regression(3)
    X = torch.randn(40, 3)
    y = X.sum(1)
    # %%
    loss = r.fit(X, y)
    """,
    learns="norm(r.w) > 0.1",
)
ROWS.healthy(
    "gradients accumulated over four micro-batches in a helper",
    """
    def run_epoch(model, opt, data, every):
        for i, (x, y) in enumerate(data):
            loss = F.cross_entropy(model(x), y) / every
            loss.backward()
            if (i + 1) % every == 0:
                opt.step()
                opt.zero_grad()
    # %%
    net = nn.Linear(5, 3)
    opt = optim.SGD(net.parameters(), lr=0.1)
    data = [(torch.randn(6, 5), torch.randint(0, 3, (6,))) for _ in range(8)]
    run_epoch(net, opt, data, 4)
    """,
    learns="True",
)
ROWS.healthy(
    "one-hot targets",
    """
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    opt = optim.Adam(net.parameters(), lr=1e-2)
    x, labels = torch.randn(24, 4), torch.randint(0, 3, (24,))
    for _ in range(3):
        t = F.one_hot(labels, 3).float()
        loss = -(t * F.log_softmax(net(x), 1)).sum(1).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "accuracy and the loss kept as numbers",
    """
    net = nn.Linear(6, 4)
    opt = optim.SGD(net.parameters(), lr=0.2)
    x, y = torch.randn(50, 6), torch.randint(0, 4, (50,))
    log = {"loss": [], "acc": []}
    for epoch in range(4):
        opt.zero_grad()
        out = net(x)
        loss = F.cross_entropy(out, y)
        loss.backward()
        opt.step()
        log["loss"].append(loss.item())
        log["acc"].append((out.argmax(1) == y).float().mean().item())
    """,
    learns="log['loss'][-1] < log['loss'][0]",
)
ROWS.healthy(
    "a history of predictions in a buffer",
    """
    net = nn.Linear(2, 1)
    opt = optim.SGD(net.parameters(), lr=0.05)
    X, y = torch.randn(10, 2), torch.randn(10, 1)
    history = torch.zeros(3, 10)
    for k in range(3):
        out = net(X)
        history[k] = out.detach().squeeze(1)
        loss = F.mse_loss(out, y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="norm(history) > 0",
)
ROWS.healthy(
    "a policy gradient with a baseline of numbers",
    """
    policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
    opt = optim.Adam(policy.parameters(), lr=1e-2)
    states, rewards = torch.randn(40, 4), torch.rand(40)
    for _ in range(3):
        logp = F.log_softmax(policy(states), -1)
        actions = logp.detach().argmax(1)
        advantage = rewards - rewards.mean().item()
        loss = -(logp[range(40), actions] * advantage).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(policy.parameters())",
)
ROWS.healthy(
    "a hard gate passed straight through",
    """
    gate, body = nn.Linear(5, 6), nn.Linear(6, 1)
    opt = optim.SGD([*gate.parameters(), *body.parameters()], lr=0.05)
    x, y = torch.randn(30, 5), torch.randn(30, 1)
    for _ in range(3):
        p = torch.sigmoid(gate(x))
        hard = (p > 0.5).float() + p - p.detach()
        loss = F.mse_loss(body(hard), y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(gate.parameters())",
)
ROWS.healthy(
    "gradient ascent on a likelihood",
    """
    mu = torch.tensor(0.0, requires_grad=True)
    data = torch.randn(60) + 2
    for _ in range(6):
        log_likelihood = -0.5 * ((data - mu) ** 2).mean()
        log_likelihood.backward()
        with torch.no_grad():
            mu += 0.3 * mu.grad
            mu.grad.zero_()
    """,
    learns="mu.item() > 1",
)
ROWS.healthy(
    "maximize for a reward",
    """
    theta = torch.zeros(3, requires_grad=True)
    opt = optim.SGD([theta], lr=0.1, maximize=True)
    r = torch.tensor([1.0, 2.0, 0.5])
    for _ in range(6):
        reward = (torch.softmax(theta, 0) * r).sum()
        opt.zero_grad(); reward.backward(); opt.step()
    """,
    learns="theta[1].item() > 0",
)
ROWS.healthy(
    "a sum with a small rate",
    """
    w = torch.zeros(2, requires_grad=True)
    X = torch.randn(400, 2)
    y = X @ torch.tensor([1.0, -1.0])
    for _ in range(5):
        r = X @ w - y
        sse = r @ r
        sse.backward()
        with torch.no_grad():
            w -= 1e-3 * w.grad
        w.grad = None
    """,
    learns="norm(w) > 0.5",
)
ROWS.healthy(
    "an outer difference on purpose",
    """
    a = torch.randn(12, requires_grad=True)
    b = torch.randn(12, 1)
    gaps = (a - b).abs()
    loss = gaps.min(1).values.mean() + gaps.min(0).values.mean()
    loss.backward()
    """,
    learns="norm(a.grad) > 0",
)
ROWS.healthy(
    "a warm-up weight that has begun",
    """
    enc, dec = nn.Linear(8, 4), nn.Linear(2, 8)
    opt = optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-3)
    x = torch.randn(32, 8)
    for step in range(1, 4):
        mu, logvar = enc(x).chunk(2, 1)
        z = mu + torch.exp(0.5 * logvar) * torch.randn(32, 2)
        beta = min(1.0, step / 10)
        kl = -0.5 * (1 + logvar - mu ** 2 - logvar.exp()).sum(1).mean()
        loss = F.mse_loss(dec(z), x) + beta * kl
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(enc.parameters())",
)
ROWS.healthy(
    "a head replaced before the optimizer",
    """
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 10))
    net[2] = nn.Linear(8, 3)
    opt = optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(30, 6), torch.randint(0, 3, (30,))
    # %%
    for _ in range(3):
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "a safe logarithm and a safe root",
    """
    x = torch.tensor([0.0, 0.5, 2.0], requires_grad=True)
    safe = torch.where(x > 0, x, torch.ones_like(x))
    y = torch.where(x > 0, torch.log(safe), torch.zeros_like(x)).sum() + torch.sqrt(x ** 2 + 1e-6).sum()
    y.backward()
    """,
    learns="nans(x.grad) == 0",
)
ROWS.healthy(
    "embeddings with a padding row, masked",
    """
    emb = nn.Embedding(12, 8, padding_idx=0)
    head = nn.Linear(8, 2)
    opt = optim.Adam([*emb.parameters(), *head.parameters()], lr=1e-2)
    ids = torch.tensor([[3, 4, 0, 0], [5, 6, 7, 0], [1, 2, 3, 4]])
    y = torch.tensor([0, 1, 0])
    for _ in range(3):
        keep = (ids != 0).float().unsqueeze(-1)
        pooled = (emb(ids) * keep).sum(1) / keep.sum(1).clamp(min=1)
        loss = F.cross_entropy(head(pooled), y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="norm(emb.weight.grad) > 0",
)
ROWS.healthy(
    "a recurrent net by hand with gates",
    """
    class Gated(nn.Module):
        def __init__(self, i, h):
            super().__init__()
            self.z, self.c = nn.Linear(i + h, h), nn.Linear(i + h, h)
        def forward(self, x, h):
            both = torch.cat([x, h], 1)
            z = torch.sigmoid(self.z(both))
            return (1 - z) * h + z * torch.tanh(self.c(both))
    cell, out = Gated(3, 12), nn.Linear(12, 1)
    opt = optim.Adam([*cell.parameters(), *out.parameters()], lr=1e-2)
    seq, y = torch.randn(15, 8, 3), torch.randn(8, 1)
    # %%
    for _ in range(2):
        h = torch.zeros(8, 12)
        for x in seq:
            h = cell(x, h)
        loss = F.mse_loss(out(h), y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(cell.parameters())",
)
ROWS.healthy(
    "a residual tower of twelve blocks",
    """
    class Block(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.norm, self.a, self.b = nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.Linear(2 * d, d)
        def forward(self, x):
            return x + self.b(F.gelu(self.a(self.norm(x))))
    net = nn.Sequential(nn.Linear(10, 24), *[Block(24) for _ in range(12)], nn.Linear(24, 1))
    opt = optim.AdamW(net.parameters(), lr=1e-3)
    X = torch.randn(40, 10)
    y = X[:, :1]
    # %%
    for _ in range(2):
        loss = F.mse_loss(net(X), y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "a validation pass without gradients after each epoch",
    """
    def evaluate(model, x, y):
        model.eval()
        with torch.no_grad():
            loss = F.mse_loss(model(x), y).item()
        model.train()
        return loss
    # %%
    net = nn.Sequential(nn.Linear(3, 12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 1))
    opt = optim.SGD(net.parameters(), lr=0.05)
    X, Y = torch.randn(40, 3), torch.randn(40, 1)
    best = float("inf")
    for epoch in range(3):
        opt.zero_grad()
        loss = F.mse_loss(net(X[:30]), Y[:30])
        loss.backward()
        opt.step()
        best = min(best, evaluate(net, X[30:], Y[30:]))
    """,
    learns="best < float('inf')",
)
ROWS.healthy(
    "a second derivative by hand",
    """
    x = torch.linspace(-1, 1, 20).reshape(-1, 1).requires_grad_()
    net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    opt = optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(2):
        u = net(x)
        (du,) = torch.autograd.grad(u.sum(), x, create_graph=True)
        loss = ((du - u) ** 2).mean() + (net(torch.zeros(1, 1)) - 1).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="norm(net[0].weight.grad) > 0",
)
ROWS.healthy(
    "clipped gradients and a schedule by hand",
    """
    net = nn.Linear(12, 1)
    opt = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    X = torch.randn(80, 12)
    Y = X.mean(1, keepdim=True)
    for step in range(8):
        for group in opt.param_groups:
            group["lr"] = 0.1 / (1 + step)
        loss = F.smooth_l1_loss(net(X), Y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "two heads, one of them frozen on purpose",
    """
    body, a, b = nn.Linear(5, 8), nn.Linear(8, 2), nn.Linear(8, 3)
    b.requires_grad_(False)
    opt = optim.Adam([p for m in (body, a, b) for p in m.parameters() if p.requires_grad], lr=1e-2)
    x, ya, yb = torch.randn(20, 5), torch.randint(0, 2, (20,)), torch.randint(0, 3, (20,))
    for _ in range(3):
        h = torch.relu(body(x))
        loss = F.cross_entropy(a(h), ya) + F.cross_entropy(b(h), yb)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="b.weight.grad is None and learning(body.parameters())",
)
ROWS.healthy(
    "quantisation with a straight-through estimator",
    """
    class Quantised(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(o, i) * 0.3)
        def forward(self, x):
            w = self.weight
            q = torch.round(w * 8) / 8
            return x @ (w + (q - w).detach()).T
    q = Quantised(4, 2)
    opt = optim.SGD(q.parameters(), lr=0.1)
    x, t = torch.randn(25, 4), torch.randn(25, 2)
    for _ in range(3):
        loss = F.mse_loss(q(x), t)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(q.parameters())",
)
ROWS.healthy(
    "a weighted error of a column and a column",
    """
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    X = torch.randn(32, 3)
    y, weight = X.norm(dim=1, keepdim=True), torch.rand(32, 1)
    opt = optim.RMSprop(net.parameters(), lr=1e-3)
    for _ in range(4):
        loss = (weight * (net(X) - y).abs()).sum() / weight.sum()
        opt.zero_grad(set_to_none=True); loss.backward(); opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "an ensemble trained in one loop",
    """
    models = [nn.Linear(4, 1) for _ in range(3)]
    opts = [optim.SGD(m.parameters(), lr=0.05) for m in models]
    X, y = torch.randn(30, 4), torch.randn(30, 1)
    for epoch in range(3):
        for m, o in zip(models, opts):
            o.zero_grad()
            loss = F.mse_loss(m(X), y)
            loss.backward()
            o.step()
    """,
    learns="all(learning(m.parameters()) for m in models)",
)
ROWS.healthy(
    "a batch by index, both of one shape",
    """
    m = nn.Linear(10, 1)
    X, Y = torch.randn(128, 10), torch.arange(128) % 9
    opt = optim.SGD(m.parameters(), lr=0.01)
    for step in range(3):
        i = torch.arange(32 * step, 32 * step + 32)
        loss = F.mse_loss(m(X[i]).squeeze(1), Y[i].float())
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    learns="learning(m.parameters())",
)
ROWS.healthy(
    "each with each, as it is meant",
    """
    emb = nn.Linear(3, 1, bias=False)
    x = torch.randn(12, 3)
    s = emb(x)
    margins = torch.where(s - s.T > 0, s - s.T, 0.1 * (s - s.T))
    loss = ((s[:, None, 0] - s[None, :, 0]) ** 2).mean() + margins.abs().mean()
    loss.backward()
    """,
    learns="norm(emb.weight.grad) > 0",
)
ROWS.healthy(
    "a straight-through estimator",
    """
    w = torch.randn(8, 4, requires_grad=True)
    opt = optim.SGD([w], lr=0.1)
    x, y = torch.randn(16, 8), torch.randn(16, 4)
    for _ in range(3):
        hard = w + (torch.sign(w) - w).detach()
        q = (torch.round(w) - w).detach() + w
        loss = F.mse_loss(x @ hard + 0.1 * (x @ q), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    learns="learning([w])",
)
ROWS.healthy(
    "a polynomial fitted to fresh batches",
    """
    torch.manual_seed(1)
    degree = 4
    W_target, b_target = torch.randn(degree, 1) * 5, torch.randn(1) * 5
    fc = nn.Linear(degree, 1)
    losses = []
    # %%
    for batch in range(290):
        x = torch.randn(32)[:, None]
        x = torch.cat([x ** i for i in range(1, degree + 1)], 1)
        fc.zero_grad()
        output = F.smooth_l1_loss(fc(x), x @ W_target + b_target)
        losses.append(output.item())
        output.backward()
        for param in fc.parameters():
            param.data.add_(-0.1 * param.grad)
    """,
    learns="sum(losses[-20:]) < 0.1 * sum(losses[:20])",
)
ROWS.healthy(
    "a rate at the edge, on noisy fresh batches",
    """
    torch.manual_seed(2)
    w, b = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    opt = optim.SGD([w, b], lr=0.5)
    # %%
    for i in range(150):
        x = torch.randn(4, 1)
        y = x[:, 0] * 0.7 + 1 + torch.randn(4)
        loss = ((x @ w + b - y) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    learns="abs(float(b) - 1) < 1.5",
)
ROWS.healthy(
    "a linear classifier on two rings, which ends at ln 2",
    """
    t = torch.arange(60) * (2 * math.pi / 60)
    ring = torch.stack([torch.cos(t), torch.sin(t)], 1)
    X, y = torch.cat([ring, 2 * ring]), torch.cat([torch.zeros(60), torch.ones(60)])[:, None]
    model = nn.Linear(2, 1)
    opt = optim.SGD(model.parameters(), lr=1.0)
    # %%
    for step in range(300):
        loss = F.binary_cross_entropy_with_logits(model(X), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    learns="abs(float(loss) - math.log(2)) < 1e-6 and norm(model.bias.grad) < 1e-6",
)
ROWS.healthy(
    "the same with two logits and a softmax",
    """
    t = torch.arange(60) * (2 * math.pi / 60)
    ring = torch.stack([torch.cos(t), torch.sin(t)], 1)
    X, y = torch.cat([ring, 2 * ring]), torch.cat([torch.zeros(60), torch.ones(60)]).long()
    model = nn.Linear(2, 2)
    opt = optim.SGD(model.parameters(), lr=1.0)
    for step in range(300):
        loss = F.cross_entropy(model(X), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    # %%
    loss = F.cross_entropy(model(X), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    """,
    learns="abs(float(loss) - math.log(2)) < 1e-6 and norm(model.bias.grad) < 1e-6",
)
