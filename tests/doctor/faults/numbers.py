"""Operations that first give NaN or infinity; gradients that are exactly zero or rounded to zero."""

from __future__ import annotations

from planting import Table

ROWS = Table()

# -------------------------------------------------------------------------------------------------------- NaN, infinity
ROWS.fault(
    "the logarithm of a probability that is 0",
    ("inf-born", "nan-born"),
    """
    logits = torch.tensor([[0., 200., -5.], [1., 2., 3.]], requires_grad=True)
    p = torch.softmax(logits, dim=1)
    log_p = torch.log(p) #!
    loss = -log_p[[0, 1], [0, 2]].mean()
    loss.backward()
    """,
    shows="nans(logits.grad) == 3",
    cure={"torch.log(p)": "torch.log_softmax(logits, dim=1)"},
    says=("log", "2 zeros"),
)
ROWS.fault(
    "entropy with zeros",
    "nan-born",
    """
    x = torch.randn(120, 1)
    raw = torch.randn(120, requires_grad=True)
    p = torch.relu(raw)
    H = -(p * torch.log(p)).sum() #!
    H.backward()
    """,
    shows="nans(raw.grad) + nans(H) > 0",
    cure={"torch.log(p)": "torch.log(p + 1e-6)"},
    says="log",
)
ROWS.fault(
    "distances with a zero diagonal",
    ("inf-born", "nan-born"),
    """
    pts = torch.randn(6, 2, requires_grad=True)
    diff = pts[:, None] - pts[None]
    dist = (diff ** 2).sum(-1).sqrt() #!
    loss = (dist - 1).pow(2).mean()
    """,
    shows="nans(pts.grad) == 12 and nans(loss) == 0",
    cure={".sum(-1).sqrt()": ".sum(-1).add(1e-9).sqrt()"},
    says=("sqrt", "6 zeros"),
)
ROWS.fault(
    "a norm by hand of a zero row",
    ("inf-born", "nan-born"),
    """
    def unit(v):
        n = torch.sqrt(torch.sum(v * v, dim=-1, keepdim=True))
        return v / n
    # %%
    vectors = torch.tensor([[3., 4.], [0., 0.], [1., 0.]], requires_grad=True)
    units = unit(vectors) #!
    loss = units.sum()
    """,
    shows="nans(vectors.grad) == 2",
    cure={
        "return v / n": "return v / (n + 1e-8)",
        "torch.sum(v * v, dim=-1, keepdim=True)": "torch.sum(v * v, dim=-1, keepdim=True) + 1e-12",
    },
    says="1 zero",
)
ROWS.fault(
    "a where that does not protect",
    ("inf-born", "nan-born"),
    """
    x = torch.tensor([0., 1., 2., 0.], requires_grad=True)
    y = torch.where(x > 0, x * torch.log(x), torch.zeros_like(x)) #!
    y.sum().backward()
    """,
    shows="nans(x.grad) == 2 and nans(y) == 0",
    cure={"x * torch.log(x)": "x * torch.log(torch.where(x > 0, x, torch.ones_like(x)))"},
    says=("where", "2 zeros"),
)
ROWS.fault(
    "sin x over x at 0",
    "nan-born",
    """
    def sinc(t):
        return torch.where(t == 0, torch.ones_like(t), torch.sin(t) / t)
    # %%
    t = torch.linspace(-2, 2, 5).requires_grad_()
    s = sinc(t) #!
    s.sum()
    """,
    shows="nans(t.grad) == 1 and nans(s) == 0",
    cure={"torch.sin(t) / t": "torch.sin(t) / torch.where(t == 0, torch.ones_like(t), t)"},
    says="0",
)
ROWS.fault(
    "a square root behind a where",
    ("inf-born", "nan-born"),
    """
    W = torch.tensor([[1., 0.], [4., 9.]], requires_grad=True)
    safe = torch.where(W > 0, torch.sqrt(W), 0.0 * W) #!
    loss = safe.pow(2).sum()
    loss.backward()
    """,
    shows="nans(W.grad) == 1",
    cure={"torch.sqrt(W)": "torch.sqrt(torch.where(W > 0, W, torch.ones_like(W)))"},
    says="sqrt",
)
ROWS.fault(
    "a constant feature standardised",
    "nan-born",
    """
    emb = nn.Linear(3, 4)
    with torch.no_grad():
        emb.weight[2] = 0.
        emb.bias[2] = 0.5
    feats = torch.randn(10, 3)
    z = emb(feats)
    z = (z - z.mean(0)) / z.std(0) #!
    loss = z.pow(3).mean()
    """,
    shows="nans(emb.weight.grad) > 0",
    cure={"emb.weight[2] = 0.": "emb.weight[2] += 0."},
    says="std",
)
ROWS.fault(
    "softmax by hand overflows",
    ("inf-born", "nan-born"),
    """
    def my_softmax(s):
        e = torch.exp(s)
        return e / e.sum(dim=1, keepdim=True)
    # %%
    lin = nn.Linear(4, 3)
    X = torch.full((2, 4), 1000.0)
    T = torch.tensor([0, 2])
    with torch.no_grad(): lin.weight.fill_(0.1)
    probs = my_softmax(lin(X)) #!
    loss = -torch.log(probs[range(2), T]).mean()
    loss.backward()
    """,
    shows="nans(lin.weight.grad) > 0",
    cure={"torch.exp(s)": "torch.exp(s - s.max(dim=1, keepdim=True).values)"},
    says=("exp", "overflow"),
)
ROWS.fault(
    "a log-variance that is too large",
    "inf-born",
    """
    class Enc(nn.Module):
        def __init__(self):
            super().__init__()
            self.mu, self.logvar = nn.Linear(3, 2), nn.Linear(3, 2)
        def forward(self, x):
            return self.mu(x), self.logvar(x)
    enc = Enc()
    x = torch.randn(8, 3) * 5e3
    # %%
    mu, logvar = enc(x)
    var = torch.exp(logvar) #!
    kl = 0.5 * (mu ** 2 + var - logvar - 1).sum(1).mean()
    kl.backward()
    """,
    shows="infs(kl) == 1",
    cure={"* 5e3": "* 1.0"},
    says="exp",
)
ROWS.fault(
    "a mean over an empty mask",
    "nan-born",
    """
    out = nn.Linear(4, 1)
    batch = torch.randn(5, 4)
    lengths = torch.zeros(5)
    mask = (torch.arange(5) < lengths.max()).float()
    per_item = out(batch).squeeze(1).pow(2)
    loss = (per_item * mask).sum() / mask.sum() #!
    loss.backward()
    """,
    shows="nans(loss) == 1",
    cure={"torch.zeros(5)": "torch.full((5,), 3.)"},
    says="mask",
)
ROWS.fault(
    "a fractional power at 0",
    "inf-born",
    """
    d = torch.tensor([0.0, 0.5, 2.0], requires_grad=True)
    loss = (d ** 0.3).sum() #!
    loss.backward()
    """,
    shows="infs(d.grad) == 1",
    cure={"(d ** 0.3)": "((d + 1e-3) ** 0.3)"},
    says="1 zero",
)
ROWS.fault(
    "the logarithm of something negative",
    "nan-born",
    """
    theta = torch.randn(3, requires_grad=True)
    features = torch.tensor([[1., 0., 0.], [0., 1., 0.], [-1., -1., 0.]])
    rate = features @ theta
    nll = (rate - 2 * torch.log(rate)).sum() #!
    nll.backward()
    """,
    shows="nans(nll) == 1",
    cure={"features @ theta": "torch.exp(features @ theta)"},
    says="log",
)
ROWS.fault(
    "the angle between equal vectors",
    "inf-born",
    """
    u = torch.tensor([1., 0., 0.], requires_grad=True)
    v = torch.tensor([1., 0., 0.])
    cos = (u * v).sum() / (u.norm() * v.norm())
    angle = torch.acos(cos) #!
    angle.backward()
    """,
    shows="nans(u.grad) + infs(u.grad) > 0",
    cure={
        "torch.acos(cos)": "torch.acos(cos.clamp(-1 + 1e-6, 0.9))",
        "v = torch.tensor([1., 0., 0.])": "v = torch.tensor([0., 1., 0.])",
    },
    says="acos",
)
ROWS.fault(
    "cross-entropy by hand at probability 1",
    ("inf-born", "nan-born"),
    """
    w = torch.tensor([30.0, 40.0], requires_grad=True)
    X = torch.tensor([[1., 1.], [-1., -1.], [1., 0.5]])
    y = torch.tensor([1., 0., 1.])
    p = torch.sigmoid(X @ w)
    bce = -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean() #!
    bce.backward()
    """,
    shows="nans(bce) == 1 or nans(w.grad) > 0",
    cure={"-(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()": "F.binary_cross_entropy_with_logits(X @ w, y)"},
    says="log",
)
ROWS.fault(
    "a row that is masked everywhere",
    "nan-born",
    """
    def attention(q, k, v, mask):
        s = q @ k.T / math.sqrt(q.shape[-1])
        s = s.masked_fill(~mask, float("-inf"))
        return torch.softmax(s, dim=-1) @ v
    # %%
    proj = nn.Linear(4, 4)
    x = torch.randn(3, 4)
    mask = torch.tensor([[True, True, True], [False, False, False], [True, False, True]])
    out = attention(proj(x), x, x, mask) #!
    loss = out.pow(2).mean()
    """,
    shows="nans(loss) == 1 and nans(out) == 4",
    cure={"[False, False, False]": "[False, True, False]"},
    says="softmax",
)
ROWS.fault(
    "a NaN in the data",
    "nan-input",
    """
    X = torch.randn(50, 3)
    X[17, 1] = float("nan")
    Y = torch.randn(50, 1)
    # %%
    reg = nn.Linear(3, 1)
    loss = F.mse_loss(reg(X), Y)
    loss.backward()
    """,
    shows="nans(reg.weight.grad) == 3",
    cure={'X[17, 1] = float("nan")': "X[17, 1] = 0."},
    says=("X", "1 NaN"),
)
ROWS.fault(
    "an infinity among the targets",
    "nan-input",
    """
    df_target = np.array([1.0, 2.0, np.inf, 4.0], dtype=np.float32)
    target = torch.from_numpy(np.log(df_target))
    w = torch.ones(4, requires_grad=True)
    loss = ((w - target) ** 2).mean()
    """,
    shows="infs(w.grad) == 1",
    cure={"np.inf": "3.0"},
    says="target",
)
ROWS.fault(
    "squares that overflow float16",
    "inf-born",
    """
    h = (torch.ones(8) * 300).half().requires_grad_()
    energy = (h ** 2).sum() #!
    energy.backward()
    """,
    shows="infs(energy) == 1",
    cure={".half()": ""},
    says=("float16", "65504"),
)

