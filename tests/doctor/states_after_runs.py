"""States of a notebook after a run, some healthy and some with a fault. `# %%` separates cells.

Names are those of `row_runs.PRELUDE`. `NET` runs before each.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass

NET = """
class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.body, self.head = nn.Linear(4, width), nn.Linear(width, 1)
    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))
X, Y = torch.randn(16, 4), torch.randn(16, 1)
"""


@dataclass(frozen=True)
class State:
    name: str
    texts: tuple[str, ...]
    kind: str = ""
    says: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ("gradlab", "torch")


HEALTHY: dict[str, State] = {}
FAULTY: dict[str, State] = {}


def add_row(table: dict[str, State], name: str, text: str, kind: str = "", *says: str) -> None:
    assert name not in table
    table[name] = State(name, tuple(cell.strip("\n") for cell in inspect.cleandoc(text).split("# %%\n")), kind, says)


def healthy(name: str, text: str) -> None:
    add_row(HEALTHY, name, text)


def faulty(name: str, kind: str, text: str, *says: str) -> None:
    add_row(FAULTY, name, text, kind, *says)


STEPS = """
    for step in range({n}):
        opt.zero_grad()
        loss = F.mse_loss(net(X), Y)
        loss.backward()
        opt.step()
"""


def training_loop(opt: str = "optim.SGD(net.parameters(), lr=0.1)", n: int = 3) -> str:
    return f"    net = Net()\n    opt = {opt}{STEPS.format(n=n)}"


healthy("a plain loop", training_loop())
healthy("Adam", training_loop("optim.Adam(net.parameters())"))
healthy("cleared after the step", training_loop() + "    opt.zero_grad()\n")
healthy("cleared to zeros", training_loop() + "    opt.zero_grad(set_to_none=False)\n")
healthy("a model that is only made", "    net = Net()\n    opt = optim.Adam(net.parameters(), lr=0.1)\n")
healthy("a model without an optimizer", "    net = Net()\n    loss = F.mse_loss(net(X), Y)\n    loss.backward()\n")
healthy("evaluated afterwards", training_loop() + "    with torch.no_grad():\n        val_loss = F.mse_loss(net(X), Y)\n")
healthy("a loss that is kept as a number", training_loop() + "    loss = loss.detach()\n    best = loss.item()\n")
healthy("frozen for use when it is trained", training_loop(n=8) + "    net.requires_grad_(False)\n    opt.zero_grad()\n")
healthy("a target network", """
    import copy
    net = Net()
    target = copy.deepcopy(net)
    opt = optim.Adam(net.parameters())
    for step in range(3):
        with torch.no_grad():
            wanted = Y + 0.9 * target(X)
        loss = F.smooth_l1_loss(net(X), wanted)
        opt.zero_grad()
        loss.backward()
        opt.step()
""")  # fmt: skip
healthy("a target network that requires no gradient", """
    import copy
    net = Net()
    target = copy.deepcopy(net).requires_grad_(False)
    opt = optim.SGD(net.parameters(), lr=0.1)
    loss = F.mse_loss(net(X), target(X))
    loss.backward()
    opt.step()
    opt.zero_grad()
