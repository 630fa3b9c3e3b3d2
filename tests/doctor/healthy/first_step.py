"""Healthy programs whose first backward call looks like a wrong initialisation: large logits or closed gates on purpose, loaded
weights, and the usual initialisations."""

from __future__ import annotations

from planting import Table

ROWS = Table()

LOOP = """
    losses = []
    for step in range({steps}):
        opt.zero_grad()
        loss = {loss}
        loss.backward()
        opt.step()
        losses.append(loss.item())
"""


def train(start: str, loss: str, steps: int = 3) -> str:
    return start + LOOP.format(loss=loss, steps=steps)


ROWS.healthy(
    "a character model with scaled layers",
    """
    g = torch.Generator().manual_seed(1)
    X, Y = torch.randint(0, 27, (64, 3)), torch.randint(0, 27, (64,))
    C = torch.randn((27, 10), generator=g)
    W1 = torch.randn((30, 200), generator=g) * (5 / 3) / 30**0.5
    b1 = torch.randn(200, generator=g) * 0.01
    W2 = torch.randn((200, 27), generator=g) * 0.01
    b2 = torch.zeros(27)
    parameters = [C, W1, b1, W2, b2]
    for p in parameters:
        p.requires_grad = True
    losses = []
    for step in range(3):
        h = torch.tanh(C[X].view(-1, 30) @ W1 + b1)
        loss = F.cross_entropy(h @ W2 + b2, Y)
        for p in parameters:
            p.grad = None
        loss.backward()
        for p in parameters:
            p.data += -0.1 * p.grad
        losses.append(loss.item())
    """,
    learns="losses[-1] < losses[0] < 3.4",
)
for kind, layer in {"ReLU": "nn.ReLU()", "Tanh": "nn.Tanh()", "Sigmoid": "nn.Sigmoid()", "Hardtanh": "nn.Hardtanh()"}.items():
    ROWS.healthy(
        f"four layers of {kind} with the usual initialisation",
        train(
            f"""
    layers = [part for _ in range(4) for part in (nn.Linear(64, 64), {layer})]
    net = nn.Sequential(*layers, nn.Linear(64, 10))
    opt = optim.Adam(net.parameters(), lr=1e-3)
    x, y = torch.randn(64, 64), torch.randint(0, 10, (64,))""",
            "F.cross_entropy(net(x), y)",
        ),
        learns="abs(losses[0] - math.log(10)) < 0.2",
    )
