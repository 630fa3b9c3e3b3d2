"""Faults that once had wrong messages: logarithms of a softmax, zeros in a loop, and weights after wrong steps."""

from __future__ import annotations

from planting import Table

ROWS = Table()

# ----------------------------------------------------------------------------------------------------------- logarithms
ROWS.fault(
    "the logarithm of a model that ends in a softmax",
    "inf-born",
    """
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(1))
    with torch.no_grad():
        model[2].weight.mul_(900.)
    x, y = torch.randn(16, 4), torch.randint(0, 3, (16,))
    # %%
    loss = -torch.log(model(x))[range(16), y].mean() #!
    loss.backward()
    """,
    shows="infs(loss) == 1",
    cure={"nn.Softmax(1)": "nn.LogSoftmax(1)", "torch.log(model(x))": "model(x)"},
    says=("log", "`nn.LogSoftmax(1)` in place of `nn.Softmax(1)` and `model(x)` in place of `torch.log(model(x))`"),
)
ROWS.fault(
    "the logarithm of a classifier whose probabilities are shown too",
    "inf-born",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 3)
            self.sm = nn.Softmax(dim=1)
        def forward(self, x):
            return self.sm(self.fc(x) * 400)
    net = Net()
    x, y = torch.randn(16, 4), torch.randint(0, 3, (16,))
    # %%
    loss = F.nll_loss(torch.log(net(x)), y) #!
    loss.backward()
    shown = net(x).max(1)
    """,
    shows="infs(loss) == 1",
    cure={"return self.sm(self.fc(x) * 400)": "return self.sm(self.fc(x))"},
    says=("`net.sm`", "LogSoftmax"),
    never=" in place of ",
)
ROWS.fault(
    "log of softmax in one expression",
    "inf-born",
    """
    W = (torch.randn(4, 3) * 300).requires_grad_()
    x, y = torch.randn(16, 4), torch.randint(0, 3, (16,))
    z = x @ W
    loss = -torch.log(F.softmax(z, 1))[range(16), y].mean() #!
    loss.backward()
    """,
    shows="infs(loss) == 1",
    cure={"torch.log(F.softmax(z, 1))": "F.log_softmax(z, 1)"},
    says="`F.log_softmax(z, 1)` in place of `torch.log(F.softmax(z, 1))`",
)
ROWS.fault(
    "log of softmax by methods",
    "inf-born",
    """
    W = (torch.randn(4, 3) * 300).requires_grad_()
    x, y = torch.randn(16, 4), torch.randint(0, 3, (16,))
    z = x @ W
    loss = F.nll_loss(z.softmax(1).log(), y) #!
    """,
    shows="infs(loss) == 1",
    cure={"z.softmax(1).log()": "z.log_softmax(1)"},
    says="`z.log_softmax(1)` in place of `z.softmax(1).log()`",
)
ROWS.fault(
    "log of the probabilities that were picked",
    "inf-born",
    """
    w = torch.randn(4, 3, requires_grad=True)
    x, y = torch.randn(16, 4) * 1000, torch.randint(0, 3, (16,))
    z = x @ w
    p = F.softmax(z, dim=1)
    picked = p[range(16), y]
    loss = -torch.log(picked).mean() #!
    loss.backward()
    """,
    shows="infs(loss) == 1",
    cure={"-torch.log(picked).mean()": "-F.log_softmax(z, dim=1)[range(16), y].mean()"},
    says="`F.log_softmax(z, dim=1)[range(16), y]` in place of `torch.log(picked)`",
)
ROWS.fault(
    "log of a softmax whose logits' name is bound anew",
    "inf-born",
    """
    w = torch.randn(4, 3, requires_grad=True)
    x, y = torch.randn(16, 4) * 1000, torch.randint(0, 3, (16,))
    z = x @ w
    p = F.softmax(z, dim=1)
    z = z / 1000
    loss = F.nll_loss(torch.log(p), y) + 0 * z.sum() #!
    loss.backward()
    """,
    shows="infs(loss) == 1",
    cure={"p = F.softmax(z, dim=1)": "p = F.log_softmax(z, dim=1)", "torch.log(p)": "p"},
    says="log_softmax",
    never=" in place of `torch.log(p)`",
)
ROWS.fault(
    "log of a softmax of another function",
    "inf-born",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 3)
        def forward(self, x):
            return F.softmax(self.fc(x) * 400, dim=1)
    net = Net()
    # %%
    x, y = torch.randn(16, 4), torch.randint(0, 3, (16,))
    p = net(x)
    loss = F.nll_loss(torch.log(p), y) #!
    loss.backward()
    """,
    shows="infs(loss) == 1",
    cure={"F.softmax(self.fc(x) * 400, dim=1)": "F.log_softmax(self.fc(x) * 400, dim=1)", "torch.log(p)": "p"},
    says="log_softmax",
    never=" in place of `torch.log(p)`",
)
ROWS.fault(
    "log of a sigmoid",
    "inf-born",
    """
    w = torch.randn(4, requires_grad=True)
    x = torch.randn(16, 4) * 1000
    loss = -torch.log(torch.sigmoid(x @ w)).mean() #!
    loss.backward()
    """,
    shows="infs(loss) == 1",
    cure={"torch.log(torch.sigmoid(x @ w))": "F.logsigmoid(x @ w)"},
    says="`F.logsigmoid(x @ w)` in place of `torch.log(torch.sigmoid(x @ w))`",
)
ROWS.fault(
    "log of one minus a sigmoid",
    "inf-born",
    """
    w = torch.randn(4, requires_grad=True)
    x = torch.randn(16, 4) * 1000
    z = x @ w
    loss = -torch.log(1 - torch.sigmoid(z)).mean() #!
    loss.backward()
    """,
    shows="infs(loss) == 1",
    cure={"torch.log(1 - torch.sigmoid(z))": "F.logsigmoid(-z)"},
    says="`F.logsigmoid(-z)` in place of `torch.log(1 - torch.sigmoid(z))`",
)
ROWS.fault(
    "log1p of minus a probability",
    "inf-born",
    """
    w = torch.randn(4, requires_grad=True)
    x = torch.randn(16, 4) * 1000
    p = torch.sigmoid(x @ w)
    loss = -torch.log1p(-p).mean() #!
    loss.backward()
    """,
    shows="infs(loss) == 1",
    cure={"torch.log1p(-p)": "F.logsigmoid(-(x @ w))"},
    says=("log1p of -1", "`F.logsigmoid(-(x @ w))` in place of `torch.log1p(-p)`"),
)
ROWS.fault(
    "cross-entropy by hand of a model that ends in a sigmoid",
    "nan-born",
    """
    model = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
    x, y = torch.randn(16, 4) * 1000, torch.randint(0, 2, (16, 1)).float()
    # %%
    p = model(x)
    loss = -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean() #!
    loss.backward()
    """,
    shows="nans(loss) == 1",
    cure={"* 1000": "* 1"},
    says=("`model[1]`", "binary_cross_entropy_with_logits"),
    never=" in place of ",
)
ROWS.fault(
    "log of a sum of exponentials",
    "inf-born",
    """
    w = torch.randn(4, 3, requires_grad=True)
    x = torch.randn(16, 4) * 1000
    z = x @ w
    loss = torch.log(torch.exp(z).sum(1)).mean() #!
    loss.backward()
    """,
    shows="infs(loss) == 1",
    cure={"torch.log(torch.exp(z).sum(1))": "torch.logsumexp(z, 1)"},
    says=("exp", "logsumexp(z, 1)` in place of `torch.log(torch.exp(z).sum(1))`"),
)