""")  # fmt: skip
GAN = """
    G, D = Net(), nn.Sequential(nn.Linear(1, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    opt_g, opt_d = optim.{opt}, optim.{other}
    for step in range({n}):
        fake = G(X)
        {freed}opt_d.zero_grad()
        loss_d = F.binary_cross_entropy_with_logits(D(Y), torch.ones(16, 1))
        loss_d = loss_d + F.binary_cross_entropy_with_logits(D(fake.detach()), torch.zeros(16, 1))
        loss_d.backward()
        opt_d.step()
        {frozen}opt_g.zero_grad()
        loss_g = F.binary_cross_entropy_with_logits(D(fake), torch.ones(16, 1))
        loss_g.backward()
        opt_g.step()
"""
ADAM = {"opt": "Adam(G.parameters())", "other": "Adam(D.parameters())"}
PLAIN = {"opt": "SGD(G.parameters(), lr=0.1)", "other": "SGD(D.parameters(), lr=0.1)"}
healthy("a GAN", GAN.format(freed="", frozen="", n=3, **ADAM))
healthy("a GAN by plain descent", GAN.format(freed="", frozen="", n=1, **PLAIN))
healthy(
    "a GAN whose critic is frozen meanwhile",
    GAN.format(freed="D.requires_grad_(True); ", frozen="D.requires_grad_(False); ", n=2, **ADAM),
)
healthy("a GAN whose critic was cleared", GAN.format(freed="", frozen="", n=2, **ADAM) + "    opt_d.zero_grad()\n")
healthy("a frozen backbone", """
    net = Net()
    net.body.requires_grad_(False)
    opt = optim.SGD(net.head.parameters(), lr=0.1)
    loss = F.mse_loss(net(X), Y)
    loss.backward()
    opt.step()
""")  # fmt: skip
healthy("a frozen backbone in the optimizer", """
    net = Net()
    for p in net.body.parameters():
        p.requires_grad = False
    opt = optim.Adam(net.parameters())
    for step in range(2):
        opt.zero_grad()
        loss = F.mse_loss(net(X), Y)
        loss.backward()
        opt.step()
""")  # fmt: skip
healthy("only the head is given to the optimizer", """
    net = Net()
    opt = optim.Adam(net.head.parameters())
    for step in range(2):
        opt.zero_grad()
        loss = F.mse_loss(net(X), Y)
        loss.backward()
        opt.step()
""")  # fmt: skip
healthy("a teacher", """
    teacher, net = Net(16), Net()
    opt = optim.Adam(net.parameters())
    with torch.no_grad():
        soft = teacher(X)
    loss = F.mse_loss(net(X), soft)
    loss.backward()
    opt.step()
""")  # fmt: skip
healthy("gradients of several batches", """
    net = Net()
    opt = optim.SGD(net.parameters(), lr=0.1)
    for step in range(4):
        loss = F.mse_loss(net(X), Y) / 2
        loss.backward()
        if step % 2:
            opt.step()
            opt.zero_grad()
""")  # fmt: skip
HEADS = """
    trunk, one, two = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
    opt = optim.{opt}
    for step in range({n}):
        opt.zero_grad()
        head = one if step % 2 else two
        loss = F.mse_loss(head(torch.tanh(trunk(X))), Y)
        loss.backward()
        opt.step()
"""
ALL = "[*trunk.parameters(), *one.parameters(), *two.parameters()]"
healthy("tasks in turn", HEADS.format(opt=f"Adam({ALL})", n=4))
healthy("tasks in turn by plain descent", HEADS.format(opt=f"SGD({ALL}, lr=0.05)", n=20))
healthy("a branch that begins at zero", """
    class Low(nn.Module):
        def __init__(self):
            super().__init__()
            self.base = nn.Linear(4, 4).requires_grad_(False)
            self.a, self.b = nn.Linear(4, 2, bias=False), nn.Linear(2, 4, bias=False)
            nn.init.zeros_(self.b.weight)
        def forward(self, x):
            return self.base(x) + self.b(self.a(x))
    net = Low()
    opt = optim.Adam([p for p in net.parameters() if p.requires_grad])
    loss = net(X).pow(2).mean()
    loss.backward()
""")  # fmt: skip
healthy("a last layer that begins at zero", """
    net = Net()
    nn.init.zeros_(net.head.weight); nn.init.zeros_(net.head.bias)
    opt = optim.Adam(net.parameters())
    loss = F.mse_loss(net(X), Y)
    loss.backward()
""")  # fmt: skip
healthy("steps by hand", """
    w = torch.zeros(4, 1, requires_grad=True)
    for step in range(3):
        loss = F.mse_loss(X @ w, Y)
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
""")  # fmt: skip
healthy("an input that is optimized", """
    net = Net()
    x = torch.zeros(1, 4, requires_grad=True)
    opt = optim.SGD([x], lr=0.1)
    for step in range(3):
        opt.zero_grad()
        loss = net(x).pow(2).sum()
        loss.backward()
        opt.step()
""")  # fmt: skip
healthy("a mask of infinities", """
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(4, 4)
            self.register_buffer("mask", torch.triu(torch.full((4, 4), float("-inf")), 1))
        def forward(self, x):
            return torch.softmax(self.lin(x)[:4] + self.mask, -1)
    net = Masked()
    opt = optim.Adam(net.parameters())
    loss = net(X).pow(2).mean()
    loss.backward()
    opt.step()
""")  # fmt: skip
healthy("words that did not occur", """
    emb, out = nn.Embedding(50, 4), nn.Linear(4, 1)
    opt = optim.SGD([*emb.parameters(), *out.parameters()], lr=0.1)
    loss = out(emb(torch.tensor([1, 2, 3]))).pow(2).mean()
    loss.backward()
    opt.step()
""")  # fmt: skip
healthy("an expert that got nothing", """
    experts, gate = nn.ModuleList([nn.Linear(4, 1) for _ in range(3)]), nn.Linear(4, 3)
    opt = optim.Adam([*experts.parameters(), *gate.parameters()])
    share = torch.softmax(gate(X), -1)
    kept = torch.tensor([1.0, 1.0, 0.0])
    loss = sum((share[:, i:i + 1] * kept[i] * experts[i](X)).pow(2).mean() for i in range(3))
    loss.backward()
    opt.step()
""")  # fmt: skip
healthy("a model for each fold", """
    for fold in range(2):
        net = Net()
        opt = optim.Adam(net.parameters())
        loss = F.mse_loss(net(X), Y)
        loss.backward()
        opt.step()
""")  # fmt: skip
healthy("a new model beside the old optimizer", training_loop() + "    net = Net(6)\n")
healthy("a failed cell that was mended", """
    net = Net()
    opt = optim.SGD(net.parameters(), lr=0.1)
    # %%
    loss = F.mse_loss(net(X), Y).detach()
    loss.backward()
    # %%
    loss = F.mse_loss(net(X), Y)
    loss.backward()
    opt.step()
""")  # fmt: skip
healthy("a model made in inference mode", """
    with torch.inference_mode():
        net = Net()
        out = net(X)
""")  # fmt: skip
healthy("a notebook that only infers", """
    torch.set_grad_enabled(False);
    net = Net()
    out = net(X)
""")  # fmt: skip

# ------------------------------------------------------------------------------------------------------------- with a fault
faulty("NaN in the weights", "nan-weights", training_loop() + """
    with torch.no_grad():
        net.body.weight[0, 0] = float("nan")
""", "`net.body.weight`")  # fmt: skip
faulty("a diverged run", "nan-weights", """
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=1e30)
    for step in range(4):
        opt.zero_grad()
        loss = F.mse_loss(net(X), Y)
        loss.backward()
        opt.step()
""", "`net.weight`")  # fmt: skip
faulty("NaN in a gradient", "nan-gradient", """
    w = nn.Linear(4, 1)
    opt = optim.SGD(w.parameters(), lr=0.1)
    loss = torch.sqrt((w(X) * 0).pow(2)).mean()
    loss.backward()
""", "`w.weight`", "NaN")  # fmt: skip
faulty("a loss that is NaN", "nan-loss", """
    net = Net()
    opt = optim.SGD(net.parameters(), lr=0.1)
    loss = torch.log(net(X).pow(2).mean() * 0 - 1)
""", "`loss`")  # fmt: skip
UNUSED = """
    class Wide(Net):
        def __init__(self):
            super().__init__()
            self.extra = nn.Linear(4, 1)
    net = Wide()
"""
faulty("a layer that is not used", "no-gradient", UNUSED + "    opt = optim.SGD(net.parameters(), lr=0.1)" + STEPS.format(n=9),
     "`net.extra.weight`")  # fmt: skip
faulty(
    "a layer that is not used, no optimizer",
    "no-gradient",
    UNUSED + "    F.mse_loss(net(X), Y).backward();\n",
    "`net.extra.weight`",
)
faulty("a layer that is not used, all cleared, Adam", "no-gradient",
     UNUSED + "    opt = optim.Adam(net.parameters())" + STEPS.format(n=3) + "    opt.zero_grad()\n",
     "`net.extra.weight`", "steps")  # fmt: skip
faulty("a layer that is not used, all cleared, plain descent", "no-gradient",
     UNUSED + "    opt = optim.SGD(net.parameters(), lr=0.1)" + STEPS.format(n=9) + "    opt.zero_grad()\n", "`net.extra.weight`",
     "`loss`")  # fmt: skip
faulty("a cut before the first layer", "no-gradient", """
    net = Net()
    opt = optim.Adam(net.parameters())
    for step in range(3):
        opt.zero_grad()
        h = net.body(X).detach()
        loss = F.mse_loss(net.head(h), Y)
        loss.backward()
        opt.step()
""", "`net.body.weight`")  # fmt: skip
faulty("a model that was made again", "stale-optimizer", """
    net = Net()
    opt = optim.SGD(net.parameters(), lr=0.1)
    # %%
    net = Net()
    # %%
""" + STEPS.format(n=2), "`opt`", "4 tensors")  # fmt: skip
faulty("a head that was replaced", "stale-optimizer", """
    net = Net()
    opt = optim.Adam(net.parameters())
    net.head = nn.Linear(8, 1)
""" + STEPS.format(n=2), "`net.head.weight`")  # fmt: skip
faulty("layers in a plain list", "stale-optimizer", """
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden = [nn.Linear(4, 4) for _ in range(2)]
            self.head = nn.Linear(4, 1)
        def forward(self, x):
            for layer in self.hidden:
                x = torch.tanh(layer(x))
            return self.head(x)
    net = Deep()
    opt = optim.SGD(net.parameters(), lr=0.1)
""" + STEPS.format(n=2), "`net.hidden`", "ModuleList")  # fmt: skip
faulty("everything is frozen", "frozen", """
    net = Net().requires_grad_(False)
    opt = optim.Adam(net.parameters())
""", "requires_grad_() on `net`")  # fmt: skip
faulty("units that are all shut", "zero-gradient", """
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    with torch.no_grad():
        net[0].bias -= 100
    opt = optim.SGD(net.parameters(), lr=0.01)
    loss = F.mse_loss(net(X), Y)
    loss.backward()
""", "net[0].weight")  # fmt: skip
