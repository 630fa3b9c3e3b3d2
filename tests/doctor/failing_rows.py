"""Cells that raise an error, with the line that causes it and its cure: test cells for the doctor after a run.

`#!` marks the line that must be named. `cure` replaces pieces of the last cell so that it runs without an error; every piece of
code in the advice occurs in the cured cells. `# %%` separates cells. Names are those of `row_runs.PRELUDE`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class FailingRow:
    name: str
    kind: str
    texts: tuple[str, ...]
    line: int | None
    cured: tuple[tuple[str, ...], ...]  # by the advice, and by the alternative that it names
    says: tuple[str, ...]
    libraries: tuple[str, ...]


FAILING_ROWS: dict[str, FailingRow] = {}


def add_row(
    name: str,
    kind: str,
    text: str,
    cure: Mapping[str, str],
    *says: str,
    also: Mapping[str, str] | None = None,
    libraries: tuple[str, ...] = ("gradlab", "torch"),
) -> None:
    text = inspect.cleandoc(text)
    cured = [apply_cure(text, one) for one in (cure, also) if one is not None]
    marked = cells(text)
    lines = [n for n, line in enumerate(marked[-1].splitlines(), 1) if line.endswith("#!")]
    assert name not in FAILING_ROWS
    FAILING_ROWS[name] = FailingRow(
        name, kind, plain(marked), lines[0] if lines else None, tuple(plain(cells(one)) for one in cured), says, libraries
    )


def apply_cure(text: str, cure: Mapping[str, str]) -> str:
    for pair in cure.items():
        old, new = (re.sub("(?m)^    ", "", piece) for piece in pair)  # with the indentation of the text
        assert old in text, old
        text = text.replace(old, new)
    return text


def cells(text: str) -> list[str]:
    return [cell.strip("\n") for cell in text.split("# %%\n")]


def plain(texts: list[str]) -> tuple[str, ...]:
    return tuple("\n".join(line.removesuffix("#!").rstrip() for line in text.splitlines()) for text in texts)


# ------------------------------------------------------------------------------------------------ saved, then overwritten
add_row("a result is added to", "in-place", """
    w = torch.ones(3, requires_grad=True)
    y = w.exp()
    y += 1  #!
    y.sum().backward()
""", {"y += 1": "y = y + 1"}, "`y += 1`", "Exp")  # fmt: skip
add_row("a method in place", "in-place", """
    x = torch.randn(4, 3, requires_grad=True)
    h = torch.sigmoid(x)
    h.mul_(2.0)  #!
    loss = h.pow(2).mean()
    loss.backward()
""", {"h.mul_(2.0)": "h = h.mul(2.0)"}, "`h.mul_(2.0)`")  # fmt: skip
add_row("an item is set", "in-place", """
    x = torch.randn(4, requires_grad=True)
    h = torch.exp(x)
    h[0] = 0.0  #!
    h.sum().backward()
""", {"h[0] = 0.0": "h = h.clone()\n    h[0] = 0.0"}, "h = h.clone()")  # fmt: skip
add_row("the optimizer steps before the second loss", "in-place", """
    a, b = nn.Linear(4, 4), nn.Linear(4, 4)
    opt = optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
    # %%
    out = b(torch.tanh(a(torch.randn(8, 4))))
    first, second = out.mean(), out.pow(2).mean()
    first.backward(retain_graph=True)
    opt.step()  #!
    second.backward()
""", {"    opt.step()  #!\n    second.backward()": "    second.backward()\n    opt.step()"}, "opt.step()")  # fmt: skip
add_row("a step by hand before the second loss", "in-place", """
    w = torch.randn(3, requires_grad=True)
    loss = (w ** 3).sum()
    loss.backward(retain_graph=True)
    with torch.no_grad():
        w -= 0.1 * w.grad  #!
    loss.backward()
""", {"    with torch.no_grad():\n        w -= 0.1 * w.grad  #!\n    loss.backward()":
      "    loss.backward()\n    with torch.no_grad():\n        w -= 0.1 * w.grad"}, "w -= 0.1 * w.grad")  # fmt: skip
add_row("in a function of an earlier cell", "in-place", """
    def act(v):
        h = torch.sigmoid(v)
        h *= 2
        return h
    # %%
    x = torch.randn(5, requires_grad=True)
    loss = act(x).sum()
    loss.backward()  #!
""", {"h *= 2": "h = h * 2"})  # fmt: skip

# ------------------------------------------------------------------------------------------------------- freed, then used
add_row("twice in a cell", "freed", """
    w = torch.ones(3, requires_grad=True)
    loss = (w ** 2).sum()
    loss.backward()  #!
    loss.backward()
""", {"loss.backward()  #!": "loss.backward(retain_graph=True)"}, "retain_graph=True")  # fmt: skip
add_row("two losses share a part", "freed", """
    enc, a, b = nn.Linear(3, 3), nn.Linear(3, 1), nn.Linear(3, 1)
    # %%
    h = torch.tanh(enc(torch.randn(6, 3)))
    la = a(h).pow(2).mean()
    lb = b(h).pow(2).mean()
    la.backward()  #!
    lb.backward()
""", {"la.backward()": "la.backward(retain_graph=True)"}, "la.backward")  # fmt: skip
add_row("the cell of backward runs again", "freed", """
    w = torch.ones(3, requires_grad=True)
    loss = (w ** 2).sum()
    # %%
    loss.backward();
    # %%
    loss.backward()  #!
""", {"    loss.backward()  #!": "    loss = (w ** 2).sum()\n    loss.backward()"}, "`loss`", "again")  # fmt: skip
add_row("features before the loop", "freed", """
    enc, head = nn.Linear(3, 3), nn.Linear(3, 1)
    opt = optim.SGD([*enc.parameters(), *head.parameters()], lr=0.1)
    x = torch.randn(6, 3)
    # %%
    feats = torch.tanh(enc(x))  #!
    for step in range(3):
        opt.zero_grad()
        loss = head(feats).pow(2).mean()
        loss.backward()
        opt.step()
""", {"        loss = head(feats)": "        feats = torch.tanh(enc(x))\n        loss = head(feats)"},
    "before the loop")  # fmt: skip
add_row("a state that is carried", "freed", """
    cell = nn.RNNCell(2, 3)
    opt = optim.SGD(cell.parameters(), lr=0.1)
    xs = torch.randn(5, 4, 2)
    # %%
    h = torch.zeros(4, 3)
    for x in xs:
        h = cell(x, h)  #!
        loss = h.pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""", {"        h = cell(x, h)  #!": "        h = h.detach()\n        h = cell(x, h)"}, "`h`", "h = h.detach()")  # fmt: skip

# ------------------------------------------------------------------------------------------------------------- no history
add_row("detached on the way", "detached", """
    net = nn.Linear(3, 1)
    x = torch.randn(5, 3)
    # %%
    out = net(x)
    pred = out.detach()  #!
    loss = (pred - 1).pow(2).mean()
    loss.backward()
""", {"out.detach()": "out"}, "`out`")  # fmt: skip
add_row("the values alone", "detached", """
    w = torch.ones(3, requires_grad=True)
    s = w.data * 2  #!
    loss = s.sum()
    loss.backward()
""", {"w.data * 2": "w * 2"})  # fmt: skip
add_row("a number makes the loss", "item", """
    w = torch.ones(3, requires_grad=True)
    total = (w * 2).sum()
    value = total.item()  #!
    loss = torch.tensor(value)
    loss.backward()
""", {"total.item()": "total", "torch.tensor(value)": "value"})  # fmt: skip
add_row("under no_grad", "no_grad", """
    net = nn.Linear(3, 1)
    x = torch.randn(5, 3)
    # %%
    with torch.no_grad():
        out = net(x)  #!
    loss = out.pow(2).mean()
    loss.backward()
