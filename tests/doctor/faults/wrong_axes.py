"""Programs that train something else than they seem to: axes of size 1, a softmax over the batch, evaluation mode, units that stay equal."""

from __future__ import annotations

from planting import Table

ROWS = Table()

# ----------------------------------------------------------------------------------------------------- axes of one element
ROWS.fault(
    "cross entropy of one output",
    "cancelled",
    """
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
    x, y = torch.randn(30, 5), torch.zeros(30).long()
    opt = optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        loss = F.cross_entropy(net(x), y) #!
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    shows="all_zero(net[0].weight.grad, net[2].weight.grad)",
    cure={"nn.Linear(8, 1)": "nn.Linear(8, 2)"},
    says=("log_softmax", "(30, 1)", "length 1", "one output for each class"),
)
ROWS.fault(
    "a LogSoftmax layer over one output, in a function",
    "cancelled",
    """
    def fit(policy, states, returns):
        opt = optim.SGD(policy.parameters(), lr=0.1)
        for step in range(3):
            log_prob = policy(states) #!
            loss = -(log_prob * returns).mean()
            opt.zero_grad(); loss.backward(); opt.step()
    policy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1), nn.LogSoftmax(dim=-1))
    fit(policy, torch.randn(20, 4), torch.randn(20, 1))
    """,
    shows="all_zero(policy[0].weight.grad)",
    cure={"nn.LogSoftmax(dim=-1)": "nn.LogSigmoid()"},
    says=("log_softmax", "(20, 1)"),
)
ROWS.fault(
    "a layer norm of one feature",
    "cancelled",
    """
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1), nn.LayerNorm(1))
    x, y = torch.randn(24, 6), torch.randn(24, 1)
    opt = optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        loss = F.mse_loss(model(x), y) #!
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    shows="norm(model[0].weight.grad) < 1e-5",
    cure={", nn.LayerNorm(1)": ""},
    says=("LayerNorm `model[3]`", "(24, 1)", "by itself"),
)
ROWS.fault(
    "a group norm with as many groups as channels",
    "cancelled",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.norm, self.out = nn.Linear(6, 8), nn.GroupNorm(8, 8), nn.Linear(8, 2)
            nn.init.ones_(self.norm.bias)
        def forward(self, x):
            h = self.norm(self.fc(x)) #!
            return self.out(torch.relu(h))
    net = Net()
    x, y = torch.randn(24, 6), torch.randint(0, 2, (24,))
    opt = optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    shows="norm(net.fc.weight.grad) < 1e-4",
    cure={"nn.GroupNorm(8, 8)": "nn.GroupNorm(2, 8)"},
    says=("GroupNorm `net.norm`", "(24, 8)", "fewer groups"),
)
ROWS.fault(
    "a softmax by hand, over one column",
    "cancelled",
    """
    def softmax(z):
        e = torch.exp(z - z.max())
        return e / e.sum(1, keepdim=True) #!
    W = torch.randn(5, 1, requires_grad=True)
    x = torch.randn(18, 5)
    y = (x[:, :1] > 0).float()
    for step in range(3):
        loss = ((softmax(x @ W) - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            W -= 0.1 * W.grad
    """,
    shows="norm(W.grad) < 1e-5",
    cure={"torch.randn(5, 1, requires_grad=True)": "torch.randn(5, 2, requires_grad=True)"},
    says=("e.sum(1, keepdim=True)", "(18, 1)", "is 1 for every input", "`W`"),
)
ROWS.fault(
    "shares of one output",
    "cancelled",
    """
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), nn.Softplus())
    x, y = torch.rand(16, 4), torch.rand(16, 1)
    out = net(x)
    share = out / out.sum(dim=1, keepdim=True) #!
    loss = F.mse_loss(share, y)
    loss.backward()
    """,
    shows="norm(net[0].weight.grad) < 1e-6",
    cure={"out.sum(dim=1, keepdim=True)": "out.sum(dim=0, keepdim=True)"},
    says=("out.sum(dim=1, keepdim=True)", "length 1"),
)
ROWS.fault(
    "a column that is divided by its norm by rows",
    "cancelled",
    """
    net = nn.Linear(4, 1)
    x, y = torch.rand(16, 4), torch.rand(16, 1)
    h = net(x)
    unit = h / h.norm(dim=1, keepdim=True) #!
    loss = F.mse_loss(unit, y)
    loss.backward()
    """,
    shows="norm(net.weight.grad) < 1e-5",
    cure={"dim=1": "dim=0"},
    says=("h.norm(dim=1, keepdim=True)", "1 or -1"),
)
ROWS.fault(
    "a column that is standardised by rows",
    "cancelled",
    """
    net = nn.Linear(4, 1)
    x, y = torch.rand(16, 4), torch.rand(16, 1)
    h = net(x)
    mean, var = h.mean(-1, keepdim=True), h.var(-1, keepdim=True, unbiased=False)
    z = (h - mean) / torch.sqrt(var + 1e-5) #!
    loss = F.mse_loss(z, y)
    loss.backward()
    """,
    shows="all_zero(net.weight.grad)",
    cure={"h.mean(-1, keepdim=True)": "h.mean(0, keepdim=True)", "h.var(-1, keepdim": "h.var(0, keepdim"},
    says=("h.var(-1, keepdim=True, unbiased=False)", "(16, 1)", "is 0 for every input"),
)
# -------------------------------------------------------------------------------------------------- a softmax over the batch
ROWS.fault(
    "log_softmax over the batch",
    "batch-softmax",
    """
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
    opt = optim.Adam(net.parameters(), lr=0.01)
    x, y = torch.randn(20, 6), torch.randint(0, 4, (20,))
    # %%
    for epoch in range(3):
        z = net(x)
        log_p = F.log_softmax(z, 0) #!
        loss = F.nll_loss(log_p, y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    shows="close(log_p.exp().sum(0), torch.ones(4))",
    cure={"F.log_softmax(z, 0)": "F.log_softmax(z, 1)"},
    says=("(20, 4)", "0.2 on average", "`F.log_softmax(z, 1)` in place of `F.log_softmax(z, 0)`"),
)
ROWS.fault(
    "a LogSoftmax layer over the batch",
    "batch-softmax",
    """
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3), nn.LogSoftmax(dim=0))
    criterion = nn.NLLLoss()
    x, y = torch.randn(20, 6), torch.randint(0, 3, (20,))
    opt = optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        loss = criterion(model(x), y) #!
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    shows="close(model(x).exp().sum(0), torch.ones(3))",
    cure={"nn.LogSoftmax(dim=0)": "nn.LogSoftmax(dim=1)"},
    says=("LogSoftmax `model[3]`", "(20, 3)", "`nn.LogSoftmax(dim=1)` in place of `nn.LogSoftmax(dim=0)`"),
)
ROWS.fault(
    "probabilities over the batch against one-hot rows",
    "batch-softmax",
    """
    net = nn.Linear(6, 3)
    x, y = torch.randn(12, 6), torch.eye(3)[torch.randint(0, 3, (12,))]
    opt = optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(3):
        p = torch.softmax(net(x), dim=0) #!
        loss = ((p - y) ** 2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    shows="close(p.sum(0), torch.ones(3))",
    cure={"dim=0": "dim=1"},
    says=("(12, 3)", "0.25 on average", "each row of the targets"),
)
ROWS.fault(
    "a softmax by hand, over the batch",
    "batch-softmax",
    """
    x, y = torch.randn(15, 6), torch.randint(0, 3, (15,))
    W = torch.randn(6, 3, requires_grad=True)
    for step in range(3):
        e = torch.exp(x @ W)
        p = e / e.sum(0, keepdim=True) #!
        loss = -torch.log(p[torch.arange(15), y]).mean()
        loss.backward()
        with torch.no_grad():
            W -= 0.1 * W.grad
            W.grad = None
    """,
    shows="close(p.sum(0), torch.ones(3))",
    cure={"e.sum(0, keepdim=True)": "e.sum(1, keepdim=True)"},
    says=("(15, 3)", "`e.sum(1, keepdim=True)` in place of `e.sum(0, keepdim=True)`"),
)
ROWS.fault(
    "a function that normalises over the batch",
    "batch-softmax",
    """
    def probabilities(z):
        return torch.softmax(z, 0) #!
    def train(net, x, y):
        opt = optim.Adam(net.parameters(), lr=0.01)
        for step in range(3):
            q = probabilities(net(x))
            loss = -(y * q.log()).sum(1).mean()
            opt.zero_grad(); loss.backward(); opt.step()
        return q
    net = nn.Linear(6, 3)
    q = train(net, torch.randn(12, 6), torch.eye(3)[torch.randint(0, 3, (12,))])
    """,
    shows="close(q.sum(0), torch.ones(3))",
    cure={"torch.softmax(z, 0)": "torch.softmax(z, 1)"},
    says=("(12, 3)", "`torch.softmax(z, 1)` in place of `torch.softmax(z, 0)`"),
)
# ----------------------------------------------------------------------------------------------------------- evaluation mode
ROWS.fault(
    "eval before the training",
    "evaluation-mode",
    """
    x, y = 4 + 3 * torch.randn(32, 5), torch.randn(32, 1)
    model = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    opt = optim.Adam(model.parameters(), lr=0.01)
    model.eval() #!
    for step in range(4):
        loss = F.mse_loss(model(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    shows="not model[1].running_mean.any()",
    cure={"model.eval()": "model.train()"},
    says=("`model.eval()` on line", "`model[1]` (BatchNorm1d)", "`model.train()` in place of `model.eval()`"),
)
ROWS.fault(
    "eval in an earlier cell, and steps by hand",
    "evaluation-mode",
    """
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2))
    x, y = torch.randn(8, 1, 4, 4), torch.randint(0, 2, (8,))
    net.eval()
    with torch.no_grad():
        before = net(x)
    # %%
    for step in range(3):
        scores = net(x)
        loss = F.cross_entropy(scores, y)
        net.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.1 * p.grad
    """,
    shows="not net[1].running_mean.any()",
    cure={"for step in range(3):": "net.train()\nfor step in range(3):"},
    says=("`net.eval()`", "`net[1]` (BatchNorm2d)"),
)
ROWS.fault(
    "a model that a function returns in evaluation mode",
    "evaluation-mode",
    """
    def build():
        return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1)).eval()
    def train(net, x, y):
        opt = optim.SGD(net.parameters(), lr=0.05)
        for step in range(4):
            out = net(x) #!
            loss = F.mse_loss(out, y)
            opt.zero_grad(); loss.backward(); opt.step()
    net = build()
    train(net, torch.randn(32, 5), torch.randn(32, 1))
    """,
    shows="not net[1].running_mean.any()",
    cure={".eval()": ""},
    says=("`net` is trained in evaluation mode", "`net[1]` (BatchNorm1d)"),
)
# ------------------------------------------------------------------------------------------------------- units that stay equal
ROWS.fault(
    "a constant in both layers",
    "equal-units",
    """
    x = torch.randn(40, 4)
    y = torch.sin(2 * x[:, :1])
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
    nn.init.constant_(model[0].weight, 0.5)
    nn.init.zeros_(model[0].bias)
    nn.init.constant_(model[2].weight, 0.5)
    opt = optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        loss = F.mse_loss(model(x), y) #!
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    shows="close(model[0].weight, model[0].weight[:1].expand(16, 4))",
    cure={"constant_(model[0].weight, 0.5)": "normal_(model[0].weight, std=0.5)"},
    says=("All 16 units of `model[0].weight`", "4 steps", "in place of `nn.init.constant_(model[0].weight, 0.5)`"),
)
ROWS.fault(
    "matrices of one number, with steps by hand",
    "equal-units",
    """
    x = torch.randn(40, 4)
    y = torch.sin(2 * x[:, :1])
    W1 = torch.full((4, 6), 0.3, requires_grad=True)
    W2 = torch.ones(6, 1, requires_grad=True)
    for step in range(4):
        h = torch.tanh(x @ W1) #!
        loss = ((h @ W2 - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for w in (W1, W2):
                w -= 0.05 * w.grad
                w.grad = None
    """,
    shows="close(W1, W1[:, :1].expand(4, 6))",
    cure={"torch.full((4, 6), 0.3, requires_grad=True)": "torch.randn(4, 6, requires_grad=True)"},
    says=("All 6 units of `W1`", "after `W1 = torch.full((4, 6), 0.3, requires_grad=True)`"),
)
ROWS.fault(
    "parameters of one number, multiplied from the left",
    "equal-units",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.A = nn.Parameter(torch.full((5, 3), 0.1))
            self.B = nn.Parameter(torch.full((1, 5), 0.2))
        def forward(self, x):
            return self.B @ torch.relu(self.A @ x) #!
    x, y = torch.rand(3, 30), torch.rand(1, 30)
    net = Net()
    opt = optim.Adam(net.parameters(), lr=0.01)
    for step in range(4):
        loss = F.mse_loss(net(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    shows="close(net.A, net.A[:1].expand(5, 3))",
    cure={"torch.full((5, 3), 0.1)": "torch.rand(5, 3)"},
    says=("All 5 units of `net.A`", "after `self.A = nn.Parameter(torch.full((5, 3), 0.1))`"),
)
ROWS.fault(
    "ones in all layers of a classifier",
    "equal-units",
    """
    def ones(layer):
        if isinstance(layer, nn.Linear):
            nn.init.ones_(layer.weight)
            nn.init.zeros_(layer.bias)
    net = nn.Sequential(nn.Linear(4, 6), nn.Sigmoid(), nn.Linear(6, 6), nn.Sigmoid(), nn.Linear(6, 3))
    net.apply(ones)
    x, y = torch.randn(30, 4), torch.randint(0, 3, (30,))
    opt = optim.Adam(net.parameters(), lr=0.01)
    for step in range(4):
        loss = F.cross_entropy(net(x), y) #!
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    shows="close(net[0].weight, net[0].weight[:1].expand(6, 4)) and close(net[2].weight, net[2].weight[:1].expand(6, 6))",
    cure={"nn.init.ones_(layer.weight)": "nn.init.xavier_uniform_(layer.weight)"},
    says=("All 6 units of `net[0].weight` and `net[2].weight`", "at random"),
)
