"""Losses that mean something else: shapes that broadcast, probabilities in place of logits, sums in place of means."""

from __future__ import annotations

from planting import Table

ROWS = Table()

# ------------------------------------------------------------------------------------------------------------- broadcast
ROWS.fault(
    "a column against a row",
    "broadcast",
    """
    X = torch.randn(40, 3)
    y = X @ torch.tensor([1., 2., 3.])
    lin = nn.Linear(3, 1)
    pred = lin(X)
    loss = ((pred - y) ** 2).mean() #!
    loss.backward()
    """,
    shows="(pred - y).shape == (40, 40)",
    cure={"pred = lin(X)": "pred = lin(X).squeeze(1)"},
    says=("40", "pred", "y"),
)
ROWS.fault(
    "mse_loss of different shapes",
    "broadcast",
    """
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    opt = optim.Adam(net.parameters(), lr=0.01)
    x = torch.randn(25, 2)
    t = x.prod(1)
    for ep in range(3):
        opt.zero_grad()
        out = net(x)
        loss = F.mse_loss(out, t) #!
        loss.backward()
        opt.step()
    """,
    shows="out.shape != t.shape",
    cure={"t = x.prod(1)": "t = x.prod(1, keepdim=True)"},
    says=("25", "out", "t"),
)
ROWS.fault(
    "values against rewards",
    "broadcast",
    """
    critic = nn.Linear(4, 1)
    states, rewards, gamma = torch.randn(16, 4), torch.randn(16), 0.99
    next_states = torch.randn(16, 4)
    def td_loss(v, r, v_next):
        delta = r + gamma * v_next.detach() - v
        return delta.pow(2).mean()
    # %%
    v, v_next = critic(states), critic(next_states)
    loss = td_loss(v, rewards, v_next) #!
    loss.backward()
    """,
    shows="(rewards + v).shape == (16, 16)",
    cure={
        "states, rewards, gamma = torch.randn(16, 4), torch.randn(16), 0.99": "states, rewards, gamma = torch.randn(16, 4), torch.randn(16, 1), 0.99"
    },
    says="16",
)
ROWS.fault(
    "weights of samples that broadcast",
    "broadcast",
    """
    w_sample = torch.rand(10, 1)
    model = nn.Linear(5, 1)
    feats, labels = torch.randn(10, 5), torch.randint(0, 2, (10,)).float()
    per = F.binary_cross_entropy_with_logits(model(feats).view(-1), labels, reduction="none")
    weighted = per * w_sample #!
    loss = weighted.mean()
    loss.backward()
    """,
    shows="weighted.shape == (10, 10)",
    cure={"torch.rand(10, 1)": "torch.rand(10)"},
    says=("w_sample", "10"),
)
ROWS.fault(
    "the residual of a fit, one axis too many",
    "broadcast",
    """
    a, b = (torch.ones((), requires_grad=True) for _ in range(2))
    ts = torch.linspace(0, 1, 30).unsqueeze(1)
    obs = 3 * ts.squeeze() - 1
    res = a * ts + b - obs #!
    loss = res.pow(2).mean()
    """,
    shows="res.shape == (30, 30)",
    cure={"ts.squeeze()": "ts"},
    says="30",
)