""", {"with torch.no_grad():": "if True:"}, "no_grad")  # fmt: skip
add_row("a comparison", "non-differentiable", """
    w = torch.ones(3, requires_grad=True)
    right = (w > 0.5).float()  #!
    loss = right.mean()
    loss.backward()
""", {"(w > 0.5).float()": "torch.sigmoid(w - 0.5)"})  # fmt: skip
add_row("positions", "non-differentiable", """
    net = nn.Linear(3, 4)
    x = torch.randn(5, 3)
    # %%
    best = net(x).argmax(1)  #!
    loss = best.float().mean()
    loss.backward()
""", {"net(x).argmax(1)": "net(x).max(1)[0]"})  # fmt: skip
add_row("a wrapped copy", "re-wrapped", """
    w = torch.ones(3, requires_grad=True)
    parts = [(w * k).sum() for k in range(3)]
    loss = torch.tensor(parts).sum()  #!
    loss.backward()
""", {"torch.tensor(parts)": "torch.stack(parts)"}, libraries=("torch",))  # fmt: skip
add_row("a frozen model", "frozen", """
    net = nn.Linear(3, 1).requires_grad_(False)
    x = torch.randn(5, 3)
    # %%
    out = net(x)  #!
    loss = out.pow(2).mean()
    loss.backward()
""", {"    out = net(x)": "    net.requires_grad_()\n    out = net(x)"}, "net.requires_grad_()")  # fmt: skip
add_row("nothing asked for a gradient", "frozen", """
    w = torch.ones(3)
    loss = (w * 2).sum()  #!
    loss.backward()
""", {"torch.ones(3)": "torch.ones(3, requires_grad=True)"},
    "made by `torch.ones(3)` on line 1", "requires_grad=True")  # fmt: skip
add_row("gradients are switched off", "no_grad", """
    net = nn.Linear(3, 1)
    x = torch.randn(5, 3)
    torch.set_grad_enabled(False);
    # %%
    loss = net(x).pow(2).mean()  #!
    loss.backward()
""", {"set_grad_enabled(False)": "set_grad_enabled(True)"}, "`torch.set_grad_enabled(False)` at cell In[", "line 3")  # fmt: skip
add_row("detached in a training function", "detached", """
    net = nn.Linear(3, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)

    def train_step(x, y):
        opt.zero_grad()
        out = net(x)
        pred = out.detach()  #!
        loss = F.mse_loss(pred, y)
        loss.backward()
        opt.step()

    for _ in range(3):
        train_step(torch.randn(4, 3), torch.zeros(4, 1))
""", {"out.detach()": "out"})  # fmt: skip

# ----------------------------------------------------------------------------------------------- shapes of requested gradients
add_row("no scalar", "not-scalar", """
    w = torch.ones(3, requires_grad=True)
    y = w * 2
    y.backward()  #!
""", {"y.backward()": "y.sum().backward()"}, "y.sum().backward()", "[3]",
    also={"y.backward()": "y.backward(torch.ones_like(y))"})  # fmt: skip
add_row("a loss by element", "not-scalar", """
    net = nn.Linear(3, 1)
    # %%
    loss = F.mse_loss(net(torch.randn(4, 3)), torch.zeros(4, 1), reduction="none")
    loss.backward()  #!
""", {"loss.backward()": "loss.backward(torch.ones_like(loss))"}, "[4, 1]",
    also={"loss.backward()": "loss.sum().backward()"})  # fmt: skip
add_row("weights of another shape", "shape", """
    w = torch.ones(3, requires_grad=True)
    y = w * 2
    y.backward(torch.ones(2))  #!
""", {"torch.ones(2)": "torch.ones_like(y)"}, "torch.ones_like(y)")  # fmt: skip
add_row("a gradient of another shape", "shape", """
    w = torch.ones(2, 3, requires_grad=True)
    g = torch.ones(3)
    w.grad = g  #!
""", {"w.grad = g": "w.grad = g.expand_as(w).clone()"}, "expand_as")  # fmt: skip

# ------------------------------------------------------------------------------------------------------- shapes of operands
add_row("a layer of another width", "shape", """
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(6, 2))
    x = torch.randn(5, 4)
    # %%
    out = net(x)  #!
    out.sum().backward()
""", {"nn.Linear(6, 2)": "nn.Linear(8, 2)"}, "net[2]", "nn.Linear(8, 2)")  # fmt: skip
add_row("channels", "shape", """
    conv = nn.Conv2d(3, 4, 3)
    x = torch.randn(2, 1, 8, 8)
    # %%
    conv(x).sum().backward()  #!
""", {"nn.Conv2d(3, 4, 3)": "nn.Conv2d(1, 4, 3)"}, "nn.Conv2d(1, 4, 3)")  # fmt: skip
add_row("a product the wrong way round", "shape", """
    x = torch.randn(5, 4)
    W = torch.randn(3, 4, requires_grad=True)
    out = x @ W  #!
""", {"x @ W": "x @ W.mT"}, "[5, 4]", "[3, 4]", "`W.mT` in place of `W`")  # fmt: skip
add_row("an axis is missing", "shape", """
    x = torch.randn(5, 4, requires_grad=True)
    s = torch.randn(5)
    y = x * s  #!
    y.sum().backward()
""", {"x * s": "x * s.unsqueeze(1)"}, "s.unsqueeze(1)")  # fmt: skip
add_row("targets of another batch", "shape", """
    net = nn.Linear(4, 3)
    y = torch.zeros(6, dtype=torch.long)
    # %%
    out = net(torch.randn(5, 4))
    loss = F.cross_entropy(out, y)  #!
""", {"loss = F.cross_entropy(out, y)": "loss = F.cross_entropy(out, y[:5])"}, "5", "6")  # fmt: skip

# ---------------------------------------------------------------------------------------------------------------- dtypes
add_row("float64 data for a model", "dtype", """
    net = nn.Linear(4, 3)
    x = torch.tensor(np.ones((5, 4)))
    # %%
    out = net(x)  #!
    out.sum().backward()
""", {"net(x)": "net(x.float())"}, "float64", "x.float()")  # fmt: skip
add_row("integers for a model", "dtype", """
    net = nn.Linear(4, 3)
    x = torch.ones(5, 4, dtype=torch.long)
    # %%
    out = net(x)  #!
""", {"net(x)": "net(x.float())"}, "int64", "x.float()")  # fmt: skip
add_row("a target of floats", "dtype", """
    net = nn.Linear(4, 3)
    y = torch.zeros(5)
    # %%
    out = net(torch.randn(5, 4))
    loss = F.cross_entropy(out, y)  #!
    loss.backward()
""", {"F.cross_entropy(out, y)": "F.cross_entropy(out, y.long())"}, "y.long()")  # fmt: skip
add_row("a product of two dtypes", "dtype", """
    a = torch.randn(5, 4, requires_grad=True)
    b = torch.randn(4, 2, dtype=torch.float64)
    c = a @ b  #!
""", {"a @ b": "a @ b.float()"}, "float64", "b.float()")  # fmt: skip
add_row("integers that learn", "dtype", """
    idx = torch.tensor([1, 2, 3])
    idx.requires_grad_()  #!
""", {"idx.requires_grad_()": "idx = idx.float().requires_grad_()"}, "idx.float()")  # fmt: skip
add_row("a binary target of integers", "dtype", """
    net = nn.Linear(4, 1)
    y = torch.ones(5, 1, dtype=torch.long)
    # %%
    p = torch.sigmoid(net(torch.randn(5, 4)))
    loss = F.binary_cross_entropy(p, y)  #!
    loss.backward()
""", {"(p, y)": "(p, y.float())"}, "y.float()")  # fmt: skip
add_row("the mean of integers", "dtype", """
    counts = torch.arange(4)
    m = counts.mean()  #!
