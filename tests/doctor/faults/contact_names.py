"""Parameters that forward creates after the optimizer was made or in each call; layers written by hand, in lists."""

from __future__ import annotations

from planting import Table

ROWS = Table()

ROWS.fault(
    "a scale that is created in the first forward",
    "stale-optimizer",
    """
    # %%
    class Scaled(nn.Linear):
        def forward(self, x):
            if not hasattr(self, "scale"):
                self.scale = nn.Parameter(self.weight.detach().abs().mean() * 2) #!
            return F.linear(x, self.weight * self.scale, self.bias)
    net = nn.Sequential(Scaled(6, 16), nn.ReLU(), Scaled(16, 3))
    opt = optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.05)
    x, y = torch.randn(32, 6), torch.randint(0, 3, (32,))
    first = net[0].weight.detach().abs().mean() * 2
    for step in range(6):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step() #?
    """,
    shows="close(net[0].scale, first)",
    cure={"opt = optim": "net(torch.zeros(1, 6))\nopt = optim"},
    says=("net[0].scale", "net[2].scale", "forward", "opt"),
    never=("parameters()",),
)
ROWS.fault(
    "a head whose width is taken from the first batch",
    "stale-optimizer",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(5, 8)
            self.head = None
        def grow(self, h):
            setattr(self, "head", nn.Linear(h.shape[1], 2))
        def forward(self, x):
            h = torch.tanh(self.body(x))
            if self.head is None:
                self.grow(h)
            return self.head(h)
    # %%
    model = Net()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    x, y = torch.randn(32, 5), torch.randint(0, 2, (32,))
    losses = []
    for step in range(6):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step() #!
        losses.append(model.head.weight.detach().clone())
    """,
    shows="close(losses[0], losses[-1])",
    cure={"optimizer = optim": "model(torch.zeros(1, 5))\noptimizer = optim"},
    says=("model.head.weight", "grow", "optimizer"),
)
ROWS.fault(
    "a factor that is created at every call",
    "stale-optimizer",
    """
    # %%
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(4, 3)
        def forward(self, x):
            self.factor = nn.Parameter(torch.full((3,), 0.5)) #!
            return self.body(x) * self.factor
    model = Net()
    opt = optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(32, 4), torch.randint(0, 3, (32,))
    for step in range(5):
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step() #?
    """,
    shows="close(model.factor, torch.full((3,), 0.5))",
    cure={
        "self.body = nn.Linear(4, 3)": "self.body = nn.Linear(4, 3); self.factor = nn.Parameter(torch.full((3,), 0.5))",
        "        self.factor = nn.Parameter(torch.full((3,), 0.5)) #!\n": "",
    },
    says=("model.factor", "every call"),
)
ROWS.fault(
    "a layer that is drawn in forward",
    "stale-optimizer",
    """
    # %%
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(6, 16)
        def forward(self, x):
            head = nn.Linear(16, 3) #!
            return head(torch.relu(self.body(x)))
    net = Net()
    opt = optim.Adam(net.parameters(), lr=0.01)
    x, y = torch.randn(32, 6), torch.randint(0, 3, (32,))
    for step in range(5):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
    first, second = net(x), net(x)
    """,
    shows="not close(first, second)",
    cure={
        "self.body = nn.Linear(6, 16)": "self.body = nn.Linear(6, 16); self.head = nn.Linear(16, 3)",
        "        head = nn.Linear(16, 3) #!\n": "",
        "return head(": "return self.head(",
    },
    says=("nn.Linear(16, 3)", "forward"),
)
ROWS.fault(
    "a layer that a helper of another cell draws at each step",
    "stale-optimizer",
    """
    body = nn.Linear(6, 16)
    def predict(x):
        h = torch.relu(body(x))
        return nn.Linear(16, 3)(h)
    # %%
    opt = optim.SGD(body.parameters(), lr=0.1)
    x, y = torch.randn(32, 6), torch.randint(0, 3, (32,))
    for step in range(5):
        opt.zero_grad()
        loss = F.cross_entropy(predict(x), y)
        loss.backward()
        opt.step()
    first, second = predict(x), predict(x)
    """,
    shows="not close(first, second)",
    cure={
        "    return nn.Linear(16, 3)(h)": "    return head(h)",
        "body = nn": "head = nn.Linear(16, 3)\nbody = nn",
        "optim.SGD(body.parameters()": "optim.SGD([*body.parameters(), *head.parameters()]",
    },
    says=("nn.Linear(16, 3)", "predict"),
)
ROWS.fault(
    "layers by hand, of which nothing clears the gradients",
    "accumulated",
    """
    class Layer:
        def __init__(self, a, b):
            self.weight = torch.randn(a, b) / a**0.5
            self.bias = torch.zeros(b)
        def __call__(self, x):
            return torch.tanh(x @ self.weight + self.bias)
    layers = [Layer(4, 8), Layer(8, 2)]
    parameters = [p for layer in layers for p in (layer.weight, layer.bias)]
    for p in parameters:
        p.requires_grad = True
    # %%
    x, y = torch.randn(32, 4), torch.randint(0, 2, (32,))
    for step in range(5):
        h = x
        for layer in layers:
            h = layer(h)
        loss = F.cross_entropy(h, y)
        kept = layers[0].weight.grad is not None
        loss.backward() #!
        for p in parameters:
            p.data -= 0.05 * p.grad
    """,
    shows="kept",
    cure={"        p.data -= 0.05 * p.grad": "        p.data -= 0.05 * p.grad\n        p.grad = None"},
    says=("layers[1].bias", "layers[0].weight"),
    never=("parameters[", "layer.", "p.grad"),
)
