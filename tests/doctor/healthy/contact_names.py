"""Parameters and layers that are created late and still trained; layers written by hand."""

from __future__ import annotations

from planting import Table

ROWS = Table()

ROWS.healthy(
    "a scale of the first forward, run before the optimizer is made",
    """
    # %%
    class Scaled(nn.Linear):
        def forward(self, x):
            if not hasattr(self, "scale"):
                self.scale = nn.Parameter(torch.ones(1) * 2)
            return F.linear(x, self.weight * self.scale, self.bias)
    net = nn.Sequential(Scaled(6, 16), nn.ReLU(), Scaled(16, 3))
    x, y = torch.randn(32, 6), torch.randint(0, 3, (32,))
    net(x)
    opt = optim.SGD(net.parameters(), lr=0.05)
    losses = []
    for step in range(6):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        losses.append(float(loss))
    """,
    learns="learning(net.parameters()) and losses[-1] < losses[0]",
)
ROWS.healthy(
    "a group that is added to the optimizer",
    """
    # %%
    body, opt = nn.Linear(5, 8), None
    opt = optim.SGD(body.parameters(), lr=0.1)
    head = nn.Linear(8, 2)
    opt.add_param_group({"params": head.parameters(), "lr": 0.05})
    x, y = torch.randn(32, 5), torch.randint(0, 2, (32,))
    losses = []
    for step in range(6):
        opt.zero_grad()
        loss = F.cross_entropy(head(torch.tanh(body(x))), y)
        loss.backward()
        opt.step()
        losses.append(float(loss))
    """,
    learns="learning([*body.parameters(), *head.parameters()]) and losses[-1] < losses[0]",
)
ROWS.healthy(
    "a loss and an activation that are made in forward",
    """
    # %%
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(5, 8), nn.Linear(8, 2)
        def forward(self, x, y):
            h = nn.Tanh()(self.body(x))
            return nn.CrossEntropyLoss()(self.head(h), y)
    net = Net()
    opt = optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(32, 5), torch.randint(0, 2, (32,))
    losses = []
    for step in range(6):
        opt.zero_grad()
        loss = net(x, y)
        loss.backward()
        opt.step()
        losses.append(float(loss))
    """,
    learns="learning(net.parameters()) and losses[-1] < losses[0]",
)
ROWS.healthy(
    "layers by hand with a running mean",
    """
    class Norm:
        def __init__(self, n):
            self.gamma, self.beta, self.running_mean = torch.ones(n), torch.zeros(n), torch.zeros(n)
        def __call__(self, x):
            mean = x.mean(0, keepdim=True)
            with torch.no_grad():
                self.running_mean = 0.9 * self.running_mean + 0.1 * mean
            return self.gamma * (x - mean) / (x.var(0, keepdim=True) + 1e-5) ** 0.5 + self.beta
        def parameters(self):
            return [self.gamma, self.beta]
    class Linear:
        def __init__(self, a, b):
            self.weight = torch.randn(a, b) / a**0.5
        def __call__(self, x):
            return x @ self.weight
        def parameters(self):
            return [self.weight]
    layers = [Linear(4, 8), Norm(8), Linear(8, 2)]
    parameters = [p for layer in layers for p in layer.parameters()]
    for p in parameters:
        p.requires_grad = True
    # %%
    x, y = torch.randn(64, 4), torch.randint(0, 2, (64,))
    losses = []
    for step in range(6):
        h = x
        for layer in layers:
            h = layer(h)
        loss = F.cross_entropy(h, y)
        for p in parameters:
            p.grad = None
        loss.backward()
        for p in parameters:
            p.data += -0.1 * p.grad
        losses.append(float(loss))
    """,
    learns="learning(parameters) and losses[-1] < losses[0]",
)