""", {"counts.mean()": "counts.float().mean()"}, "counts.float()")  # fmt: skip
add_row("a class too many", "target", """
    net = nn.Linear(4, 3)
    y = torch.tensor([0, 1, 3])
    # %%
    out = net(torch.randn(3, 4))
    loss = F.cross_entropy(out, y)  #!
""", {"nn.Linear(4, 3)": "nn.Linear(4, 4)"}, "3 classes")  # fmt: skip
add_row("a word too many", "target", """
    emb = nn.Embedding(5, 2)
    ids = torch.tensor([0, 5])
    # %%
    v = emb(ids)  #!
""", {"nn.Embedding(5, 2)": "nn.Embedding(6, 2)"}, "`emb` (Embedding) has 5 rows")  # fmt: skip
add_row("two devices", "device", """
    a = torch.ones(3, requires_grad=True)
    b = torch.ones(3, device="meta")
    c = a * b  #!
""", {"a * b": "a.to('meta') * b"}, "meta", "cpu", libraries=("torch",))  # fmt: skip
add_row("a model on another device", "device", """
    net = nn.Linear(4, 3, device="meta")
    x = torch.ones(2, 4)
    # %%
    out = net(x)  #!
""", {"net(x)": "net(x.to('meta'))"}, "meta", "x.to('meta')", libraries=("torch",))  # fmt: skip

# ------------------------------------------------------------------------------------------------------- leaves, NumPy
add_row("a leaf is updated", "leaf-in-place", """
    w = torch.ones(3, requires_grad=True)
    (w ** 2).sum().backward()
    w -= 0.1 * w.grad  #!
""", {"    w -= 0.1 * w.grad": "    with torch.no_grad(): w -= 0.1 * w.grad"}, "with torch.no_grad()")  # fmt: skip
add_row("a leaf's item is set", "leaf-in-place", """
    net = nn.Linear(3, 1)
    net.weight[0, 0] = 1.0  #!
""", {"    net.weight[0": "    with torch.no_grad(): net.weight[0"})  # fmt: skip
add_row("to NumPy", "numpy", """
    w = torch.ones(3, requires_grad=True)
    y = w * 2
    a = y.numpy()  #!
""", {"y.numpy()": "y.detach().numpy()"}, "y.numpy()")  # fmt: skip
add_row("backward of a number", "item", """
    w = torch.ones(3, requires_grad=True)
    loss = (w ** 2).sum().item()
    loss.backward()  #!
""", {".sum().item()": ".sum()"})  # fmt: skip
add_row("a name that was bound again", "rebound-leaf", """
    w = torch.ones(3, requires_grad=True)
    for _ in range(3):
        loss = (w ** 2).sum()
        loss.backward()
        w = w - 0.1 * w.grad  #!
""", {"        w = w - 0.1 * w.grad": "        with torch.no_grad(): w -= 0.1 * w.grad"}, "w -= 0.1 * w.grad")  # fmt: skip
add_row("asked for too early", "rebound-leaf", """
    w = torch.randn(3, requires_grad=True) * 0.1  #!
    loss = (w ** 2).sum()
    loss.backward()
    step = 0.1 * w.grad
""", {"w = torch.randn(3, requires_grad=True) * 0.1": "w = (torch.randn(3) * 0.1).requires_grad_()"})  # fmt: skip
add_row("cleared before the update", "no-gradient", """
    w = torch.ones(3, requires_grad=True)
    opt = optim.SGD([w], lr=0.1)
    loss = (w ** 2).sum()
    loss.backward()
    opt.zero_grad()  #!
    step = 0.1 * w.grad
""", {"    opt.zero_grad()  #!\n    step = 0.1 * w.grad":
      "    step = 0.1 * w.grad\n    opt.zero_grad()"}, "opt.zero_grad()")  # fmt: skip
add_row("before any backward", "no-gradient", """
    w = torch.ones(3, requires_grad=True)
    loss = (w ** 2).sum()
    w.grad.zero_()  #!
    loss.backward()
""", {"w.grad.zero_()": "w.grad = None"})  # fmt: skip
add_row("a leaf that was not used", "unused-leaf", """
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    (g,) = torch.autograd.grad((w * 2).sum(), [v])  #!
""", {"(w * 2).sum()": "(v * 2).sum()"}, "`v`")  # fmt: skip
add_row("an input that asks for nothing", "frozen", """
    w, x = torch.ones(3, requires_grad=True), torch.ones(3)
    out = (w * x).sum()
    (g,) = torch.autograd.grad(out, x)  #!
""", {"    out =": "    x.requires_grad_()\n    out ="}, "x.requires_grad_()")  # fmt: skip
add_row("an optimizer of nothing", "stale-optimizer", """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(2, 2)]
    # %%
    net = Net()
    opt = optim.SGD(net.parameters(), lr=0.1)  #!
""", {"[nn.Linear(2, 2)]": "nn.ModuleList([nn.Linear(2, 2)])"}, "`net`")  # fmt: skip
add_row("an optimizer of a result", "not-a-leaf", """
    w = torch.randn(3, requires_grad=True) * 0.1  #!
    opt = optim.SGD([w], lr=0.1)
""", {"torch.randn(3, requires_grad=True) * 0.1": "(torch.randn(3) * 0.1).requires_grad_()"})  # fmt: skip

add_row("a batch norm of a batch of one", "shape", """
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2))
    X, y = torch.randn(9, 4), torch.randint(0, 2, (9,))
    # %%
    for xb, yb in zip(X.split(4), y.split(4)):
        loss = F.cross_entropy(net(xb), yb)  #!
        loss.backward()
""", {"zip(X.split(4), y.split(4))": "zip(X[:8].split(4), y[:8].split(4))"},
      "`net[1]` (BatchNorm1d)", "[1, 3]", "drop_last")  # fmt: skip
add_row("a batch norm of the rest that a loader gives", "shape", """
    from importlib import import_module
    data = import_module(torch.__name__ + ".utils.data")
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2))
    examples = data.TensorDataset(torch.randn(9, 4), torch.randint(0, 2, (9,)))
    # %%
    loader = data.DataLoader(examples, batch_size=4)
    for xb, yb in loader:
        loss = F.cross_entropy(net(xb), yb)  #!
        loss.backward()
        net.zero_grad()
""", {"DataLoader(examples, batch_size=4)": "DataLoader(examples, batch_size=4, drop_last=True)"},
      "`net[1]` (BatchNorm1d)", "[1, 3]", "drop_last=True")  # fmt: skip
add_row("a batch norm of one picture that is evaluated", "shape", """
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.AdaptiveAvgPool2d(1), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(3, 2))
    picture = torch.randn(1, 1, 8, 8)
    # %%
    with torch.no_grad():
        scores = net(picture)  #!
""", {"        scores = net(picture)  #!": "        net.eval()\n        scores = net(picture)"},
      "`net[2]` (BatchNorm2d)", "[1, 3, 1, 1]", "`net.eval()` before `scores = net(picture)`")  # fmt: skip
add_row("an instance norm of one position", "shape", """
    net = nn.Sequential(nn.Conv2d(1, 3, 4), nn.InstanceNorm2d(3))
    out = net(torch.randn(2, 1, 4, 4))  #!
""", {"torch.randn(2, 1, 4, 4)": "torch.randn(2, 1, 5, 5)"}, "`net[1]` (InstanceNorm2d)", "[2, 3, 1, 1]")  # fmt: skip

# ------------------------------------------------------------------------------------------------- labels and targets
add_row("a class too many, given a call", "target", """
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3))
    x, y = torch.randn(8, 10), torch.tensor([0, 1, 2, 3, 0, 1, 2, 3])
    # %%
    loss = F.cross_entropy(model(x), y)  #!
