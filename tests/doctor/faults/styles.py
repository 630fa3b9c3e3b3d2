"""The same causes as other people write them: updates in functions and dictionaries, training steps in helpers, losses by hand."""

from __future__ import annotations

from planting import Table

ROWS = Table()

# --------------------------------------------------------------------------------------------------------------- rebound
ROWS.fault(
    "an update in a function that returns the new w",
    "rebound-leaf",
    """
    def step(w, lr):
        w = w - lr * w.grad
        return w
    # %%
    X, y = torch.randn(20, 2), torch.randn(20)
    w = torch.zeros(2, requires_grad=True)
    for _ in range(4):
        loss = ((X @ w - y) ** 2).mean()
        loss.backward() #?
        w = step(w, 0.1) #!
    """,
    shows="not w.is_leaf",
    raises="TypeError",
    cure={"w = w - lr * w.grad": "w.data -= lr * w.grad; w.grad = None"},
    says="w",
    never=("retain_grad", "requires_grad_()"),
)
ROWS.fault(
    "parameters in a dictionary that is built anew",
    "rebound-leaf",
    """
    rng = np.random.default_rng(1)
    theta = {"a": torch.tensor(0.5, requires_grad=True), "b": torch.tensor(-0.2, requires_grad=True)}
    xs = torch.tensor(rng.normal(size=25), dtype=torch.float32)
    ys = 3 * xs - 1
    for epoch in range(3):
        err = ((theta["a"] * xs + theta["b"] - ys) ** 2).mean()
        err.backward() #?
        theta = {k: v - 0.1 * v.grad for k, v in theta.items()} #!
    """,
    shows="not theta['a'].is_leaf",
    raises="TypeError",
    cure={
        "{k: v - 0.1 * v.grad for k, v in theta.items()}": "{k: (v - 0.1 * v.grad).detach().requires_grad_() for k, v in theta.items()}"
    },
    says="theta",
    never="retain_grad",
)
ROWS.fault(
    "an entry of a dictionary written over",
    "rebound-leaf",
    """
    P = {}
    P["W"] = torch.randn(3, 1, requires_grad=True)
    A, c = torch.randn(12, 3), torch.randn(12, 1)
    for i in range(3):
        out = A @ P["W"]
        J = torch.mean((out - c) ** 2)
        J.backward() #?
        P["W"] = P["W"] - 0.05 * P["W"].grad #!
    """,
    shows="not P['W'].is_leaf",
    raises="TypeError",
    cure={'P["W"] = P["W"] - 0.05 * P["W"].grad': 'P["W"].data -= 0.05 * P["W"].grad; P["W"].grad = None'},
    says="P",
    never="retain_grad",
)
ROWS.fault(
    "an attribute of a class of one's own",
    "rebound-leaf",
    """
    class LinearModel:
        def __init__(self, n):
            self.w = torch.zeros(n, requires_grad=True)
        def loss(self, X, y):
            return ((X @ self.w - y) ** 2).mean()
        def update(self, lr):
            self.w = self.w - lr * self.w.grad #!
    m = LinearModel(3)
    X = torch.randn(15, 3)
    y = X.sum(1)
    for _ in range(3):
        l = m.loss(X, y)
        l.backward() #?
        m.update(0.1) #?
    """,
    shows="not m.w.is_leaf",
    raises="TypeError",
    cure={"self.w = self.w - lr * self.w.grad": "self.w.data -= lr * self.w.grad; self.w.grad = None"},
    says="w",
    never="retain_grad",
)
ROWS.fault(
    "a loop variable in place of the parameter",
    ("rebound-leaf", "update-ratio"),
    """
    W1, W2 = torch.randn(3, 5, requires_grad=True), torch.randn(5, 1, requires_grad=True)
    x, t = torch.randn(16, 3), torch.randn(16, 1)
    start = W1.detach().clone()
    # %%
    for it in range(5):
        loss = ((torch.tanh(x @ W1) @ W2 - t) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for p in (W1, W2):
                p = p - 0.1 * p.grad #!
        W1.grad = None
        W2.grad = None
    """,
    shows="close(W1, start)",
    cure={"p = p - 0.1 * p.grad": "p -= 0.1 * p.grad"},
    says="p",
)
ROWS.fault(
    "a weight reshaped where it is made",
    "rebound-leaf",
    """
    beta = torch.zeros(4, requires_grad=True).reshape(4, 1) #!
    X, y = torch.randn(30, 4), torch.randn(30, 1)
    sse = ((y - X @ beta) ** 2).mean()
    sse.backward()
    print(beta.grad)
    """,
    shows="beta.grad is None",
    cure={"torch.zeros(4, requires_grad=True).reshape(4, 1)": "torch.zeros(4).reshape(4, 1).requires_grad_()"},
    says="beta",
    never="retain_grad",
)

