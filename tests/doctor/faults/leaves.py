"""Leaves: rebound, unused, frozen; layers that are not called; optimizers that hold others."""

from __future__ import annotations

from planting import Table

ROWS = Table()

# --------------------------------------------------------------------------------------------------------------- rebound
ROWS.fault(
    "gradient descent that rebinds w",
    "rebound-leaf",
    """
    x = torch.randn(20, 3)
    y = x @ torch.tensor([1., -2., 0.5])
    w = torch.zeros(3, requires_grad=True)
    for i in range(10):
        loss = ((x @ w - y) ** 2).mean()
        loss.backward() #?
        w = w - 0.1 * w.grad #!
    """,
    shows="not w.is_leaf",
    raises="TypeError",
    cure={"w = w - 0.1 * w.grad": "w.data -= 0.1 * w.grad; w.grad.zero_()"},
    says="w",
    never=("retain_grad", "requires_grad_()"),
)
ROWS.fault(
    "a list of updated parameters",
    "rebound-leaf",
    """
    def model(x, params):
        W, b = params
        return x @ W + b

    params = [torch.randn(2, 1, requires_grad=True), torch.zeros(1, requires_grad=True)]
    data, goal = torch.randn(10, 2), torch.randn(10, 1)
    for _ in range(3):
        loss = (model(data, params) - goal).pow(2).mean()
        loss.backward() #?
        params = [p - 0.01 * p.grad for p in params] #!
    """,
    shows="not params[0].is_leaf",
    raises="TypeError",
    cure={"[p - 0.01 * p.grad for p in params]": "[(p - 0.01 * p.grad).detach().requires_grad_() for p in params]"},
    never="retain_grad",
)
ROWS.fault(
    "a small initial value after requires_grad",
    "rebound-leaf",
    """
    X, Y = torch.randn(16, 5), torch.randn(16, 2)
    weights = torch.randn(5, 2, requires_grad=True) * 0.01 #!
    bias = torch.zeros(2, requires_grad=True)
    loss = F.mse_loss(X @ weights + bias, Y)
    loss.backward()
    """,
    shows="not weights.is_leaf and weights.grad is None",
    cure={"torch.randn(5, 2, requires_grad=True) * 0.01": "(torch.randn(5, 2) * 0.01).requires_grad_()"},
    says="weights",
    never="retain_grad",
)
ROWS.fault(
    "a leaf made double",
    "rebound-leaf",
    """
    k = torch.tensor([0.5, 1.5], requires_grad=True)
    k = k.double() #!
    t = torch.linspace(0, 1, 9).double()
    residual = torch.exp(-k[0] * t) * k[1] - 1
    loss = (residual ** 2).sum()
    loss.backward()
    """,
    shows="not k.is_leaf and k.grad is None",
    cure={
        "torch.tensor([0.5, 1.5], requires_grad=True)": "torch.tensor([0.5, 1.5])",
        "k.double()": "k.double().requires_grad_()",
    },
    says="k",
    never="retain_grad",
)
ROWS.fault(
    "a matrix transposed after it was made",
    "rebound-leaf",
    """
    A = torch.rand(4, 2).requires_grad_()
    A = A.t() #!
    (A @ torch.ones(4)).pow(2).sum().backward()
    print(A.grad)
    """,
    shows="not A.is_leaf and A.grad is None",
    cure={"torch.rand(4, 2).requires_grad_()": "torch.rand(4, 2).t().requires_grad_()", "A = A.t()": ""},
    says="A",
    never="retain_grad",
)
ROWS.fault(
    "momentum that rebinds",
    "rebound-leaf",
    """
    p = torch.tensor([4.0, -3.0], requires_grad=True)
    vel = torch.zeros(2)
    def f(p): return (p ** 2 * torch.tensor([1.0, 10.0])).sum()
    for it in range(4):
        f(p).backward() #?
        vel = 0.9 * vel + p.grad
        p = p - 0.01 * vel #!
    """,
    shows="not p.is_leaf",
    raises="TypeError",
    cure={"p = p - 0.01 * vel": "p.data = p.data - 0.01 * vel; p.grad = None"},
    says="p",
    never="retain_grad",
)
ROWS.fault(
    "a leaf that is normalised before each step",
    "rebound-leaf",
    """
    d = torch.randn(3, requires_grad=True)
    opt = optim.SGD([d], lr=0.1)
    M = torch.diag(torch.tensor([3., 2., 1.]))
    for n in range(5):
        d = d / d.norm() #!
        opt.zero_grad()
        value = -(d @ M @ d)
        value.backward(retain_graph=True)
        opt.step()
    """,
    shows="not d.is_leaf",
    raises="RuntimeError",
    cure={"d = d / d.norm()": "e = d / d.norm()", "(d @ M @ d)": "(e @ M @ e)"},
    says="d",
    never="retain_grad",
)

