"""Correct programs that resemble the faults in `faults/contact_numbers.py`."""

from __future__ import annotations

from planting import Table

ROWS = Table()

ROWS.healthy(
    "the logarithm of a softmax without zeros",
    """
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(1))
    x, y = torch.randn(16, 4), torch.randint(0, 3, (16,))
    # %%
    loss = -torch.log(model(x))[range(16), y].mean()
    loss.backward()
    """,
    learns="learning(model.parameters())",
    remarks="unstable",
)
ROWS.healthy(
    "log_softmax of large logits",
    """
    w = torch.randn(4, 3, requires_grad=True)
    x, y = torch.randn(16, 4) * 1000, torch.randint(0, 3, (16,))
    loss = F.nll_loss(F.log_softmax(x @ w, 1), y) + torch.logsumexp(x @ w, 1).mean()
    loss.backward()
    """,
    learns="learning([w])",
)
ROWS.healthy(
    "the last layer alone starts at zero",
    """
    X, T = torch.randn(30, 4), torch.randn(30, 1)
    W1 = (0.1 * torch.randn(4, 8)).requires_grad_()
    W2 = torch.zeros(8, 1, requires_grad=True)
    for step in range(10):
        loss = ((torch.tanh(X @ W1) @ W2 - T) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for p in (W1, W2):
                p -= 0.1 * p.grad
                p.grad = None
    """,
    learns="norm(W2) > 0",
)
ROWS.healthy(
    "a learning rate that is usual",
    """
    X, y = torch.randn(64, 10), torch.randn(64, 1)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = optim.SGD(model.parameters(), lr=0.05, weight_decay=1e-2)
    # %%
    for step in range(60):
        loss = F.mse_loss(model(X), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    learns="float(loss) < 1",
)
ROWS.healthy(
    "AdamW with a strong decay",
    """
    X = torch.randn(64, 10)
    y = X[:, :1] - X[:, 1:2]
    model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
    opt = optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.5)
    # %%
    for step in range(100):
        loss = F.mse_loss(model(X), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    learns="float(loss) < 1",
)
ROWS.healthy(
    "Adam that trembles where it has arrived",
    """
    X, y = torch.randn(64, 10), torch.randn(64, 1)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    adam = optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-4)
    for step in range(150):
        loss = F.mse_loss(model(X), y)
        adam.zero_grad()
        loss.backward()
        adam.step()
    """,
    learns="float(loss) < 0.01",
)
ROWS.healthy(
    "inputs of size 3e4 that are standardised",
    """
    X, y = torch.randn(64, 10) * 3e4, torch.randn(64, 1)
    mean, std = X.mean(0), X.std(0)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = optim.SGD(model.parameters(), lr=0.01)
    # %%
    for step in range(20):
        loss = F.mse_loss(model((X - mean) / std), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    learns="learning(model.parameters())",
)
ROWS.healthy(
    "large inputs at a rate that is small enough",
    """
    x = torch.linspace(0, 300, 50).unsqueeze(1)
    y = 2 * x + 3
    model = nn.Linear(1, 1)
    opt = optim.SGD(model.parameters(), lr=1e-7)
    # %%
    for step in range(20):
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    learns="norm(model.weight.grad) > 0",
)
ROWS.healthy(
    "Adam on half weights with an eps that is not 0",
    """
    X, y = torch.randn(32, 6).half(), torch.randn(32, 1).half()
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1)).half()
    opt = optim.Adam(net.parameters(), lr=1e-3, eps=1e-4)
    # %%
    for step in range(10):
        loss = ((net(X) - y) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "class weights of which one is zero",
    """
    net = nn.Linear(4, 3)
    x, y = torch.randn(20, 4), torch.randint(0, 3, (20,))
    y[:3] = -100
    loss = F.cross_entropy(net(x), y, weight=torch.tensor([1., 0., 2.]))
    loss.backward()
    """,
    learns="norm(net.weight.grad) > 0",
)
ROWS.healthy(
    "padding that leaves a key in each row",
    """
    att = nn.MultiheadAttention(16, 2, batch_first=True)
    h = torch.randn(8, 6, 16)
    length = torch.tensor([6, 5, 4, 6, 1, 3, 2, 6])
    hide = torch.arange(6)[None] >= length[:, None]
    # %%
    a, _ = att(h, h, h, key_padding_mask=hide)
    loss = (a - 1).pow(2).mean()
    loss.backward()
    """,
    learns="norm(att.out_proj.weight.grad) > 0",
)
ROWS.healthy(
    "rows that are masked everywhere in scaled_dot_product_attention",
    """
    q = nn.Linear(8, 8)
    x = torch.randn(2, 5, 8)
    keep = torch.ones(5, 5, dtype=torch.bool).tril()
    keep[2] = False
    out = F.scaled_dot_product_attention(q(x), x, x, attn_mask=keep)
    loss = (out - 1).pow(2).mean()
    loss.backward()
    """,
    learns="norm(q.weight.grad) > 0",
)
ROWS.healthy(
    "a bias before a layer norm",
    """
    model = nn.Sequential(nn.Linear(10, 20), nn.LayerNorm(20), nn.ReLU(), nn.Linear(20, 1))
    x, y = torch.randn(64, 10), torch.randn(64, 1)
    loss = F.mse_loss(model(x), y)
    loss.backward()
    """,
    learns="norm(model[0].bias.grad) > 1e-6",
)
ROWS.healthy(
    "no bias before a batch norm",
    """
    model = nn.Sequential(nn.Linear(10, 20, bias=False), nn.BatchNorm1d(20), nn.ReLU(), nn.Linear(20, 1))
    x, y = torch.randn(64, 10), torch.randn(64, 1)
    loss = F.mse_loss(model(x), y)
    loss.backward()
    """,
    learns="learning(model.parameters())",
)
ROWS.healthy(
    "a bias before a batch norm that is not training",
    """
    model = nn.Sequential(nn.Linear(10, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Linear(20, 1)).eval()
    x, y = torch.randn(64, 10), torch.randn(64, 1)
    loss = F.mse_loss(model(x), y)
    loss.backward()
    """,
    learns="norm(model[0].bias.grad) > 1e-6",
)
for name, model, data in (
    ("a linear layer", "nn.Linear(10, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Linear(20, 2)", "64, 10"),
    ("a convolution", "nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2)", "16, 1, 8, 8"),
    ("a convolution of each picture", "nn.Conv2d(1, 4, 3), nn.InstanceNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2)",
     "16, 1, 8, 8"),
):  # fmt: skip
    ROWS.healthy(
        f"{name} with a bias before a normalisation",
        f"""
        model = nn.Sequential({model})
        x = torch.randn({data})
        loss = (model(x) - 1).pow(2).mean()
        loss.backward()
        """,
        learns="norm(model[0].bias.grad) < 1e-5 and norm(model[0].weight.grad) > 0",
        remarks="cancelled",
    )
