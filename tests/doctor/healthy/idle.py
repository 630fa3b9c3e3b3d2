"""Programs that compute gradients without steps, or with small steps, on purpose."""

from __future__ import annotations

from planting import Table

ROWS = Table()

ROWS.healthy(
    "saliency of several images",
    """
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    opt = optim.SGD(net.parameters(), lr=0.1)
    images = torch.randn(4, 6)
    maps = []
    # %%
    for image in images:
        image = image.clone().requires_grad_(True)
        score = net(image).max()
        opt.zero_grad()
        score.backward()
        maps.append(image.grad.abs())
    """,
    learns="len(maps) == 4 and all(norm(m) > 0 for m in maps)",
)
ROWS.healthy(
    "micro-batches in one cell, the step in the next",
    """
    net = nn.Linear(6, 1)
    opt = optim.SGD(net.parameters(), lr=0.05)
    X, Y = torch.randn(32, 6), torch.randn(32, 1)
    # %%
    for xb, yb in zip(X.split(8), Y.split(8)):
        loss = F.mse_loss(net(xb), yb) / 4
        loss.backward()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "the norm of the gradients of each batch",
    """
    net = nn.Linear(6, 1)
    opt = optim.Adam(net.parameters())
    X, Y = torch.randn(32, 6), torch.randn(32, 1)
    norms = []
    # %%
    for xb, yb in zip(X.split(8), Y.split(8)):
        opt.zero_grad()
        loss = F.mse_loss(net(xb), yb)
        loss.backward()
        norms.append(sum(p.grad.pow(2).sum().item() for p in net.parameters()) ** 0.5)
    """,
    learns="min(norms) > 0",
)
ROWS.healthy(
    "the norm of the gradients by clip_grad_norm_",
    """
    net = nn.Linear(6, 1)
    opt = optim.Adam(net.parameters())
    X, Y = torch.randn(32, 6), torch.randn(32, 1)
    norms = []
    # %%
    for xb, yb in zip(X.split(8), Y.split(8)):
        opt.zero_grad()
        loss = F.mse_loss(net(xb), yb)
        loss.backward()
        norms.append(float(nn.utils.clip_grad_norm_(net.parameters(), float("inf"))))
    """,
    learns="min(norms) > 0",
)
ROWS.healthy(
    "timing of backward",
    """
    import time
    net = nn.Linear(16, 16)
    opt = optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(8, 16)
    # %%
    start = time.perf_counter()
    for _ in range(5):
        opt.zero_grad()
        loss = net(x).pow(2).mean()
        loss.backward()
    seconds = (time.perf_counter() - start) / 5
    """,
    learns="seconds > 0",
)
ROWS.healthy(
    "gradients of a trained model",
    """
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    X, Y = torch.randn(32, 4), torch.randn(32, 1)
    for step in range(10):
        opt.zero_grad(); F.mse_loss(net(X), Y).backward(); opt.step()
    # %%
    for xb, yb in zip(X.split(8), Y.split(8)):
        opt.zero_grad()
        loss = F.mse_loss(net(xb), yb)
        loss.backward()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "a frozen body and an optimizer for the head",
    """
    body, head = nn.Linear(4, 6), nn.Linear(6, 1)
    for p in body.parameters():
        p.requires_grad_(False)
    body_opt, opt = optim.SGD(body.parameters(), lr=0.1), optim.SGD(head.parameters(), lr=0.1)
    x, y = torch.randn(20, 4), torch.randn(20, 1)
    # %%
    for step in range(5):
        opt.zero_grad()
        loss = F.mse_loss(head(torch.tanh(body(x))), y)
        loss.backward()
        opt.step()
    """,
    learns="learning(head.parameters())",
)
ROWS.healthy(
    "a critic that is trained while it is bad",
    """
    gen, critic = nn.Linear(2, 2), nn.Linear(2, 1)
    gen_opt, critic_opt = optim.Adam(gen.parameters(), lr=1e-2), optim.Adam(critic.parameters(), lr=1e-2)
    real = torch.randn(32, 2)
    # %%
    for step in range(5):
        fake = gen(torch.randn(32, 2))
        critic_opt.zero_grad()
        critic_loss = critic(fake.detach()).pow(2).mean() + (critic(real) - 1).pow(2).mean()
        critic_loss.backward()
        if critic_loss.item() > 1e3:
            critic_opt.step()
        gen_opt.zero_grad()
        gen_loss = (critic(fake) - 1).pow(2).mean()
        gen_loss.backward()
        gen_opt.step()
    """,
    learns="learning(gen.parameters())",
)
ROWS.healthy(
    "the bound method is looked at",
    """
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(20, 4), torch.randn(20, 1)
    # %%
    opt.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    opt.step()
    advance = opt.step
    opt.step
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "a cosine schedule that ends near 0",
    """
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=0.05)
    sched = optim.lr_scheduler.CosineAnnealingLR(opt, T_max=20)
    x, y = torch.randn(40, 4), torch.randn(40, 1)
    # %%
    for step in range(20):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        sched.step()
    """,
    learns="opt.param_groups[0]['lr'] < 1e-6",
)
ROWS.healthy(
    "a warm-up from 0 and a linear decay",
    """
    net = nn.Linear(4, 1)
    opt = optim.AdamW(net.parameters(), lr=0.02)
    sched = optim.lr_scheduler.LambdaLR(opt, lambda k: min(k / 10, max(0.0, (30 - k) / 20)))
    x, y = torch.randn(40, 4), torch.randn(40, 1)
    # %%
    for step in range(30):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        sched.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "a schedule that ends when the training has converged",
    """
    w = torch.zeros(3, requires_grad=True)
    opt = optim.SGD([w], lr=0.4)
    sched = optim.lr_scheduler.MultiStepLR(opt, [25, 30], gamma=1e-3)
    x = torch.randn(60, 3)
    y = x @ torch.tensor([1.0, -2.0, 0.5])
    # %%
    for step in range(80):
        opt.zero_grad()
        loss = F.mse_loss(x @ w, y)
        loss.backward()
        opt.step()
        sched.step()
    """,
    learns="loss.item() < 1e-3",
    remarks="zero-factor",
)
ROWS.healthy(
    "a scheduler that is called once per epoch",
    """
    net = nn.Linear(5, 1)
    opt = optim.SGD(net.parameters(), lr=0.05)
    sched = optim.lr_scheduler.StepLR(opt, 1, gamma=0.1)
    X, Y = torch.randn(96, 5), torch.randn(96, 1)
    # %%
    for epoch in range(3):
        for xb, yb in zip(X.split(16), Y.split(16)):
            opt.zero_grad()
            loss = F.mse_loss(net(xb), yb)
            loss.backward()
            opt.step()
        sched.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "a comparison of learning rates, 0 among them",
    """
    x, y = torch.randn(40, 3), torch.randn(40)
    ends = {}
    # %%
    for rate in (0.0, 0.01, 0.1):
        w = torch.zeros(3, requires_grad=True)
        for step in range(5):
            loss = F.mse_loss(x @ w, y)
            loss.backward()
            with torch.no_grad():
                w -= rate * w.grad
            w.grad = None
        ends[rate] = loss.item()
    """,
    learns="ends[0.1] < ends[0.0]",
)
ROWS.healthy(
    "steps by hand at a minimum",
    """
    w = torch.tensor([2.0], requires_grad=True)
    lr = 0.1
    # %%
    for step in range(4):
        loss = ((w - 2) ** 2).sum()
        loss.backward()
        with torch.no_grad():
            w -= lr * w.grad
        w.grad = None
    """,
    learns="loss.item() == 0",
    remarks="zero-factor",
)
ROWS.healthy(
    "clipping that seldom acts, after unscaling",
    """
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    # %%
    for epoch in range(5):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
    """,
    learns="learning(net.parameters())",
    libraries=("torch",),
)
ROWS.healthy(
    "the norm of the gradients is measured after the step",
    """
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    norms = []
    # %%
    for epoch in range(5):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        norms.append(float(nn.utils.clip_grad_norm_(net.parameters(), 1e9)))
    """,
    learns="min(norms) > 0",
)
ROWS.healthy(
    "clipping of the last gradients and accumulation of the next",
    """
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=0.05)
    batches = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(8)]
    # %%
    for i, (x, y) in enumerate(batches):
        loss = F.mse_loss(net(x), y) / 2
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        if i % 2:
            opt.step()
            opt.zero_grad()
    """,
    learns="i == 7",
)
ROWS.healthy(
    "gradients with noise and a mask",
    """
    w = torch.zeros(4, requires_grad=True)
    opt = optim.SGD([w], lr=0.1)
    mask = torch.tensor([1.0, 1.0, 0.0, 0.0])
    x, y = torch.randn(32, 4), torch.randn(32)
    # %%
    for step in range(5):
        opt.zero_grad()
        loss = F.mse_loss(x @ w, y)
        loss.backward()
        w.grad *= mask
        w.grad += 0.01 * torch.randn(4) * mask
        opt.step()
    """,
    learns="norm(w) > 0",
)
