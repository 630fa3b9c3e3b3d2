"""Products along the depth or over the steps; units that are dead or saturated."""

from __future__ import annotations

from planting import Table

ROWS = Table()

# ------------------------------------------------------------------------------------------------ vanishing, exploding
ROWS.fault(
    "twelve sigmoids",
    "vanishing",
    """
    layers = []
    for i in range(12):
        layers += [nn.Linear(16, 16), nn.Sigmoid()]
    net = nn.Sequential(*layers, nn.Linear(16, 1))
    X, y = torch.randn(64, 16), torch.randn(64, 1)
    loss = F.mse_loss(net(X), y)
    loss.backward()
    """,
    shows="norm(net[0].weight.grad) < 1e-6 * norm(net[24].weight.grad)",
    cure={"nn.Sigmoid()": "nn.Tanh()"},
    says=("0.25", "sigmoid"),
)
ROWS.fault(
    "sigmoids in a loop over a list of weights",
    "vanishing",
    """
    Ws = [(torch.randn(20, 20) / math.sqrt(20)).requires_grad_() for _ in range(15)]
    h = torch.randn(8, 20)
    for W in Ws:
        h = torch.sigmoid(h @ W) #!
    h.pow(2).mean()
    """,
    shows="norm(Ws[0].grad) < 1e-6 * norm(Ws[-1].grad)",
    cure={"h = torch.sigmoid(h @ W)": "h = torch.relu(h @ W) * math.sqrt(2)"},
    says="0.25",
)
ROWS.fault(
    "weights of a hundredth",
    "vanishing",
    """
    class Mlp(nn.Module):
        def __init__(self, depth=8, width=32):
            super().__init__()
            self.blocks = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
            for b in self.blocks:
                nn.init.normal_(b.weight, std=0.01)
        def forward(self, x):
            for b in self.blocks:
                x = torch.tanh(b(x))
            return x
    mlp = Mlp()
    # %%
    x = torch.randn(16, 32)
    loss = (mlp(x) - 1).pow(2).mean()
    """,
    shows="norm(mlp.blocks[0].weight.grad) < 1e-6",
    cure={"nn.init.normal_(b.weight, std=0.01)": "nn.init.normal_(b.weight, std=32 ** -0.5)"},
    says="blocks",
)
ROWS.fault(
    "a constant that makes everything small",
    "vanishing",
    """
    x = gl.randn(10, 6)
    w1 = (gl.randn(6, 6) / 6 ** 0.5).requires_grad_()
    w2 = (gl.randn(6, 6) / 6 ** 0.5).requires_grad_()
    h1 = gl.tanh(x @ w1)
    h1 = h1 * 1e-8 #!
    h2 = gl.tanh(h1 @ w2)
    loss = (h2 - 1).pow(2).mean()
    """,
    shows="norm(w1.grad) < 1e-6 and norm(w2.grad) < 1e-6",
    cure={"h1 * 1e-8": "h1 * 1.0"},
    says="1e-08",
)
ROWS.fault(
    "one layer of many made tiny",
    "vanishing",
    """
    net = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(16, 16), nn.Tanh())])
    with torch.no_grad():
        net[4].weight.mul_(1e-9)
    x = torch.randn(20, 16)
    # %%
    out = net(x)
    loss = (out - 0.5).pow(2).mean()
    loss.backward()
    """,
    shows="norm(net[0].weight.grad) < 1e-7 * norm(net[6].bias.grad)",
    cure={"net[4].weight.mul_(1e-9)": "net[4].weight.mul_(1.0)"},
    says="4",
)
ROWS.fault(
    "weights of one in width 256",
    "exploding",
    """
    Ws = [torch.randn(256, 256, requires_grad=True) for _ in range(6)]
    a = torch.randn(4, 256)
    for W in Ws:
        a = torch.relu(a @ W) #!
    loss = a.mean()
    loss.backward()
    """,
    shows="norm(Ws[0].grad) > 1e3",
    cure={"torch.relu(a @ W)": "torch.relu(a @ W) * (2 / 256) ** 0.5"},
    says="256",
)
ROWS.fault(
    "a model whose init is too wide",
    "exploding",
    """
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(),
                        nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    for m in net:
        if isinstance(m, nn.Linear):
            nn.init.normal_(m.weight, std=1.0)
    X = torch.randn(16, 64)
    # %%
    loss = F.mse_loss(net(X), torch.zeros(16, 1))
    loss.backward()
    """,
    shows="norm(net[0].weight.grad) > 1e4",
    cure={"std=1.0": "std=(2 / 64) ** 0.5"},
    says="weight",
)
ROWS.fault(
    "a residual sum without a scale",
    "exploding",
    """
    class Res(nn.Module):
        def __init__(self, n, d):
            super().__init__()
            self.fs = nn.ModuleList([nn.Linear(d, d) for _ in range(n)])
        def forward(self, x):
            for f in self.fs:
                x = x + 4 * f(x) #!
            return x
    r = Res(20, 24)
    loss = r(torch.randn(6, 24)).pow(2).mean()
    loss.backward()
    """,
    shows="norm(r.fs[0].weight.grad) > 1e6",
    cure={"4 * f(x)": "0.1 * f(x)"},
    says="4",
)