""", {"nn.Linear(16, 3)": "nn.Linear(16, 4)"}, "`model(x)` has 3 classes", "from 0 to 3: 2 of 8")  # fmt: skip
add_row("labels that count from 1", "target", """
    model = nn.Linear(10, 3)
    criterion = nn.CrossEntropyLoss()
    x, y = torch.randn(6, 10), torch.tensor([1, 2, 3, 1, 2, 3])

    def step(xb, yb):
        return criterion(input=model(xb), target=yb)  #!
    loss = step(x, y)
""", {"target=yb": "target=yb - 1"}, "`model(xb)` has 3 classes", "`yb - 1` in place of `yb`")  # fmt: skip
add_row("labels that count from 1, in a forward", "target", """
    class Net(nn.Module):
        def __init__(self, width, classes):
            super().__init__()
            self.fc = nn.Linear(6, width)
            self.head = nn.Linear(width, classes)

        def forward(self, x, y):
            logits = self.head(torch.relu(self.fc(x)))
            return F.nll_loss(F.log_softmax(logits, 1), y)
    # %%
    net = Net(8, 4)
    x, y = torch.randn(4, 6), torch.tensor([1, 4, 2, 3])
    loss = net(x, y)  #!
""", {"net(x, y)": "net(x, y - 1)"}, "`F.log_softmax(logits, 1)` has 4 classes", "Net(8, 5)")  # fmt: skip
add_row("a label for nothing", "target", """
    net = nn.Linear(4, 3)
    x, y = torch.randn(5, 4), torch.tensor([0, 2, -1, 1, -1])
    # %%
    loss = F.cross_entropy(net(x), y)  #!
""", {"(net(x), y)": "(net(x), y, ignore_index=-1)"}, "from -1 to 2: 2 of 5", "ignore_index=-1")  # fmt: skip
add_row("a label for nothing, and a criterion", "target", """
    net = nn.Conv2d(2, 3, 1)
    criterion = nn.CrossEntropyLoss()
    x, y = torch.randn(1, 2, 2, 2), torch.tensor([[[0, 255], [2, 1]]])
    # %%
    logits = net(x)
    loss = criterion(logits, y)  #!
""", {"nn.CrossEntropyLoss()": "nn.CrossEntropyLoss(ignore_index=255)"}, "`logits` has 3 classes", "If 255 marks")  # fmt: skip
add_row("words too many", "target", """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(5, 2)

        def forward(self, ids):
            return self.emb(ids).sum()
    # %%
    model = Model()
    out = model(torch.tensor([[0, 5], [7, 1]]))  #!
""", {"nn.Embedding(5, 2)": "nn.Embedding(8, 2)"}, "from 0 to 7: 2 of 4", "nn.Embedding(8, 2)")  # fmt: skip
add_row("logits for a loss of probabilities", "target", """
    net = nn.Linear(4, 1)
    x, y = 9 * torch.randn(5, 4), torch.ones(5, 1)
    # %%
    loss = F.binary_cross_entropy(net(x), y)  #!
""", {"binary_cross_entropy": "binary_cross_entropy_with_logits"}, "`net(x)` has numbers from")  # fmt: skip
add_row("logits for BCELoss", "target", """
    net = nn.Linear(4, 1)
    criterion = nn.BCELoss()
    x, y = 9 * torch.randn(5, 4), torch.ones(5, 1)
    # %%
    out = net(x)
    loss = criterion(out, y)  #!
""", {"nn.BCELoss()": "nn.BCEWithLogitsLoss()"}, "`out` has numbers from", "nn.BCEWithLogitsLoss()")  # fmt: skip
add_row("a binary target of one axis", "shape", """
    net = nn.Linear(4, 1)
    x, y = torch.randn(6, 4), torch.ones(6)
    # %%
    loss = F.binary_cross_entropy_with_logits(net(x), y)  #!
""", {"net(x), y": "net(x).squeeze(1), y"},
    "`net(x)` has shape [6, 1] and `y` [6]", "`y.unsqueeze(1)` in place of `y`")  # fmt: skip
add_row("a binary target of one axis, and a criterion", "shape", """
    net = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
    criterion = nn.BCELoss()
    batches = [(torch.randn(6, 4), torch.ones(6))]
    # %%
    for xb, yb in batches:
        loss = criterion(net(xb), yb)  #!
""", {"net(xb), yb": "net(xb), yb.unsqueeze(1)"}, "`net(xb)` has shape [6, 1] and `yb` [6]")  # fmt: skip
add_row("one-hot integers", "dtype", """
    net = nn.Linear(4, 3)
    x, y = torch.randn(6, 4), torch.tensor([[1, 0, 0], [0, 1, 0], [0, 0, 1]] * 2)
    # %%
    loss = F.cross_entropy(net(x), y)  #!
""", {"net(x), y": "net(x), y.argmax(1)"}, "`y` has the shape of the scores, [6, 3]", "`y.float()` in place of `y`")  # fmt: skip
add_row("classes in the last axis", "shape", """
    net = nn.Linear(4, 3)
    x, y = torch.randn(6, 7, 4), torch.zeros(6, 7, dtype=torch.long)
    # %%
    loss = F.cross_entropy(net(x), y)  #!
""", {"net(x), y": "net(x).transpose(1, 2), y"}, "dimension 1 and are in dimension 2")  # fmt: skip
add_row("a target with an axis too many", "shape", """
    net = nn.Linear(4, 3)
    x, y = torch.randn(6, 4), torch.zeros(6, 1, dtype=torch.long)
    # %%
    loss = nn.CrossEntropyLoss()(net(x), y)  #!
""", {"net(x), y": "net(x), y.squeeze(1)"}, "`y` [6, 1]", "`y.squeeze(1)` in place of `y`")  # fmt: skip
add_row("a target that was not flattened", "shape", """
    net = nn.Linear(4, 3)
    x, y = torch.randn(2, 5, 4), torch.zeros(2, 5, dtype=torch.long)
    # %%
    logits = net(x)
    loss = F.cross_entropy(logits.view(-1, 3), y)  #!
""", {"3), y": "3), y.flatten()"}, "10 rows of scores for 2 targets", "`y.flatten()` in place of `y`")  # fmt: skip
add_row("a column of floats for classes", "dtype", """
    net = nn.Linear(4, 3)
    x, y = torch.randn(6, 4), torch.zeros(6)
    criterion = nn.CrossEntropyLoss()
    # %%
    loss = criterion(net(x), y)  #!
""", {"net(x), y": "net(x), y.long()"}, "`y` is float32", "`y.long()` in place of `y`")  # fmt: skip

# -------------------------------------------------------------------------------------------------------------- layers
add_row("channels last", "shape", """
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU())
    x = torch.randn(8, 28, 28, 1)
    # %%
    out = model(x)  #!
""", {"model(x)": "model(x.permute(0, 3, 1, 2))"}, "channels are last", "`x.permute(0, 3, 1, 2)` in place of `x`")  # fmt: skip
add_row("channels last in a forward", "shape", """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3, padding=1, stride=2)

        def forward(self, x):
            return F.relu(self.conv(x))
    # %%
    net, X = Net(), torch.randn(4, 16, 16, 3)
    loss = net(X).sum()  #!
""", {"net(X)": "net(X.permute(0, 3, 1, 2))"},
    "`net.conv` (Conv2d)", "channels are last",
    "self.conv(x.permute(0, 3, 1, 2))")  # fmt: skip
add_row("channels last, one picture", "shape", """
    conv = nn.Conv2d(3, 4, 3)
    picture = torch.randn(8, 8, 3)
    # %%
    out = conv(picture)  #!
""", {"conv(picture)": "conv(picture.permute(2, 0, 1))"}, "channels are last", "`picture.permute(2, 0, 1)`")  # fmt: skip
add_row("channels last, sequences", "shape", """
    conv = nn.Conv1d(4, 8, 3)
    def features(batch):
        return conv(batch)  #!
    out = features(torch.randn(2, 50, 4))
