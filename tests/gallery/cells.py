"""Cells as students, teachers and researchers write them: everyday ones and planted faults; `models` has those with models.

A text is a `%%grad` cell as it is typed. Cells of `BOTH` also run with PyTorch, with `gl` replaced.
"""

from __future__ import annotations

from dataclasses import dataclass

from programs import PROGRAMS

BATCH_NORM = PROGRAMS["batch_norm"]

BOTH = ("gradlab", "torch")
IMPORTS = {
    "gradlab": "%load_ext gradlab\nimport math\nimport gradlab as gl\nfrom gradlab import nn\nimport gradlab.nn.functional as F",
    "torch": "%load_ext gradlab\nimport math\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F",
}


@dataclass(frozen=True)
class Written:
    """A cell.

    Attributes
    ----------
    name : str
    cell : str
        The source, including `%%grad`.
    before : str
        The cell above it; empty for none.
    libraries : tuple of str
    reports : bool
        Whether it ends in a report; else in a sentence.
    says : tuple of str
        Words that its output must contain, in this order.
    found : str
        The kind of a finding that the report must have; empty if none is asked for.
    """

    name: str
    cell: str
    before: str = ""
    libraries: tuple[str, ...] = ("gradlab",)
    reports: bool = True
    says: tuple[str, ...] = ()
    found: str = ""

    def source(self, library: str) -> tuple[str, str]:
        """The cell above and the cell, for a library."""
        if library == "gradlab":
            return self.before, self.cell
        return self.before.replace("gl.", "torch."), self.cell.replace("gl.", "torch.")


