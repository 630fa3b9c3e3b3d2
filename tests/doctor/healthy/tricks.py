"""Training techniques: accumulation over micro-batches, clipping, schedules, checkpoints, half precision, masks."""

from __future__ import annotations

from planting import Table

ROWS = Table()

ROWS.healthy(
    "accumulation over micro-batches",
    """
    net = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 1))
    opt = optim.SGD(net.parameters(), lr=0.05)
    X, Y = torch.randn(64, 6), torch.randn(64, 1)
    accum = 4
    # %%
    opt.zero_grad()
    for i, (xb, yb) in enumerate(zip(X.split(8), Y.split(8))):
        loss = F.mse_loss(net(xb), yb) / accum
        loss.backward()
        if (i + 1) % accum == 0:
            opt.step()
            opt.zero_grad()
    """,
    learns="i == 7",
)
ROWS.healthy(
    "accumulation with the step in the middle of a cell",
    """
    w = torch.zeros(4, requires_grad=True)
    opt = optim.SGD([w], lr=0.1)
    batches = [(torch.randn(5, 4), torch.randn(5)) for _ in range(6)]
    # %%
    for n, (x, y) in enumerate(batches, 1):
        (F.mse_loss(x @ w, y) / 3).backward()
        if n % 3 == 0:
            opt.step()
            opt.zero_grad(set_to_none=False)
    """,
    learns="norm(w) > 0",
)
ROWS.healthy(
    "two losses, backward one after the other",
    """
    net = nn.Linear(4, 2)
    opt = optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(10, 4)
    # %%
    opt.zero_grad()
    out = net(x)
    fit = (out[:, 0] - 1).pow(2).mean()
    reg = 1e-2 * sum(p.pow(2).sum() for p in net.parameters())
    fit.backward()
    reg.backward()
    opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "retain_graph for two heads",
    """
    body, a, b = nn.Linear(3, 5), nn.Linear(5, 1), nn.Linear(5, 1)
    z = torch.tanh(body(torch.randn(6, 3)))
    la, lb = a(z).pow(2).mean(), (b(z) - 1).pow(2).mean()
    la.backward(retain_graph=True)
    lb.backward()
    """,
    learns="learning([*body.parameters(), *a.parameters(), *b.parameters()])",
)
ROWS.healthy(
    "clipping and a schedule",
    """
    net = nn.GRU(3, 8, batch_first=True)
    out = nn.Linear(8, 1)
    params = [*net.parameters(), *out.parameters()]
    opt = optim.Adam(params, lr=1e-2)
    sched = optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.5)
    x, y = torch.randn(6, 10, 3), torch.randn(6, 1)
    # %%
    for e in range(4):
        h, _ = net(x)
        loss = F.mse_loss(out(h[:, -1]), y)
        opt.zero_grad()
        loss.backward()
        total = nn.utils.clip_grad_norm_(params, 1.0)
        opt.step()
        sched.step()
    """,
    learns="learning(params)",
)
ROWS.healthy(
    "a small learning rate for fine-tuning",
    """
    net = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 2))
    opt = optim.AdamW([{"params": net[0].parameters(), "lr": 1e-5}, {"params": net[2].parameters(), "lr": 1e-3}])
    x, y = torch.randn(20, 6), torch.randint(0, 2, (20,))
    # %%
    for i in range(3):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "a warm-up that begins at 0",
    """
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    sched = optim.lr_scheduler.LambdaLR(opt, lambda k: min(1.0, k / 5))
    x, y = torch.randn(10, 4), torch.randn(10, 1)
    # %%
    for k in range(4):
        loss = F.mse_loss(net(x), y)
        opt.zero_grad(); loss.backward(); opt.step(); sched.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "a gradient checkpoint",
    """
    from importlib import import_module
    checkpoint = import_module(torch.__name__ + ".utils.checkpoint").checkpoint
    block1, block2 = nn.Sequential(nn.Linear(6, 16), nn.Tanh()), nn.Sequential(nn.Linear(16, 16), nn.Tanh())
    head = nn.Linear(16, 1)
    # %%
    x = torch.randn(10, 6)
    h = checkpoint(block1, x, use_reentrant=False)
    h = checkpoint(block2, h, use_reentrant=False)
    loss = head(h).pow(2).mean()
    loss.backward()
    """,
    learns="learning([*block1.parameters(), *block2.parameters(), *head.parameters()])",
)
ROWS.healthy(
    "half precision with its loss scaled by hand",
    """
    master = (torch.randn(6, 1) * 0.3).requires_grad_()
    x, y = torch.randn(16, 6), torch.randn(16, 1)
    scale = 1024.0
    opt = optim.SGD([master], lr=0.1)
    # %%
    pred = x.half() @ master.half()
    loss = F.mse_loss(pred.float(), y)
    opt.zero_grad()
    (loss * scale).backward()
    with torch.no_grad():
        master.grad /= scale
    opt.step()
    """,
    learns="learning([master])",
)
ROWS.healthy(
    "a masked loss: half of the gradients are zero",
    """
    pred = torch.randn(8, 10, requires_grad=True)
    target = torch.randn(8, 10)
    mask = (torch.arange(10) < 5).float().expand(8, 10)
    loss = ((pred - target) ** 2 * mask).sum() / mask.sum()
    loss.backward()
    """,
    learns="zero_share(pred.grad) == 0.5",
)
ROWS.healthy(
    "a where that protects",
    """
    x = torch.tensor([0., 1., 2., 0.], requires_grad=True)
    safe = torch.where(x > 0, x, torch.ones_like(x))
    y = torch.where(x > 0, x * torch.log(safe), torch.zeros_like(x))
    y.sum().backward()
    """,
    learns="nans(x.grad) == 0",
)
ROWS.healthy(
    "logarithms with an epsilon",
    """
    p = torch.softmax(torch.randn(5, 4).requires_grad_(), 1)
    q = torch.softmax(torch.randn(5, 4), 1)
    w = torch.ones(4, requires_grad=True)
    kl = (p * ((p + 1e-8).log() - (q + 1e-8).log()) * w).sum(1).mean()
    kl.backward()
    """,
    learns="norm(w.grad) > 0",
)
ROWS.healthy(
    "minus infinity where attention must not look",
    """
    x = torch.randn(6, 8)
    Wq, Wk = ((torch.randn(8, 8) * 0.3).requires_grad_() for _ in range(2))
    s = (x @ Wq) @ (x @ Wk).T / 8 ** 0.5
    s = s + torch.triu(torch.full((6, 6), float("-inf")), 1)
    att = s.softmax(-1)
    loss = (att @ x).pow(2).mean()
    """,
    learns="learning([Wq, Wk])",
)
ROWS.healthy(
    "dropout and weight decay",
    """
    net = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Dropout(0.5), nn.Linear(40, 40), nn.ReLU(), nn.Dropout(0.5), nn.Linear(40, 1))
    opt = optim.SGD(net.parameters(), lr=0.01, weight_decay=1e-4)
    x, y = torch.randn(50, 10), torch.randn(50, 1)
    # %%
    for i in range(3):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "uncertainty weights for two tasks",
    """
    body, reg, cls = nn.Linear(5, 8), nn.Linear(8, 1), nn.Linear(8, 2)
    s = nn.Parameter(torch.zeros(2))
    opt = optim.Adam([*body.parameters(), *reg.parameters(), *cls.parameters(), s], lr=1e-3)
    x, yr, yc = torch.randn(12, 5), torch.randn(12, 1), torch.randint(0, 2, (12,))
    # %%
    for i in range(3):
        z = F.relu(body(x))
        losses = torch.stack([F.mse_loss(reg(z), yr), F.cross_entropy(cls(z), yc)])
        loss = (losses * torch.exp(-s) + s).sum()
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="s.grad is not None",
)
ROWS.healthy(
    "a loader of batches",
    """
    from importlib import import_module
    data = import_module(torch.__name__ + ".utils.data")
    X = torch.randn(40, 3)
    loader = data.DataLoader(data.TensorDataset(X, X.sum(1, keepdim=True)), batch_size=10, shuffle=True)
    net = nn.Linear(3, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    # %%
    for epoch in range(2):
        total = 0.0
        for xb, yb in loader:
            opt.zero_grad()
            loss = F.mse_loss(net(xb), yb)
            loss.backward()
            opt.step()
            total += loss.item() * len(xb)
        print(epoch, total / 40)
    """,
    learns="total / 40 < 2",
)
ROWS.healthy(
    "noise on the gradient, by hand",
    """
    w = torch.tensor([1.0, -1.0], requires_grad=True)
    for i in range(5):
        if w.grad is not None:
            w.grad.zero_()
        loss = (w ** 2).sum() / 2
        loss.backward()
        with torch.no_grad():
            w.sub_(0.1 * w.grad + (2 * 0.1 * 0.01) ** 0.5 * torch.randn(2))
    """,
    learns="norm(w) < 2",
)
ROWS.healthy(
    "Adam by hand",
    """
    theta = torch.tensor([2.0, -3.0], requires_grad=True)
    m, v = torch.zeros(2), torch.zeros(2)
    for t in range(1, 8):
        loss = (theta ** 4).sum()
        (g,) = torch.autograd.grad(loss, [theta])
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g ** 2
        theta.data -= 0.1 * (m / (1 - 0.9 ** t)) / ((v / (1 - 0.999 ** t)).sqrt() + 1e-8)
    (theta ** 4).sum()
    """,
    learns="norm(theta.grad) > 0",
)
ROWS.healthy(
    "a value function that shares its body, detached",
    """
    body, policy, value = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)
    opt = optim.Adam([*body.parameters(), *policy.parameters(), *value.parameters()], lr=1e-3)
    x, a, r = torch.randn(20, 4), torch.randint(0, 2, (20,)), torch.randn(20)
    # %%
    h = torch.tanh(body(x))
    v = value(h.detach()).squeeze(1)
    logp = policy(h).log_softmax(1)[range(20), a]
    loss = -(logp * (r - v).detach()).mean() + (v - r).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning([*body.parameters(), *policy.parameters(), *value.parameters()])",
)
ROWS.healthy(
    "momentum carries steps beyond the valley, and up",
    """
    w = torch.tensor([1.0, -2.0, 0.5], requires_grad=True)
    opt = optim.SGD([w], lr=0.05, momentum=0.9)
    # %%
    for i in range(60):
        opt.zero_grad()
        loss = (w ** 2).sum()
        loss.backward()
        opt.step()
    """,
    learns="float(loss) < 0.1",
)
ROWS.healthy(
    "DeepDream: steps along the gradient of an activation, by the input of a frozen network",
    """
    features = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU())
    for p in features.parameters():
        p.requires_grad = False
    img = torch.rand(1, 12).requires_grad_()
    # %%
    for i in range(6):
        loss = features(img)[:, 3:].norm()
        loss.backward()
        img.data += 0.05 * img.grad / img.grad.abs().mean()
        img.grad.zero_()
    """,
    learns="loss > 0",
)
ROWS.healthy(
    "the first principal component by gradient descent, until it is found",
    """
    X = torch.randn(200, 3) * torch.tensor([3.0, 1.0, 0.5])
    w = torch.ones(3, requires_grad=True)
    optimizer = optim.SGD([w], lr=0.2)
    # %%
    for i in range(150):
        u = w / w.norm()
        loss = -((X @ u) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """,
    learns="abs(float(u[0])) > 0.99",
)
ROWS.healthy(
    "a hinge loss that has become 0, beside a penalty",
    """
    x = torch.randn(60, 2)
    y = torch.sign(x @ torch.tensor([1.0, -2.0]) + 0.1)
    w = torch.zeros(2, requires_grad=True)
    b = torch.zeros(1, requires_grad=True)
    # %%
    for epoch in range(60):
        loss = torch.relu(1e-3 - y * (x @ w + b)).mean() + 1e-3 * (w * w).sum()
        loss.backward()
        with torch.no_grad():
            w -= 0.5 * w.grad
            b -= 0.5 * b.grad
        w.grad = b.grad = None
    """,
    learns="float((torch.sign(x @ w + b) == y).float().mean()) > 0.95",
)
ROWS.healthy(
    "a sum over the batch, and steps by hand that divide by its size",
    """
    Y = torch.arange(96) % 4
    X = torch.eye(4)[Y] + 0.2 * torch.randn(96, 4)
    W, b = torch.zeros(4, 4, requires_grad=True), torch.zeros(4, requires_grad=True)
    losses = []
    # %%
    def sgd(params, lr, batch_size):
        with torch.no_grad():
            for p in params:
                p -= lr * p.grad / batch_size
                p.grad.zero_()

    for epoch in range(3):
        for i in range(0, 96, 32):
            l = F.cross_entropy(X[i:i + 32] @ W + b, Y[i:i + 32], reduction="none").sum()
            l.backward()
            sgd([W, b], 0.5, 32)
            losses.append(l.item())
    """,
    learns="losses[-1] < 0.9 * losses[0]",
)

ROWS.healthy(
    "a dropout of the terms of a loss",
    """
    net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Dropout(0.2), nn.Linear(16, 3))
    opt = optim.SGD(net.parameters(), lr=0.1)
    X, y = torch.randn(40, 4), torch.randint(0, 3, (40,))
    for step in range(3):
        opt.zero_grad()
        terms = F.cross_entropy(net(X), y, reduction="none")
        loss = F.dropout(terms, 0.5).mean()
        loss.backward()
        opt.step()
    """,
    learns="norm(net[0].weight.grad) > 0",
)
ROWS.healthy(
    "two outputs with different dropouts that should agree",
    """
    net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3), nn.Dropout(0.2))
    head = nn.Linear(3, 2)
    opt = optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
    X, y = torch.randn(40, 4), torch.randint(0, 2, (40,))
    for step in range(3):
        opt.zero_grad()
        one, two = net(X), net(X)
        loss = F.cross_entropy(head(one), y) + 0.1 * F.mse_loss(one, two)
        loss.backward()
        opt.step()
    """,
    learns="norm(head.weight.grad) > 0",
)