# ---------------------------------------------------------------------------------------------------------------- unused
ROWS.fault(
    "a bias that was forgotten",
    "unused-leaf",
    """
    X = torch.randn(30, 2)
    y = X[:, 0] - X[:, 1] + 4
    w = torch.zeros(2, requires_grad=True)
    b = torch.zeros(1, requires_grad=True)
    pred = X @ w
    loss = ((pred - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    """,
    shows="b.grad is None",
    cure={"pred = X @ w": "pred = X @ w + b"},
    says="b",
)
ROWS.fault(
    "w1 typed twice",
    "unused-leaf",
    """
    x = torch.randn(10, 4)
    w1, w2 = (torch.randn(4, 4, requires_grad=True) for _ in range(2))
    h = torch.tanh(x @ w1)
    out = h @ w1
    loss = out.pow(2).mean()
    loss.backward()
    """,
    shows="w2.grad is None",
    cure={"out = h @ w1": "out = h @ w2"},
    says="w2",
)
ROWS.fault(
    "a result that is overwritten",
    "unused-leaf",
    """
    torch.manual_seed(3)
    u, v = torch.randn(5, requires_grad=True), torch.randn(5, requires_grad=True)
    x = torch.randn(5)
    y = u * x
    y = v * x #!
    y.sum().backward()
    """,
    shows="u.grad is None",
    cure={"y = v * x": "y = y + v * x"},
    says="u",
)
ROWS.fault(
    "a layer that forward does not call",
    "unused-module",
    """
    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(8, 16)
            self.fc2 = nn.Linear(16, 16)
            self.fc3 = nn.Linear(16, 2)

        def forward(self, x):
            x = F.relu(self.fc1(x))
            return self.fc3(x)
    # %%
    model = Classifier()
    opt = optim.Adam(model.parameters())
    X, Y = torch.randn(24, 8), torch.randint(0, 2, (24,))
    loss = F.cross_entropy(model(X), Y)
    loss.backward()
    opt.step()
    """,
    shows="without_gradient(model) == ['fc2.weight', 'fc2.bias']",
    cure={"return self.fc3(x)": "return self.fc3(self.fc2(x))"},
    says="fc2",
)
ROWS.fault(
    "a loop that leaves out the last layer",
    "unused-module",
    """
    class Deep(nn.Module):
        def __init__(self, sizes):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(i, o) for i, o in zip(sizes, sizes[1:])])

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = torch.tanh(layer(x))
            return x

    deep = Deep([3, 8, 8, 8])
    opt = optim.SGD(deep.parameters(), lr=0.1)
    target = torch.zeros(6, 8)
    loss = F.mse_loss(deep(torch.randn(6, 3)), target)
    loss.backward()
    opt.step()
    """,
    shows="without_gradient(deep) == ['layers.2.weight', 'layers.2.bias']",
    cure={"self.layers[:-1]": "self.layers"},
    says="layers[2]",
)
ROWS.fault(
    "a branch that is never taken",
    "unused-module",
    """
    class Gated(nn.Module):
        def __init__(self, wide=False):
            super().__init__()
            self.narrow, self.broad = nn.Linear(4, 4), nn.Linear(4, 4)
            self.wide = wide
        def forward(self, x, use_broad=None):
            return self.broad(x) if use_broad or self.wide else self.narrow(x)

    g = Gated()
    optimizer = optim.SGD(g.parameters(), lr=1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        loss = g(torch.randn(8, 4)).square().mean()
        loss.backward()
        optimizer.step()
    """,
    shows="without_gradient(g) == ['broad.weight', 'broad.bias']",
    cure={
        "Gated()": "Gated(wide=True)",
        "self.narrow, self.broad = nn.Linear(4, 4), nn.Linear(4, 4)": "self.broad = nn.Linear(4, 4)",
    },
    says="broad",
)

# ---------------------------------------------------------------------------------------------------------------- frozen
ROWS.fault(
    "a whole model frozen",
    "frozen",
    """
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    net.requires_grad_(False)
    X = torch.randn(5, 4)
    # %%
    loss = net(X).pow(2).mean() #!
    loss.backward()
    """,
    shows="net[0].weight.grad is None",
    raises="RuntimeError",
    cure={"net.requires_grad_(False)": "net.requires_grad_(True)"},
    says="requires_grad",
)
ROWS.fault(
    "the new head frozen with the rest",
    "frozen",
    """
    backbone = nn.Sequential(nn.Linear(12, 8), nn.ReLU())
    model = nn.Sequential(backbone, nn.Linear(8, 3))
    for param in model.parameters():
        param.requires_grad = False
    opt = optim.SGD(model.parameters(), lr=0.1)
    # %%
    xb, yb = torch.randn(10, 12), torch.randint(0, 3, (10,))
    loss = F.cross_entropy(model(xb), yb) #!
    loss.backward()
    """,
    shows="model[1].weight.grad is None",
    raises="RuntimeError",
    cure={"in model.parameters():": "in backbone.parameters():"},
    says="requires_grad",
)
ROWS.fault(
    "nobody asked for a gradient",
    "frozen",
    """
    w = torch.randn(3)
    x = torch.randn(10, 3)
    loss = (x @ w).pow(2).mean() #!
    loss.backward()
    """,
    shows="w.grad is None",
    raises="RuntimeError",
    cure={"torch.randn(3)": "torch.randn(3, requires_grad=True)"},
    says="w",
)