ROWS.healthy(
    "hardtanh after a batch normalisation",
    train(
        """
    net = nn.Sequential(nn.Linear(20, 64, bias=False), nn.BatchNorm1d(64), nn.Hardtanh(), nn.Linear(64, 4))
    opt = optim.SGD(net.parameters(), lr=0.01)
    x, y = torch.randn(64, 20), torch.randint(0, 4, (64,))""",
        "F.cross_entropy(net(x), y)",
    ),
    learns="losses[-1] < losses[0]",
)
ROWS.healthy(
    "units of two layers of which a half is inactive",
    train(
        """
    net = nn.Sequential(nn.Linear(1, 20), nn.ReLU(), nn.Linear(20, 1))
    opt = optim.SGD(net.parameters(), lr=0.01)
    x = torch.linspace(4.9, 5.1, 64).reshape(-1, 1)
    y = x.sin()""",
        "F.mse_loss(net(x), y)",
    ),
    learns="losses[-1] < losses[0]",
)
ROWS.healthy(
    "an angular margin with a scale of 30",
    train(
        """
    net, W = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 8)), nn.Parameter(torch.randn(20, 8))
    opt = optim.SGD([*net.parameters(), W], lr=0.01)
    x, y = torch.randn(64, 16), torch.randint(0, 20, (64,))
    def loss_of(x, y, scale=30.0, margin=0.3):
        cosine = F.normalize(net(x), dim=1) @ F.normalize(W, dim=1).T
        return F.cross_entropy(scale * (cosine - margin * F.one_hot(y, 20)), y)""",
        "loss_of(x, y)",
    ),
    learns="losses[0] > 8",
)
ROWS.healthy(
    "pairs of images and texts with a learnt temperature",
    train(
        """
    image, text, scale = nn.Linear(16, 32), nn.Linear(12, 32), nn.Parameter(torch.tensor(math.log(1 / 0.01)))
    opt = optim.Adam([*image.parameters(), *text.parameters(), scale], lr=1e-3)
    x, t = torch.randn(24, 16), torch.randn(24, 12)
    def loss_of():
        a, b = F.normalize(image(x), dim=1), F.normalize(text(t), dim=1)
        logits = scale.exp() * a @ b.T
        return (F.cross_entropy(logits, torch.arange(24)) + F.cross_entropy(logits.T, torch.arange(24))) / 2""",
        "loss_of()",
    ),
    learns="losses[0] > 6",
)
ROWS.healthy(
    "a contrastive loss with a temperature",
    train(
        """
    net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 16))
    opt = optim.Adam(net.parameters(), lr=1e-3)
    x = torch.randn(16, 10)
    def loss_of():
        a, b = (F.normalize(net(x + 0.1 * torch.randn(16, 10)), dim=1) for _ in range(2))
        return F.cross_entropy(a @ b.T / 0.07, torch.arange(16))""",
        "loss_of()",
    ),
    learns="losses[0] > 0",
)
ROWS.healthy(
    "a model whose weights are loaded",
    """
    def make():
        return nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 5))
    trained = make()
    trained[2].weight.data *= 100
    # %%
    net = make()
    net.load_state_dict(trained.state_dict())
    opt = optim.SGD(net.parameters(), lr=1e-3)
    x, y = torch.randn(64, 8), torch.randint(0, 5, (64,))
    losses = []
    for step in range(3):
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    """,
    learns="losses[0] > 4",
)
ROWS.healthy(
    "a later cell of a training, and a class that comes anew",
    """
    net = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 4))
    opt = optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(64, 6) * 2, torch.randint(0, 3, (64,))
    # %% grad
    for step in range(30):
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
    # %%
    opt.zero_grad()
    loss = F.cross_entropy(40 * net(x), torch.full((64,), 3))
    loss.backward()
    opt.step()
    """,
    learns="float(loss) > 10",
)
ROWS.healthy(
    "gates by hand that start closed or open",
    train(
        """
    Wx, Wh, b = torch.randn(8, 128) * 0.1, torch.randn(32, 128) * 0.1, torch.zeros(128)
    b[:32], b[32:64] = -4.0, 4.0
    out = nn.Linear(32, 3)
    for p in (Wx, Wh, b):
        p.requires_grad = True
    opt = optim.Adam([Wx, Wh, b, *out.parameters()], lr=1e-2)
    xs, y = torch.randn(5, 32, 8), torch.randint(0, 3, (32,))
    def run():
        h = c = torch.zeros(32, 32)
        for x in xs:
            i, f, g, o = (x @ Wx + h @ Wh + b).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return out(h)""",
        "F.cross_entropy(run(), y)",
    ),
    learns="losses[-1] < losses[0]",
)
ROWS.healthy(
    "a highway layer, whose gate starts closed",
    train(
        """
    body, gate, head = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 3)
    nn.init.constant_(gate.bias, -4.0)
    opt = optim.Adam([*body.parameters(), *gate.parameters(), *head.parameters()], lr=1e-2)
    x, y = torch.randn(64, 16), torch.randint(0, 3, (64,))
    def run():
        g = torch.sigmoid(gate(x))
        return head(g * torch.relu(body(x)) + (1 - g) * x)""",
        "F.cross_entropy(run(), y)",
    ),
    learns="losses[-1] < losses[0]",
)
ROWS.healthy(
    "an autoencoder of nearly binary pixels",
    train(
        """
    net = nn.Sequential(nn.Linear(40, 16), nn.ReLU(), nn.Linear(16, 40))
    nn.init.constant_(net[2].bias, -4.0)
    opt = optim.Adam(net.parameters(), lr=1e-2)
    x = (torch.rand(64, 40) > 0.97).float()""",
        "F.binary_cross_entropy(torch.sigmoid(net(x)), x)",
    ),
    learns="losses[-1] < losses[0]",
)
ROWS.healthy(
    "rare classes with weights that sum to many",
    train(
        """
    net = nn.Linear(6, 2)
    opt = optim.SGD(net.parameters(), lr=0.001)
    x, y = torch.randn(64, 6), (torch.rand(64) < 0.2).float()""",
        "F.binary_cross_entropy_with_logits(net(x)[:, 0], y, pos_weight=torch.tensor(20.0))",
    ),
    learns="losses[0] > 1",
)
ROWS.healthy(
    "a sum of cross entropies",
    train(
        """
    net = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Linear(32, 7))
    opt = optim.Adam(net.parameters(), lr=1e-3)
    x, y = torch.randn(64, 10), torch.randint(0, 7, (64,))""",
        "F.cross_entropy(net(x), y, reduction='sum') + F.cross_entropy(net(x), y, label_smoothing=0.2)",
    ),
    learns="losses[0] > 100",
)
ROWS.healthy(
    "a policy with advantages that are not normalised",
    train(
        """
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
    opt = optim.Adam(policy.parameters(), lr=1e-3)
    x, a, returns = torch.randn(64, 4), torch.randint(0, 3, (64,)), torch.rand(64) * 50""",
        "-(F.log_softmax(policy(x), 1)[torch.arange(64), a] * returns).mean()",
    ),
    learns="losses[0] > 10",
)
ROWS.healthy(
    "one backward call on large numbers",
    """
    x, y = torch.randn(64, 12) * 500, torch.randint(0, 6, (64,))
    lin = nn.Linear(12, 6)
    loss = F.cross_entropy(lin(x), y)
    loss.backward()
    """,
    learns="float(loss) > 50",
)
ROWS.healthy(
    "an actor with a tanh at its output, and its critic",
    """
    actor = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 2), nn.Tanh())
    critic = nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, 1))
    a_opt, c_opt = optim.Adam(actor.parameters(), lr=1e-3), optim.Adam(critic.parameters(), lr=1e-3)
    s, a, r = torch.randn(64, 3), torch.rand(64, 2) * 2 - 1, torch.randn(64, 1)
    losses = []
    for step in range(3):
        loss = F.mse_loss(critic(torch.cat([s, a], 1)), r)
        c_opt.zero_grad()
        loss.backward()
        c_opt.step()
        a_opt.zero_grad()
        (-critic(torch.cat([s, actor(s)], 1)).mean()).backward()
        a_opt.step()
        losses.append(loss.item())
    """,
    learns="losses[-1] < losses[0]",
)