# ------------------------------------------------------------------------------------------------------- everyday cells
EVERYDAY = (
    Written(
        "scalar",
        """%%grad
a = gl.tensor(-3.0, requires_grad=True)
b = gl.tensor(2.0, requires_grad=True)
c = a * b
d = c + b ** 3
e = d.relu()
2 * e""",
        libraries=BOTH,
        says=("2 * e = 4, with respect to a and b",),
    ),
    Written(
        "five",
        """%%grad
x = gl.arange(5.0).requires_grad_()
y = x ** 3
d = y[1:] - y[:-1]
(d ** 2).sum() / 4""",
        libraries=BOTH,
        says=("= 445", "888"),
    ),
    Written(
        "printed",
        """%%grad
x = gl.tensor([1.0, 2.0, 3.0], requires_grad=True)
loss = ((x - 2) ** 2).mean()
print(f"loss: {loss.item():.3f}")""",
        libraries=BOTH,
        says=("loss: 0.667", "loss = 0.6667"),
    ),
    Written(
        "two_outputs",
        """%%grad
x = gl.tensor([0.5, 1.5], requires_grad=True)
area = x.prod()
edge = 2 * x.sum()
area, edge""",
        libraries=BOTH,
        says=("2 outputs",),
    ),
    Written(
        "weighted",
        """%%grad -v [0.1, 1.0, 0.0001]
x = gl.tensor([0.0, 2.0, 8.0], requires_grad=True)
y = gl.tensor([5.0, 1.0, 7.0], requires_grad=True)
x * y""",
        libraries=BOTH,
        says=("[0.1, 1.0, 0.0001]",),
    ),
    Written(
        "jacobian",
        """%%grad
s = gl.tensor([0.0, 1.0, 2.0, 0.5], requires_grad=True)
gl.softmax(s, 0)""",
        libraries=BOTH,
        says=("Jacobian",),
    ),
    Written(
        "a_jacobian_of_many",
        """%%grad
t = gl.linspace(0, 3, 24).requires_grad_()
smooth = gl.exp(-(t[:, None] - t[None, :]) ** 2)
(smooth @ gl.sin(3 * t)) / smooth.sum(1)""",
        says=("Jacobian",),
    ),
    Written(
        "backward_twice",
        """%%grad
w = gl.tensor([1.0, -1.0], requires_grad=True)
for scale in (1.0, 10.0):
    loss = (scale * w).pow(2).sum()
    loss.backward()""",
        libraries=BOTH,
        says=("twice",),
    ),
    Written(
        "descent",
        """%%grad
# y = 3x - 1 and noise, by plain gradient descent
X = gl.linspace(-1, 1, 50)
y = 3 * X - 1 + 0.1 * gl.randn(50)
slope = gl.tensor(0.0, requires_grad=True)
shift = gl.tensor(0.0, requires_grad=True)
optimizer = gl.optim.SGD([slope, shift], lr=0.1)
for epoch in range(20):
    optimizer.zero_grad()
    loss = F.mse_loss(slope * X + shift, y)
    loss.backward()
    optimizer.step()
print(slope.item(), shift.item())""",
        "gl.manual_seed(0)",
        BOTH,
        says=("20 times",),
    ),
    Written(
        "rebound",
        """%%grad
x = gl.tensor([1.0, 2.0], requires_grad=True)
x = x * 2
loss = (x ** 2).sum()""",
        libraries=BOTH,
        says=("loss = 20",),
    ),
    Written(
        "nothing_to_do",
        """%%grad
x = gl.tensor([1.0, 2.0])
(x ** 2).sum()""",
        libraries=BOTH,
        reports=False,
        says=("requires_grad",),
    ),
    Written("no_tensor", "%%grad\nsum(range(10))", reports=False, says=("no tensor",)),
    Written(
        "an_error",
        """%%grad
A, b = gl.ones(3, 4, requires_grad=True), gl.ones(3)
A @ b""",
        reports=False,
        says=("size mismatch",),
    ),
    Written(
        "numbers",
        """%%grad
a_name_that_is_rather_long = gl.tensor([0.5, -12.25, 3., 1e-7, 123456., 7., 8., -9.125, 10., 11., 12., 13.], requires_grad=True)
m = gl.ones(3, 4, requires_grad=True)
flat = (a_name_that_is_rather_long * 1e-3).tanh()
((m @ m.T) ** 2).sum() + flat.pow(3).sum()""",
        libraries=BOTH,
    ),
    Written(
        "maps",
        """%%grad
kernel = gl.randn(8, 8).requires_grad_()
image = gl.rand(8, 8, requires_grad=True)
mixed = kernel @ image - image @ kernel
mixed.abs().sum().sqrt()""",
        "gl.manual_seed(4)",
    ),
    Written(
        "normalised",
        """%%grad
a = gl.randn(6, 4).requires_grad_()
b = gl.randn(6, 4).requires_grad_()

z1 = (a - a.mean(0)) / a.std(0)
z2 = (b - b.mean(0)) / b.std(0)
N = z1.shape[0]
c = (z1.T @ z2) / N
loss = -gl.diagonal(c).sum()""",
        "gl.manual_seed(1)",
        BOTH,
    ),
    Written(
        "indices",
        """%%grad
table = gl.arange(12.0).reshape(3, 4).requires_grad_()
rows = gl.tensor([0, 0, 2])
picked = table[rows, [1, 1, 3]]
inner = table[1:, :-1]
picked.prod() + inner[inner > 5].sum() + table[0, -1]""",
    ),
    Written(
        "dtypes",
        """%%grad
theta = gl.tensor([0.1, 0.2], dtype=gl.float64, requires_grad=True)
gain = gl.tensor(2.0, requires_grad=True)
wave = gl.sin(gain.double() * theta)
wave.sum() + (gain * wave.float()).mean()""",
    ),
    Written(
        "unicode",
        """%%grad
θ = gl.tensor([0.3, -0.2, 1.1], requires_grad=True)
σ, 温度 = gl.tensor(0.5, requires_grad=True), gl.tensor(2.0, requires_grad=True)
# 正規分布の対数尤度 <b>&amp;</b> — and a remark that goes on for so long that no line of a notebook would ever hold it all
эпоха = ((θ - 1) / σ) ** 2 / 2 + σ.log()
énergie_libre = эпоха.sum() / 温度""",
    ),
    Written(
        "cut",
        """%%grad
w = gl.tensor([1.0, 2.0, 3.0], requires_grad=True)
target = (w * 2).detach()
loss = ((w - target) ** 2).sum()
loss.backward()""",
        libraries=BOTH,
    ),
    Written(
        "functions",
        """%%grad
def layer(x, w, b, last=False):
    z = x @ w + b
    return z if last else gl.tanh(z)

def network(x, weights, biases):
    for i, (w, b) in enumerate(zip(weights, biases)):
        x = layer(x, w, b, i == len(weights) - 1)
    return x

def cross_entropy(logits, targets):
    shifted = logits - logits.max(1, keepdim=True).values
    logp = shifted - shifted.exp().sum(1, keepdim=True).log()
    return -logp[gl.arange(len(targets)), targets].mean()

cross_entropy(network(X, weights, biases), t)""",
        """gl.manual_seed(0)
X, t = gl.randn(32, 10), gl.arange(32) % 4
weights = [(gl.randn(10 if i == 0 else 16, 4 if i == 5 else 16) * 0.3).requires_grad_() for i in range(6)]
biases = [gl.zeros(4 if i == 5 else 16, requires_grad=True) for i in range(6)]""",
    ),
    Written(
        "batch_norm_by_hand",
        "%%grad\n" + BATCH_NORM.cell.removesuffix("loss.backward()\n").rstrip().replace("torch.", "gl."),
        BATCH_NORM.before.rstrip().replace("torch.", "gl."),
        BOTH,
    ),
    Written(
        "recurrence",
        """%%grad
h = gl.zeros(8)
for x in sequence:
    h = gl.tanh(params["Wx"] @ x + params["Wh"] @ h + params["b"])
loss = (params["out"] @ h - 1) ** 2
loss""",
        """gl.manual_seed(0)
sequence = gl.randn(30, 3)
params = {"Wx": gl.randn(8, 3) / 2, "Wh": gl.randn(8, 8) / 4, "b": gl.zeros(8), "out": gl.randn(8) / 3}
for p in params.values():
    p.requires_grad_()""",
    ),
    Written(
        "an_object",
        """%%grad
prediction = regression.weight * years + regression.bias
residual = (prediction - prices) / regression.scale.exp()
nll = (residual ** 2 / 2 + regression.scale).mean()""",
        """class Regression:
    def __init__(self):
        self.weight = gl.tensor(0.5, requires_grad=True)
        self.bias = gl.tensor(0.0, requires_grad=True)
        self.scale = gl.tensor(-1.0, requires_grad=True)

regression = Regression()
years, prices = gl.arange(10.0), 3 * gl.arange(10.0).sqrt()""",
        BOTH,
        says=("regression.weight", "regression.bias", "regression.scale"),
    ),
    Written(
        "second_derivative",
        """%%grad
x = gl.linspace(-1, 1, 9).requires_grad_()
u = a * x ** 4 + b * gl.sin(x)
du = gl.autograd.grad(u.sum(), x, create_graph=True)[0]
d2u = gl.autograd.grad(du.sum(), x, create_graph=True)[0]
residual = ((d2u + u) ** 2).mean()""",
        "a = gl.tensor(1.5, requires_grad=True)\nb = gl.tensor(-0.5, requires_grad=True)",
        BOTH,
    ),
    Written(
        "pendulum",
        """%%grad
angle, speed = start, gl.tensor(0.0)
for step in range(200):
    speed = speed - dt * gravity / length * gl.sin(angle)
    angle = angle + dt * speed
miss = (angle - 0.3) ** 2""",
        """start, length = gl.tensor(0.8, requires_grad=True), gl.tensor(1.2, requires_grad=True)
gravity, dt = 9.81, 0.02""",
    ),
    Written(
        "many_leaves",
        """%%grad
total = sum((w * (i + 1) / 60).tanh().sum() for i, w in enumerate(many))""",
        "many = [gl.full((3,), 0.1 * i, requires_grad=True) for i in range(60)]",
        says=("many[0]", "many[2]"),
    ),
)