""", {"conv(batch)": "conv(batch.permute(0, 2, 1))"}, "`batch` of shape [2, 50, 4]", "`batch.permute(0, 2, 1)`")  # fmt: skip
add_row("channels last, volumes", "shape", """
    conv = nn.Conv3d(2, 3, 2)
    x = torch.randn(1, 4, 4, 4, 2)
    # %%
    out = conv(x)  #!
""", {"conv(x)": "conv(x.permute(0, 4, 1, 2, 3))"}, "channels are last")  # fmt: skip
add_row("channels last, transposed", "shape", """
    up = nn.ConvTranspose2d(3, 4, 2)
    x = torch.randn(2, 5, 5, 3)
    # %%
    out = up(x)  #!
""", {"up(x)": "up(x.permute(0, 3, 1, 2))"}, "channels are last")  # fmt: skip
add_row("channels last, normalised", "shape", """
    bn = nn.BatchNorm2d(3)
    x = torch.randn(2, 8, 8, 3)
    # %%
    out = bn(x)  #!
""", {"bn(x)": "bn(x.permute(0, 3, 1, 2))"}, "channels are last")  # fmt: skip
add_row("channels last, normalised sequences", "shape", """
    bn = nn.BatchNorm1d(6)
    x = torch.randn(2, 5, 6)
    # %%
    out = bn(x) + x  #!
""", {"bn(x)": "bn(x.permute(0, 2, 1)).permute(0, 2, 1)"}, "channels are last")  # fmt: skip
add_row("channels last, as a function", "shape", """
    w = torch.randn(4, 3, 2, 2, requires_grad=True)
    x = torch.randn(2, 5, 5, 3)
    out = F.conv2d(x, w)  #!
""", {"(x, w)": "(x.permute(0, 3, 1, 2), w)"}, "channels are last")  # fmt: skip
add_row("no axis for the channel", "shape", """
    conv = nn.Conv2d(1, 4, 3)
    x = torch.randn(6, 8, 8)
    # %%
    out = conv(x)  #!
""", {"conv(x)": "conv(x.unsqueeze(1))"}, "channel axis is missing", "`x.unsqueeze(1)` in place of `x`")  # fmt: skip
add_row("channels, all else kept", "shape", """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3, padding=1, stride=2)

        def forward(self, x):
            return F.relu(self.conv(x))
    # %%
    net, X = Net(), torch.randn(4, 1, 16, 16)
    loss = net(X).sum()  #!
""", {"nn.Conv2d(3, 8": "nn.Conv2d(1, 8"}, "`nn.Conv2d(1, 8, 3, padding=1, stride=2)` in place of")  # fmt: skip
add_row("a layer twice in a model", "shape", """
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    # %%
    out = net(torch.randn(5, 4))  #!
""", {"nn.ReLU(), nn.Linear(4, 8)": "nn.ReLU(), nn.Linear(8, 8)"}, "`net[2]` (Linear) takes 4 features")  # fmt: skip
add_row("pictures that are not flat", "shape", """
    model = nn.Sequential(nn.Linear(784, 10), nn.ReLU())
    x = torch.randn(5, 1, 28, 28)
    # %%
    out = model(x)  #!
""", {"model(x)": "model(x.flatten(1))"}, "784 features", "`nn.Flatten`", "`x.flatten(1)` in place of `x`")  # fmt: skip
add_row("a picture for ten features", "shape", """
    model = nn.Linear(10, 10)
    x = torch.randn(1, 28, 28)
    # %%
    out = model(x)  #!
""", {"nn.Linear(10, 10)": "nn.Sequential(nn.Flatten(), nn.Linear(784, 10))"}, "`nn.Flatten`", "784 features",
    "`nn.Linear(28, 10)` in place of `nn.Linear(10, 10)`", also={"nn.Linear(10, 10)": "nn.Linear(28, 10)"})  # fmt: skip
add_row("features of a convolution that are not flat", "shape", """
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Linear(4 * 6 * 6, 10))
    x = torch.randn(2, 1, 8, 8)
    # %%
    out = model(x)  #!
""", {"nn.Linear(4 * 6 * 6, 10)": "nn.Sequential(nn.Flatten(), nn.Linear(4 * 6 * 6, 10))"},
    "`nn.Flatten`", "144 features")  # fmt: skip
add_row("features of a convolution, counted wrongly", "shape", """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 4, 3)
            self.fc = nn.Linear(4 * 8 * 8, 10)

        def forward(self, x):
            h = F.relu(self.conv(x))
            return self.fc(h.view(h.size(0), -1))
    # %%
    net = Net()
    out = net(torch.randn(2, 1, 8, 8))  #!
""", {"4 * 8 * 8": "144"},
    "`net.fc` (Linear) takes 256 features", "`nn.Linear(144, 10)` in place of `nn.Linear(4 * 8 * 8, 10)`")  # fmt: skip
add_row("no axis for the batch", "shape", """
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(4 * 6 * 6, 10))
    x = torch.randn(1, 8, 8)
    # %%
    out = model(x)  #!
""", {"model(x)": "model(x.unsqueeze(0))"}, "batch axis is missing", "`x.unsqueeze(0)` in place of `x`")  # fmt: skip
add_row("sequences of another width", "shape", """
    rnn = nn.LSTM(5, 8, batch_first=True)
    x = torch.randn(2, 7, 4)
    # %%
    out, _ = rnn(x)  #!
""", {"nn.LSTM(5,": "nn.LSTM(4,"}, "`rnn` (LSTM) takes 5 features", "`nn.LSTM(4, 8, batch_first=True)`")  # fmt: skip

# --------------------------------------------------------------------------------------------------------- joins, views
add_row("joined along the wrong dimension", "shape", """
    a, b = torch.randn(3, 4), torch.randn(3, 5)
    c = torch.cat([a, b])  #!
""", {"[a, b]": "[a, b], dim=1"}, "`a` has shape [3, 4] and `b` [3, 5]", "Dimension 1 is 4 and 5", "dim=1")  # fmt: skip
add_row("joined along dimension 1 in a forward", "shape", """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.token = nn.Parameter(torch.randn(1, 4))

        def forward(self, x):
            return torch.cat((self.token, x), dim=1)
    # %%
    out = Net()(torch.randn(3, 4))  #!
""", {"dim=1": "dim=0"}, "`self.token` has shape [1, 4] and `x` [3, 4]", "Dimension 0 is 1 and 3")  # fmt: skip
add_row("a list that is joined", "shape", """
    parts = [torch.randn(2, 3), torch.randn(2, 4)]
    whole = torch.vstack(parts)  #!
""", {"torch.vstack(parts)": "torch.cat(parts, dim=1)"}, "`parts[0]` has shape [2, 3] and `parts[1]` [2, 4]")  # fmt: skip
add_row("joined with an axis too few", "shape", """
    rows, one = torch.randn(3, 4), torch.randn(4)
    c = torch.cat([rows, one])  #!
""", {"[rows, one]": "[rows, one.unsqueeze(0)]"}, "`one` has shape [4]", "`one.unsqueeze(0)` in place of `one`")  # fmt: skip
add_row("stacked with other shapes", "shape", """
    a, b = torch.randn(3, 4), torch.randn(3, 5)
    c = torch.stack([a, b])  #!
""", {"torch.stack([a, b])": "torch.cat([a, b], dim=1)"},
    "`a` has shape [3, 4] and `b` [3, 5]", "Dimension 1 is 4 and 5")  # fmt: skip
add_row("a view of another size", "shape", """
    x = torch.randn(8, 16, 5, 5)
    h = x.view(-1, 16 * 4 * 4)  #!
