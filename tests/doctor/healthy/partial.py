"""Parts that do not learn, on purpose: frozen, distilled, averaged, detached for the log."""

from __future__ import annotations

from planting import Table

ROWS = Table()

ROWS.healthy(
    "a frozen backbone under a new head",
    """
    backbone = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU())
    for p in backbone.parameters():
        p.requires_grad = False
    head = nn.Linear(8, 3)
    model = nn.Sequential(backbone, head)
    opt = optim.Adam(head.parameters(), lr=1e-3)
    x, y = torch.randn(20, 10), torch.randint(0, 3, (20,))
    # %%
    for e in range(3):
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(head.parameters())",
)
ROWS.healthy(
    "a backbone under no_grad that is not in the optimizer",
    """
    backbone, head = nn.Sequential(nn.Linear(10, 8), nn.ReLU()), nn.Linear(8, 2)
    optimizer = optim.SGD(head.parameters(), lr=0.1)
    xb, yb = torch.randn(16, 10), torch.randint(0, 2, (16,))
    # %%
    with torch.no_grad():
        feats = backbone(xb)
    loss = F.cross_entropy(head(feats), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    """,
    learns="learning(head.parameters()) and backbone[0].weight.grad is None",
)
ROWS.healthy(
    "only parameters that require a gradient in the optimizer",
    """
    net = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 1))
    net[0].requires_grad_(False)
    opt = optim.Adam(filter(lambda p: p.requires_grad, net.parameters()), lr=1e-2)
    # %%
    loss = net(torch.randn(9, 6)).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="net[0].weight.grad is None and learning(net[2].parameters())",
)
ROWS.healthy(
    "LoRA: B starts at zero",
    """
    class LoRA(nn.Module):
        def __init__(self, base, r=2):
            super().__init__()
            self.base = base
            for p in base.parameters():
                p.requires_grad_(False)
            self.A = nn.Parameter(torch.randn(r, base.in_features) / r ** 0.5)
            self.B = nn.Parameter(torch.zeros(base.out_features, r))
        def forward(self, x):
            return self.base(x) + x @ self.A.T @ self.B.T
    net = nn.Sequential(LoRA(nn.Linear(8, 8)), nn.ReLU(), LoRA(nn.Linear(8, 2)))
    opt = optim.Adam([p for p in net.parameters() if p.requires_grad], lr=1e-3)
    # %%
    loss = F.cross_entropy(net(torch.randn(10, 8)), torch.randint(0, 2, (10,)))
    opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="norm(net[0].B.grad) > 0 and all_zero(net[0].A.grad)",
    remarks="zero-factor",
)
ROWS.healthy(
    "a zero-initialised last layer",
    """
    net = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 1))
    nn.init.zeros_(net[-1].weight)
    nn.init.zeros_(net[-1].bias)
    # %%
    loss = F.mse_loss(net(torch.randn(20, 5)), torch.randn(20, 1))
    loss.backward()
    """,
    learns="all_zero(net[0].weight.grad) and norm(net[2].weight.grad) > 0",
    remarks="zero-factor",
)
ROWS.healthy(
    "ReZero: each residual weight starts at zero",
    """
    class ReZero(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.f, self.alpha = nn.Sequential(nn.Linear(d, d), nn.ReLU()), nn.Parameter(torch.zeros(1))
        def forward(self, x):
            return x + self.alpha * self.f(x)
    net = nn.Sequential(nn.Linear(4, 8), *[ReZero(8) for _ in range(5)], nn.Linear(8, 1))
    # %%
    F.mse_loss(net(torch.randn(16, 4)), torch.randn(16, 1))
    """,
    learns="norm(net[1].alpha.grad) > 0 and all_zero(net[1].f[0].weight.grad)",
    remarks="zero-factor",
)
ROWS.healthy(
    "a teacher under no_grad",
    """
    teacher = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)).eval()
    student = nn.Linear(8, 4)
    opt = optim.SGD(student.parameters(), lr=0.1)
    x, y, T = torch.randn(24, 8), torch.randint(0, 4, (24,)), 3.0
    # %%
    for e in range(3):
        with torch.no_grad():
            soft = F.softmax(teacher(x) / T, dim=1)
        s = student(x)
        loss = 0.7 * T * T * F.kl_div(F.log_softmax(s / T, dim=1), soft, reduction="batchmean") + 0.3 * F.cross_entropy(s, y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(student.parameters())",
)
ROWS.healthy(
    "soft targets for cross_entropy",
    """
    student, teacher = nn.Linear(5, 3), nn.Linear(5, 3)
    x = torch.randn(10, 5)
    target = teacher(x).softmax(1).detach()
    loss = F.cross_entropy(student(x), target)
    loss.backward()
    """,
    learns="learning(student.parameters()) and teacher.weight.grad is None",
)
ROWS.healthy(
    "an average of weights",
    """
    import copy
    net = nn.Linear(4, 2)
    ema = copy.deepcopy(net)
    opt = optim.SGD(net.parameters(), lr=0.1)
    X, Y = torch.randn(12, 4), torch.randn(12, 2)
    # %%
    for step in range(5):
        opt.zero_grad()
        loss = F.mse_loss(net(X), Y)
        loss.backward()
        opt.step()
        with torch.no_grad():
            for p, q in zip(net.parameters(), ema.parameters()):
                q.lerp_(p, 0.01)
    """,
    learns="learning(net.parameters()) and ema.weight.grad is None",
)
ROWS.healthy(
    "a log of everything",
    """
    net = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
    opt = optim.Adam(net.parameters(), lr=1e-2)
    X, Y = torch.randn(30, 3), torch.randn(30, 1)
    running, log = 0.0, []
    for i in range(4):
        out = net(X)
        loss = F.mse_loss(out, Y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item()
        log.append({"loss": loss.detach(), "out": out.detach().numpy().mean(), "gnorm": sum(float(p.grad.norm()) for p in net.parameters())})
    print(f"{running / 4:.3f}", [round(float(e["loss"]), 3) for e in log])
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "an item that sets the step, not the loss",
    """
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    for i in range(4):
        loss = (w ** 2).sum()
        (g,) = torch.autograd.grad(loss, w)
        eta = 0.5 * loss.item() / g.pow(2).sum().item()
        with torch.no_grad():
            w -= eta * g
    loss = (w ** 2).sum()
    """,
    learns="norm(w) < 4",
)
ROWS.healthy(
    "weights of a loss balanced by their items",
    """
    shared, h1, h2 = nn.Linear(6, 8), nn.Linear(8, 1), nn.Linear(8, 3)
    x, y1, y2 = torch.randn(14, 6), torch.randn(14, 1), torch.randint(0, 3, (14,))
    # %%
    z = torch.relu(shared(x))
    l1, l2 = F.mse_loss(h1(z), y1), F.cross_entropy(h2(z), y2)
    loss = l1 / l1.item() + l2 / l2.item()
    loss.backward()
    """,
    learns="learning([*shared.parameters(), *h1.parameters(), *h2.parameters()])",
)
ROWS.healthy(
    "two models, one of them trained",
    """
    good, unused = nn.Linear(3, 1), nn.Linear(3, 1)
    opt = optim.SGD(good.parameters(), lr=0.1)
    X = torch.randn(8, 3)
    # %%
    loss = good(X).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(good.parameters())",
)
ROWS.healthy(
    "a head for another task is not called",
    """
    class Multi(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(5, 6)
            self.heads = nn.ModuleDict({"a": nn.Linear(6, 1), "b": nn.Linear(6, 1)})
        def forward(self, x, task):
            return self.heads[task](torch.relu(self.body(x)))
    multi = Multi()
    opt = optim.Adam(multi.parameters(), lr=1e-3)
    # %%
    for task in ["a", "b", "a"]:
        loss = multi(torch.randn(8, 5), task).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="norm(multi.body.weight.grad) > 0",
)
