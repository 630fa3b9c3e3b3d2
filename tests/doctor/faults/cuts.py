"""History that is cut: detach, data, item, NumPy, a grad mode, integers, operations without a derivative, new tensors."""

from __future__ import annotations

from planting import Table

ROWS = Table()

# --------------------------------------------------------------------------------------------------------------- detach
ROWS.fault(
    "a detach between two layers",
    "detached",
    """
    X = torch.randn(32, 4)
    y = X.sum(1, keepdim=True)
    W1 = torch.randn(4, 8, requires_grad=True)
    W2 = torch.randn(8, 1, requires_grad=True)
    h = torch.relu(X @ W1).detach() #!
    loss = ((h @ W2 - y) ** 2).mean()
    loss.backward()
    """,
    shows="W1.grad is None and W2.grad is not None",
    cure={".detach()": ""},
    says=("W1", "detach"),
)
ROWS.fault(
    "a detach in forward",
    "detached",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(nn.Linear(6, 16), nn.ReLU())
            self.classifier = nn.Linear(16, 3)

        def forward(self, x):
            z = self.features(x)
            z = z.detach()  # save memory
            return self.classifier(z)
    # %%
    model = Net()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    inputs, labels = torch.randn(20, 6), torch.randint(0, 3, (20,))
    criterion = nn.CrossEntropyLoss()
    for epoch in range(3):
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    """,
    shows="without_gradient(model) == ['features.0.weight', 'features.0.bias']",
    cure={"z = z.detach()": "z = z * 1"},
    says=("features", "detach"),
)
ROWS.fault(
    "a helper that detaches",
    "detached",
    """
    def standardize(t):
        t = t.detach()
        return (t - t.mean(0)) / t.std(0)
    # %%
    x = torch.randn(50, 3)
    target = torch.randn(50)
    enc = nn.Linear(3, 5)
    dec = nn.Linear(5, 1)
    code = standardize(enc(x)) #!
    F.mse_loss(dec(code).squeeze(1), target)
    """,
    shows="enc.weight.grad is None",
    cure={"t = t.detach()": "t = t.clone()"},
    says=("enc", "detach"),
)
ROWS.fault(
    "detach in a list comprehension",
    "detached",
    """
    xs = [torch.randn(4) for _ in range(5)]
    w = torch.randn(4, requires_grad=True)
    b = torch.zeros(1, requires_grad=True)
    scores = [(w * x).sum().detach() for x in xs] #!
    loss = sum((s + b) ** 2 for s in scores)
    loss.backward()
    """,
    shows="w.grad is None and b.grad is not None",
    cure={".detach()": ""},
    says="w",
)
ROWS.fault(
    "data clamped in the middle",
    "detached",
    """
    gl.manual_seed(1)
    x = gl.randn(16, 3)
    a = gl.randn(3, 3, requires_grad=True)
    c = gl.randn(3, requires_grad=True)
    hidden = (x @ a).tanh()
    hidden = hidden.data.clamp(-0.9, 0.9) #!
    out = (hidden * c).sum()
    """,
    shows="a.grad is None and c.grad is not None",
    cure={".data": ""},
    says=("a", "data"),
)
ROWS.fault(
    "a residual branch through data",
    "detached",
    """
    class Block(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.lin = nn.Linear(d, d)
        def forward(self, x):
            return x + torch.tanh(self.lin(x)).data #!

    net = nn.Sequential(nn.Linear(4, 8), Block(8), nn.Linear(8, 1))
    net(torch.randn(10, 4)).pow(2).mean().backward()
    """,
    shows="without_gradient(net) == ['1.lin.weight', '1.lin.bias']",
    cure={".data": ""},
    says=("lin", "data"),
)
ROWS.fault(
    "only the loss is detached",
    "detached",
    """
    model = nn.Linear(3, 1)
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    loss = F.mse_loss(model(x), y).detach() #!
    loss.backward()
    """,
    shows="model.weight.grad is None",
    raises="RuntimeError",
    cure={".detach()": ""},
    says="detach",
    never="requires_grad_()",
)
ROWS.fault(
    "detached and then made to require a gradient",
    ("re-wrapped", "detached"),
    """
    encoder, head = nn.Linear(5, 4), nn.Linear(4, 1)
    features = encoder(torch.randn(9, 5)).detach().requires_grad_() #!
    loss = head(features).abs().mean()
    loss.backward()
    """,
    shows="encoder.weight.grad is None and head.weight.grad is not None",
    cure={".detach().requires_grad_()": ""},
    says="encoder",
    never="requires_grad_()",
)

# ----------------------------------------------------------------------------------------------------- numbers, NumPy
ROWS.fault(
    "a loss made of its own number",
    ("item", "re-wrapped"),
    """
    net = nn.Linear(2, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    X = torch.randn(12, 2)
    Y = X[:, :1] * 3
    for step in range(5):
        opt.zero_grad()
        err = ((net(X) - Y) ** 2).mean().item() #!
        loss = torch.tensor(err, requires_grad=True) #?
        loss.backward()
        opt.step()
    """,
    shows="net.weight.grad is None",
    cure={".item()": "", "torch.tensor(err, requires_grad=True)": "err"},
    says="item",
    never="requires_grad",
)
ROWS.fault(
    "a total of items",
    ("item", "re-wrapped"),
    """
    w = torch.zeros(3, requires_grad=True)
    batches = [(torch.randn(4, 3), torch.randn(4)) for _ in range(3)]
    total = 0.0
    for xb, yb in batches:
        total += F.mse_loss(xb @ w, yb).item() #!
    total = torch.tensor(total / len(batches), requires_grad=True) #?
    total.backward()
    """,
    shows="w.grad is None",
    cure={".item()": "", "torch.tensor(total / len(batches), requires_grad=True)": "total / len(batches)"},
    says=("w", "item"),
)
ROWS.fault(
    "a scale taken as a float",
    "item",
    """
    log_s = torch.tensor(0.3, requires_grad=True)
    mu = torch.tensor(0.0, requires_grad=True)
    data = torch.randn(40) * 2 + 1
    s = float(log_s.exp()) #!
    nll = (((data - mu) / s) ** 2 / 2 + math.log(s)).mean()
    nll.backward()
    """,
    shows="log_s.grad is None and mu.grad is not None",
    cure={"float(log_s.exp())": "log_s.exp()", "math.log(s)": "torch.log(s)"},
    says="log_s",
)
ROWS.fault(
    "the mean of floats",
    "item",
    """
    theta = torch.randn(4, requires_grad=True)
    losses = [((theta - k) ** 2).sum() for k in range(3)]
    loss = sum([float(l) for l in losses]) / len(losses) #!
    loss.backward() #?
    """,
    shows="theta.grad is None",
    raises="AttributeError",
    cure={"float(l)": "l"},
    says="float",
)
ROWS.fault(
    "an output through tolist",
    ("item", "re-wrapped"),
    """
    layer = nn.Linear(3, 2)
    bias = nn.Parameter(torch.zeros(2))
    rows = [layer(v).tolist() for v in torch.randn(6, 3)] #!
    out = torch.tensor(rows) + bias #?
    loss = (out ** 2).sum()
    loss.backward()
    """,
    shows="layer.weight.grad is None and bias.grad is not None",
    cure={".tolist()": "", "torch.tensor(rows)": "torch.stack(rows)"},
    says=("layer", "tolist"),
)
ROWS.fault(
    "an exponential by NumPy",
    "numpy",
    """
    x = torch.linspace(0, 1, 5)
    k = torch.tensor(1.5, requires_grad=True)
    amp = torch.tensor(2.0, requires_grad=True)
    decay = torch.from_numpy(np.exp((-k * x).detach().numpy())) #!
    loss = ((amp * decay - 1) ** 2).sum()
    """,
    shows="k.grad is None and amp.grad is not None",
    cure={"torch.from_numpy(np.exp((-k * x).detach().numpy()))": "torch.exp(-k * x)"},
    says=("k", "NumPy"),
)
ROWS.fault(
    "NumPy in a method of a model",
    "numpy",
    """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.proj = nn.Linear(4, 4)
            self.out = nn.Linear(4, 1)

        def smooth(self, z):
            z = z.detach().cpu().numpy() #!
            z = np.clip(z, -1.0, 1.0)
            return torch.tensor(z) #?

        def forward(self, x):
            return self.out(self.smooth(self.proj(x)))

    m = Model()
    loss = m(torch.randn(7, 4)).pow(2).mean()
    loss.backward()
    """,
    shows="without_gradient(m) == ['proj.weight', 'proj.bias']",
    cure={"z.detach().cpu().numpy()": "z * 1", "np.clip(z": "torch.clamp(z", "return torch.tensor(z)": "return z"},
    says="proj",
)
ROWS.fault(
    "numpy refused by a leaf",
    "numpy",
    """
    w = torch.ones(3, requires_grad=True)
    y = np.sin(w.numpy()).sum() #!
    """,
    shows="w.grad is None",
    raises="RuntimeError",
    cure={"np.sin(w.numpy()).sum()": "torch.sin(w).sum()"},
    says="w",
)

# ------------------------------------------------------------------------------------------------------------ grad modes
ROWS.fault(
    "the encoder under no_grad",
    "no_grad",
    """
    encoder = nn.Sequential(nn.Linear(10, 6), nn.Tanh())
    head = nn.Linear(6, 2)
    opt = optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.05)
    x, t = torch.randn(16, 10), torch.randint(0, 2, (16,))
    with torch.no_grad():
        z = encoder(x) #!
    loss = F.cross_entropy(head(z), t)
    opt.zero_grad()
    loss.backward()
    opt.step()
    """,
    shows="encoder[0].weight.grad is None",
    cure={"with torch.no_grad():": "if True:"},
    says=("encoder", "no_grad"),
)
ROWS.fault(
    "one layer called under no_grad",
    "no_grad",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(3, 8)
            self.fc2 = nn.Linear(3, 8)
            self.fc3 = nn.Linear(8, 1)

        def forward(self, x):
            a = self.fc1(x)
            with torch.no_grad():
                gate = torch.sigmoid(self.fc2(x)) #!
            return self.fc3(a * gate)

    net = Net()
    net(torch.randn(5, 3)).square().mean()
    """,
    shows="net.fc2.weight.grad is None and net.fc1.weight.grad is not None",
    cure={"with torch.no_grad():": "if True:"},
    says=("fc2", "no_grad"),
)
ROWS.fault(
    "a training function decorated with no_grad",
    "no_grad",
    """
    model = nn.Linear(4, 2)
    @torch.no_grad() #!
    def compute_loss(batch, labels):
        return F.cross_entropy(model(batch), labels) #?
    batch, labels = torch.randn(8, 4), torch.randint(0, 2, (8,))
    loss = compute_loss(batch, labels) #?
    loss.backward()
    """,
    shows="model.weight.grad is None",
    raises="RuntimeError",
    cure={"@torch.no_grad() #!": ""},
    says="no_grad",
    never="requires_grad_()",
)
ROWS.fault(
    "gradients switched off in an earlier cell",
    "no_grad",
    """
    net = nn.Linear(3, 1)
    X = torch.randn(10, 3)
    # %%
    torch.set_grad_enabled(False)
    print(net(X).mean().item())
    # %%
    loss = net(X).pow(2).mean() #!
    loss.backward()
    """,
    shows="net.weight.grad is None",
    raises="RuntimeError",
    cure={"print(net(X).mean().item())": "torch.set_grad_enabled(True)"},
    says="set_grad_enabled",
)
ROWS.fault(
    "features made in inference mode",
    "no_grad",
    """
    backbone, head = nn.Linear(6, 4), nn.Linear(4, 1)
    with torch.inference_mode():
        feats = backbone(torch.randn(3, 6)) #!
    loss = head(feats).sum() #?
    loss.backward()
    """,
    shows="head.weight.grad is None",
    raises="RuntimeError",
    cure={"with torch.inference_mode():": "if True:"},
    says="inference_mode",
)

# ------------------------------------------------------------------------- integers, operations without a derivative
ROWS.fault(
    "a look-up by rounded position",
    "integer",
    """
    grid = torch.linspace(0, 1, 11) ** 2
    pos = torch.tensor([0.31, 0.57, 0.86], requires_grad=True)
    gain = torch.ones(3, requires_grad=True)
    idx = (pos * 10).long() #!
    loss = (grid[idx] * gain).sum()
    loss.backward()
    """,
    shows="pos.grad is None and gain.grad is not None",
    cure={
        "loss = (grid[idx] * gain).sum()": "f = pos * 10 - idx; loss = ((grid[idx] * (1 - f) + grid[idx + 1] * f) * gain).sum()"
    },
    says=("pos", "long"),
)
ROWS.fault(
    "prices made whole",
    "integer",
    """
    w = torch.tensor([2.4, 3.7], requires_grad=True)
    v = torch.tensor(1.0, requires_grad=True)
    total = (w.int().float() * v).sum() #!
    total
    """,
    shows="w.grad is None and v.grad is not None",
    cure={".int().float()": ""},
    says="int",
)
ROWS.fault(
    "a loss of predicted classes",
    "non-differentiable",
    """
    clf = nn.Linear(5, 3)
    xb, yb = torch.randn(30, 5), torch.randint(0, 3, (30,))
    logits = clf(xb)
    pred = logits.argmax(dim=1).float() #!
    loss = F.mse_loss(pred, yb.float())
    loss.backward()
    """,
    shows="clf.weight.grad is None",
    raises="RuntimeError",
    cure={"logits.argmax(dim=1).float()": "logits", "F.mse_loss(pred, yb.float())": "F.cross_entropy(pred, yb)"},
    says="argmax",
    never="requires_grad_()",
)
ROWS.fault(
    "one minus accuracy as the loss",
    "non-differentiable",
    """
    w = torch.randn(2, requires_grad=True)
    pts = torch.randn(40, 2)
    cls = (pts[:, 0] > 0).float()
    p = torch.sigmoid(pts @ w)
    hits = ((p > 0.5).float() == cls).float() #!
    loss = 1 - hits.mean()
    loss.backward()
    """,
    shows="w.grad is None",
    raises="RuntimeError",
    cure={"1 - hits.mean()": "F.binary_cross_entropy(p, cls)"},
    says="w",
    never="requires_grad_()",
)
ROWS.fault(
    "rounded quantities",
    ("non-differentiable", "zero-factor"),
    """
    q = torch.tensor([1.2, 2.7, 3.1], requires_grad=True)
    price = torch.tensor([3., 1., 2.])
    cost = (torch.round(q) * price).sum() #!
    cost.backward()
    """,
    shows="all_zero(q.grad)",
    cure={"torch.round(q)": "q"},
    says="round",
)
ROWS.fault(
    "the sign as an activation",
    ("non-differentiable", "zero-factor"),
    """
    class Binary(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 16), nn.Linear(16, 1)
        def forward(self, x):
            return self.second(torch.sign(self.first(x))) #!
    b = Binary()
    F.mse_loss(b(torch.randn(32, 4)), torch.ones(32, 1)).backward()
    """,
    shows="all_zero(b.first.weight.grad) and not all_zero(b.second.weight.grad)",
    cure={"torch.sign": "torch.tanh"},
    says=("first", "sign"),
)
ROWS.fault(
    "indices of topk in place of its values",
    "non-differentiable",
    """
    scorer = nn.Linear(3, 1)
    shift = nn.Parameter(torch.zeros(()))
    docs = torch.randn(10, 3)
    _, best = scorer(docs).squeeze(1).topk(3) #!
    objective = (best.float() + shift).mean()
    """,
    shows="scorer.weight.grad is None and shift.grad is not None",
    cure={"_, best =": "best, _ ="},
    says="scorer",
)
ROWS.fault(
    "a draw that forgets its mean",
    "non-differentiable",
    """
    mu = torch.zeros(4, requires_grad=True)
    sigma = torch.ones(4, requires_grad=True)
    z = torch.normal(mu, sigma) #!
    loss = ((z - 3) ** 2).mean()
    loss.backward()
    """,
    shows="all_zero(mu.grad, sigma.grad)",
    cure={"torch.normal(mu, sigma)": "mu + sigma * torch.randn(4)"},
    says="normal",
)
ROWS.fault(
    "a hard gate that is drawn",
    "non-differentiable",
    """
    logit = torch.zeros(6, requires_grad=True)
    scale = torch.ones(6, requires_grad=True)
    gate = torch.bernoulli(torch.sigmoid(logit)) #!
    loss = ((gate * scale - 0.3) ** 2).sum()
    loss.backward()
    """,
    shows="all_zero(logit.grad) and scale.grad is not None",
    cure={"torch.bernoulli(torch.sigmoid(logit))": "torch.sigmoid(logit)"},
    says=("logit", "bernoulli"),
)
ROWS.fault(
    "a thresholded mask",
    "non-differentiable",
    """
    threshold = torch.tensor(0.5, requires_grad=True)
    x = torch.rand(20)
    slope = torch.tensor(1.0, requires_grad=True)
    mask = (x > threshold).float() #!
    loss = (mask * x * slope).mean()
    """,
    shows="threshold.grad is None and slope.grad is not None",
    cure={"(x > threshold).float()": "torch.sigmoid(10 * (x - threshold))"},
    says="threshold",
)

# ------------------------------------------------------------------------------------------------------------ re-wrapped
ROWS.fault(
    "a vector built of scalars",
    "re-wrapped",
    """
    a = torch.tensor(1.0, requires_grad=True)
    b = torch.tensor(2.0, requires_grad=True)
    x = torch.linspace(-1, 1, 20)
    target = 3 * x + 1
    coef = torch.tensor([a, b], requires_grad=True) #!
    fit = coef[0] * x + coef[1]
    ((fit - target) ** 2).mean().backward()
    """,
    shows="a.grad is None and b.grad is None",
    cure={"torch.tensor([a, b], requires_grad=True)": "torch.stack([a, b])"},
    says=("a", "b"),
)
ROWS.fault(
    "a Parameter made in forward",
    "re-wrapped",
    """
    class Scaled(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.base = nn.Parameter(torch.randn(n))
            self.log_scale = nn.Parameter(torch.zeros(n))

        def forward(self, x):
            weight = nn.Parameter(self.base * self.log_scale.exp()) #!
            return x @ weight

    s = Scaled(3)
    loss = s(torch.randn(8, 3)).pow(2).mean()
    """,
    shows="s.base.grad is None and s.log_scale.grad is None",
    cure={"nn.Parameter(self.base * self.log_scale.exp())": "self.base * self.log_scale.exp()"},
    says="base",
)
ROWS.fault(
    "a copy by torch.tensor",
    "re-wrapped",
    """
    raw = torch.randn(5, requires_grad=True)
    positive = torch.tensor(torch.exp(raw), requires_grad=True) #!
    loss = (positive - 1).pow(2).sum()
    loss.backward()
    """,
    shows="raw.grad is None",
    cure={"torch.tensor(torch.exp(raw), requires_grad=True)": "torch.exp(raw)"},
    says="raw",
    never="requires_grad_()",
)