# ------------------------------------------------------------------------------------------------------ zeros in a loop
ROWS.fault(
    "both layers at zero in a loop",
    "zero-factor",
    """
    X, T = torch.randn(30, 4), torch.randn(30, 1)
    W1 = torch.zeros(4, 8, requires_grad=True)
    b1 = torch.zeros(8, requires_grad=True)
    W2 = torch.zeros(8, 1, requires_grad=True)
    for step in range(10):
        h = torch.tanh(X @ W1 + b1)
        loss = ((h @ W2 - T) ** 2).mean() #!
        loss.backward()
        with torch.no_grad():
            for p in (W1, b1, W2):
                p -= 0.1 * p.grad
                p.grad = None
    """,
    shows="all_zero(W1, b1, W2)",
    cure={"W1 = torch.zeros(4, 8, requires_grad=True)": "W1 = torch.randn(4, 8).requires_grad_()"},
    says=("`W1`, `W2` and `b1` are 0", "normal_(W1, std=0.1)` after `W1 = torch.zeros(4, 8, requires_grad=True)`"),
    never="before `loss",
)
ROWS.fault(
    "rectified layers at zero, made in an earlier cell",
    "zero-factor",
    """
    X, T = torch.randn(30, 4), torch.randn(30, 1)
    W1 = nn.Parameter(torch.zeros(4, 8))
    W2 = nn.Parameter(torch.zeros(8, 1))
    opt = optim.SGD([W1, W2], lr=0.1)
    # %%
    for step in range(10):
        loss = ((torch.relu(X @ W1) @ W2 - T) ** 2).mean() #!
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    shows="all_zero(W1, W2)",
    cure={"W1 = nn.Parameter(torch.zeros(4, 8))": "W1 = nn.Parameter(torch.randn(4, 8))"},
    says="normal_(W1, std=0.1)` after `W1 = nn.Parameter(torch.zeros(4, 8))`",
)
ROWS.fault(
    "a model that fills its weights with zeros",
    "zero-factor",
    """
    X, T = torch.randn(30, 4), torch.randn(30, 1)
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 1)
            nn.init.zeros_(self.a.weight)
            nn.init.constant_(self.b.weight, 0.)
            nn.init.zeros_(self.a.bias)
        def forward(self, x):
            return self.b(torch.tanh(self.a(x)))
    net = Net()
    opt = optim.SGD(net.parameters(), lr=0.1)
    # %%
    for step in range(10):
        loss = ((net(X) - T) ** 2).mean() #!
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    shows="all_zero(net.a.weight, net.b.weight)",
    cure={"nn.init.zeros_(self.a.weight)": "nn.init.normal_(self.a.weight)"},
    says="`nn.init.normal_(self.a.weight, std=0.1)` in place of `nn.init.zeros_(self.a.weight)`",
)
ROWS.fault(
    "parameters of zeros in a module",
    "zero-factor",
    """
    X, T = torch.randn(30, 4), torch.randn(30, 1)
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.W1 = nn.Parameter(torch.zeros(4, 8))
            self.W2 = nn.Parameter(torch.zeros(8, 1))
        def forward(self, x):
            return torch.tanh(x @ self.W1) @ self.W2 #!
    net = Net()
    opt = optim.SGD(net.parameters(), lr=0.1)
    for step in range(10):
        loss = ((net(X) - T) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    shows="all_zero(net.W1, net.W2)",
    cure={"self.W1 = nn.Parameter(torch.zeros(4, 8))": "self.W1 = nn.Parameter(torch.randn(4, 8))"},
    says="normal_(self.W1, std=0.1)` after `self.W1 = nn.Parameter(torch.zeros(4, 8))`",
)

# ------------------------------------------------------------------------------------------ what steps made of weights
ROWS.fault(
    "a learning rate of ten",
    "update-ratio",
    """
    X, y = torch.randn(64, 10), torch.randn(64, 1)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = optim.SGD(model.parameters(), lr=10)
    # %%
    for step in range(20):
        loss = F.mse_loss(model(X), y)
        opt.zero_grad()
        loss.backward()
        opt.step() #!
    """,
    shows="nans(loss) == 1",
    cure={"lr=10": "lr=0.01"},
    says=("lr=10", "`loss` went from", "learning rate"),
    never=("Draw", "bias"),
)
ROWS.fault(
    "a learning rate that shuts rectifiers",
    "update-ratio",
    """
    X, y = torch.rand(64, 10), torch.randn(64, 1) - 3
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = optim.SGD(model.parameters(), lr=3)
    # %%
    for step in range(20):
        loss = F.mse_loss(model(X), y)
        opt.zero_grad()
        loss.backward()
        opt.step() #!
    """,
    shows="all_zero(model[0].weight.grad)",
    cure={"lr=3": "lr=0.01"},
    says=("lr=3", "learning rate"),
    never=("bias", "leaky_relu"),
)
ROWS.fault(
    "a weight decay of nine",
    "update-ratio",
    """
    X, y = torch.randn(64, 10), torch.randn(64, 1)
    model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    opt = optim.SGD(model.parameters(), lr=0.1, weight_decay=9)
    # %%
    for step in range(60):
        loss = F.mse_loss(model(X), y)
        opt.zero_grad()
        loss.backward()
        opt.step() #!
    """,
    shows="norm(model[0].weight) < 1e-30",
    cure={"weight_decay=9": "weight_decay=1e-4"},
    says=("weight_decay=9", "`model[0].weight`", "weight_decay=0.0001"),
    never=("Draw", "random"),
)
ROWS.fault(
    "a weight decay of nine in Adam",
    "update-ratio",
    """
    X, y = torch.randn(64, 10), torch.randn(64, 1)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    adam = optim.Adam(model.parameters(), lr=0.01, weight_decay=9)
    for step in range(150):
        loss = F.mse_loss(model(X), y)
        adam.zero_grad()
        loss.backward()
        adam.step() #!
    """,
    shows="norm(model[2].weight) < 1e-2",
    cure={"weight_decay=9": "weight_decay=1e-4"},
    says=("`weight_decay=9` of `adam`", "weight_decay=0.0001"),
    never="Draw",
)
ROWS.fault(
    "a weight decay that goes against the loss",
    "update-ratio",
    """
    X = torch.randn(128, 8)
    y = X.sum(1, keepdim=True)
    def made():
        net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
        return net, optim.SGD(net.parameters(), lr=0.1, weight_decay=5)
    net, opt = made()
    for i in range(100):
        opt.zero_grad()
        loss = ((net(X) - y) ** 2).mean()
        loss.backward()
        opt.step() #!
    """,
    shows="norm(net[0].weight) < 1e-3",
    cure={"weight_decay=5": "weight_decay=1e-4"},
    says="weight_decay=5",
    never=("Draw", "Subtract", " in place of "),
)
ROWS.fault(
    "inputs of size 3e4",
    "update-ratio",
    """
    X, y = torch.randn(64, 10), torch.randn(64, 1)
    X = X.mul(3e4)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = optim.SGD(model.parameters(), lr=0.01)
    # %%
    for step in range(20):
        loss = F.mse_loss(model(X), y) #!
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    shows="nans(loss) == 1",
    cure={"X.mul(3e4)": "X.mul(1.0)"},
    says=("`X` has a root mean square of", "Standardise"),
    never=("Draw", "learning rate"),
)
ROWS.fault(
    "inputs that nobody standardised",
    "update-ratio",
    """
    y = torch.randn(64, 1)
    prices = torch.rand(64, 3) * 9e4
    net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
    opt = optim.SGD(net.parameters(), lr=0.01)
    # %%
    for step in range(10):
        opt.zero_grad()
        loss = F.mse_loss(net(prices), y) #!
        loss.backward()
        opt.step()
    """,
    shows="not float(loss) < 1e6",
    cure={"* 9e4": "* 1"},
    says="`prices = (prices - prices.mean()) / prices.std()` after `prices = torch.rand(64, 3) * 9e4`",
)
ROWS.fault(
    "Adam on half weights",
    "underflow",
    """
    X, y = torch.randn(32, 6).half(), torch.randn(32, 1).half()
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1)).half()
    opt = optim.Adam(net.parameters(), lr=1e-3)
    # %%
    for step in range(10):
        loss = ((net(X) - y) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step() #!
    """,
    shows="nans(loss) == 1",
    cure={"lr=1e-3": "lr=1e-3, eps=1e-4"},
    says=("eps=1e-08", "float16", "float32", "eps=0.0001"),
    never=("learning rate", "mask"),
)
ROWS.fault(
    "a recurrence that overflows",
    ("nan-born", "inf-born"),
    """
    x = torch.randn(120, 8, 4)
    W = (torch.randn(16, 16) * 2).requires_grad_()
    U = nn.Linear(4, 16)
    h = torch.zeros(8, 16)
    for t in range(120):
        h = U(x[t]) + h @ W #!
    loss = (h ** 2).mean()
    loss.backward()
    """,
    shows="nans(loss) == 1",
    cure={"(16, 16) * 2)": "(16, 16) * 0.1)"},
    says=("float32", "`W`", "orthogonal"),
    never=("mask", "in float32"),
)