# ------------------------------------------------------------------------------------------------------ order and clearing
ROWS.fault(
    "gradients cleared once an epoch and used every batch",
    "accumulated",
    """
    def fit(model, optimizer, batches, epochs):
        for epoch in range(epochs):
            optimizer.zero_grad()
            for xb, yb in batches:
                loss = F.mse_loss(model(xb), yb)
                loss.backward()
                optimizer.step()
        return loss
    # %%
    batches = [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(6)]
    model = nn.Linear(3, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    # %%
    loss = fit(model, optimizer, batches, 2) #!
    (own,) = torch.autograd.grad(F.mse_loss(model(batches[-1][0]), batches[-1][1]), [model.weight])
    """,
    shows="norm(model.weight.grad) > 1.5 * norm(own)",
    cure={"loss = F.mse_loss(model(xb), yb)": "loss = F.mse_loss(model(xb), yb); optimizer.zero_grad()"},
    says="zero_grad",
)
ROWS.fault(
    "a training step that clears too late, in a helper",
    "step-before-backward",
    """
    def train_step(model, opt, x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.zero_grad()
        opt.step()
        return loss.item()
    # %%
    net = nn.Linear(4, 3)
    opt = optim.Adam(net.parameters(), lr=0.05)
    x, y = torch.randn(30, 4), torch.randint(0, 3, (30,))
    w0 = net.weight.detach().clone()
    # %%
    for _ in range(5):
        train_step(net, opt, x, y) #!
    """,
    shows="close(net.weight, w0)",
    cure={"loss.backward()\n    opt.zero_grad()": "opt.zero_grad()\n    loss.backward()"},
    says="zero_grad",
)
ROWS.fault(
    "backward without its parentheses",
    "step-before-backward",
    """
    net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    opt = optim.SGD(net.parameters(), lr=0.1)
    X, Y = torch.randn(10, 2), torch.randn(10, 1)
    w0 = net[0].weight.detach().clone()
    # %%
    for i in range(3):
        opt.zero_grad()
        loss = F.mse_loss(net(X), Y)
        loss.backward #?
        opt.step() #!
    """,
    shows="close(net[0].weight, w0)",
    cure={"loss.backward #?": "loss.backward()"},
    says="backward",
)