""", {"x.view(-1, 16 * 4 * 4)": "x.flatten(1)"}, "3200 elements", "multiple of 256", "`x.flatten(1)` in place of")  # fmt: skip
add_row("a view of a transposed tensor", "shape", """
    x = torch.randn(3, 4, requires_grad=True)
    h = x.t().view(12)  #!
""", {"view": "reshape"}, "not contiguous", "`x.t().reshape(12)` in place of `x.t().view(12)`")  # fmt: skip
add_row("expanded along an axis that is not 1", "shape", """
    x = torch.randn(3)
    y = x.expand(3, 5)  #!
""", {"x.expand": "x.unsqueeze(1).expand"}, "`x` has shape [3], and [3, 5]", "`x.unsqueeze(1)` in place of `x`")  # fmt: skip
add_row("a letter of two sizes", "shape", """
    a, b = torch.randn(3, 4), torch.randn(5, 6)
    c = torch.einsum("ij,jk->ik", a, b)  #!
""", {"torch.randn(5, 6)": "torch.randn(4, 6)"}, "letter j", "4 in `a`", "5 in `b`")  # fmt: skip
add_row("lists of two lengths", "shape", """
    rows = [[1.0, 2.0], [3.0]]
    t = torch.tensor(rows)  #!
""", {"torch.tensor(rows)": "torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)"},
    "`rows[0]` has 2 items and `rows[1]` 1", "pad_sequence")  # fmt: skip
add_row("a condition of several elements", "shape", """
    x = torch.randn(4)
    if x > 0:  #!
        x = -x
""", {"x > 0": "(x > 0).any()"}, "`x > 0` has shape [4]", "`(x > 0).all()` in place of `x > 0`")  # fmt: skip
add_row("two conditions of several elements", "shape", """
    def keep(x):
        mask = x > 0 and x < 1  #!
        return x[mask]
    kept = keep(torch.rand(4) + 0.5)
""", {"x > 0 and x < 1": "(x > 0) & (x < 1)"}, "`(x > 0) & (x < 1)` in place of")  # fmt: skip
add_row("a chained comparison", "shape", """
    x = torch.rand(4)
    mask = 0 < x < 0.5  #!
""", {"0 < x < 0.5": "(0 < x) & (x < 0.5)"}, "`(0 < x) & (x < 0.5)` in place of")  # fmt: skip
add_row("a bias of another width", "shape", """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.W, self.b = nn.Parameter(torch.randn(4, 5)), nn.Parameter(torch.randn(3))

        def forward(self, x):
            return x @ self.W + self.b
    # %%
    out = Net()(torch.randn(2, 4))  #!
""", {"torch.randn(3)": "torch.randn(5)"},
    "`x @ self.W` has shape [2, 5] and `self.b` [3]", "5 (dimension 1) is not 3")  # fmt: skip
add_row("a weight the wrong way round in a forward", "shape", """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.W = nn.Parameter(torch.randn(5, 4))

        def forward(self, x):
            return torch.relu(x @ self.W)
    # %%
    out = Net()(torch.randn(2, 4))  #!
""", {"x @ self.W": "x @ self.W.mT"}, "`x` has shape [2, 4] and `self.W` [5, 4]", "4 is not 5", "self.W.mT")  # fmt: skip
add_row("a weight the wrong way round, as a function", "shape", """
    x, w = torch.randn(3, 4), torch.randn(4, 5, requires_grad=True)
    out = F.linear(x, w)  #!
""", {"(x, w)": "(x, w.mT)"}, "`x` has shape [3, 4] and `w` [4, 5]", "`w.mT` in place of `w`")  # fmt: skip
add_row("batches of products of another size", "shape", """
    a, b = torch.randn(2, 3, 4), torch.randn(2, 3, 4, requires_grad=True)
    scores = a @ b  #!
""", {"a @ b": "a @ b.mT"}, "4 is not 3", "`b.mT` in place of `b`")  # fmt: skip

# ------------------------------------------------------------------------------------------------------------- tuples
add_row("the tuple of an LSTM", "shape", """
    lstm = nn.LSTM(4, 8, batch_first=True)
    x = torch.randn(2, 5, 4)
    # %%
    out = lstm(x)
    loss = out.sum()  #!
""", {"= lstm(x)": "= lstm(x)[0]"},
    "`lstm` (LSTM) returns the tuple (output, (h, c))", "`lstm(x)[0]` in place of `lstm(x)`")  # fmt: skip
add_row("the tuple of a GRU, indexed in a forward", "shape", """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.fc = nn.GRU(4, 8, batch_first=True), nn.Linear(8, 1)

        def forward(self, x):
            h = self.rnn(x)
            return self.fc(h[:, -1])
    # %%
    out = Net()(torch.randn(2, 5, 4))  #!
""", {"= self.rnn(x)": "= self.rnn(x)[0]"}, "`self.rnn` (GRU) returns the tuple (output, h)", "`self.rnn(x)[0]`")  # fmt: skip
add_row("the tuple of an LSTM, given to a layer", "shape", """
    rnn, fc = nn.LSTM(4, 8), nn.Linear(8, 1)
    x = torch.randn(2, 5, 4)
    # %%
    out = fc(rnn(x))  #!
""", {"rnn(x)": "rnn(x)[0]"}, "`rnn` (LSTM) returns the tuple", "`rnn(x)[0]` in place of `rnn(x)`")  # fmt: skip
add_row("the tuple of attention", "shape", """
    att = nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(2, 5, 8)
    # %%
    h = att(x, x, x).mean()  #!
""", {"att(x, x, x)": "att(x, x, x)[0]"}, "`att` (MultiheadAttention) returns the tuple (output, weights)")  # fmt: skip
add_row("the tuple of max", "shape", """
    x = torch.randn(3, 4, requires_grad=True)
    loss = x.max(1).sum()  #!
""", {"x.max(1)": "x.max(1)[0]"}, "returns the tuple (values, indices)", "`x.max(1)[0]` in place of `x.max(1)`")  # fmt: skip
add_row("the tuple of an LSTM within a Sequential", "shape", """
    net = nn.Sequential(nn.LSTM(4, 8), nn.Linear(8, 1))
    # %%
    out = net(torch.randn(2, 5, 4))  #!
""", {"net(torch.randn(2, 5, 4))": "net[1](net[0](torch.randn(2, 5, 4))[0])"}, "`net[0]` (LSTM)", "`net[1]`")  # fmt: skip

# --------------------------------------------------------------------------------------------------------------- writes
add_row("a chain of methods in place", "in-place", """
    x = torch.randn(4, 3, requires_grad=True)
    h = torch.sigmoid(x)
    h.relu_().mul_(2)  #!
    loss = h.sum()
    loss.backward()
""", {"h.relu_().mul_(2)": "h = h.relu().mul(2)"}, "`h = h.relu().mul(2)` in place of `h.relu_().mul_(2)`")  # fmt: skip
add_row("relu in place", "in-place", """
    x = torch.randn(4, 3, requires_grad=True)
    h = torch.sigmoid(x)
    g = F.relu(h, inplace=True)  #!
    g.sum().backward()
""", {", inplace=True": ""}, "Sigmoid", "`F.relu(h)` in place of `F.relu(h, inplace=True)`")  # fmt: skip
add_row("a layer that writes in place", "in-place", """
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 4), nn.Sigmoid(), nn.ReLU(True), nn.Linear(4, 1))
    x = torch.randn(4, 3)
    # %%
    loss = net(x).sum()
    loss.backward()  #!
""", {"nn.ReLU(True)": "nn.ReLU(False)"},
    "`net[4]` (ReLU, inplace=True)", "`nn.ReLU(False)` in place of `nn.ReLU(True)`")  # fmt: skip
add_row("a write that is returned", "in-place", """
    def act(v):
        h = v.sigmoid()
        return h.mul_(2)  #!
    x = torch.randn(4, 3, requires_grad=True)
    act(x).sum().backward()