# -------------------------------------------------------------------------------------------------------- class weights
ROWS.fault(
    "class weights that are all zero",
    "nan-born",
    """
    net = nn.Linear(4, 3)
    x, y = torch.randn(20, 4), torch.randint(0, 3, (20,))
    loss = F.cross_entropy(net(x), y, weight=torch.zeros(3)) #!
    loss.backward()
    """,
    shows="nans(loss) == 1",
    cure={"torch.zeros(3)": "torch.ones(3)"},
    says="all 3 weights are 0",
    never="without a target",
)
ROWS.fault(
    "a criterion with class weights of zero",
    "nan-born",
    """
    net = nn.Linear(4, 30)
    counts = torch.zeros(30)
    crit = nn.CrossEntropyLoss(weight=counts)
    x, y = torch.randn(20, 4), torch.randint(0, 30, (20,))
    # %%
    loss = crit(net(x), y) #!
    loss.backward()
    """,
    shows="nans(loss) == 1",
    cure={"torch.zeros(30)": "torch.ones(30)"},
    says="all 30 weights",
    never="without a target",
)
ROWS.fault(
    "labels of the class of weight zero",
    "nan-born",
    """
    net = nn.Linear(4, 3)
    w = torch.tensor([1., 0., 2.])
    x, y = torch.randn(20, 4), torch.full((20,), 1)
    loss = F.cross_entropy(net(x), y, weight=w) #!
    loss.backward()
    """,
    shows="nans(loss) == 1",
    cure={"[1., 0., 2.]": "[1., 1., 2.]"},
    says=("class 1", "weight 0 in `w`"),
)
ROWS.fault(
    "targets that are all ignored",
    "nan-born",
    """
    net = nn.Linear(4, 3)
    x, y = torch.randn(20, 4), torch.full((20,), -100)
    loss = F.cross_entropy(net(x), y) #!
    loss.backward()
    """,
    shows="nans(loss) == 1",
    cure={"-100": "1"},
    says="all of them are ignored",
)