# ------------------------------------------------------------------------------------------------------------------ cuts
ROWS.fault(
    "a loss made to require a gradient after the fact",
    ("no_grad", "re-wrapped"),
    """
    net = nn.Linear(3, 1)
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    with torch.no_grad():
        loss = F.mse_loss(net(x), y) #!
    loss.requires_grad = True #?
    loss.backward()
    """,
    shows="net.weight.grad is None",
    cure={"with torch.no_grad():": "if True:", "loss.requires_grad = True": "pass"},
    says="net",
)
ROWS.fault(
    "predictions collected in a buffer of numbers",
    "item",
    """
    model = nn.Linear(4, 1)
    X, y = torch.randn(6, 4), torch.randn(6)
    preds = torch.zeros(6)
    for i in range(6):
        preds[i] = model(X[i]).item() #!
    loss = F.mse_loss(preds, y) #?
    loss.backward()
    """,
    shows="model.weight.grad is None",
    raises="RuntimeError",
    cure={
        "preds = torch.zeros(6)": "preds = [None] * 6",
        "model(X[i]).item()": "model(X[i])[0]",
        "F.mse_loss(preds, y)": "F.mse_loss(torch.stack(preds), y)",
    },
    says="item",
)
ROWS.fault(
    "a mean squared error by NumPy",
    ("numpy", "re-wrapped"),
    """
    reg = nn.Linear(2, 1)
    X, T = torch.randn(9, 2), torch.randn(9, 1)
    def rmse(a, b):
        a, b = a.detach().numpy(), b.numpy() #!
        return torch.tensor(np.sqrt(np.mean((a - b) ** 2)), requires_grad=True) #?
    loss = rmse(reg(X), T) #?
    loss.backward()
    """,
    shows="reg.weight.grad is None",
    cure={
        "a.detach().numpy(), b.numpy()": "a, b",
        "torch.tensor(np.sqrt(np.mean((a - b) ** 2)), requires_grad=True)": "torch.sqrt(torch.mean((a - b) ** 2))",
    },
    says="reg",
)
ROWS.fault(
    "a decision by where between constants",
    "non-differentiable",
    """
    w = torch.randn(3, requires_grad=True)
    X, y = torch.randn(25, 3), torch.randint(0, 2, (25,)).float()
    p = torch.sigmoid(X @ w)
    guess = torch.where(p > 0.5, torch.ones(25), torch.zeros(25)) #!
    loss = ((guess - y) ** 2).mean()
    loss.backward()
    """,
    shows="w.grad is None",
    raises="RuntimeError",
    cure={"((guess - y) ** 2).mean()": "((p - y) ** 2).mean()"},
    says="w",
    never="requires_grad_()",
)
ROWS.fault(
    "one-hot of the predicted class",
    "non-differentiable",
    """
    class Router(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(5, 3)
            self.experts = nn.ModuleList([nn.Linear(5, 2) for _ in range(3)])
        def forward(self, x):
            which = F.one_hot(self.gate(x).argmax(-1), 3).float() #!
            outs = torch.stack([e(x) for e in self.experts], 1)
            return (outs * which.unsqueeze(-1)).sum(1)
    moe = Router()
    opt = optim.SGD(moe.parameters(), lr=0.1)
    loss = moe(torch.randn(40, 5)).pow(2).mean()
    loss.backward()
    opt.step()
    """,
    shows="without_gradient(moe) == ['gate.weight', 'gate.bias']",
    cure={"F.one_hot(self.gate(x).argmax(-1), 3).float()": "torch.softmax(self.gate(x), -1)"},
    says="gate",
)
ROWS.fault(
    "weights quantised in forward",
    ("non-differentiable", "zero-factor"),
    """
    class QuantLinear(nn.Module):
        def __init__(self, i, o, bits=4):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(o, i) * 0.3)
            self.bias = nn.Parameter(torch.zeros(o))
            self.scale = 2 ** bits
        def forward(self, x):
            wq = torch.floor(self.weight * self.scale) / self.scale #!
            return x @ wq.T + self.bias
    q = QuantLinear(4, 2)
    (q(torch.randn(20, 4)) - 1).pow(2).mean()
    """,
    shows="all_zero(q.weight.grad)",
    cure={"torch.floor(self.weight * self.scale) / self.scale": "self.weight * 1.0"},
    says="floor",
)

# --------------------------------------------------------------------------------------------------------- unused, stale
ROWS.fault(
    "the first layer called twice",
    "unused-module",
    """
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.l1 = nn.Linear(6, 6)
            self.l2 = nn.Linear(6, 6)
            self.head = nn.Linear(6, 1)
        def forward(self, x):
            x = F.relu(self.l1(x))
            x = F.relu(self.l1(x))
            return self.head(x)
    net = Twice()
    opt = optim.AdamW(net.parameters(), lr=1e-3)
    for _ in range(2):
        opt.zero_grad(); F.mse_loss(net(torch.randn(5, 6)), torch.zeros(5, 1)).backward(); opt.step()
    """,
    shows="without_gradient(net) == ['l2.weight', 'l2.bias']",
    cure={"x = F.relu(self.l1(x))\n        return": "x = F.relu(self.l2(x))\n        return"},
    says="l2",
)
ROWS.fault(
    "a weight tied after the optimizer was made",
    "stale-optimizer",
    """
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    opt = optim.SGD(net.parameters(), lr=0.1)
    net[2].weight = nn.Parameter(torch.randn(2, 4) * 0.1)
    w0 = net[2].weight.detach().clone()
    # %%
    x, y = torch.randn(16, 4), torch.randint(0, 2, (16,))
    for _ in range(3):
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step() #!
    """,
    shows="close(net[2].weight, w0)",
    cure={"opt = optim.SGD(net.parameters(), lr=0.1)\n": "", "* 0.1)": "* 0.1); opt = optim.SGD(net.parameters(), lr=0.1)"},
    says="net[2].weight",
)

