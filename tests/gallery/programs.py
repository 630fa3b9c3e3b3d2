"""The gallery: cells as students and researchers write them, by name, without the line `%%grad`.

`library` is the library of a program; a program for torch needs it installed. Every cell calls `backward` itself, on its last
scalar, usually `loss`.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Program:
    """A cell.

    Attributes
    ----------
    cell : str
        Its lines after `%%grad`.
    before : str
        What earlier cells have run: models, data.
    library : str
        "gradlab" or "torch".
    """

    cell: str
    before: str = ""
    library: str = "gradlab"


IMPORTS = {
    "gradlab": "import gradlab as gl\nimport gradlab.nn as nn\nimport gradlab.nn.functional as F\n",
    "torch": "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n",
}

PROGRAMS = {
    "scalar": Program("""\
a = gl.tensor(-3.0, requires_grad=True)
b = gl.tensor(2.0, requires_grad=True)
c = a * b
d = c + b ** 3
e = d.relu()
out = 2 * e
out.backward()
"""),
    "five": Program("""\
x = gl.arange(5.0, requires_grad=True)
y = x ** 3
d = y[1:] - y[:-1]
loss = (d ** 2).sum() / 4
loss.backward()
"""),
    "cut": Program("""\
w = gl.tensor([1.0, 2.0, 3.0], requires_grad=True)
target = (w * 2).detach()
loss = ((w - target) ** 2).sum()
loss.backward()
"""),
    "fan_out": Program("""\
x = gl.tensor([0.5, -1.0, 2.0], requires_grad=True)
N = 6
h = x.tanh()
p = h * h
q = 3 * h + x[0] - h.mean()
r = h.exp() / N
loss = (p + q - r).sum() + h.sum()
loss.backward()
"""),
    "cancels": Program("""\
x = gl.tensor([1.0, 2.0, 4.0], requires_grad=True)
shift = gl.tensor(0.3, requires_grad=True)
y = x + shift
z = y - y.mean()
loss = (z ** 2).mean()
loss.backward()
"""),
    "regression": Program(
        """\
prediction = X @ w + b
residual = prediction - t
loss = (residual ** 2).mean()
loss.backward()
""",
        """\
gl.manual_seed(0)
X, t = gl.randn(40, 3), gl.randn(40)
w = gl.zeros(3, requires_grad=True)
b = gl.zeros((), requires_grad=True)
""",
    ),
    "batch_norm": Program(
        """\
hprebn = embcat @ W1 + b1
bnmeani = 1 / n * hprebn.sum(0, keepdim=True)
bndiff = hprebn - bnmeani
bndiff2 = bndiff ** 2
bnvar = 1 / (n - 1) * bndiff2.sum(0, keepdim=True)
bnvar_inv = (bnvar + 1e-5) ** -0.5
bnraw = bndiff * bnvar_inv
hpreact = bngain * bnraw + bnbias
h = torch.tanh(hpreact)
logits = h @ W2 + b2
logit_maxes = logits.max(1, keepdim=True).values
norm_logits = logits - logit_maxes
counts = norm_logits.exp()
counts_sum = counts.sum(1, keepdims=True)
counts_sum_inv = counts_sum ** -1
probs = counts * counts_sum_inv
logprobs = probs.log()
loss = -logprobs[range(n), Yb].mean()
loss.backward()
""",
        """\
torch.manual_seed(0)
n, width = 32, 64
embcat, Yb = torch.randn(n, 30), torch.randint(0, 27, (n,))
W1 = (torch.randn(30, width) * 0.3).requires_grad_()
b1 = (torch.randn(width) * 0.1).requires_grad_()
bngain = torch.ones(1, width, requires_grad=True)
bnbias = torch.zeros(1, width, requires_grad=True)
W2 = (torch.randn(width, 27) * 0.1).requires_grad_()
b2 = torch.zeros(27, requires_grad=True)
""",
        "torch",
    ),
    "mlp": Program(
        """\