# ----------------------------------------------------------------------------------------------------------- exactly zero
ROWS.fault(
    "float16 rounds to zero",
    "underflow",
    """
    w = torch.full((4,), 1e-3).half().requires_grad_()
    x = torch.full((4,), 1e-3).half()
    loss = ((w * x) * 1e-4).sum() * 1e-2 #!
    loss.backward()
    """,
    shows="all_zero(w.grad)",
    cure={".half()": ""},
    says="float16",
)
ROWS.fault(
    "the sum of a softmax",
    "cancelled",
    """
    z = torch.randn(5, requires_grad=True)
    p = torch.softmax(z, dim=0)
    total = p.sum() #!
    total.backward()
    """,
    shows="norm(z.grad) < 1e-7",
    cure={"p.sum()": "p.pow(2).sum()"},
    says="softmax",
)
ROWS.fault(
    "the mean of a centred tensor",
    "cancelled",
    """
    A = torch.randn(6, 3, requires_grad=True)
    centred = A - A.mean(dim=0)
    loss = centred.mean() #!
    loss.backward()
    """,
    shows="norm(A.grad) < 1e-7",
    cure={"centred.mean()": "centred.pow(2).mean()"},
    says="A",
)
ROWS.fault(
    "the mean of a layer norm",
    "cancelled",
    """
    net = nn.Sequential(nn.Linear(6, 12), nn.LayerNorm(12))
    x = torch.randn(4, 6)
    loss = net(x).mean() #!
    loss.backward()
    """,
    shows="norm(net[0].weight.grad) < 1e-6",
    cure={"net(x).mean()": "net(x)[:, 0].mean()"},
    says="LayerNorm",
)
ROWS.fault(
    "a difference of equals",
    "cancelled",
    """
    net = nn.Linear(3, 2)
    a = torch.randn(5, 3)
    b = a.clone()
    gap = (net(a) - net(b)).sum() #!
    """,
    shows="all_zero(net.weight.grad)",
    cure={"b = a.clone()": "b = torch.randn(5, 3)"},
    says="net",
)
ROWS.fault(
    "softmax over an axis of one",
    ("cancelled", "saturated"),
    """
    net = nn.Linear(4, 1)
    X = torch.randn(16, 4)
    y = (X[:, 0] > 0).float()
    p = F.softmax(net(X), dim=1).squeeze(1) #!
    loss = F.binary_cross_entropy(p * 0.999, y)
    loss.backward()
    """,
    shows="norm(net.weight.grad) < 1e-7",
    cure={"F.softmax(net(X), dim=1)": "torch.sigmoid(net(X))"},
    says=("softmax", "1"),
)
ROWS.fault(
    "a weight of zero on the loss",
    "zero-factor",
    """
    lam = 0.0
    w = torch.randn(4, requires_grad=True)
    x = torch.randn(20, 4)
    y = torch.randn(20)
    loss = lam * ((x @ w - y) ** 2).mean() #!
    """,
    shows="all_zero(w.grad)",
    cure={"lam = 0.0": "lam = 1.0"},
    says=("lam", "0"),
)
ROWS.fault(
    "both layers start at zero",
    "zero-factor",
    """
    X, T = torch.randn(30, 4), torch.randn(30, 1)
    W1 = torch.zeros(4, 8, requires_grad=True)
    b1 = torch.zeros(8, requires_grad=True)
    W2 = torch.zeros(8, 1, requires_grad=True)
    h = torch.tanh(X @ W1 + b1)
    loss = ((h @ W2 - T) ** 2).mean() #!
    loss.backward()
    """,
    shows="all_zero(W1.grad, b1.grad, W2.grad)",
    cure={
        "torch.zeros(4, 8, requires_grad=True)": "torch.randn(4, 8).requires_grad_()",
        "torch.zeros(8, 1, requires_grad=True)": "torch.randn(8, 1).requires_grad_()",
    },
    says=("W1", "W2"),
)
ROWS.fault(
    "a mask that hides everything",
    "zero-factor",
    """
    seq = torch.randint(0, 5, (3, 6))
    pad = (seq < 5)
    emb = nn.Embedding(5, 4)
    keep = (~pad).float().unsqueeze(-1)
    pooled = (emb(seq) * keep).sum(1) #!
    loss = (pooled - 1).pow(2).mean()
    loss.backward()
    """,
    shows="all_zero(emb.weight.grad)",
    cure={"(~pad).float()": "pad.float()"},
    says="keep",
)
ROWS.fault(
    "dropout that drops everything",
    "zero-factor",
    """
    net = nn.Sequential(nn.Linear(5, 9), nn.ReLU(), nn.Dropout(1.0), nn.Linear(9, 1))
    x = torch.randn(12, 5)
    # %%
    loss = (net(x) - 1).pow(2).mean()
    loss.backward()
    """,
    shows="all_zero(net[0].weight.grad)",
    cure={"nn.Dropout(1.0)": "nn.Dropout(0.1)"},
    says="dropout",
)