# ----------------------------------------------------------------------------------------------------------------- steps
ROWS.fault(
    "a step with the sign of the gradient",
    "ascent",
    """
    params = [torch.tensor([2.0, -1.0], requires_grad=True), torch.tensor(0.5, requires_grad=True)]
    log = []
    def cost(a, b):
        return (a ** 2).sum() + (b - 1) ** 2
    for t in range(6):
        J = cost(*params)
        log.append(float(J))
        grads = torch.autograd.grad(J, params)
        J.backward() if False else cost(*params).backward()
        for p in params:
            p.data = p.data + 0.05 * p.grad #!
            p.grad = None
    """,
    shows="log[-1] > 1.5 * log[0]",
    cure={"p.data + 0.05": "p.data - 0.05"},
    says="params",
)
ROWS.fault(
    "Adam with a rate of ten",
    "update-ratio",
    """
    torch.manual_seed(7)
    enc = nn.Sequential(nn.Linear(10, 6), nn.ReLU(), nn.Linear(6, 10))
    adam = optim.Adam(enc.parameters(), lr=10.0)
    X = torch.randn(64, 10)
    w0 = enc[0].weight.detach().clone()
    # %%
    adam.zero_grad()
    F.mse_loss(enc(X), X).backward()
    adam.step() #!
    """,
    shows="norm(enc[0].weight - w0) > 10 * norm(w0)",
    cure={"lr=10.0": "lr=1e-3"},
    says="10",
)

# ------------------------------------------------------------------------------------------------------ depth and units
ROWS.fault(
    "layers folded by reduce",
    "vanishing",
    """
    from functools import reduce
    layers = [(torch.randn(12, 12) * 0.3).requires_grad_() for _ in range(16)]
    x = torch.randn(10, 12)
    out = reduce(lambda h, w: torch.sigmoid(h.matmul(w)), layers, x) #!
    loss = out.square().sum()
    loss.backward()
    """,
    shows="norm(layers[0].grad) < 1e-6 * norm(layers[-1].grad)",
    cure={"torch.sigmoid(h.matmul(w))": "torch.tanh(h.matmul(w))"},
    says="0.25",
)
ROWS.fault(
    "weights drawn far below zero",
    "dead",
    """
    class Small(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 24), nn.Linear(24, 1)
            nn.init.normal_(self.a.weight, mean=-3.0, std=0.1)
        def forward(self, x):
            h = self.a(x).clamp(min=0)
            return self.b(h)
    net = Small()
    # %%
    x = torch.rand(48, 6) + 0.5
    loss = F.mse_loss(net(x), x.sum(1, keepdim=True))
    loss.backward()
    """,
    shows="all_zero(net.a.weight.grad)",
    cure={"mean=-3.0": "mean=0.0"},
    says="clamp",
)
ROWS.fault(
    "a recurrent cell written by hand",
    ("recurrent", "vanishing"),
    """
    class Cell(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.U = nn.Parameter(torch.randn(n, n) * 0.05)
            self.V = nn.Parameter(torch.randn(3, n))
        def forward(self, x, h):
            return torch.tanh(h @ self.U + x @ self.V)
    cell = Cell(10)
    seq = torch.randn(40, 5, 3, requires_grad=True)
    h = torch.zeros(5, 10)
    # %%
    for x in seq:
        h = cell(x, h) #!
    loss = (h ** 2).sum()
    loss.backward()
    """,
    shows="norm(seq.grad[0]) < 1e-9 * norm(seq.grad[-1])",
    cure={"torch.tanh(h @ self.U + x @ self.V)": "h + 0.1 * torch.tanh(x @ self.V)"},
    says="40",
)