# ----------------------------------------------------------------------------------------------------- stale optimizers
ROWS.fault(
    "a head replaced after the optimizer was made",
    "stale-optimizer",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(6, 8)
            self.fc = nn.Linear(8, 10)
        def forward(self, x):
            return self.fc(torch.relu(self.body(x)))
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    model.fc = nn.Linear(8, 2)
    before = model.fc.weight.detach().clone()
    # %%
    inputs, labels = torch.randn(16, 6), torch.randint(0, 2, (16,))
    for epoch in range(4):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step() #!
    """,
    shows="close(model.fc.weight, before)",
    cure={
        "optimizer = optim.SGD(model.parameters(), lr=0.1)\nmodel.fc = nn.Linear(8, 2)": "model.fc = nn.Linear(8, 2)\noptimizer = optim.SGD(model.parameters(), lr=0.1)"
    },
    says="fc",
)
ROWS.fault(
    "the model made anew and the optimizer not",
    "stale-optimizer",
    """
    net = nn.Linear(4, 1)
    opt = optim.Adam(net.parameters(), lr=0.01)
    # %%
    net = nn.Linear(4, 1)
    start = net.weight.detach().clone()
    # %%
    X = torch.randn(32, 4)
    T = X.mean(1, keepdim=True)
    for i in range(5):
        opt.zero_grad()
        F.mse_loss(net(X), T).backward()
        opt.step() #!
    """,
    shows="close(net.weight, start)",
    cure={"start = net.weight": "opt = optim.Adam(net.parameters(), lr=0.01); start = net.weight"},
    says="net",
)
ROWS.fault(
    "an optimizer for the decoder alone",
    "stale-optimizer",
    """
    encoder, decoder = nn.Linear(10, 3), nn.Linear(3, 10)
    opt = optim.SGD(decoder.parameters(), lr=0.1)
    init = encoder.weight.detach().clone()
    X = torch.randn(64, 10)
    # %%
    for _ in range(3):
        recon = decoder(torch.tanh(encoder(X)))
        loss = F.mse_loss(recon, X)
        opt.zero_grad()
        loss.backward()
        opt.step() #!
    """,
    shows="close(encoder.weight, init)",
    cure={"optim.SGD(decoder.parameters(), lr=0.1)": "optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)"},
    says="encoder",
)
ROWS.fault(
    "layers in a plain list",
    "stale-optimizer",
    """
    class MLP(nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.inp = nn.Linear(2, 8)
            self.hidden = [nn.Linear(8, 8) for _ in range(depth)]
            self.out = nn.Linear(8, 1)
        def forward(self, x):
            x = torch.tanh(self.inp(x))
            for layer in self.hidden:
                x = torch.tanh(layer(x))
            return self.out(x)
    mlp = MLP(3)
    first = mlp.hidden[0].weight.detach().clone()
    # %%
    opt = optim.SGD(mlp.parameters(), lr=0.5)
    x = torch.randn(20, 2)
    for step in range(4):
        opt.zero_grad()
        loss = F.mse_loss(mlp(x), x[:, :1])
        loss.backward()
        opt.step() #!
    """,
    shows="close(mlp.hidden[0].weight, first)",
    cure={"[nn.Linear(8, 8) for _ in range(depth)]": "nn.ModuleList([nn.Linear(8, 8) for _ in range(depth)])"},
    says="hidden",
)
ROWS.fault(
    "an optimizer of a deep copy",
    "stale-optimizer",
    """
    import copy
    model = nn.Linear(3, 3)
    best = copy.deepcopy(model)
    opt = optim.SGD(best.parameters(), lr=0.1)
    w0 = model.weight.detach().clone()
    # %%
    for t in range(3):
        opt.zero_grad()
        loss = model(torch.ones(4, 3)).pow(2).sum()
        loss.backward()
        opt.step() #!
    """,
    shows="close(model.weight, w0)",
    cure={"best.parameters()": "model.parameters()"},
    says="model",
)
ROWS.fault(
    "a learned temperature that nobody steps",
    "stale-optimizer",
    """
    net = nn.Linear(5, 4)
    temperature = nn.Parameter(torch.ones(1))
    opt = optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(12, 5), torch.randint(0, 4, (12,))
    for _ in range(5):
        opt.zero_grad()
        loss = F.cross_entropy(net(x) / temperature, y)
        loss.backward()
        opt.step() #!
    """,
    shows="temperature.item() == 1",
    cure={"optim.SGD(net.parameters()": "optim.SGD([*net.parameters(), temperature]"},
    says="temperature",
)
