"""Trainings of compiled models without a fault."""

from __future__ import annotations

from planting import Table

ROWS = Table()

ROWS.healthy(
    "a model is compiled after its optimizer was made",
    """
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    opt = optim.Adam(net.parameters(), lr=0.01)
    net = torch.compile(net, backend="eager")
    x, y = torch.randn(32, 8), torch.randn(32, 1)
    first = F.mse_loss(net(x), y).item()
    # %%
    for step in range(10):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
    """,
    learns="loss.item() < first",
    libraries=("torch",),
)
ROWS.healthy(
    "a compiled step with its backward",
    """
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    opt = optim.SGD(net.parameters(), lr=0.05)
    x, y = torch.randn(32, 8), torch.randn(32, 1)
    first = F.mse_loss(net(x), y).item()
    @torch.compile(backend="eager")
    def update():
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        return loss
    # %%
    for step in range(10):
        loss = update()
    """,
    learns="loss.item() < first",
    libraries=("torch",),
)