# --------------------------------------------------------------------------------------------------------------- numbers
ROWS.fault(
    "the density of a squashed normal",
    ("inf-born", "nan-born"),
    """
    pre = torch.tensor([0.3, 12.0, -15.0], requires_grad=True)
    action = torch.tanh(pre)
    logp = -0.5 * pre ** 2 - torch.log(1 - action ** 2) #!
    (-logp.mean()).backward()
    """,
    shows="nans(pre.grad) + infs(pre.grad) > 0",
    cure={"torch.log(1 - action ** 2)": "torch.log(1 - action ** 2 + 1e-6)"},
    says=("log", "2 zeros"),
)
ROWS.fault(
    "a divergence with an empty class",
    ("inf-born", "nan-born"),
    """
    q = torch.tensor([0.5, 0.5, 0.0], requires_grad=True)
    p = torch.tensor([0.2, 0.3, 0.5])
    kl = (p * (p / q).log()).sum() #!
    kl.backward()
    """,
    shows="infs(kl) == 1",
    cure={"[0.5, 0.5, 0.0]": "[0.5, 0.4, 0.1]"},
    says="q",
)
ROWS.fault(
    "unit vectors of embeddings with a padding row",
    ("inf-born", "nan-born"),
    """
    table = nn.Embedding(6, 4, padding_idx=0)
    ids = torch.tensor([[1, 2, 0], [3, 0, 0]])
    # %%
    e = table(ids)
    unit = e / e.pow(2).sum(-1, keepdim=True).sqrt() #!
    sim = (unit @ unit.transpose(1, 2)).mean()
    sim.backward()
    """,
    shows="nans(table.weight.grad) > 0",
    cure={"keepdim=True).sqrt()": "keepdim=True).add(1e-8).sqrt()"},
    says="0",
)
ROWS.fault(
    "a perplexity of sums",
    "inf-born",
    """
    lm = nn.Linear(8, 50)
    ctx, nxt = torch.randn(400, 8), torch.randint(0, 50, (400,))
    nll = F.cross_entropy(lm(ctx), nxt, reduction="sum")
    ppl = torch.exp(nll) #!
    ppl.backward()
    """,
    shows="infs(ppl) == 1",
    cure={'reduction="sum"': 'reduction="mean"'},
    says="exp",
)
ROWS.fault(
    "a variance of one sample",
    "nan-born",
    """
    net = nn.Linear(5, 3)
    for x in [torch.randn(1, 5)]:
        z = net(x)
        penalty = z.var(0).mean() #!
        loss = (z - 1).pow(2).mean() + penalty
    loss.backward()
    """,
    shows="nans(net.weight.grad) > 0",
    cure={"torch.randn(1, 5)": "torch.randn(4, 5)"},
    says="var",
)
ROWS.fault(
    "shares that are normalised and added up",
    "cancelled",
    """
    s = torch.rand(6).requires_grad_()
    share = s / s.sum()
    total = share.sum() #!
    total.backward()
    """,
    shows="norm(s.grad) < 1e-6",
    cure={"share.sum()": "share[0]"},
    says="s",
)
ROWS.fault(
    "a warm-up that multiplies by False",
    "zero-factor",
    """
    epoch = 3
    enc = nn.Linear(3, 2)
    x = torch.randn(7, 3)
    kl = enc(x).pow(2).mean()
    loss = kl * (epoch > 10) #!
    loss.backward()
    """,
    shows="all_zero(enc.weight.grad)",
    cure={"epoch = 3": "epoch = 30"},
    says="0",
)

