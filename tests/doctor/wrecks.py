"""Cells that end in an error, with the line that caused it and what cures it: material for the doctor after a run.

`#!` marks the line that must be named. `cure` replaces pieces of the last cell, and then it ends well; every piece of code in the
advice stands in the cured cells. Cells are parted by `# %%`. Names are those of `row_runs.PRELUDE`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Wreck:
    name: str
    kind: str
    texts: tuple[str, ...]
    line: int | None
    cured: tuple[tuple[str, ...], ...]  # by the advice, and by what it names besides
    says: tuple[str, ...]
    libraries: tuple[str, ...]


WRECKS: dict[str, Wreck] = {}


def wreck(
    name: str,
    kind: str,
    text: str,
    cure: Mapping[str, str],
    *says: str,
    also: Mapping[str, str] | None = None,
    libraries: tuple[str, ...] = ("gradlab", "torch"),
) -> None:
    text = inspect.cleandoc(text)
    cured = [replaced(text, one) for one in (cure, also) if one is not None]
    marked = cells(text)
    lines = [n for n, line in enumerate(marked[-1].splitlines(), 1) if line.endswith("#!")]
    assert name not in WRECKS
    WRECKS[name] = Wreck(
        name, kind, plain(marked), lines[0] if lines else None, tuple(plain(cells(one)) for one in cured), says, libraries
    )


def replaced(text: str, cure: Mapping[str, str]) -> str:
    for pair in cure.items():
        old, new = (re.sub("(?m)^    ", "", piece) for piece in pair)  # indented as the text is
        assert old in text, old
        text = text.replace(old, new)
    return text


def cells(text: str) -> list[str]:
    return [cell.strip("\n") for cell in text.split("# %%\n")]


def plain(texts: list[str]) -> tuple[str, ...]:
    return tuple("\n".join(line.removesuffix("#!").rstrip() for line in text.splitlines()) for text in texts)


# ------------------------------------------------------------------------------------------------ saved, then overwritten
wreck("a result is added to", "in-place", """
    w = torch.ones(3, requires_grad=True)
    y = w.exp()
    y += 1  #!
    y.sum().backward()
""", {"y += 1": "y = y + 1"}, "`y += 1`", "Exp")  # fmt: skip
wreck("a method in place", "in-place", """
    x = torch.randn(4, 3, requires_grad=True)
    h = torch.sigmoid(x)
    h.mul_(2.0)  #!
    loss = h.pow(2).mean()
    loss.backward()
""", {"h.mul_(2.0)": "h = h.mul(2.0)"}, "`h.mul_(2.0)`")  # fmt: skip
wreck("an item is set", "in-place", """
    x = torch.randn(4, requires_grad=True)
    h = torch.exp(x)
    h[0] = 0.0  #!
    h.sum().backward()
""", {"h[0] = 0.0": "h = h.clone()\n    h[0] = 0.0"}, "h = h.clone()")  # fmt: skip
wreck("the optimizer steps before the second loss", "in-place", """
    a, b = nn.Linear(4, 4), nn.Linear(4, 4)
    opt = optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
    # %%
    out = b(torch.tanh(a(torch.randn(8, 4))))
    first, second = out.mean(), out.pow(2).mean()
    first.backward(retain_graph=True)
    opt.step()  #!
    second.backward()
""", {"    opt.step()  #!\n    second.backward()": "    second.backward()\n    opt.step()"}, "opt.step()")  # fmt: skip
wreck("a step by hand before the second loss", "in-place", """
    w = torch.randn(3, requires_grad=True)
    loss = (w ** 3).sum()
    loss.backward(retain_graph=True)
    with torch.no_grad():
        w -= 0.1 * w.grad  #!
    loss.backward()
""", {"    with torch.no_grad():\n        w -= 0.1 * w.grad  #!\n    loss.backward()":
      "    loss.backward()\n    with torch.no_grad():\n        w -= 0.1 * w.grad"}, "w -= 0.1 * w.grad")  # fmt: skip
wreck("in a function of an earlier cell", "in-place", """
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
wreck("twice in a cell", "freed", """
    w = torch.ones(3, requires_grad=True)
    loss = (w ** 2).sum()
    loss.backward()  #!
    loss.backward()
""", {"loss.backward()  #!": "loss.backward(retain_graph=True)"}, "retain_graph=True")  # fmt: skip
wreck("two losses share a part", "freed", """
    enc, a, b = nn.Linear(3, 3), nn.Linear(3, 1), nn.Linear(3, 1)
    # %%
    h = torch.tanh(enc(torch.randn(6, 3)))
    la = a(h).pow(2).mean()
    lb = b(h).pow(2).mean()
    la.backward()  #!
    lb.backward()
""", {"la.backward()": "la.backward(retain_graph=True)"}, "la.backward")  # fmt: skip
wreck("the cell of backward runs again", "freed", """
    w = torch.ones(3, requires_grad=True)
    loss = (w ** 2).sum()
    # %%
    loss.backward();
    # %%
    loss.backward()  #!
""", {"    loss.backward()  #!": "    loss = (w ** 2).sum()\n    loss.backward()"}, "`loss`", "again")  # fmt: skip
wreck("features before the loop", "freed", """
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
""", {"    for step in range(3):\n":
      "    feats = feats.detach()\n    for step in range(3):\n"}, "before the loop", "feats.detach()")  # fmt: skip
