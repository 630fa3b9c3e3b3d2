"""Frozen parts that do not change, or change on purpose."""

from __future__ import annotations

from planting import Table

ROWS = Table()

# -------------------------------------------------------------------------------------------- statistics that do not move
PRETRAINED = """
    x, y = torch.randn(64, 5), torch.randint(0, 3, (64,))
    body = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU())
    with torch.no_grad():
        for step in range(30):
            body(x)
    body.requires_grad_(False)
    model = nn.Sequential(body, nn.Linear(8, 3))
    opt = optim.SGD(model[1].parameters(), lr=0.05)
    # %%
    model.train()
    for step in range(6):
        loss = F.cross_entropy(model(2 * x - 1), y)
        opt.zero_grad(); loss.backward(); opt.step()
"""


def add_pretrained(name: str, changes: dict[str, str], learns: str = "learning(model[1].parameters())") -> None:
    """Add the training of a head on a frozen body, with replaced pieces."""
    text = PRETRAINED
    for old, new in changes.items():
        assert text.count(old) == 1, (name, old)
        text = text.replace(old, new)
    ROWS.healthy(name, text, learns=learns)


add_pretrained("a frozen body in evaluation mode", {"model.train()": "model.train(); body.eval()"})
add_pretrained("a frozen norm without running statistics", {"nn.BatchNorm1d(8)": "nn.BatchNorm1d(8, track_running_stats=False)"})
add_pretrained(
    "a frozen norm whose momentum is set to 0",
    {"    body.requires_grad_(False)": "    body.requires_grad_(False); body[1].momentum = 0.0"},
)
add_pretrained("a frozen body on the data it was trained on", {"model(2 * x - 1)": "model(x)"})
add_pretrained("a frozen random body that has seen no data", {"range(30)": "range(0)"})
add_pretrained("statistics that are adapted after the training", {
    "model.train()": "model.train(); body.eval()",
    "opt.step()\n": "opt.step()\n    body.train()\n    for step in range(5):\n        model(2 * x - 1)\n",
})  # fmt: skip
add_pretrained("statistics that are adapted before the training", {
    "model.train()": "model.train()\n    for step in range(5):\n        model(2 * x - 1)\n    body.eval()",
})  # fmt: skip
add_pretrained("a norm that is frozen behind a layer that learns", {
    "body.requires_grad_(False)": "body[1].requires_grad_(False)",
    "nn.Linear(5, 8)": "nn.Linear(5, 8, bias=False)",
    "model[1].parameters()": "[p for p in model.parameters() if p.requires_grad]",
}, learns="learning(body[0].parameters())")  # fmt: skip
add_pretrained("a frozen body behind an adapter that learns", {
    "model = nn.Sequential(body, nn.Linear(8, 3))": "model = nn.Sequential(nn.Linear(5, 5), nn.Sequential(body, nn.Linear(8, 3)))",
    "model[1].parameters()": "[p for p in model.parameters() if p.requires_grad]",
}, learns="learning(model[0].parameters())")  # fmt: skip