# ---------------------------------------------------------------------------------------------------------------- losses
ROWS.fault(
    "an absolute error of a column and a row",
    "broadcast",
    """
    def mae(y_hat, y):
        return torch.mean(torch.abs(y_hat - y))
    # %%
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 1))
    data = torch.randn(32, 4)
    features, targets = data[:, :3], data[:, 3]
    # %%
    loss = mae(model(features), targets) #!
    loss.backward()
    """,
    shows="(model(features) - targets).shape == (32, 32)",
    cure={"data[:, 3]": "data[:, 3:]"},
    says="32",
)
ROWS.fault(
    "smooth_l1_loss of different shapes",
    "broadcast",
    """
    q = nn.Linear(4, 2)
    s, a, r = torch.randn(20, 4), torch.randint(0, 2, (20, 1)), torch.randn(20)
    chosen = q(s).gather(1, a)
    loss = F.smooth_l1_loss(chosen, r) #!
    loss.backward()
    """,
    shows="chosen.shape != r.shape",
    cure={"torch.randint(0, 2, (20, 1)), torch.randn(20)": "torch.randint(0, 2, (20, 1)), torch.randn(20, 1)"},
    says="20",
)
ROWS.fault(
    "l1_loss of a column and targets without one",
    "broadcast",
    """
    net = nn.Linear(4, 1)
    X = torch.randn(20, 4)
    y = X[:, 0] - X[:, 1]
    out = net(X)
    loss = F.l1_loss(out, y) #!
    loss.backward()
    """,
    shows="out.shape != y.shape",
    cure={"X[:, 0] - X[:, 1]": "X[:, :1] - X[:, 1:2]"},
    says="20",
)
ROWS.fault(
    "a softmax by hand into cross_entropy",
    "double-softmax",
    """
    net = nn.Linear(7, 4)
    X, y = torch.randn(28, 7), torch.randint(0, 4, (28,))
    z = net(X)
    e = torch.exp(z - z.max(1, keepdim=True).values)
    p = e / e.sum(1, keepdim=True)
    loss = F.cross_entropy(p, y) #!
    loss.backward()
    """,
    shows="not close(loss, F.cross_entropy(z, y))",
    cure={"F.cross_entropy(p, y)": "F.cross_entropy(z, y)"},
    says="softmax",
)
ROWS.fault(
    "nll_loss of logits",
    "nll-of-probabilities",
    """
    clf = nn.Linear(5, 3)
    opt = optim.SGD(clf.parameters(), lr=0.1)
    xb, yb = torch.randn(24, 5), torch.randint(0, 3, (24,))
    for _ in range(4):
        opt.zero_grad()
        loss = nn.NLLLoss()(clf(xb), yb) #!
        loss.backward()
        opt.step()
    """,
    shows="not close(loss, F.cross_entropy(clf(xb), yb), 0.5)",
    cure={"nn.NLLLoss()": "nn.CrossEntropyLoss()"},
    says="nll_loss",
)
ROWS.fault(
    "the residual times itself",
    "sum-for-mean",
    """
    A = torch.randn(500, 2)
    b = A @ torch.tensor([1.0, 2.0])
    x = torch.zeros(2, requires_grad=True)
    hist = []
    for k in range(4):
        r = A @ x - b
        f = r @ r #!
        hist.append(f.item())
        f.backward()
        with torch.no_grad():
            x -= 0.1 * x.grad
        x.grad = None
    """,
    shows="hist[-1] > 1e6 * hist[0]",
    cure={"f = r @ r": "f = r @ r / 500"},
    says="500",
)
ROWS.fault(
    "a running total over a data set",
    "sum-for-mean",
    """
    w = torch.tensor(0.0, requires_grad=True)
    pairs = [(0.01 * i, 0.03 * i) for i in range(300)]
    seen = []
    for epoch in range(4):
        total = 0
        for u, v in pairs:
            total = total + (w * u - v) ** 2 #!
        seen.append(total.item())
        total.backward()
        with torch.no_grad():
            w.sub_(0.1 * w.grad)
            w.grad.zero_()
    """,
    shows="seen[-1] > 1e3 * seen[0]",
    cure={"total.backward()": "(total / 300).backward()", "seen.append(total.item())": "seen.append(total.item() / 300)"},
    says="300",
)
ROWS.fault(
    "an array that was never asked for a gradient",
    "frozen",
    """
    w = torch.from_numpy(np.ones(3, dtype=np.float32))
    w.require_grad = True
    X = torch.randn(5, 3)
    loss = torch.sum((X @ w) ** 2) #!
    loss.backward()
    """,
    shows="w.grad is None",
    raises="RuntimeError",
    cure={"w.require_grad = True": "w.requires_grad = True"},
    libraries=("torch",),
    says="w",
)