# ------------------------------------------------------------------------------------------------------------- recurrent
ROWS.fault(
    "an RNN that forgets its first step",
    ("recurrent", "vanishing"),
    """
    T, H = 100, 16
    Wx = (torch.randn(4, H) * 0.3).requires_grad_()
    Wh = (torch.randn(H, H) * 0.5 / H ** 0.5).requires_grad_()
    xs = torch.randn(T, 8, 4, requires_grad=True)
    h = torch.zeros(8, H)
    for t in range(T):
        h = torch.tanh(xs[t] @ Wx + h @ Wh) #!
    loss = h.pow(2).mean()
    loss.backward()
    """,
    shows="norm(xs.grad[0]) < 1e-12 * norm(xs.grad[-1])",
    cure={"h = torch.tanh(xs[t] @ Wx + h @ Wh)": "h = h + 0.1 * torch.tanh(xs[t] @ Wx)"},
    says="100",
)
ROWS.fault(
    "a recurrence that grows",
    ("recurrent", "exploding"),
    """
    Q, _ = np.linalg.qr(np.random.randn(12, 12))
    U = torch.tensor(1.6 * Q, dtype=torch.float32, requires_grad=True)
    state = torch.ones(12) * 0.01
    for step in range(60):
        state = U @ state #!
    loss = state.abs().sum()
    """,
    shows="norm(U.grad) > 1e8",
    cure={"1.6 * Q": "1.0 * Q"},
    says="60",
)
ROWS.fault(
    "a product of two hundred factors",
    ("recurrent", "vanishing"),
    """
    a = torch.tensor(0.8, requires_grad=True)
    s0 = torch.tensor(1.0, requires_grad=True)
    s = s0
    for k in range(200):
        s = a * s #!
    s.backward()
    """,
    shows="0 < abs(s0.grad.item()) < 1e-15",
    cure={"torch.tensor(0.8": "torch.tensor(1.0"},
    says="0.8",
)
ROWS.fault(
    "an RNNCell over eighty steps",
    ("recurrent", "vanishing"),
    """
    cell = nn.RNNCell(3, 20)
    emb = nn.Embedding(10, 3)
    readout = nn.Linear(20, 2)
    tokens = torch.randint(1, 10, (80, 4))
    tokens[0] = 0
    hx = torch.zeros(4, 20)
    for tok in tokens:
        hx = cell(emb(tok), hx) #!
    loss = F.cross_entropy(readout(hx), torch.tensor([0, 1, 0, 1]))
    loss.backward()
    """,
    shows="norm(emb.weight.grad[0]) < 1e-10 * norm(emb.weight.grad)",
    cure={"tokens[0] = 0": "tokens[-1] = 0", "(80, 4)": "(6, 4)"},
    says="80",
)

# ------------------------------------------------------------------------------------------------------------------ dead
ROWS.fault(
    "rectifiers shut by their bias",
    "dead",
    """
    net = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 1))
    nn.init.constant_(net[0].bias, -50.)
    X, Y = torch.randn(40, 5), torch.randn(40, 1)
    # %%
    loss = F.mse_loss(net(X), Y)
    loss.backward()
    """,
    shows="all_zero(net[0].weight.grad)",
    cure={"-50.": "0."},
    says=("10", "ReLU"),
)
ROWS.fault(
    "units killed by one large step",
    "dead",
    """
    model = nn.Sequential(nn.Linear(4, 30), nn.ReLU(), nn.Linear(30, 30), nn.ReLU(), nn.Linear(30, 1))
    opt = optim.SGD(model.parameters(), lr=10.)
    X = torch.rand(50, 4)
    Y = X.sum(1, keepdim=True) - 3
    for _ in range(3):
        opt.zero_grad()
        F.mse_loss(model(X), Y).backward()
        opt.step()
    # %%
    opt.zero_grad()
    loss = F.mse_loss(model(X), Y)
    loss.backward()
    """,
    shows="all_zero(model[0].weight.grad)",
    cure={"lr=10.": "lr=0.01"},
    says="30",
)
ROWS.fault(
    "most units dead",
    "dead",
    """
    W = torch.randn(6, 20).requires_grad_()
    b = torch.cat([torch.full((17,), -30.), torch.zeros(3)]).requires_grad_()
    v = torch.randn(20, requires_grad=True)
    X = torch.randn(100, 6)
    h = F.relu(X @ W + b) #!
    loss = ((h @ v) ** 2).mean()
    """,
    shows="zero_share(b.grad) == 0.85",
    cure={"-30.": "0."},
    says="17",
)
ROWS.fault(
    "a rectifier on something negative",
    "dead",
    """
    a = torch.randn(7, requires_grad=True)
    c = torch.rand(7) + 0.1
    energy = -(a ** 2 + c)
    out = torch.clamp(energy, min=0).sum() #!
    out.backward()
    """,
    shows="all_zero(a.grad)",
    cure={"energy = -(": "energy = +("},
    says="a",
)
ROWS.fault(
    "a hinge that everyone satisfies",
    "dead",
    """
    w = torch.tensor([10.0, -10.0], requires_grad=True)
    pos = torch.tensor([[1., -1.], [2., -1.], [1., -3.]])
    margin = pos @ w
    loss = torch.relu(1 - 100 - margin).mean() #!
    """,
    shows="all_zero(w.grad)",
    cure={"1 - 100 - margin": "100 - margin"},
    says="w",
)

