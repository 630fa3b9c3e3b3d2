"""The wrong thing learns: weights that are created in every step, turned signs, outputs out of reach, a policy that trains its critic."""

from __future__ import annotations

from planting import Table

ROWS = Table()

# ------------------------------------------------------------------------------------------------- created in every step
ROWS.fault(
    "a Parameter created in forward",
    "stale-optimizer",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(6, 8)
        def forward(self, x):
            w = nn.Parameter(torch.randn(8, 3) / 3) #!
            return torch.tanh(self.body(x)) @ w
    net = Net()
    opt = optim.Adam(net.parameters(), lr=1e-2)
    x, y = torch.randn(24, 6), torch.randint(0, 3, (24,))
    # %%
    for step in range(4):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
    """,
    shows="len(list(net.parameters())) == 2",
    cure={
        "self.body = nn.Linear(6, 8)": "self.body, self.w = nn.Linear(6, 8), nn.Parameter(torch.randn(8, 3) / 3)",
        "        w = nn.Parameter(torch.randn(8, 3) / 3)": "        w = self.w",
    },
    says=("new tensor at every call of `forward`", "__init__"),
)
ROWS.fault(
    "an embedding matrix drawn in forward",
    "stale-optimizer",
    """
    class Bag(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(5, 2)
        def forward(self, words):
            table = torch.randn(10, 5, requires_grad=True) #!
            return self.out(F.embedding(words, table).mean(1))
    bag = Bag()
    opt = optim.SGD(bag.parameters(), lr=0.1)
    words, y = torch.randint(0, 10, (20, 4)), torch.randint(0, 2, (20,))
    # %%
    for step in range(4):
        loss = F.cross_entropy(bag(words), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    shows="len(list(bag.parameters())) == 2",
    cure={
        "self.out = nn.Linear(5, 2)": "self.out, self.table = nn.Linear(5, 2), nn.Parameter(torch.randn(10, 5))",
        "        table = torch.randn(10, 5, requires_grad=True)": "        table = self.table",
    },
    says="`table` is initialised again",
)
ROWS.fault(
    "weights and bias of a head in a helper",
    "stale-optimizer",
    """
    def head(h):
        W = nn.Parameter(torch.randn(3, 6) / 3) #!
        b = nn.Parameter(torch.zeros(3)) #?
        return F.linear(h, W, b)
    body = nn.Linear(4, 6)
    opt = optim.SGD(body.parameters(), lr=0.1)
    x, y = torch.randn(20, 4), torch.randint(0, 3, (20,))
    # %%
    def train():
        for step in range(4):
            loss = F.cross_entropy(head(torch.relu(body(x))), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    train()
    """,
    shows="len(opt.param_groups[0]['params']) == 2",
    cure={
        "def head(h):\n    W = nn.Parameter(torch.randn(3, 6) / 3) #!\n    b": "W = nn.Parameter(torch.randn(3, 6) / 3)\nb",
        "#?\n    return": "#?\ndef head(h):\n    return",
        "SGD(body.parameters()": "SGD([*body.parameters(), W, b]",
    },
    says="at every call of `head`",
)
ROWS.fault(
    "a matrix drawn in the loop, steps by hand",
    "stale-optimizer",
    """
    A = (torch.randn(5, 6) / 2).requires_grad_()
    x, y = torch.randn(24, 5), torch.randn(24, 2)
    # %%
    for step in range(4):
        B = (torch.randn(6, 2) / 2).requires_grad_() #!
        loss = ((torch.tanh(x @ A) @ B - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            A -= 0.1 * A.grad
            A.grad = None
    """,
    shows="B.grad is not None",
    cure={
        "# %%": "B = (torch.randn(6, 2) / 2).requires_grad_()\n# %%",
        "    B = (torch.randn(6, 2) / 2).requires_grad_() #!\n": "",
        "        A.grad = None": "        B -= 0.1 * B.grad\n        A.grad = B.grad = None",
    },
    says=("in each iteration", "no step changes it"),
)
ROWS.fault(
    "a tensor that forward assigns to self",
    "stale-optimizer",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(6, 8)
        def forward(self, x):
            self.w = torch.randn(8, 3, requires_grad=True) #!
            return torch.tanh(self.body(x)) @ self.w
    net = Net()
    opt = optim.Adam(net.parameters(), lr=1e-2)
    x, y = torch.randn(24, 6), torch.randint(0, 3, (24,))
    # %%
    for step in range(4):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
    """,
    shows="len(list(net.parameters())) == 2",
    cure={
        "self.body = nn.Linear(6, 8)": "self.body, self.w = nn.Linear(6, 8), nn.Parameter(torch.randn(8, 3))",
        "        self.w = torch.randn(8, 3, requires_grad=True) #!\n": "",
    },
    says="use `self.w` in `forward`",
)
ROWS.fault(
    "a Parameter where it is used",
    "stale-optimizer",
    """
    body = nn.Linear(6, 8)
    opt = optim.SGD(body.parameters(), lr=0.1)
    x, y = torch.randn(24, 6), torch.randn(24, 2)
    # %%
    def model(x):
        return torch.tanh(body(x)) @ nn.Parameter(torch.randn(8, 2)) #!
    for step in range(4):
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    shows="len(opt.param_groups[0]['params']) == 2",
    cure={
        "body = nn.Linear(6, 8)": "body, w = nn.Linear(6, 8), nn.Parameter(torch.randn(8, 2))",
        "SGD(body.parameters()": "SGD([*body.parameters(), w]",
        "@ nn.Parameter(torch.randn(8, 2))": "@ w",
    },
    says="at every call of `model`",
)
ROWS.fault(
    "a layer created in the loop",
    "stale-optimizer",
    """
    body = nn.Linear(5, 6)
    opt = optim.Adam(body.parameters(), lr=1e-2)
    x, y = torch.randn(24, 5), torch.randint(0, 3, (24,))
    # %%
    for step in range(4):
        head = nn.Linear(6, 3).to("cpu") #!
        loss = F.cross_entropy(head(torch.relu(body(x))), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    shows="len(opt.param_groups[0]['params']) == 2",
    cure={
        "opt = optim.Adam(body.parameters()": "head = nn.Linear(6, 3)\nopt = optim.Adam([*body.parameters(), *head.parameters()]",
        '    head = nn.Linear(6, 3).to("cpu") #!\n': "",
    },
    says=("creates a new `head` in each iteration", "before the loop"),
)
ROWS.fault(
    "the model created in the loop, after its optimizer",
    "stale-optimizer",
    """
    net = nn.Linear(5, 3)
    opt = optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(24, 5), torch.randint(0, 3, (24,))
    # %%
    for step in range(4):
        net = nn.Linear(5, 3) #!
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    shows="net.weight is not opt.param_groups[0]['params'][0]",
    cure={"    net = nn.Linear(5, 3) #!\n": ""},
    says="The optimizer holds the parameters of an earlier one",
)

# ---------------------------------------------------------------------------------------------------------- turned signs
ROWS.fault(
    "minus a cross-entropy, random batches",
    "ascent",
    """
    net = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 3))
    X, Y = torch.randn(96, 8), torch.randint(0, 3, (96,))
    opt = optim.Adam(net.parameters(), lr=1e-3)
    # %%
    for step in range(5):
        i = torch.randint(0, 96, (16,))
        opt.zero_grad()
        loss = -F.cross_entropy(net(X[i]), Y[i]) #!
        loss.backward()
        opt.step()
    """,
    shows="loss.item() < 0",
    cure={"-F.cross": "F.cross"},
    says=("`loss` has the wrong sign", "`loss = F.cross_entropy(net(X[i]), Y[i])`"),
)
ROWS.fault(
    "backward of minus the loss",
    "ascent",
    """
    net = nn.Linear(6, 1)
    X, Y = torch.randn(96, 6), torch.randn(96, 1)
    opt = optim.SGD(net.parameters(), lr=1e-3)
    # %%
    for step in range(5):
        i = torch.randint(0, 96, (16,))
        opt.zero_grad()
        error = F.mse_loss(net(X[i]), Y[i])
        (-error).backward() #!
        opt.step()
    """,
    shows="F.mse_loss(net(X[i]), Y[i]).item() > error.item()",
    cure={"(-error)": "error"},
    says="`error.backward()` in place of `(-error).backward()`",
)
ROWS.fault(
    "a squared error by hand with a minus",
    "ascent",
    """
    w = torch.zeros(4, requires_grad=True)
    X = torch.randn(96, 4)
    Y = X @ torch.tensor([1., 2., -1., 0.5])
    # %%
    for step in range(5):
        i = torch.randint(0, 96, (16,))
        loss = -((X[i] @ w - Y[i]) ** 2).mean() #!
        loss.backward()
        with torch.no_grad():
            w -= 0.01 * w.grad
            w.grad = None
    """,
    shows="loss.item() < 0",
    cure={"-((X": "((X"},
    says="the updates went against its gradient",
)
ROWS.fault(
    "a log-likelihood without its minus, random batches",
    "ascent",
    """
    net = nn.Linear(6, 3)
    X, Y = torch.randn(96, 6), torch.randint(0, 3, (96,))
    opt = optim.SGD(net.parameters(), lr=0.01)
    # %%
    for step in range(5):
        i = torch.randint(0, 96, (16,))
        logp = F.log_softmax(net(X[i]), 1)
        loss = logp[torch.arange(16), Y[i]].mean() #!
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    shows="loss.item() < 0",
    cure={"loss = logp": "loss = -logp"},
    says="no lower bound",
)
ROWS.fault(
    "a loss function that returns minus one times the loss",
    "ascent",
    """
    net = nn.Linear(6, 1)
    X, Y = torch.randn(96, 6), (torch.randn(96, 1) > 0).float()
    opt = optim.SGD(net.parameters(), lr=0.01)
    # %%
    def criterion(z, t):
        return -1 * F.binary_cross_entropy_with_logits(z, t) #!
    for step in range(5):
        i = torch.randint(0, 96, (16,))
        loss = criterion(net(X[i]), Y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    shows="loss.item() < 0",
    cure={"-1 * F": "F"},
    says="`return F.binary_cross_entropy_with_logits(z, t)`",
)

# --------------------------------------------------------------------------------------------------------- limited outputs
ROWS.fault(
    "a sigmoid for targets up to 5",
    "limited-output",
    """
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())
    X, Y = torch.randn(48, 4), 5 * torch.rand(48, 1)
    # %%
    loss = F.mse_loss(net(X), Y) #!
    loss.backward()
    """,
    shows="net(20 * X).max().item() <= 1 < Y.max().item()",
    cure={"nn.Linear(8, 1), nn.Sigmoid()": "nn.Linear(8, 1)"},
    says=("between 0 and 1", "scale the targets"),
)
ROWS.fault(
    "a tanh for large targets, by hand",
    "limited-output",
    """
    w = torch.randn(4, requires_grad=True)
    X, Y = torch.randn(48, 4), 4 * torch.randn(48)
    # %%
    pred = torch.tanh(X @ w)
    loss = ((pred - Y) ** 2).mean() #!
    loss.backward()
    """,
    shows="abs(pred).max().item() <= 1 < abs(Y).max().item()",
    cure={"torch.tanh(X @ w)": "X @ w"},
    says=("between -1 and 1", "`X @ w` in place of `torch.tanh(X @ w)`"),
)
ROWS.fault(
    "a ReLU for standardised targets",
    "limited-output",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 1)
        def forward(self, x):
            return torch.relu(self.b(torch.relu(self.a(x))))
    net = Net()
    X, Y = torch.randn(48, 4), torch.randn(48, 1)
    # %%
    loss = F.smooth_l1_loss(net(X), Y) #!
    loss.backward()
    """,
    shows="net(9 * X).min().item() >= 0 > Y.min().item()",
    cure={"torch.relu(self.b(torch.relu(self.a(x))))": "self.b(torch.relu(self.a(x)))"},
    says="below 0 cannot be reached",
)
ROWS.fault(
    "softplus for targets of both signs",
    "limited-output",
    """
    net = nn.Linear(4, 1)
    X, Y = torch.randn(48, 4), torch.randn(48, 1)
    # %%
    loss = F.l1_loss(F.softplus(net(X)), Y) #!
    loss.backward()
    """,
    shows="close(loss, abs(F.softplus(net(X)) - Y).mean())",
    cure={"F.softplus(net(X))": "net(X)"},
    says="at least 0",
)
ROWS.fault(
    "a ReLU before the binary cross-entropy of logits",
    "limited-output",
    """
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), nn.ReLU())
    X, Y = torch.randn(48, 4), (torch.randn(48, 1) > 0).float()
    # %%
    loss = F.binary_cross_entropy_with_logits(net(X), Y) #!
    loss.backward()
    """,
    shows="torch.sigmoid(net(X)).min().item() >= 0.5",
    cure={"nn.Linear(8, 1), nn.ReLU()": "nn.Linear(8, 1)"},
    says="no probability can be below 0.5",
)

# ---------------------------------------------------------------------------------------------------------- weights of targets
ROWS.fault(
    "class weights of 0, summed",
    "zero-factor",
    """
    net = nn.Linear(4, 3)
    X, Y = torch.randn(48, 4), torch.randint(0, 3, (48,))
    weights = torch.zeros(3)
    # %%
    loss = F.cross_entropy(net(X), Y, weight=weights, reduction="sum") #!
    loss.backward()
    """,
    shows="loss.item() == 0 and all_zero(net.weight.grad)",
    cure={"torch.zeros(3)": "torch.ones(3)"},
    says=("all 3 weights of `weights` are 0", "`net.weight`"),
)
ROWS.fault(
    "weights of a binary cross-entropy that are all 0",
    "zero-factor",
    """
    net = nn.Linear(4, 1)
    X, Y = torch.randn(24, 4), (torch.randn(24, 1) > 0).float()
    w = torch.zeros(24, 1)
    # %%
    loss = F.binary_cross_entropy_with_logits(net(X), Y, weight=w) #!
    loss.backward()
    """,
    shows="loss.item() == 0 and all_zero(net.weight.grad)",
    cure={"torch.zeros(24, 1)": "torch.ones(24, 1)"},
    says="all 24 weights of `w` are 0",
)

# --------------------------------------------------------------------------------------------------------------- advantages
ROWS.fault(
    "an advantage that is not detached, two networks",
    "undetached-advantage",
    """
    actor = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    critic = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    opt_a, opt_c = optim.Adam(actor.parameters(), lr=1e-4), optim.Adam(critic.parameters(), lr=1e-4)
    # %%
    for step in range(4):
        s = torch.randn(16, 4)
        logp = F.log_softmax(actor(s), 1)
        act = torch.multinomial(logp.detach().exp(), 1)
        reward = (act == 0).float().squeeze(1)
        value = critic(s).squeeze(1)
        gain = reward - value
        policy_loss = -(logp.gather(1, act).squeeze(1) * gain).mean() #!
        value_loss = F.mse_loss(value, reward)
        opt_a.zero_grad(); opt_c.zero_grad()
        (policy_loss + value_loss).backward()
        opt_a.step(); opt_c.step()
    """,
    shows="not close(critic[2].bias.grad, 2 * (critic(s).squeeze(1) - reward).mean(), rtol=0.05)",
    cure={".squeeze(1) * gain)": ".squeeze(1) * gain.detach())"},
    says=("also trains `critic`", "`gain.detach()` in place of `gain`", "`F.mse_loss(value, reward)`"),
)
ROWS.fault(
    "an advantage that both losses use, one body",
    "undetached-advantage",
    """
    class AC(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.pi, self.v = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 1)
        def forward(self, s):
            h = torch.tanh(self.body(s))
            return self.pi(h), self.v(h)
    net = AC()
    opt = optim.Adam(net.parameters(), lr=1e-4)
    # %%
    for step in range(3):
        s, G, a = torch.randn(16, 4), torch.randn(16, 1), torch.randint(0, 3, (16, 1))
        logits, v = net(s)
        adv = G - v
        log_prob = logits.log_softmax(-1).gather(1, a)
        loss = (-log_prob * adv).mean() + 0.5 * adv.pow(2).mean() #!
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    shows="not close(net.v.bias.grad, (net(s)[1] - G).mean(), rtol=0.05)",
    cure={"-log_prob * adv)": "-log_prob * adv.detach())"},
    says="`net.v`",
)
ROWS.fault(
    "the ratio of PPO times an advantage with history",
    "undetached-advantage",
    """
    pi, v = nn.Linear(4, 3), nn.Linear(4, 1)
    opt = optim.Adam([*pi.parameters(), *v.parameters()], lr=1e-4)
    s, a, G = torch.randn(16, 4), torch.randint(0, 3, (16, 1)), torch.randn(16, 1)
    old = F.log_softmax(pi(s), 1).gather(1, a).detach()
    # %%
    for step in range(3):
        ratio = (F.log_softmax(pi(s), 1).gather(1, a) - old).exp()
        val = v(s)
        adv = G - val
        surrogate = torch.minimum(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean() #!
        loss = F.mse_loss(val, G) - surrogate
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    shows="not close(v.bias.grad, 2 * (v(s) - G).mean(), rtol=0.05)",
    cure={"adv = G - val": "adv = (G - val).detach()"},
    says="also trains `v`",
)
ROWS.fault(
    "two losses, each with its backward",
    "undetached-advantage",
    """
    actor, critic = nn.Linear(4, 3), nn.Linear(4, 1)
    opt = optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-4)
    # %%
    for step in range(3):
        s, G, a = torch.randn(16, 4), torch.randn(16, 1), torch.randint(0, 3, (16, 1))
        adv = G - critic(s)
        opt.zero_grad()
        critic_loss = adv.pow(2).mean()
        critic_loss.backward(retain_graph=True)
        actor_loss = -(F.log_softmax(actor(s), 1).gather(1, a) * adv).mean() #!
        actor_loss.backward()
        opt.step()
    """,
    shows="not close(critic.bias.grad, 2 * (critic(s) - G).mean(), rtol=0.05)",
    cure={"gather(1, a) * adv)": "gather(1, a) * adv.detach())"},
    says="a loss of its own",
)