""", {"h.mul_(2)": "h.mul(2)"}, "`h.mul(2)` in place of `h.mul_(2)`")  # fmt: skip
add_row("an attribute that is added to", "in-place", """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 4)

        def forward(self, x):
            self.h = torch.tanh(self.fc(x))
            self.h += 1
            return self.h
    # %%
    net = Net()
    loss = net(torch.randn(5, 3)).sum()
    loss.backward()  #!
""", {"self.h += 1": "self.h = self.h + 1"},
    "`self.h += 1` at cell In[", "line 8", "`self.h = self.h + 1` in place of")  # fmt: skip
add_row("a write as an argument", "in-place", """
    x = torch.randn(4, 3, requires_grad=True)
    h = torch.tanh(x)
    loss = torch.sum(h.add_(1))  #!
    loss.backward()
""", {"h.add_(1)": "h.add(1)"}, "`h.add(1)` in place of `h.add_(1)`")  # fmt: skip
add_row("writes in a comprehension", "in-place", """
    x = torch.randn(4, 3, requires_grad=True)
    hs = [torch.tanh(row) for row in x]
    out = [h.mul_(2) for h in hs]  #!
    torch.stack(out).sum().backward()
""", {"h.mul_(2)": "h.mul(2)"}, "`h.mul(2)` in place of `h.mul_(2)`")  # fmt: skip
add_row("a write in a condition", "in-place", """
    x = torch.randn(4, 3, requires_grad=True)
    h = torch.exp(x)
    if h.clamp_(max=1).sum() > 0:  #!
        loss = h.sum()
    loss.backward()
""", {"    if h.clamp_": "    h = h.clone()\n    if h.clamp_"}, "h.clamp_(max=1)")  # fmt: skip
add_row("a column that is scaled, in a function", "in-place", """
    def train(x):
        h = torch.exp(x)
        h[:, 0] *= 2  #!
        loss = h.sum()
        loss.backward()
    train(torch.randn(4, 3, requires_grad=True))
""", {"        h[:, 0]": "        h = h.clone()\n        h[:, 0]"}, "`h = h.clone()` before `h[:, 0] *= 2`")  # fmt: skip
add_row("a view that is written to", "in-place", """
    x = torch.randn(4, 3, requires_grad=True)
    h = torch.exp(x)
    h.view(-1).mul_(3)  #!
    h.sum().backward()
""", {"    h.view(-1)": "    h = h.clone()\n    h.view(-1)"}, "`h = h.clone()` before")  # fmt: skip
add_row("a function that writes in place", "in-place", """
    x = torch.randn(4, 3, requires_grad=True)
    h = torch.tanh(x)
    torch.relu_(h)  #!
    h.sum().backward()
""", {"torch.relu_(h)": "h = torch.relu(h)"}, "`h = torch.relu(h)` in place of `torch.relu_(h)`")  # fmt: skip
add_row("a residual that is added in place", "in-place", """
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            out = torch.sigmoid(self.fc(x))
            out += x  #!
            return out
    net = nn.Sequential(Block(), Block())
    loss = net(torch.randn(2, 4)).pow(2).mean()
    loss.backward()
""", {"out += x": "out = out + x"}, "`out = out + x` in place of `out += x`")  # fmt: skip
add_row("of two writes the one that matters", "in-place", """
    x = torch.randn(4, 3, requires_grad=True)
    a = torch.tanh(x)
    b = x * 2
    b += 1
    a += 1  #!
    (a.sum() + b.sum()).backward()
""", {"a += 1": "a = a + 1"}, "Tanh", "`a += 1` on line 5")  # fmt: skip
add_row("an output that is written to where nothing is recorded", "in-place", """
    x = torch.randn(4, 3, requires_grad=True)
    h = torch.exp(x)
    loss = h.sum()
    with torch.no_grad():
        torch.add(h, 1, out=h)  #!
    loss.backward()
""", {"    with torch.no_grad():\n        torch.add(h, 1, out=h)  #!\n    loss.backward()":
      "    loss.backward()\n    with torch.no_grad():\n        torch.add(h, 1, out=h)"},
    "`torch.add(h, 1, out=h)` on line 5")  # fmt: skip
add_row("an output that must be differentiated", "in-place", """
    x = torch.randn(4, 3, requires_grad=True)
    h = torch.exp(x)
    torch.add(h, 1, out=h)  #!
    h.sum().backward()
""", {"torch.add(h, 1, out=h)": "h = torch.add(h, 1)"}, "`h = torch.add(h, 1)` in place of")  # fmt: skip
add_row("a write before backward in a helper", "in-place", """
    def sweep(loss):
        loss.backward()
    x = torch.randn(4, 3, requires_grad=True)
    h = torch.tanh(x)
    h -= 0.5  #!
    sweep(h.sum())
""", {"h -= 0.5": "h = h - 0.5"}, "`h -= 0.5` on line 5")  # fmt: skip

# ----------------------------------------------------------------------------------------------------------- grad modes
add_row("gradients are switched off at the top", "no_grad", """
    torch.set_grad_enabled(False)  #!
    net = nn.Linear(3, 1)
    loss = net(torch.randn(5, 3)).pow(2).mean()
    loss.backward()
""", {"set_grad_enabled(False)": "set_grad_enabled(True)"}, "`torch.set_grad_enabled(False)` on line 1")  # fmt: skip
add_row("an evaluation leaves gradients off", "no_grad", """
    net = nn.Linear(3, 1)
    def evaluate(x):
        torch.autograd.grad_mode.set_grad_enabled(False)  #!
        return net(x).mean().item()
    x = torch.randn(5, 3)
    evaluate(x)
    loss = net(x).pow(2).mean()
    loss.backward()
""", {"set_grad_enabled(False)": "set_grad_enabled(True)"}, "set_grad_enabled(False)` on line 3")  # fmt: skip
add_row("a decorator that was left", "no_grad", """
    net = nn.Linear(3, 1)
    @torch.no_grad()  #!
    def compute(x):
        return net(x).pow(2).mean()
    loss = compute(torch.randn(5, 3))
    loss.backward()
""", {"@torch.no_grad()  #!": ""}, "`compute` runs under `@torch.no_grad()` on line 2", "Remove")  # fmt: skip
add_row("a reentrant checkpoint of an input", "checkpoint-without-grad", """
    from torch.utils.checkpoint import checkpoint
    block = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    x, y = torch.randn(16, 8), torch.randn(16, 1)
    h = checkpoint(block, x, use_reentrant=True)  #!
    loss = F.mse_loss(h, y)
    loss.backward()
""", {"use_reentrant=True)  #!": "use_reentrant=False)"}, "checkpoint(block, x, use_reentrant=True)",
    libraries=("torch",))  # fmt: skip
add_row("a decorator in an earlier cell", "no_grad", """
    net = nn.Linear(3, 1)
    @torch.inference_mode()
    def compute(x):
        return net(x).pow(2).mean()
    # %%
    loss = compute(torch.randn(5, 3))  #!
    loss.backward()
""", {"@torch.inference_mode()": ""}, "`@torch.inference_mode()` at cell In[", "line 2")  # fmt: skip
add_row("a decorator of a method that a forward calls", "no_grad", """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 1)

        @torch.no_grad()  #!
        def embed(self, x):
            return self.fc(x)

        def forward(self, x):
            return self.embed(x) * 2

        @torch.no_grad()
        def evaluate(self, x):
            return self.fc(x)
    net = Net()
    loss = net(torch.randn(5, 3)).pow(2).mean()
    loss.backward()
""", {"@torch.no_grad()  #!": ""}, "`embed` runs under `@torch.no_grad()` on line 6")  # fmt: skip
add_row("a block in a function", "no_grad", """
    net = nn.Linear(3, 1)
    def compute(x):
        with torch.no_grad():
            out = net(x)
        return out
    loss = compute(torch.randn(5, 3)).mean()  #!
    loss.backward()
