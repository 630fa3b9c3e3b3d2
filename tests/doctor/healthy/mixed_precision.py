"""Trainings in float16 and bfloat16 in which nothing is wrong."""

from __future__ import annotations

from planting import Table

ROWS = Table()
ROWS.healthy(
    "a GradScaler that searches for its scale, and finds it",
    """
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    opt = optim.SGD(net.parameters(), lr=0.003)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
    x, y = torch.randn(32, 8), torch.randn(32, 1)
    first = None
    # %%
    for step in range(20):
        opt.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.mse_loss(net(x), y, reduction="sum") / 4
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        first = first or loss.item()
    """,
    learns="loss.item() < first and scaler.get_scale() < 2.0**16",
    libraries=("torch",),
)
ROWS.healthy(
    "the search for a scale has not ended",
    """
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    opt = optim.SGD(net.parameters(), lr=0.003)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**22)
    x, y = torch.randn(32, 8), torch.randn(32, 1)
    # %%
    for step in range(3):
        opt.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    """,
    learns="scaler.get_scale() == 2.0**19",
    libraries=("torch",),
)
ROWS.healthy(
    "accumulated and clipped after unscaling",
    """
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    opt = optim.AdamW(net.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    batches = [(torch.randn(16, 8), torch.randn(16, 1)) for _ in range(8)]
    losses = []
    # %%
    for epoch in range(5):
        for at, (x, y) in enumerate(batches):
            with torch.autocast("cpu", dtype=torch.float16):
                loss = F.mse_loss(net(x), y) / 2
            scaler.scale(loss).backward()
            losses.append(loss.item())
            if at % 2:
                scaler.unscale_(opt)
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                scaler.step(opt)
                scaler.update()
                opt.zero_grad()
    """,
    learns="sum(losses[-8:]) < sum(losses[:8])",
    libraries=("torch",),
)
ROWS.healthy(
    "bfloat16 without a GradScaler",
    """
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    opt = optim.AdamW(net.parameters(), lr=0.01)
    x, y = torch.randn(32, 8), torch.randn(32, 1)
    losses = []
    # %%
    for step in range(20):
        opt.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    """,
    learns="losses[-1] < losses[0]",
    libraries=("torch",),
)
ROWS.healthy(
    "gradients that are divided by hand",
    """
    net = nn.Linear(8, 1)
    opt = optim.SGD(net.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    x, y = torch.randn(32, 8), torch.randn(32, 1)
    first = F.mse_loss(net(x), y).item()
    # %%
    for step in range(5):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        for p in net.parameters():
            p.grad /= scaler.get_scale()
        opt.step()
    """,
    learns="loss.item() < first",
    libraries=("torch",),
)
ROWS.healthy(
    "a long search for the scale",
    """
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    opt = optim.SGD(net.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu")
    x, y = 300 * torch.randn(32, 8), torch.rand(32, 1)
    # %%
    for step in range(11):
        opt.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            rate = torch.exp(net(x).clamp(max=5))
            loss = F.l1_loss(rate, y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    """,
    learns="scaler.get_scale() > 64",
    libraries=("torch",),
)
ROWS.healthy(
    "weights in bfloat16 and long steps",
    """
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).bfloat16()
    opt = optim.Adam(net.parameters(), lr=0.01)
    x, y = torch.randn(32, 8).bfloat16(), torch.randn(32, 1).bfloat16()
    losses = []
    # %%
    for step in range(10):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    """,
    learns="losses[-1] < losses[0]",
    libraries=("torch",),
)
ROWS.healthy(
    "weights in bfloat16 whose rounding is summed up",
    """
    class Compensated(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})
        @torch.no_grad()
        def step(self):
            for p in self.param_groups[0]["params"]:
                lost = self.state[p].setdefault("lost", torch.zeros_like(p))
                new = p + (lost - self.param_groups[0]["lr"] * p.grad)
                lost += (p - new) - self.param_groups[0]["lr"] * p.grad
                p.copy_(new)
    net = nn.Linear(64, 1).bfloat16()
    opt = Compensated(net.parameters(), lr=1e-4)
    x, y = torch.randn(256, 64).bfloat16(), torch.randn(256, 1).bfloat16()
    losses = []
    # %%
    for step in range(30):
        opt.zero_grad()
        loss = F.mse_loss(net(x).float(), y.float())
        loss.backward()
        opt.step()
        losses.append(loss.item())
    """,
    learns="losses[-1] < losses[0]",
    libraries=("torch",),
)