# ------------------------------------------------------------------------------------------------------------- saturated
ROWS.fault(
    "pixels up to 255 into a sigmoid",
    "saturated",
    """
    images = torch.randint(0, 256, (32, 64)).float()
    labels = torch.randint(0, 2, (32,)).float()
    net = nn.Sequential(nn.Linear(64, 8), nn.Sigmoid(), nn.Linear(8, 1))
    with torch.no_grad():
        net[0].weight.abs_()
    # %%
    loss = F.binary_cross_entropy_with_logits(net(images).squeeze(1), labels)
    loss.backward()
    """,
    shows="zero_share(net[0].weight.grad) == 1",
    cure={"256, (32, 64)).float()": "256, (32, 64)).float() / 2550"},
    says="sigmoid",
)
ROWS.fault(
    "tanh at its ends",
    "saturated",
    """
    gl.manual_seed(5)
    X = gl.randn(30, 10) * 400
    W = (gl.randn(10, 10) * 0.4).requires_grad_()
    v = gl.randn(10, requires_grad=True)
    Z = X @ W
    H = gl.tanh(Z) #!
    loss = ((H @ v) - 1).pow(2).mean()
    loss.backward()
    """,
    shows="float((abs(array(H)) > 0.9999).mean()) > 0.95",
    cure={"gl.randn(30, 10) * 400": "gl.randn(30, 10) * 0.1"},
    says="tanh",
)
ROWS.fault(
    "clamped outside of its range",
    ("saturated", "dead"),
    """
    logits = torch.tensor([4.0, 5.0, 6.0], requires_grad=True)
    probs = logits.clamp(0, 1) #!
    loss = ((probs - 0.2) ** 2).sum()
    """,
    shows="all_zero(logits.grad)",
    cure={"logits.clamp(0, 1)": "torch.sigmoid(logits)"},
    says="clamp",
)
ROWS.fault(
    "attention without its scale",
    "saturated",
    """
    class Attend(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        def forward(self, x):
            scores = self.q(x) @ self.k(x).transpose(-1, -2)
            att = torch.softmax(scores, dim=-1) #!
            return att @ self.v(x)
    m = Attend(64)
    # %%
    x = torch.randn(2, 10, 64) * 12
    loss = m(x).pow(2).mean()
    loss.backward()
    """,
    shows="float((array(torch.softmax(m.q(x) @ m.k(x).transpose(-1, -2), -1)).max(-1) > 0.999).mean()) > 0.9",
    cure={"* 12": "* 0.1"},
    says="softmax",
)
ROWS.fault(
    "softmax with a temperature near zero",
    "saturated",
    """
    scores = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    values = torch.tensor([5.0, 1.0, -2.0])
    tau = 1e-3
    weights = F.softmax(scores / tau, dim=0) #!
    result = (weights * values).sum()
    result.backward()
    """,
    shows="all_zero(scores.grad)",
    cure={"tau = 1e-3": "tau = 1.0"},
    says="softmax",
)
ROWS.fault(
    "gates of an LSTM shut",
    "saturated",
    """
    lstm = nn.LSTM(3, 6)
    with torch.no_grad():
        lstm.bias_ih_l0[:6] = -200.0
    x = torch.randn(12, 4, 3)
    # %%
    out, (h, c) = lstm(x)
    loss = (h - 1).pow(2).mean()
    loss.backward()
    """,
    shows="all_zero(lstm.weight_ih_l0.grad[12:18])",
    cure={"-200.0": "0.0"},
    says="sigmoid",
)

ROWS.fault(
    "large features and a bias that the steps have moved from 0",
    "saturated",
    """
    X, y = 400 * torch.randn(64, 20), torch.randint(0, 2, (64, 1)).float()
    net = nn.Sequential(nn.Linear(20, 16), nn.Tanh(), nn.Linear(16, 1))
    with torch.no_grad():
        net[0].bias.zero_()
    opt = optim.Adam(net.parameters(), lr=1e-4)
    # %%
    for step in range(4):
        opt.zero_grad()
        loss = F.binary_cross_entropy_with_logits(net(X), y) #!
        loss.backward()
        opt.step()
    """,
    shows="(net[1](net[0](X)).abs() > 0.999).float().mean() > 0.8 and net[0].bias.abs().max() > 0",
    cure={"400 * torch.randn": "torch.randn"},
    says="tanh",
    never="learning rate",
)