ROWS.fault(
    "a target that is made in the call",
    "broadcast",
    """
    m = nn.Linear(10, 1)
    X = torch.randn(64, 10)
    # %%
    loss = F.mse_loss(m(X), torch.linspace(0, 1, 64)) #!
    loss.backward()
    """,
    shows="not close(loss, ((m(X)[:, 0] - torch.linspace(0, 1, 64)) ** 2).mean())",
    cure={"m(X)": "m(X).squeeze(1)"},
    says=("`m(X)` has shape (64, 1) and `torch.linspace(0, 1, 64)` has shape (64,)", "4096"),
    never="`X`",
)
ROWS.fault(
    "a batch by index against a column",
    "broadcast",
    """
    m = nn.Linear(10, 1)
    X, Y = torch.randn(128, 10), torch.arange(128) % 9
    opt = optim.SGD(m.parameters(), lr=0.01)
    for step in range(3):
        i = torch.arange(32 * step, 32 * step + 32)
        loss = F.mse_loss(m(X[i]), Y[i].float()) #!
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    shows="m(X[i]).shape != Y[i].shape",
    cure={"torch.arange(128) % 9": "torch.arange(128).unsqueeze(1) % 9"},
    says="`m(X[i])` has shape (32, 1) and `Y[i].float()` has shape (32,)",
)
ROWS.fault(
    "a batch that is unpacked in a method",
    "broadcast",
    """
    class Regression(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
        def training_step(self, batch, index):
            x, y = batch
            return F.mse_loss(self.net(x), y)
    model = Regression()
    batches = [(torch.randn(24, 10), torch.randn(24)) for _ in range(3)]
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    # %%
    for index, batch in enumerate(batches):
        loss = model.training_step(batch, index) #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """,
    shows="model.net(batch[0]).shape != batch[1].shape",
    cure={"torch.randn(24))": "torch.randn(24, 1))"},
    says="`self.net(x)` has shape (24, 1) and `y` has shape (24,)",
)
ROWS.fault(
    "a criterion with keywords, in a trainer",
    "broadcast",
    """
    class Trainer:
        def __init__(self):
            self.net, self.criterion = nn.Linear(10, 1), nn.SmoothL1Loss()
            self.data = {"x": torch.randn(40, 10), "y": torch.randn(40)}
            self.opt = optim.Adam(self.net.parameters(), lr=1e-3)
        def step(self):
            loss = self.criterion(target=self.data["y"], input=self.net(self.data["x"]))
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
    trainer = Trainer()
    # %%
    for k in range(3):
        trainer.step() #!
    """,
    shows="trainer.net(trainer.data['x']).shape != trainer.data['y'].shape",
    cure={'"y": torch.randn(40)': '"y": torch.randn(40, 1)'},
    says='has shape (40, 1) and `self.data["y"]` has shape (40,)',
)
ROWS.fault(
    "the same tensor as input and as target",
    "broadcast",
    """
    auto = nn.Linear(1, 1)
    y = torch.arange(30.).unsqueeze(1) / 30
    e = F.mse_loss(auto(y), y[:, 0]) #!
    e.backward()
    """,
    shows="not close(e, ((auto(y) - y) ** 2).mean())",
    cure={"y[:, 0]": "y"},
    says="`auto(y)` has shape (30, 1) and `y[:, 0]` has shape (30,)",
)
ROWS.fault(
    "a robust loss of one's own",
    "broadcast",
    """
    class Robust(nn.Module):
        def forward(self, p, t):
            e = p - t
            return torch.where(e.abs() < 1, 0.5 * e ** 2, e.abs() - 0.5).mean()
    net, robust = nn.Linear(2, 1), Robust()
    x = torch.randn(50, 2)
    sums = x.sum(1)
    # %%
    loss = robust(net(x), sums) #!
    loss.backward()
    """,
    shows="net(x).shape != sums.shape",
    cure={"x.sum(1)": "x.sum(1, keepdim=True)"},
    says="`p` has shape (50, 1) and `t` has shape (50,)",
)

# ---------------------------------------------------------------------------------------------- probabilities for logits
ROWS.fault(
    "softmax before cross_entropy",
    "double-softmax",
    """
    clf = nn.Linear(10, 4)
    X, y = torch.randn(32, 10), torch.randint(0, 4, (32,))
    probs = torch.softmax(clf(X), dim=1)
    loss = F.cross_entropy(probs, y) #!
    loss.backward()
    """,
    shows="close(probs.sum(1), torch.ones(32))",
    cure={"torch.softmax(clf(X), dim=1)": "clf(X)"},
    says="softmax",
)
ROWS.fault(
    "a model that ends in Softmax",
    "double-softmax",
    """
    class Digits(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10), nn.Softmax(dim=-1))
        def forward(self, x):
            return self.net(x)
    model = Digits()
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    # %%
    data, target = torch.randn(20, 16), torch.randint(0, 10, (20,))
    for epoch in range(2):
        optimizer.zero_grad()
        output = model(data)
        loss = criterion(output, target) #!
        loss.backward()
        optimizer.step()
    """,
    shows="close(output.sum(1), torch.ones(20))",
    cure={", nn.Softmax(dim=-1))": ")"},
    says="Softmax",
)
ROWS.fault(
    "sigmoid before a loss with logits",
    "double-softmax",
    """
    net = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
    x, y = torch.randn(18, 4), torch.randint(0, 2, (18, 1)).float()
    criterion = nn.BCEWithLogitsLoss()
    out = net(x)
    loss = criterion(out, y) #!
    """,
    shows="bool(((out > 0) & (out < 1)).all())",
    cure={", nn.Sigmoid())": ")"},
    says="sigmoid",
)
ROWS.fault(
    "nll_loss of probabilities",
    "nll-of-probabilities",
    """
    model = nn.Sequential(nn.Linear(6, 3), nn.Softmax(dim=1))
    inp, lab = torch.randn(15, 6), torch.randint(0, 3, (15,))
    out = model(inp)
    loss = F.nll_loss(out, lab) #!
    loss.backward()
    """,
    shows="-1 <= loss.item() < 0",
    cure={"nn.Softmax(dim=1)": "nn.LogSoftmax(dim=1)"},
    says=("nll_loss", "log_softmax"),
)
ROWS.fault(
    "softmax in a helper, cross_entropy elsewhere",
    "double-softmax",
    """
    W = torch.randn(5, 3, requires_grad=True)
    def predict(x):
        return (x @ W).softmax(-1)
    def evaluate(x, y):
        return (predict(x).argmax(-1) == y).float().mean()
    # %%
    xs, ys = torch.randn(11, 5), torch.randint(0, 3, (11,))
    loss = F.cross_entropy(predict(xs), ys) #!
    """,
    shows="not close(loss, F.cross_entropy(xs @ W, ys))",
    cure={"F.cross_entropy(predict(xs), ys)": "F.nll_loss(predict(xs).log(), ys)"},
    says="softmax",
)

# ---------------------------------------------------------------------------------------------------------- sum for mean
ROWS.fault(
    "a sum of squares of ten thousand rows",
    "sum-for-mean",
    """
    X = torch.randn(10000, 3)
    y = X @ torch.tensor([1., -1., 2.])
    w = torch.zeros(3, requires_grad=True)
    curve = []
    for step in range(5):
        loss = ((X @ w - y) ** 2).sum() #!
        curve.append(loss.item())
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w.grad.zero_()
    """,
    shows="curve[-1] > 1e6 * curve[0]",
    cure={".sum() #!": ".mean()"},
    says=("10000", "mean"),
)
ROWS.fault(
    "reduction sum with a step for a mean",
    "sum-for-mean",
    """
    clf = nn.Linear(20, 5)
    opt = optim.SGD(clf.parameters(), lr=0.1)
    X, y = torch.randn(2000, 20), torch.randint(0, 5, (2000,))
    criterion = nn.CrossEntropyLoss(reduction="sum")
    w0 = clf.weight.detach().clone()
    # %%
    opt.zero_grad()
    loss = criterion(clf(X), y) #!
    loss.backward()
    opt.step()
    """,
    shows="norm(clf.weight - w0) > 2 * norm(w0)",
    cure={'reduction="sum"': 'reduction="mean"'},
    says=("sum", "2000"),
)
ROWS.fault(
    "a total over samples in a comprehension",
    "sum-for-mean",
    """
    k = torch.tensor(0.0, requires_grad=True)
    samples = [(i / 200, 2 * i / 200) for i in range(1, 601)]
    opt = optim.SGD([k], lr=0.1)
    path = []
    for epoch in range(4):
        opt.zero_grad()
        loss = sum([(k * x - t) ** 2 for x, t in samples]) #!
        loss.backward()
        opt.step()
        path.append(k.item())
    """,
    shows="abs(path[-1]) > 1e3",
    cure={"for x, t in samples]) #!": "for x, t in samples]) / len(samples)"},
    says="600",
)

# ------------------------------------------------------------------------------------------------------- dropped outputs
ROWS.fault(
    "a dropout as the last layer of a classifier",
    "dropped-output",
    """
    net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 4), nn.Dropout(0.5))
    opt = optim.Adam(net.parameters(), lr=0.01)
    X, y = torch.randn(40, 6), torch.randint(0, 4, (40,))
    for step in range(3):
        opt.zero_grad()
        scores = net(X) #!
        loss = F.cross_entropy(scores, y)
        loss.backward()
        opt.step()
    """,
    shows="(scores == 0).sum() > 40",
    cure={"nn.Linear(12, 4), nn.Dropout(0.5)": "nn.Dropout(0.5), nn.Linear(12, 4)"},
    says=("net[3]", "160"),
)
ROWS.fault(
    "a dropout of predictions in forward",
    "dropped-output",
    """
    class Regressor(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden, self.out = nn.Linear(3, 16), nn.Linear(16, 1)
        def forward(self, v):
            return F.dropout(self.out(torch.relu(self.hidden(v))), 0.3, self.training)
    # %%
    model = Regressor()
    v = torch.randn(50, 3)
    t = v.sum(1, keepdim=True)
    out = model(v) #!
    loss = F.mse_loss(out, t)
    loss.backward()
    """,
    shows="(out == 0).any()",
    cure={
        "F.dropout(self.out(torch.relu(self.hidden(v))), 0.3, self.training)": "self.out(F.dropout(torch.relu(self.hidden(v)), 0.3, self.training))"
    },
    says=("dropout", "50"),
)
ROWS.fault(
    "a dropout before a sigmoid",
    "dropped-output",
    """
    drop, lin = nn.Dropout(0.4), nn.Linear(5, 1)
    a, b = torch.randn(60, 5), torch.randint(0, 2, (60, 1)).float()
    z = drop(lin(a)) #!
    p = torch.sigmoid(z)
    loss = F.binary_cross_entropy(p, b)
    loss.backward()
    """,
    shows="(p == 0.5).any()",
    cure={"z = drop(lin(a))": "z = lin(drop(a))"},
    says=("drop", "60"),
)