ROWS.healthy(
    "adapters between frozen layers with norms",
    """
    def layer():
        return nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.ReLU())
    base = nn.Sequential(layer(), layer())
    with torch.no_grad():
        for step in range(20):
            base(torch.randn(64, 6))
    base.requires_grad_(False)
    model = nn.Sequential(base[0], nn.Linear(6, 6), base[1], nn.Linear(6, 2))
    opt = optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.01)
    # %%
    for step in range(5):
        loss = F.cross_entropy(model(1 + 2 * torch.randn(32, 6)), torch.arange(32) % 2)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(model[1].parameters())",
)
ROWS.healthy(
    "a norm of the inputs with frozen parameters",
    """
    x, y = 3 + 2 * torch.randn(64, 5), torch.randn(64, 1)
    model = nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
    model[0].requires_grad_(False)
    opt = optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.02)
    with torch.no_grad():
        model(x)
    # %%
    for step in range(6):
        loss = F.mse_loss(model(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(model[1].parameters())",
)
ROWS.healthy(
    "norms without parameters in a network that learns",
    """
    x, y = 3 + 2 * torch.randn(64, 5), torch.randn(64, 1)
    model = nn.Sequential(nn.Linear(5, 8, bias=False), nn.BatchNorm1d(8, affine=False), nn.ReLU(), nn.Linear(8, 1))
    opt = optim.SGD(model.parameters(), lr=0.02)
    with torch.no_grad():
        model(x)
    # %%
    for step in range(6):
        loss = F.mse_loss(model(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(model.parameters())",
)
ROWS.healthy(
    "a discriminator with norms that is frozen for the generator's step",
    """
    G = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    D = nn.Sequential(nn.Linear(2, 8, bias=False), nn.BatchNorm1d(8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    opt_g, opt_d = optim.Adam(G.parameters(), lr=1e-3), optim.Adam(D.parameters(), lr=1e-3)
    with torch.no_grad():
        D(torch.randn(64, 2))
    # %%
    for step in range(4):
        z, real = torch.randn(32, 3), 2 + torch.randn(32, 2)
        D.requires_grad_(True)
        d_loss = F.softplus(-D(real)).mean() + F.softplus(D(G(z).detach())).mean()
        opt_d.zero_grad(set_to_none=False); d_loss.backward(); opt_d.step()
        D.requires_grad_(False)
        g_loss = F.softplus(-D(G(z))).mean()
        opt_g.zero_grad(set_to_none=False); g_loss.backward(); opt_g.step()
    """,
    learns="learning(G.parameters())",
)
ROWS.healthy(
    "a teacher that averages the weights of its student",
    """
    import copy
    student = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    with torch.no_grad():
        student(torch.randn(64, 4))
    teacher = copy.deepcopy(student).requires_grad_(False)
    opt = optim.SGD(student.parameters(), lr=0.05)
    # %%
    for step in range(5):
        x = 1 + 2 * torch.randn(32, 4)
        loss = F.cross_entropy(student(x), torch.arange(32) % 3) + F.mse_loss(student(x + 0.1), teacher(x))
        opt.zero_grad(); loss.backward(); opt.step()
        with torch.no_grad():
            for t, s in zip(teacher.parameters(), student.parameters()):
                t.data.mul_(0.9).add_(s.data, alpha=0.1)
    """,
    learns="learning(student.parameters())",
)
ROWS.healthy(
    "a target network that is copied after many steps",
    """
    import copy
    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            self.online = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
            self.target = copy.deepcopy(self.online)
            self.target.requires_grad_(False)
    agent = Agent()
    opt = optim.Adam(agent.online.parameters(), lr=1e-3)
    with torch.no_grad():
        agent.target(torch.randn(64, 4))
    # %%
    for step in range(1, 6):
        state, after, reward = torch.randn(32, 4), 1 + 2 * torch.randn(32, 4), torch.rand(32)
        goal = reward + 0.9 * agent.target(after).max(1)[0]
        loss = F.smooth_l1_loss(agent.online(state)[:, 0], goal)
        opt.zero_grad(); loss.backward(); opt.step()
        if step % 100 == 0:
            agent.target.load_state_dict(agent.online.state_dict())
    """,
    learns="learning(agent.online.parameters())",
)
ROWS.healthy(
    "an input that is optimised through a frozen network with norms",
    """
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    with torch.no_grad():
        for step in range(20):
            net(torch.randn(32, 6))
    net.requires_grad_(False)
    image = (1 + 2 * torch.randn(8, 6)).requires_grad_()
    opt = optim.Adam([image], lr=0.05)
    # %%
    for step in range(5):
        loss = -net(image)[:, 0].mean()
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning([image])",
)

# ------------------------------------------------------------------------------------- parameters that steps do not move
FREEZING = """
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    opt = optim.Adam(net.parameters(), lr=0.01)
    x = torch.randn(64, 4)
    y = x[:, :1] - x[:, 1:2]
    # %%
    for step in range(12):
        if step == 4:
            net[0].requires_grad_(False)
        loss = F.mse_loss(net(x), y)
        opt.zero_grad(set_to_none=False)
        loss.backward()
        opt.step()
"""


def add_freezing(name: str, changes: dict[str, str]) -> None:
    """Add a training in which a layer is frozen after four steps, with replaced pieces."""
    text = FREEZING
    for old, new in changes.items():
        assert text.count(old) == 1, (name, old)
        text = text.replace(old, new)
    ROWS.healthy(name, text, learns="learning(net[2].parameters())")


add_freezing("a layer that is frozen halfway, without gradients", {"zero_grad(set_to_none=False)": "zero_grad()"})
add_freezing(
    "a layer that is frozen halfway, its gradients removed",
    {"requires_grad_(False)": "requires_grad_(False); net[0].zero_grad()"},
)
add_freezing(
    "gradients of zeros that do not move a frozen layer",
    {"optim.Adam(net.parameters(), lr=0.01)": "optim.SGD(net.parameters(), lr=0.05)"},
)
add_freezing("a layer that is frozen between backward and step", {
    "        if step == 4:\n            net[0].requires_grad_(False)\n": "",
    "zero_grad(set_to_none=False)": "zero_grad()",
    "loss.backward()\n": "loss.backward()\n        if step == 4:\n            net[0].requires_grad_(False)\n",
})  # fmt: skip
add_freezing("a layer that is frozen before its optimizer is made", {
    "opt = optim.Adam(net.parameters(), lr=0.01)": "net[0].requires_grad_(False); opt = optim.Adam(net.parameters(), lr=0.01)",
})  # fmt: skip
add_freezing("two layers that learn in turn, without gradients while frozen", {
    "if step == 4:\n            net[0].requires_grad_(False)": "net[0].requires_grad_(step % 2 == 0)",
    "zero_grad(set_to_none=False)": "zero_grad()",
})  # fmt: skip
add_freezing(
    "gradual unfreezing", {"if step == 4:\n            net[0].requires_grad_(False)": "net[0].requires_grad_(step >= 4)"}
)
add_freezing("a layer that is frozen for some steps and learns again", {
    "if step == 4:\n            net[0].requires_grad_(False)": "net[0].requires_grad_(not 4 <= step < 6)",
})  # fmt: skip
ROWS.healthy(
    "momentum carries the rest on after a layer was frozen",
    """
    x, y = torch.randn(64, 4), torch.randn(64, 1)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    opt = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    # %%
    for step in range(10):
        if step == 5:
            net[0].requires_grad_(False)
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
    """,
    learns="learning(net[2].parameters())",
)
ROWS.healthy(
    "gradients that are written by hand for weights without requires_grad",
    """
    import copy
    server = nn.Linear(4, 1).requires_grad_(False)
    outer = optim.SGD(server.parameters(), lr=0.7, momentum=0.5)
    x = torch.randn(64, 4)
    y = x.sum(1, keepdim=True)
    # %%
    for round in range(4):
        client = copy.deepcopy(server).requires_grad_(True)
        opt = optim.SGD(client.parameters(), lr=0.02)
        for step in range(3):
            loss = F.mse_loss(client(x), y)
            opt.zero_grad(); loss.backward(); opt.step()
        for p, q in zip(server.parameters(), client.parameters()):
            p.grad = p - q.detach()
        outer.step()
    """,
    learns="learning(client.parameters())",
)
