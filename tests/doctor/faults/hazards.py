"""Formulas that overflow before their result does, and inputs close to a point where an operation is infinite."""

from __future__ import annotations

from planting import Table

ROWS = Table()

# ----------------------------------------------------------------------------------------- logarithms of probabilities
ROWS.fault(
    "the logarithm of a softmax in two statements",
    "unstable",
    """
    x, y = torch.randn(16, 5), torch.arange(16) % 3
    w = torch.randn(5, 3, requires_grad=True)
    # %%
    for step in range(3):
        z = x @ w
        p = torch.softmax(z, dim=1)
        loss = -torch.log(p)[torch.arange(16), y].mean() #!
        w.grad = None
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
    """,
    shows="records(loss, 'Log', 'Softmax')",
    cure={"torch.log(p)": "torch.log_softmax(z, dim=1)"},
    says=("`torch.log(p)` on line 5", "88.7", "`torch.log_softmax(z, dim=1)` in place of `torch.log(p)`"),
)
ROWS.fault(
    "nll_loss of the logarithm of a softmax",
    "unstable",
    """
    net = nn.Linear(5, 3)
    x, y = torch.randn(16, 5), torch.arange(16) % 3
    # %%
    z = net(x)
    loss = F.nll_loss(torch.log(F.softmax(z, 1)), y) #!
    loss.backward()
    """,
    shows="records(loss, 'Log', 'Softmax')",
    cure={"torch.log(F.softmax(z, 1))": "F.log_softmax(z, 1)"},
    says="`F.log_softmax(z, 1)` in place of `torch.log(F.softmax(z, 1))`",
)
ROWS.fault(
    "the logarithm of what a softmax gave for the targets",
    "unstable",
    """
    x, y = torch.randn(16, 5), torch.arange(16) % 3
    w = torch.randn(5, 3, requires_grad=True)
    # %%
    z = x @ w
    picked = z.softmax(1)[torch.arange(16), y]
    loss = -picked.log().mean() #!
    loss.backward()
    """,
    shows="records(loss, 'Log', 'Softmax')",
    cure={"z.softmax(1)": "z.log_softmax(1)", "picked.log()": "picked"},
    says="log_softmax(1)[torch.arange(16), y]` in place of `picked.log()`",
)
ROWS.fault(
    "a Softmax at the end of a model, and the logarithm of its output",
    "unstable",
    """
    x, y = torch.randn(16, 5), torch.arange(16) % 3
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3), nn.Softmax(1))
    opt = optim.SGD(model.parameters(), lr=0.1)
    # %%
    for step in range(4):
        opt.zero_grad()
        loss = F.nll_loss(torch.log(model(x)), y) #!
        loss.backward()
        opt.step()
    """,
    shows="records(loss, 'Log', 'Softmax')",
    cure={"nn.Softmax(1)": "nn.LogSoftmax(1)", "torch.log(model(x))": "model(x)"},
    says=("logarithm of a softmax", "`nn.LogSoftmax(1)` in place of `nn.Softmax(1)`"),
)
ROWS.fault(
    "a softmax in forward, and its logarithm in the loop",
    "unstable",
    """
    class Policy(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 2)
        def forward(self, x):
            return F.softmax(self.fc(x), dim=1)
    policy = Policy()
    states, actions = torch.randn(12, 4), torch.arange(12) % 2
    returns = torch.randn(12)
    opt = optim.SGD(policy.parameters(), lr=0.1)
    # %%
    for episode in range(3):
        probs = policy(states)
        log_probs = torch.log(probs[torch.arange(12), actions]) #!
        loss = -(log_probs * returns).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    shows="records(loss, 'Log', 'Softmax')",
    cure={
        "F.softmax(self.fc(x), dim=1)": "F.log_softmax(self.fc(x), dim=1)",
        "torch.log(probs[torch.arange(12), actions])": "probs[torch.arange(12), actions]",
    },
    says=("logarithm of a softmax", "log_softmax"),
    never="` in place of `",
)
ROWS.fault(
    "the entropy of a softmax",
    "unstable",
    """
    head = nn.Linear(6, 4)
    x = torch.randn(10, 6)
    # %%
    p = head(x).softmax(-1)
    entropy = -(p * p.log()).sum(-1).mean() #!
    entropy.backward()
    """,
    shows="records(entropy, 'Log', 'Softmax')",
    cure={"p.log()": "head(x).log_softmax(-1)"},
    says="`p.log()` on line 3 is the logarithm of a softmax",
)
ROWS.fault(
    "the logarithm of a sigmoid of scores",
    "unstable",
    """
    centre, context = nn.Embedding(20, 6), nn.Embedding(20, 6)
    i, j = torch.arange(15), torch.arange(15) + 3
    # %%
    score = (centre(i) * context(j)).sum(1)
    loss = -torch.log(torch.sigmoid(score)).mean() #!
    loss.backward()
    """,
    shows="records(loss, 'Log', 'Sigmoid')",
    cure={"torch.log(torch.sigmoid(score))": "F.logsigmoid(score)"},
    says=("below 0", "`F.logsigmoid(score)` in place of `torch.log(torch.sigmoid(score))`"),
)
ROWS.fault(
    "the loss of a discriminator by hand",
    "unstable",
    """
    G, D = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())
    od = optim.SGD(D.parameters(), lr=0.05)
    real = torch.randn(16, 3)
    # %%
    for step in range(3):
        fake = G(torch.randn(16, 2)).detach()
        d_loss = -torch.log(D(real)).mean() - torch.log(1 - D(fake)).mean() #!
        od.zero_grad()
        d_loss.backward()
        od.step()
    """,
    shows="records(d_loss, 'Log', 'Sigmoid')",
    cure={
        ", nn.Sigmoid())": ")",
        "torch.log(D(real))": "F.logsigmoid(D(real))",
        "torch.log(1 - D(fake))": "F.logsigmoid(-D(fake))",
    },
    says="a sigmoid",
    never="` in place of `",
)
ROWS.fault(
    "a binary cross entropy by hand",
    "unstable",
    """
    X, w = torch.randn(30, 4), torch.zeros(4, requires_grad=True)
    y = (X[:, 0] > 0).float()
    # %%
    for epoch in range(3):
        p = torch.sigmoid(X @ w)
        loss = -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean() #!
        loss.backward()
        with torch.no_grad():
            w -= 0.5 * w.grad
            w.grad = None
    """,
    shows="records(loss, 'Log', 'Sigmoid')",
    cure={"-(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()": "F.binary_cross_entropy_with_logits(X @ w, y)"},
    says=("16.6", "`F.binary_cross_entropy_with_logits(X @ w, y)` in place of"),
)
ROWS.fault(
    "logistic regression with a sigmoid by hand",
    "unstable",
    """
    X = torch.randn(30, 4)
    w, b = torch.zeros(4, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
    y = (X[:, :1] > 0).float()
    # %%
    z = X @ w + b
    h = 1 / (1 + torch.exp(-z))
    loss = -(y * torch.log(h) + (1 - y) * torch.log(1 - h)).mean() #!
    loss.backward()
    """,
    shows="records(loss, 'Log', 'Reciprocal')",
    cure={"-(y * torch.log(h) + (1 - y) * torch.log(1 - h)).mean()": "F.binary_cross_entropy_with_logits(z, y)"},
    says=("16.6", "`F.binary_cross_entropy_with_logits(z, y)` in place of"),
)
ROWS.fault(
    "a cross entropy by hand, as in a lecture",
    "unstable",
    """
    xs, ys = torch.randint(0, 9, (20,)), torch.randint(0, 9, (20,))
    W = torch.randn(9, 9, requires_grad=True)
    # %%
    xenc = F.one_hot(xs, num_classes=9).float()
    logits = xenc @ W
    counts = logits.exp()
    probs = counts / counts.sum(1, keepdim=True)
    loss = -probs[torch.arange(20), ys].log().mean() + 0.01 * (W ** 2).mean() #!
    loss.backward()
    """,
    shows="records(loss, 'Log', 'Exp', 'Div')",
    cure={"-probs[torch.arange(20), ys].log().mean()": "F.cross_entropy(logits, ys)"},
    says=("softmax by hand", "88.7", "`F.log_softmax(logits, 1)[torch.arange(20), ys]` in place of"),
)

# ------------------------------------------------------------------------------------------------------- exponentials
ROWS.fault(
    "the logarithm of a sum of exponentials over rows",
    "unstable",
    """
    energy = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 5))
    # %%
    z = energy(torch.randn(12, 3))
    free = torch.log(torch.exp(z).sum(1)).mean() #!
    free.backward()
    """,
    shows="records(free, 'Log', 'Exp')",
    cure={"torch.log(torch.exp(z).sum(1))": "torch.logsumexp(z, 1)"},
    says="logsumexp(z, 1)` in place of `torch.log(torch.exp(z).sum(1))`",
)
ROWS.fault(
    "the logarithm of the sum of all exponentials",
    "unstable",
    """
    theta = torch.randn(6, requires_grad=True)
    # %%
    total = theta.exp().sum()
    loss = total.log() - theta[2] #!
    loss.backward()
    """,
    shows="records(loss, 'Log', 'Exp')",
    cure={"total.log()": "torch.logsumexp(theta, 0)"},
    says="logsumexp(theta, 0)` in place of `total.log()`",
)
ROWS.fault(
    "softplus by hand",
    "unstable",
    """
    net = nn.Linear(4, 2)
    x = torch.randn(10, 4)
    # %%
    rate = torch.log(1 + torch.exp(net(x))) #!
    loss = (rate - 1).pow(2).mean()
    loss.backward()
    """,
    shows="records(loss, 'Log', 'Exp')",
    cure={"torch.log(1 + torch.exp(net(x)))": "F.softplus(net(x))"},
    says="`F.softplus(net(x))` in place of `torch.log(1 + torch.exp(net(x)))`",
)
ROWS.fault(
    "a logistic loss of margins",
    "unstable",
    """
    X, t = torch.randn(25, 3), torch.where(torch.randn(25) > 0, 1.0, -1.0)
    w = torch.zeros(3, requires_grad=True)
    # %%
    margin = t * (X @ w)
    loss = torch.log1p(torch.exp(-margin)).mean() #!
    loss.backward()
    """,
    shows="records(loss, 'Log1P', 'Exp')",
    cure={"torch.log1p(torch.exp(-margin))": "F.softplus(-margin)"},
    says="`F.softplus(-margin)` in place of `torch.log1p(torch.exp(-margin))`",
)
ROWS.fault(
    "an attention with a softmax by hand",
    "unstable",
    """
    q, k, v = (nn.Linear(8, 8) for _ in range(3))
    x = torch.randn(6, 8)
    # %%
    scores = q(x) @ k(x).T / math.sqrt(8)
    weights = torch.exp(scores) / torch.exp(scores).sum(dim=-1, keepdim=True) #!
    loss = (weights @ v(x)).pow(2).mean()
    loss.backward()
    """,
    shows="records(loss, 'Exp', 'Div')",
    cure={"torch.exp(scores) / torch.exp(scores).sum(dim=-1, keepdim=True)": "torch.softmax(scores, -1)"},
    says=("softmax by hand", "softmax(scores, -1)` in place of"),
)
ROWS.fault(
    "a softmax by hand in a function",
    "unstable",
    """
    def softmax(z):
        e = torch.exp(z)
        return e / e.sum(1, keepdim=True)
    x, W = torch.randn(9, 4), torch.randn(4, 3, requires_grad=True)
    target = F.one_hot(torch.arange(9) % 3, 3).float()
    # %%
    def loss_of(W):
        e = torch.exp(x @ W)
        p = e / e.sum(1, keepdim=True) #!
        return ((p - target) ** 2).mean()
    loss = loss_of(W)
    loss.backward()
    """,
    shows="nans(loss_of(1000 * W)) > 0",
    cure={"p = e / e.sum(1, keepdim=True)": "p = torch.softmax(x @ W, 1)"},
    says=("inf / inf is NaN", "softmax(x @ W, 1)` in place of `e / e.sum(1, keepdim=True)`"),
)
ROWS.fault(
    "the contrast of views by hand",
    "unstable",
    """
    enc = nn.Linear(6, 4)
    x = torch.randn(8, 6)
    # %%
    z = enc(x)
    e = torch.exp(z @ z.T / 2)
    loss = -torch.log(e.diagonal() / e.sum(1)).mean() #!
    loss.backward()
    """,
    shows="records(loss, 'Log', 'Exp', 'Div')",
    cure={"-torch.log(e.diagonal() / e.sum(1)).mean()": "F.cross_entropy(z @ z.T / 2, torch.arange(8))"},
    says=("logarithm of a softmax by hand", "cross_entropy"),
    never="` in place of `",
)

# -------------------------------------------------------------------------------------------------------- near a limit
ROWS.fault(
    "a distance of two points that are nearly equal",
    "near-limit",
    """
    a = torch.tensor([[1.0, 2.0], [0.5, 0.1], [2.0, -1.0]], requires_grad=True)
    b = torch.tensor([[1.5, 2.5], [0.5000003, 0.1], [0.0, 1.0]])
    # %%
    loss = ((a - b) ** 2).sum(1).sqrt().mean() #!
    loss.backward()
    """,
    shows="records(loss, 'Sqrt') and 0 < array(((a - b) ** 2).sum(1)).min() < 1e-12 and not records(loss, 'Add')",
    cure={"((a - b) ** 2).sum(1).sqrt()": "(((a - b) ** 2).sum(1) + 1e-12).sqrt()"},
    says=("the smallest of 3 inputs", "+ 1e-12).sqrt()` in place of"),
)
ROWS.fault(
    "a power of one half of something near 0",
    "near-limit",
    """
    w = torch.tensor([1e-7, 0.3, 0.4], requires_grad=True)
    # %%
    energy = w ** 2
    loss = (energy ** 0.5).sum() #!
    loss.backward()
    """,
    shows="0 < array(energy).min() < 1e-12",
    cure={"energy = w ** 2": "energy = w ** 2 + 1e-8"},
    says=("the power 0.5", "near-limit" and "1e-14"),
)
ROWS.fault(
    "an angle of nearly parallel vectors",
    "near-limit",
    """
    u = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    v = torch.tensor([1.0, 2.0, 3.004])
    # %%
    cos = (u * v).sum() / (u.norm() * v.norm())
    angle = torch.acos(cos) #!
    angle.backward()
    """,
    shows="0.999999 < cos.item() < 1 and infs(u.grad) == 0 and abs(angle.item()) < 1.3e-3",
    cure={"torch.acos(cos)": "torch.acos(cos.clamp(-1 + 1e-6, 1 - 1e-6))"},
    says=("acos", "clamp(-1 + 1e-06, 1 - 1e-06)"),
)
ROWS.fault(
    "an exponential shortly before the overflow",
    "near-limit",
    """
    log_rate = torch.tensor([0.5, 86.0, 1.0], requires_grad=True)
    counts = torch.tensor([1.0, 2.0, 3.0])
    # %%
    rate = torch.exp(log_rate) #!
    loss = (rate - counts * log_rate).mean()
    loss.backward()
    """,
    shows="array(rate).max() > 1e37",
    cure={"torch.exp(log_rate)": "torch.exp(log_rate.clamp(max=20.0))"},
    says=("86", "88.7"),
)
ROWS.fault(
    "a column that hardly varies, divided by its standard deviation",
    "near-limit",
    """
    x = torch.randn(20, 3) * torch.tensor([1.0, 1e-8, 2.0])
    w = torch.ones(3, requires_grad=True)
    # %%
    h = x * w
    h = (h - h.mean(0)) / h.std(0) #!
    loss = (h[:, 0] * h[:, 1]).mean()
    loss.backward()
    """,
    shows="norm(w.grad) > 0 and records(loss, 'Std')",
    cure={"h.std(0)": "(h.var(0) + 1e-5).sqrt()"},
    says=("divides by `h.std(0)`", "(h.var(0) + 1e-12).sqrt()` in place of `h.std(0)`"),
)
ROWS.fault(
    "the logarithm of a product of probabilities",
    "near-limit",
    """
    z = torch.tensor([[4.0, -5.0], [1.0, 6.0], [-4.0, -6.0]], requires_grad=True)
    # %%
    joint = torch.sigmoid(z[:, 0]) * torch.sigmoid(z[:, 1]) * 0.01
    loss = -torch.log(joint).mean() #!
    loss.backward()
    """,
    shows="0 < array(joint).min() < 1e-6",
    cure={"joint = torch.sigmoid(z[:, 0]) * torch.sigmoid(z[:, 1]) * 0.01": "joint = torch.sigmoid(z[:, 0]) + 0.01"},
    says=("the smallest of 3 inputs", "`torch.log(joint.clamp(min=1e-12))` in place of `torch.log(joint)`"),
)
ROWS.fault(
    "a division by a weight near 0",
    "near-limit",
    """
    scale = torch.tensor([1e-8, 0.5, 1.0], requires_grad=True)
    x = torch.randn(3)
    # %%
    loss = (1e-8 * x / scale).sum() #!
    loss.backward()
    """,
    shows="0 < array(scale).min() < 1e-6 and not records(loss, 'Add')",
    cure={"x / scale": "x / (scale.abs() + 1e-3)"},
    says=("divides by `scale`", "1e-08"),
)
ROWS.fault(
    "a sum of float16 numbers near the largest",
    "near-limit",
    """
    x = (torch.ones(200) * 14).half().requires_grad_()
    # %%
    energy = (x * x).sum() #!
    energy.backward()
    """,
    shows="32752 < energy.item() < 65504 and 'float16' in str(energy.dtype)",
    cure={"(x * x).sum()": "(x * x).float().sum()"},
    says=("float16", "65504"),
)
ROWS.fault(
    "a group normalised by rsqrt of a variance near 0",
    "near-limit",
    """
    w = torch.tensor([[1.0, 1.0000001, 1.0], [0.3, -0.4, 0.9]], requires_grad=True)
    # %%
    var = w.var(1, keepdim=True)
    h = (w - w.mean(1, keepdim=True)) * torch.rsqrt(var) #!
    loss = (h ** 3).mean()
    loss.backward()
    """,
    shows="0 < array(var).min() < 1e-12 and not records(loss, 'Add')",
    cure={"torch.rsqrt(var)": "torch.rsqrt(var + 1e-5)"},
    says=("rsqrt", "the smallest of 2 inputs"),
)
ROWS.fault(
    "rows of a ReLU divided by their norm",
    "near-limit",
    """
    fc = nn.Linear(6, 4)
    x, t = torch.randn(12, 6), torch.randn(12, 4)
    with torch.no_grad():
        fc.bias += 0.5
    # %%
    h = F.relu(fc(x))
    unit = h / h.norm(dim=1, keepdim=True) #!
    loss = ((unit - t) ** 2).mean()
    loss.backward()
    """,
    shows="zero_share(h) > 0.1 and array(h.norm(dim=1)).min() > 0 and not records(loss, 'ClampMin')",
    cure={"h.norm(dim=1, keepdim=True)": "h.norm(dim=1, keepdim=True).clamp_min(1e-8)"},
    says=("divides by", "of the elements of `h` are 0", "a row of 4"),
)
ROWS.fault(
    "the root of a sum of squares of a ReLU",
    "near-limit",
    """
    fc = nn.Linear(6, 3)
    x = torch.randn(10, 6)
    with torch.no_grad():
        fc.bias += 0.5
    # %%
    h = torch.relu(fc(x))
    length = (h ** 2).sum(1).sqrt() #!
    loss = (length - 1).pow(2).mean()
    loss.backward()
    """,
    shows="zero_share(h) > 0.1 and array(length).min() > 0 and not records(loss, 'Add')",
    cure={"(h ** 2).sum(1).sqrt()": "((h ** 2).sum(1) + 1e-12).sqrt()"},
    says=("of the elements of `h` are 0", "+ 1e-12).sqrt()"),
)
ROWS.fault(
    "a contrast with a small number in the divisor, which prevents no overflow",
    "unstable",
    """
    enc = nn.Linear(6, 4)
    x = torch.randn(8, 6)
    # %%
    z = enc(x)
    pairs = torch.exp(z @ z.T)
    loss = -torch.log(pairs.diagonal() / (pairs.sum(dim=1) + 1e-8)).mean() #!
    loss.backward()
    """,
    shows="records(loss, 'Log', 'Exp', 'Div')",
    cure={"-torch.log(pairs.diagonal() / (pairs.sum(dim=1) + 1e-8)).mean()": "F.cross_entropy(z @ z.T, torch.arange(8))"},
    says=("logarithm of a softmax by hand", "88.7"),
    never="` in place of `",
)