wreck("a state that is carried", "freed", """
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
wreck("detached on the way", "detached", """
    net = nn.Linear(3, 1)
    x = torch.randn(5, 3)
    # %%
    out = net(x)
    pred = out.detach()  #!
    loss = (pred - 1).pow(2).mean()
    loss.backward()
""", {"out.detach()": "out"}, "`out`")  # fmt: skip
wreck("the values alone", "detached", """
    w = torch.ones(3, requires_grad=True)
    s = w.data * 2  #!
    loss = s.sum()
    loss.backward()
""", {"w.data * 2": "w * 2"})  # fmt: skip
wreck("a number makes the loss", "item", """
    w = torch.ones(3, requires_grad=True)
    total = (w * 2).sum()
    value = total.item()  #!
    loss = torch.tensor(value)
    loss.backward()
""", {"total.item()": "total", "torch.tensor(value)": "value"})  # fmt: skip
wreck("under no_grad", "no_grad", """
    net = nn.Linear(3, 1)
    x = torch.randn(5, 3)
    # %%
    with torch.no_grad():
        out = net(x)  #!
    loss = out.pow(2).mean()
    loss.backward()
""", {"with torch.no_grad():": "if True:"}, "no_grad")  # fmt: skip
wreck("a comparison", "non-differentiable", """
    w = torch.ones(3, requires_grad=True)
    right = (w > 0.5).float()  #!
    loss = right.mean()
    loss.backward()
""", {"(w > 0.5).float()": "torch.sigmoid(w - 0.5)"})  # fmt: skip
wreck("positions", "non-differentiable", """
    net = nn.Linear(3, 4)
    x = torch.randn(5, 3)
    # %%
    best = net(x).argmax(1)  #!
    loss = best.float().mean()
    loss.backward()
""", {"net(x).argmax(1)": "net(x).max(1)[0]"})  # fmt: skip
wreck("a wrapped copy", "re-wrapped", """
    w = torch.ones(3, requires_grad=True)
    parts = [(w * k).sum() for k in range(3)]
    loss = torch.tensor(parts).sum()  #!
    loss.backward()
""", {"torch.tensor(parts)": "torch.stack(parts)"}, libraries=("torch",))  # fmt: skip
wreck("a frozen model", "frozen", """
    net = nn.Linear(3, 1).requires_grad_(False)
    x = torch.randn(5, 3)
    # %%
    out = net(x)  #!
    loss = out.pow(2).mean()
    loss.backward()
""", {"    out = net(x)": "    net.requires_grad_()\n    out = net(x)"}, "net.requires_grad_()")  # fmt: skip
wreck("nothing asked for a gradient", "frozen", """
    w = torch.ones(3)
    loss = (w * 2).sum()  #!
    loss.backward()
""", {"    loss = (w * 2)": "    w.requires_grad_()\n    loss = (w * 2)"}, "w.requires_grad_()")  # fmt: skip
wreck("gradients are switched off", "no_grad", """
    net = nn.Linear(3, 1)
    x = torch.randn(5, 3)
    torch.set_grad_enabled(False);
    # %%
    loss = net(x).pow(2).mean()
    loss.backward()  #!
""", {"    loss = net": "    torch.set_grad_enabled(True)\n    loss = net"}, "set_grad_enabled(True)")  # fmt: skip
wreck("detached in a training function", "detached", """
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

# ----------------------------------------------------------------------------------------------------- shapes of what is asked
wreck("no scalar", "not-scalar", """
    w = torch.ones(3, requires_grad=True)
    y = w * 2
    y.backward()  #!
""", {"y.backward()": "y.sum().backward()"}, "y.sum().backward()", "[3]",
    also={"y.backward()": "y.backward(torch.ones_like(y))"})  # fmt: skip
wreck("a loss by element", "not-scalar", """
    net = nn.Linear(3, 1)
    # %%
    loss = F.mse_loss(net(torch.randn(4, 3)), torch.zeros(4, 1), reduction="none")
    loss.backward()  #!
""", {"loss.backward()": "loss.backward(torch.ones_like(loss))"}, "[4, 1]",
    also={"loss.backward()": "loss.sum().backward()"})  # fmt: skip
wreck("weights of another shape", "shape", """
    w = torch.ones(3, requires_grad=True)
    y = w * 2
    y.backward(torch.ones(2))  #!
""", {"torch.ones(2)": "torch.ones_like(y)"}, "torch.ones_like(y)")  # fmt: skip
wreck("a gradient of another shape", "shape", """
    w = torch.ones(2, 3, requires_grad=True)
    g = torch.ones(3)
    w.grad = g  #!
""", {"w.grad = g": "w.grad = g.expand_as(w).clone()"}, "expand_as")  # fmt: skip

# ------------------------------------------------------------------------------------------------------- shapes of operands
wreck("a layer of another width", "shape", """
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(6, 2))
    x = torch.randn(5, 4)
    # %%
    out = net(x)  #!
    out.sum().backward()
""", {"nn.Linear(6, 2)": "nn.Linear(8, 2)"}, "net[2]", "nn.Linear(8, 2)")  # fmt: skip
wreck("channels", "shape", """
    conv = nn.Conv2d(3, 4, 3)
    x = torch.randn(2, 1, 8, 8)
    # %%
    conv(x).sum().backward()  #!
""", {"nn.Conv2d(3, 4, 3)": "nn.Conv2d(1, 4, 3)"}, "nn.Conv2d(1, 4, 3)")  # fmt: skip
wreck("a product the wrong way round", "shape", """
    x = torch.randn(5, 4)
    W = torch.randn(3, 4, requires_grad=True)
    out = x @ W  #!
""", {"x @ W": "x @ W.mT"}, "[5, 4]", "[3, 4]", "x @ W.mT")  # fmt: skip
wreck("an axis is missing", "shape", """
    x = torch.randn(5, 4, requires_grad=True)
    s = torch.randn(5)
    y = x * s  #!
    y.sum().backward()
""", {"x * s": "x * s.unsqueeze(1)"}, "s.unsqueeze(1)")  # fmt: skip
wreck("targets of another batch", "shape", """
    net = nn.Linear(4, 3)
    y = torch.zeros(6, dtype=torch.long)
    # %%
    out = net(torch.randn(5, 4))
    loss = F.cross_entropy(out, y)  #!
""", {"loss = F.cross_entropy(out, y)": "loss = F.cross_entropy(out, y[:5])"}, "5", "6")  # fmt: skip

# ---------------------------------------------------------------------------------------------------------------- dtypes
wreck("float64 data for a model", "dtype", """
    net = nn.Linear(4, 3)
    x = torch.tensor(np.ones((5, 4)))
    # %%
    out = net(x)  #!
    out.sum().backward()
""", {"net(x)": "net(x.float())"}, "float64", "x.float()")  # fmt: skip
wreck("integers for a model", "dtype", """
    net = nn.Linear(4, 3)
    x = torch.ones(5, 4, dtype=torch.long)
    # %%
    out = net(x)  #!
""", {"net(x)": "net(x.float())"}, "int64", "x.float()")  # fmt: skip
wreck("a target of floats", "dtype", """
    net = nn.Linear(4, 3)
    y = torch.zeros(5)
    # %%
    out = net(torch.randn(5, 4))
    loss = F.cross_entropy(out, y)  #!
    loss.backward()
""", {"F.cross_entropy(out, y)": "F.cross_entropy(out, y.long())"}, "y.long()")  # fmt: skip
wreck("a product of two dtypes", "dtype", """
    a = torch.randn(5, 4, requires_grad=True)
    b = torch.randn(4, 2, dtype=torch.float64)
    c = a @ b  #!
""", {"a @ b": "a @ b.float()"}, "float64", "b.float()")  # fmt: skip
wreck("integers that learn", "dtype", """
    idx = torch.tensor([1, 2, 3])
    idx.requires_grad_()  #!
""", {"idx.requires_grad_()": "idx = idx.float().requires_grad_()"}, "idx.float()")  # fmt: skip
wreck("a binary target of integers", "dtype", """
    net = nn.Linear(4, 1)
    y = torch.ones(5, 1, dtype=torch.long)
    # %%
    p = torch.sigmoid(net(torch.randn(5, 4)))
    loss = F.binary_cross_entropy(p, y)  #!
    loss.backward()
""", {"(p, y)": "(p, y.float())"}, "y.float()")  # fmt: skip
wreck("the mean of integers", "dtype", """
    counts = torch.arange(4)
    m = counts.mean()  #!
""", {"counts.mean()": "counts.float().mean()"}, "counts.float()")  # fmt: skip
wreck("a class too many", "target", """
    net = nn.Linear(4, 3)
    y = torch.tensor([0, 1, 3])
    # %%
    out = net(torch.randn(3, 4))
    loss = F.cross_entropy(out, y)  #!
""", {"nn.Linear(4, 3)": "nn.Linear(4, 4)"}, "3 classes")  # fmt: skip
wreck("a word too many", "target", """
    emb = nn.Embedding(5, 2)
    ids = torch.tensor([0, 5])
    # %%
    v = emb(ids)  #!
""", {"nn.Embedding(5, 2)": "nn.Embedding(6, 2)"}, "5 rows")  # fmt: skip
wreck("two devices", "device", """
    a = torch.ones(3, requires_grad=True)
    b = torch.ones(3, device="meta")
    c = a * b  #!
""", {"a * b": "a.to('meta') * b"}, "meta", "cpu", libraries=("torch",))  # fmt: skip
wreck("a model on another device", "device", """
    net = nn.Linear(4, 3, device="meta")
    x = torch.ones(2, 4)
    # %%
    out = net(x)  #!
""", {"net(x)": "net(x.to('meta'))"}, "meta", "x.to('meta')", libraries=("torch",))  # fmt: skip

# ------------------------------------------------------------------------------------------------------- leaves, NumPy
wreck("a leaf is updated", "leaf-in-place", """
    w = torch.ones(3, requires_grad=True)
    (w ** 2).sum().backward()
    w -= 0.1 * w.grad  #!
""", {"    w -= 0.1 * w.grad": "    with torch.no_grad(): w -= 0.1 * w.grad"}, "with torch.no_grad()")  # fmt: skip
wreck("a leaf's item is set", "leaf-in-place", """
    net = nn.Linear(3, 1)
    net.weight[0, 0] = 1.0  #!
""", {"    net.weight[0": "    with torch.no_grad(): net.weight[0"})  # fmt: skip
wreck("to NumPy", "numpy", """
    w = torch.ones(3, requires_grad=True)
    y = w * 2
    a = y.numpy()  #!
""", {"y.numpy()": "y.detach().numpy()"}, "y.numpy()")  # fmt: skip
wreck("backward of a number", "item", """
    w = torch.ones(3, requires_grad=True)
    loss = (w ** 2).sum().item()
    loss.backward()  #!
""", {".sum().item()": ".sum()"})  # fmt: skip
wreck("a name that was bound again", "rebound-leaf", """
    w = torch.ones(3, requires_grad=True)
    for _ in range(3):
        loss = (w ** 2).sum()
        loss.backward()
        w = w - 0.1 * w.grad  #!
""", {"        w = w - 0.1 * w.grad": "        with torch.no_grad(): w -= 0.1 * w.grad"}, "w -= 0.1 * w.grad")  # fmt: skip
wreck("asked for too early", "rebound-leaf", """
    w = torch.randn(3, requires_grad=True) * 0.1  #!
    loss = (w ** 2).sum()
    loss.backward()
    step = 0.1 * w.grad
""", {"w = torch.randn(3, requires_grad=True) * 0.1": "w = (torch.randn(3) * 0.1).requires_grad_()"})  # fmt: skip
wreck("cleared before the update", "no-gradient", """
    w = torch.ones(3, requires_grad=True)
    opt = optim.SGD([w], lr=0.1)
    loss = (w ** 2).sum()
    loss.backward()
    opt.zero_grad()  #!
    step = 0.1 * w.grad
""", {"    opt.zero_grad()  #!\n    step = 0.1 * w.grad":
      "    step = 0.1 * w.grad\n    opt.zero_grad()"}, "opt.zero_grad()")  # fmt: skip
wreck("before any backward", "no-gradient", """
    w = torch.ones(3, requires_grad=True)
    loss = (w ** 2).sum()
    w.grad.zero_()  #!
    loss.backward()
""", {"w.grad.zero_()": "w.grad = None"})  # fmt: skip
wreck("a leaf that was not used", "unused-leaf", """
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    (g,) = torch.autograd.grad((w * 2).sum(), [v])  #!
""", {"(w * 2).sum()": "(v * 2).sum()"}, "`v`")  # fmt: skip
wreck("an input that asks for nothing", "frozen", """
    w, x = torch.ones(3, requires_grad=True), torch.ones(3)
    out = (w * x).sum()
    (g,) = torch.autograd.grad(out, x)  #!
""", {"    out =": "    x.requires_grad_()\n    out ="}, "x.requires_grad_()")  # fmt: skip
wreck("an optimizer of nothing", "stale-optimizer", """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(2, 2)]
    # %%
    net = Net()
    opt = optim.SGD(net.parameters(), lr=0.1)  #!
""", {"[nn.Linear(2, 2)]": "nn.ModuleList([nn.Linear(2, 2)])"}, "`net`")  # fmt: skip
wreck("an optimizer of a result", "not-a-leaf", """
    w = torch.randn(3, requires_grad=True) * 0.1  #!
    opt = optim.SGD([w], lr=0.1)
""", {"torch.randn(3, requires_grad=True) * 0.1": "(torch.randn(3) * 0.1).requires_grad_()"})  # fmt: skip
