"""Trainings in float16 with a GradScaler: steps that are skipped again and again, and steps without the GradScaler."""

from __future__ import annotations

from planting import Table

ROWS = Table()

# ----------------------------------------------------------------------------------------------------------- falling-scale
ROWS.fault(
    "the forward pass overflows float16",
    "falling-scale",
    """
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    opt = optim.SGD(net.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu")
    x, y = 300 * torch.randn(32, 8), torch.rand(32, 1)
    # %%
    for step in range(12):
        opt.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            rate = torch.exp(net(x)) #!
            loss = F.l1_loss(rate, y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    """,
    shows="scaler.get_scale() < 100",
    cure={"torch.exp(net(x))": "torch.exp(net(x / 300))"},
    says=("torch.exp(net(x))", "float16", "all 12 steps", "from 65536 to 32"),
    libraries=("torch",),
)
ROWS.fault(
    "the gradient overflows at any scale above 1",
    "falling-scale",
    """
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    opt = optim.SGD(net.parameters(), lr=1e-9)
    scaler = torch.amp.GradScaler("cpu")
    x, y = torch.randn(32, 8), 50000 * torch.rand(32, 1)
    # %%
    for step in range(12):
        opt.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            price = net(x)
        loss = F.mse_loss(price.float(), y, reduction="sum") #!
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    """,
    shows="scaler.get_scale() < 100",
    cure={"50000 * ": "", 'reduction="sum"': 'reduction="mean"', "lr=1e-9": "lr=0.1"},
    says=("price.float()", "65536", "65504", "all 12 steps"),
    never="Scale the loss down",
    libraries=("torch",),
)
ROWS.fault(
    "one batch in seven divides by zero",
    "falling-scale",
    """
    net = nn.Linear(8, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    batches = [torch.rand(16, 8) for _ in range(7)]
    batches[3][0] = 0
    # %%
    for step in range(70):
        x = batches[step % 7]
        opt.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            unit = x / x.norm(dim=1, keepdim=True)
            loss = net(unit).square().mean() #!
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    """,
    shows="scaler.get_scale() < 100",
    cure={"keepdim=True)": "keepdim=True).clamp(min=1e-3)"},
    says=("of 70 steps", "NaN"),
    libraries=("torch",),
)
ROWS.fault(
    "infinite gradients are never cleared",
    "falling-scale",
    """
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    opt = optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24)
    x, y = torch.randn(32, 8), torch.randn(32, 1)
    # %%
    for step in range(20):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward() #!
        scaler.step(opt)
        scaler.update()
    """,
    shows="net[0].weight.grad is not None and not net[0].weight.grad.isfinite().all()",
    cure={"scaler.update()": "scaler.update(); opt.zero_grad()"},
    says=("not cleared", "opt.zero_grad()"),
    libraries=("torch",),
)
# ------------------------------------------------------------------------------------------------------------- scaled-step
ROWS.fault(
    "the optimizer steps without its GradScaler",
    "scaled-step",
    """
    net = nn.Linear(8, 1)
    opt = optim.SGD(net.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    x, y = torch.randn(32, 8), torch.randn(32, 1)
    # %%
    for step in range(2):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        opt.step() #!
    """,
    shows="loss.item() > 10",
    cure={"opt.step()": "scaler.step(opt); scaler.update()"},
    says=("1024", "scaler.step(opt); scaler.update()"),
    libraries=("torch",),
)
# ---------------------------------------------------------------------------------------------------------- rounded-update
ROWS.fault(
    "weights in bfloat16 and a small learning rate",
    "rounded-update",
    """
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).bfloat16()
    opt = optim.AdamW(net.parameters(), lr=1e-5)
    x, y = torch.randn(32, 8).bfloat16(), torch.randn(32, 1).bfloat16()
    start = net[0].weight.detach().clone()
    # %%
    for step in range(10):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step() #!
    """,
    shows="(start == net[0].weight).float().mean() > 0.9",
    cure={".bfloat16()": "", "F.mse_loss(net(x), y)": "F.mse_loss(net(x), y)"},
    says=("net[0].weight", "bfloat16", "half a unit"),
    libraries=("torch",),
)