# ------------------------------------------------------------------------------------------------------- planted faults
FAULTS = (
    Written(
        "detached",
        """%%grad
features = encoder(X).detach()
loss = F.mse_loss(head(features), y)
loss.backward()""",
        """gl.manual_seed(0)
encoder, head = nn.Sequential(nn.Linear(4, 16), nn.Tanh()), nn.Linear(16, 1)
X, y = gl.randn(32, 4), gl.randn(32, 1)""",
        BOTH,
        found="detached",
    ),
    Written(
        "unused",
        """%%grad
loss = F.cross_entropy(net(X), y)
loss.backward()""",
        """gl.manual_seed(0)

class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 12)
        self.head, self.auxiliary = nn.Linear(12, 3), nn.Linear(12, 2)
        self.scale = nn.Parameter(gl.ones(12), requires_grad=False)

    def forward(self, x):
        return self.head(F.relu(self.body(x)) * self.scale)

net, X, y = TwoHeads(), gl.randn(16, 6), gl.randint(0, 3, (16,))
optimizer = gl.optim.SGD(net.parameters(), lr=0.1)""",
        BOTH,
        found="unused-module",
    ),
    Written(
        "nan",
        """%%grad
points = gl.tensor([[0.0, 0.0], [3.0, 4.0], [1.0, 0.0]], requires_grad=True)
distance = ((points - points[0]) ** 2).sum(1).sqrt()
loss = distance.mean()
loss.backward()""",
        libraries=BOTH,
        found="inf-born",
    ),
    Written(
        "log_of_zero",
        """%%grad
p = gl.tensor([0.0, 0.25, 0.75], requires_grad=True)
entropy = -(p * p.log()).sum()
entropy.backward()""",
        found="nan-born",
    ),
    Written(
        "double_softmax",
        """%%grad
probabilities = F.softmax(classifier(X), dim=1)
loss = F.cross_entropy(probabilities, y)
loss.backward()""",
        "gl.manual_seed(0)\nclassifier, X, y = nn.Linear(5, 3), gl.randn(20, 5), gl.randint(0, 3, (20,))",
        BOTH,
        found="double-softmax",
    ),
    Written(
        "broadcast",
        """%%grad
prediction = linear(X)
loss = ((prediction - y) ** 2).mean()
loss.backward()""",
        "gl.manual_seed(0)\nlinear, X, y = nn.Linear(3, 1), gl.randn(40, 3), gl.randn(40)",
        BOTH,
        found="broadcast",
    ),
    Written(
        "vanishing",
        """%%grad
loss = F.mse_loss(deep(X), y)
loss.backward()""",
        """gl.manual_seed(0)
layers = [layer for _ in range(14) for layer in (nn.Linear(16, 16), nn.Sigmoid())]
deep = nn.Sequential(*layers, nn.Linear(16, 1))
X, y = gl.randn(32, 16), gl.randn(32, 1)
del layers""",
        BOTH,
        found="vanishing",
    ),
    Written(
        "cancels",
        """%%grad
x = gl.tensor([1.0, 2.0, 4.0], requires_grad=True)
shift = gl.tensor(0.3, requires_grad=True)
y = x + shift
z = y - y.mean()
loss = (z ** 2).mean()
loss.backward()""",
    ),
)
