"""Cells that look like those with errors and are right: evaluation without gradients, permuted pictures, writes in place."""

from __future__ import annotations

from planting import Table

ROWS = Table()

ROWS.healthy(
    "an evaluation decorated with no_grad",
    """
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    opt = optim.SGD(net.parameters(), lr=0.2)
    x, y = torch.randn(32, 6), torch.randint(0, 3, (32,))

    @torch.no_grad()
    def evaluate():
        return F.cross_entropy(net(x), y).item()
    before = evaluate()
    for _ in range(8):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
    after = evaluate()
    """,
    learns="after < before",
)
ROWS.healthy(
    "phases with gradients on and off",
    """
    net = nn.Linear(6, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(32, 6), torch.randn(32, 1)
    losses = []
    for phase in ["val", "train", "val", "train"]:
        with torch.set_grad_enabled(phase == "train"):
            loss = F.mse_loss(net(x), y)
        if phase == "train":
            opt.zero_grad()
            loss.backward()
            opt.step()
        losses.append(loss.item())
    """,
    learns="losses[-1] < losses[0]",
)
ROWS.healthy(
    "gradients off for a while",
    """
    net = nn.Linear(6, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(32, 6), torch.randn(32, 1)
    torch.set_grad_enabled(False)
    before = F.mse_loss(net(x), y).item()
    torch.set_grad_enabled(True)
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    """,
    learns="F.mse_loss(net(x), y).item() < before",
)
ROWS.healthy(
    "pictures with channels last, permuted",
    """
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
    )
    opt = optim.SGD(net.parameters(), lr=0.2)
    x, y = torch.randn(8, 6, 6, 3), torch.randint(0, 2, (8,))
    before = F.cross_entropy(net(x.permute(0, 3, 1, 2)), y).item()
    for _ in range(4):
        opt.zero_grad()
        loss = F.cross_entropy(net(x.permute(0, 3, 1, 2)), y)
        loss.backward()
        opt.step()
    """,
    learns="loss.item() < before",
)
ROWS.healthy(
    "writes in place that nothing needs",
    """
    net, out = nn.Linear(6, 8), nn.Linear(8, 1)
    opt = optim.SGD([*net.parameters(), *out.parameters()], lr=0.1)
    x, y = torch.randn(16, 6), torch.randn(16, 1)
    losses = []
    for _ in range(4):
        h = net(x)
        h += 1
        h.relu_()
        loss = F.mse_loss(out(h), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    """,
    learns="losses[-1] < losses[0]",
)
ROWS.healthy(
    "an LSTM's output, and labels that are ignored",
    """
    lstm, head = nn.LSTM(4, 16, batch_first=True), nn.Linear(16, 3)
    opt = optim.Adam([*lstm.parameters(), *head.parameters()], lr=0.05)
    x, y = torch.randn(8, 5, 4), torch.randint(0, 3, (8, 5))
    y[:, 0] = -1
    losses = []
    for _ in range(8):
        out, (h, c) = lstm(x)
        loss = F.cross_entropy(head(out).transpose(1, 2), y, ignore_index=-1)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    """,
    learns="losses[-1] < losses[0]",
)