# ---------------------------------------------------------------------------------------------- rows that are masked out
ROWS.fault(
    "a padded sequence of length zero",
    "nan-born",
    """
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.out = nn.Embedding(20, 16), nn.Linear(16, 1)
            self.att = nn.MultiheadAttention(16, 2, batch_first=True)
        def forward(self, t, hide):
            h = self.emb(t)
            a, _ = self.att(h, h, h, key_padding_mask=hide)
            return self.out(h + a).squeeze(-1)
    net = Tagger()
    opt = optim.SGD(net.parameters(), 0.1)
    tokens = torch.randint(1, 20, (8, 6))
    length = torch.tensor([6, 5, 4, 6, 0, 3, 2, 6])
    hide = torch.arange(6)[None] >= length[:, None]
    goal = (tokens % 2).float()
    # %%
    for step in range(5):
        score = net(tokens, hide) #!
        loss = ((score - goal)[~hide] ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    shows="nans(loss) == 1",
    cure={"6, 0, 3": "6, 1, 3"},
    says="row 4 of `hide` masks every key",
    never="learning rate",
)
ROWS.fault(
    "attention whose mask leaves one query nothing",
    "nan-born",
    """
    def attention(q, k, v, mask):
        s = q @ k.T / math.sqrt(q.shape[-1])
        s = s.masked_fill(~mask, float("-inf"))
        return torch.softmax(s, dim=-1) @ v
    proj = nn.Linear(4, 4)
    x = torch.randn(8, 4)
    keep = torch.rand(8, 8) > 0.2
    keep[5] = False
    # %%
    out = attention(proj(x), x, x, keep) #!
    loss = out.pow(2).mean()
    loss.backward()
    """,
    shows="nans(loss) == 1",
    cure={"keep[5] = False": "keep[5] = True"},
    says="row 5 of `keep` masks every key",
)
ROWS.fault(
    "a causal mask that hides the diagonal too",
    "nan-born",
    """
    q = nn.Linear(8, 8)
    x = torch.randn(5, 8)
    bias = torch.full((5, 5), float("-inf")).triu(0)
    out = torch.softmax(q(x) @ x.T + bias, dim=-1) @ x #!
    loss = out.pow(2).mean()
    loss.backward()
    """,
    shows="nans(loss) == 1",
    cure={".triu(0)": ".triu(1)"},
    says="row 0 of `bias` masks every key",
)
ROWS.fault(
    "a model whose matrices a loop fills with zeros",
    "zero-factor",
    """
    X, T = torch.randn(30, 4), torch.randn(30, 1)
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(8))
        def forward(self, x):
            return x * self.weight
    net = nn.Sequential(nn.Linear(4, 8), Scale(), nn.Tanh(), nn.Linear(8, 1))
    for p in net.parameters():
        if p.ndim > 1:
            nn.init.zeros_(p)
    nn.init.zeros_(net[0].bias)
    opt = optim.SGD(net.parameters(), lr=0.1)
    # %%
    for step in range(3):
        loss = ((net(X) - T) ** 2).mean() #!
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    shows="all_zero(net[0].weight, net[3].weight)",
    cure={"if p.ndim > 1:": "if p.ndim > 2:"},
    says=("`net[0].weight`", "at random where it is made"),
    never=(" after ", " in place of "),
)
ROWS.fault(
    "a softmax layer over one output",
    "cancelled",
    """
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), nn.Softmax(dim=1))
    x, y = torch.randn(16, 4), torch.rand(16, 1)
    loss = F.binary_cross_entropy(model(x), y) #!
    loss.backward()
    """,
    shows="all_zero(model[0].weight.grad)",
    cure={"nn.Softmax(dim=1)": "nn.Sigmoid()"},
    says="length 1",
    never="in place of `model(x)`",
)