""", {"with torch.no_grad():": "if True:"}, "`with torch.no_grad():` on line 3")  # fmt: skip
add_row("a training function under no_grad", "no_grad", """
    net = nn.Linear(3, 1)
    @torch.no_grad()  #!
    def train(x):
        loss = net(x).mean()
        loss.backward()
    train(torch.randn(5, 3))
""", {"@torch.no_grad()  #!": ""}, "`@torch.no_grad()` on line 2")  # fmt: skip

# --------------------------------------------------------------------------------------------------------------- leaves
add_row("backward of a leaf", "frozen", """
    x = torch.rand(3)  #!
    x.backward()
""", {"torch.rand(3)": "torch.rand(3, requires_grad=True)", "x.backward()": "x.sum().backward()"},
    "it is a leaf made by `torch.rand(3)` on line 1", "requires_grad=True")  # fmt: skip
add_row("backward of a number that is a leaf", "frozen", """
    x = torch.rand(())  #!
    x.backward()
""", {"torch.rand(())": "torch.rand((), requires_grad=True)"}, "it is a leaf made by `torch.rand(())`")  # fmt: skip
add_row("a loss of integers", "frozen", """
    x = torch.tensor([1, 2, 3])
    y = (x * 2).sum()  #!
    y.backward()
""", {"[1, 2, 3]": "[1, 2, 3], dtype=torch.float32, requires_grad=True"},
    "integers", "made by `torch.tensor([1, 2, 3])` on line 1")  # fmt: skip
add_row("a function's argument asks for nothing", "frozen", """
    def sweep(w):
        loss = (w ** 2).sum()  #!
        loss.backward()
    sweep(torch.ones(3))
""", {"        loss = (w": "        w.requires_grad_()\n        loss = (w"}, "`w`", "`w.requires_grad_()` before")  # fmt: skip

# ------------------------------------------------------------------------------------------------ programs of other people
add_row("a classifier whose width was counted for other pictures", "shape", """
    class TinyVGG(nn.Module):
        def __init__(self, hidden_units, output_shape):
            super().__init__()
            self.block = nn.Sequential(nn.Conv2d(3, hidden_units, kernel_size=3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
            self.classifier = nn.Sequential(
                nn.Flatten(), nn.Linear(in_features=hidden_units * 7 * 7, out_features=output_shape)
            )

        def forward(self, x):
            x = self.block(x)
            return self.classifier(x)
    # %%
    model = TinyVGG(hidden_units=4, output_shape=3)
    out = model(torch.randn(2, 3, 16, 16))  #!
""", {"hidden_units * 7 * 7": "256"}, "`model.classifier[1]` (Linear) takes 196 features", "in_features=256")  # fmt: skip
add_row("a loss that is an attribute, and a batch that is unpacked", "target", """
    class Lit(nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.loss = nn.Linear(3, 4), nn.CrossEntropyLoss()

        def training_step(self, batch):
            x, y = batch
            return self.loss(self.net(x), y)  #!
    lit = Lit()
    for batch in [(torch.randn(4, 3), torch.tensor([1, 2, 3, 4]))]:
        lit.training_step(batch)
""", {"self.net(x), y": "self.net(x), y - 1"}, "`self.net(x)` has 4 classes", "The labels in `y` are from 1 to 4")  # fmt: skip
add_row("a mask without an axis", "shape", """
    q, mask = torch.randn(2, 5, 8), torch.ones(2, 5)
    def attend(q):
        return (q @ q.mT).masked_fill(mask == 0, -1e9)  #!
    out = attend(q)
""", {"mask == 0,": "(mask == 0).unsqueeze(1),"}, "`q @ q.mT` has shape [2, 5, 5] and `mask == 0` [2, 5]")  # fmt: skip
add_row("attention of another width", "shape", """
    att = nn.MultiheadAttention(16, 2, batch_first=True)
    x = torch.randn(2, 5, 8)
    # %%
    out, _ = att(x, x, x)  #!
""", {"Attention(16": "Attention(8"}, "`att` (MultiheadAttention) takes 16 features", "`x` of shape [2, 5, 8]")  # fmt: skip
add_row("a row of another length", "shape", """
    table, row = torch.zeros(4, 3), torch.randn(4)
    table[0] = row  #!
""", {"= row": "= row[:3]"}, "`table[0]` has shape [3], and `row` has shape [4]")  # fmt: skip
add_row("a choice by a tensor", "shape", """
    x = torch.randn(3)
    y = x if x > 0 else -x  #!
""", {"x if x > 0 else -x": "torch.where(x > 0, x, -x)"}, "`x > 0` has shape [3]", "`(x > 0).all()`")  # fmt: skip
add_row("a tensor of tensors", "shape", """
    rows = [torch.randn(3), torch.randn(3)]
    t = torch.tensor(rows)  #!
""", {"torch.tensor(rows)": "torch.stack(rows)"}, "tensors of shape [3]", "`torch.stack(rows)` in place of")  # fmt: skip
add_row("to NumPy, by a function of NumPy's", "numpy", """
    y = torch.randn(3, requires_grad=True) * 2
    z = np.exp(y)  #!
""", {"np.exp(y)": "torch.exp(y)"}, "`y.detach()` in place of `y`")  # fmt: skip

add_row("a scaler that is updated without a step", "nothing-learns", """
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    x, y = torch.randn(8, 4), torch.randn(8, 1)
    # %%
    for step in range(3):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.update()  #!
""", {"scaler.update()": "scaler.step(opt); scaler.update()"},
    "`scaler.step(opt)` before `scaler.update()`", libraries=("torch",))  # fmt: skip

add_row("clipping of each element before there is a gradient", "idle-clipping", """
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(8, 4), torch.randn(8, 1)
    # %%
    for step in range(3):
        opt.zero_grad()
        nn.utils.clip_grad_value_(net.parameters(), 0.5)  #!
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
""", {"clip_grad_value_(net.parameters(), 0.5)": "parameters_to_vector(net.parameters())",
      "loss.backward()": "loss.backward(); nn.utils.clip_grad_value_(net.parameters(), 0.5)"},
    "no parameter has a gradient", libraries=("torch",))  # fmt: skip

# Rows whose fix is a sentence, and why there is nothing to type.
MOVES = "a line moves, and nothing is typed"
WHOLE = "the lines of the function or block stay, and the decorator or `with` line is removed"
OTHER = "another model or another loss is needed"
WORDS = {
    "the optimizer steps before the second loss": MOVES,
    "a step by hand before the second loss": MOVES,
    "an output that is written to where nothing is recorded": MOVES,
    "cleared before the update": MOVES,
    "clipping of each element before there is a gradient": MOVES,
    "before any backward": MOVES,
    "under no_grad": WHOLE,
    "a decorator that was left": WHOLE,
    "a decorator in an earlier cell": WHOLE,
    "a decorator of a method that a forward calls": WHOLE,
    "a block in a function": WHOLE,
    "a training function under no_grad": WHOLE,
    "a number makes the loss": "two lines change, where the number is taken and where it becomes a tensor",
    "a comparison": OTHER,
    "positions": OTHER,
    "targets of another batch": "only the author knows which rows and targets belong together",
    "a leaf that was not used": "only the author knows which tensor is meant",
    "a letter of two sizes": "only the author knows which operand is wrong",
    "a bias of another width": "only the author knows which operand is wrong",
    "a row of another length": "only the author knows which operand is wrong",
    "the tuple of an LSTM within a Sequential": "the model's forward is written out",
    "a batch norm of a batch of one": "the author has to choose which examples belong in a batch",
    "an instance norm of one position": "another size of picture, or another layer",
    "backward of a leaf": "the author has to choose a loss with one element that is computed from it",
}