h = model(X)
loss = F.cross_entropy(h, t)
loss.backward()
""",
        """\
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
X, t = torch.randn(64, 20), torch.randint(0, 4, (64,))
""",
        "torch",
    ),
    "lstm": Program(
        """\
h, c = torch.zeros(8, 16), torch.zeros(8, 16)
for x in X:
    h, c = cell(x, (h, c))
loss = F.mse_loss(head(h), t)
loss.backward()
""",
        """\
torch.manual_seed(0)
cell, head = nn.LSTMCell(6, 16), nn.Linear(16, 2)
X, t = torch.randn(50, 8, 6), torch.randn(8, 2)
""",
        "torch",
    ),
    "conv": Program(
        """\
logits = net(images)
loss = F.cross_entropy(logits, labels)
loss.backward()
""",
        """\
torch.manual_seed(0)

class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(width)

    def forward(self, x):
        h = F.relu(self.norm1(self.conv1(x)))
        h = self.norm2(self.conv2(h))
        return F.relu(x + h)

net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *[Residual(8) for _ in range(4)], nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                    nn.Linear(8, 10))
images, labels = torch.randn(4, 3, 12, 12), torch.randint(0, 10, (4,))
""",
        "torch",
    ),
    "encoder": Program(
        """\
out = model(x)
loss = F.mse_loss(out, target)
loss.backward()
""",
        """\
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
model = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
x, target = torch.randn(2, 8, 32), torch.randn(2, 8, 32)
del layer
""",
        "torch",
    ),
    "gpt": Program(
        """\
logits = model(tokens)
loss = F.cross_entropy(
    logits.flatten(0, 1), targets.flatten())
loss.backward()
""",
        """\
torch.manual_seed(0)

class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (y.view(B, T, self.heads, C // self.heads).transpose(1, 2) for y in (q, k, v))
        att = (q @ k.transpose(-2, -1)) / (C // self.heads) ** 0.5
        att = att.masked_fill(torch.ones(T, T).tril() == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        y = (att @ v).transpose(1, 2).contiguous().view(B, T, C)
        return self.proj(y)

class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.ln2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))

class GPT(nn.Module):
    def __init__(self, depth, width, heads=4, vocabulary=50, context=16):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])
        self.ln_f, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.aux = nn.Linear(width, 2)

    def forward(self, tokens):
        x = self.tok(tokens) + self.pos(torch.arange(tokens.shape[1]))
        return self.head(self.ln_f(self.blocks(x)))

model = GPT(12, 32)
tokens, targets = torch.randint(0, 50, (4, 16)), torch.randint(0, 50, (4, 16))
""",
        "torch",
    ),
    "encoder_gradlab": Program(
        """\
out = model(x)
loss = F.mse_loss(out, target)
loss.backward()
""",
        """\
gl.manual_seed(0)
layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
model = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
x, target = gl.randn(2, 8, 32), gl.randn(2, 8, 32)
del layer
""",
    ),
    "by_functions": Program(
        """\
loss = cross_entropy(network(X, params), t)
loss.backward()
""",
        """\
gl.manual_seed(0)
X, t = gl.randn(32, 10), gl.arange(32) % 4
params = [(gl.randn(10 if i == 0 else 16, 4 if i == 5 else 16) * 0.3).requires_grad_() for i in range(6)]

def layer(x, w, last):
    z = x @ w
    z = z - z.mean(1, keepdim=True)
    return z if last else gl.tanh(z)

def network(x, weights):
    for i, w in enumerate(weights):
        x = layer(x, w, i == len(weights) - 1)
    return x

def cross_entropy(logits, targets):
    shifted = logits - logits.max(1, keepdim=True).values
    logp = shifted - shifted.exp().sum(1, keepdim=True).log()
    return -logp[gl.arange(len(targets)), targets].mean()
""",
    ),
}


def marks_of(name: str) -> tuple[pytest.MarkDecorator, ...]:
    """The marks of a test of a program."""
    return (pytest.mark.torch,) if PROGRAMS[name].library == "torch" else ()
