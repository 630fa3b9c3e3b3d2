"""Rows for Notes on the first backward call: a loss far above ln(K), saturated and dead layers. Problems are in other modules.

`losses` has the loss of each step. The marked line of a row is that of its first kind.
"""

from __future__ import annotations

from planting import Table

ROWS = Table()

NAMES = """
words = [a + b + c for a in "bdklmn" for b in ("a", "e", "ia", "o") for c in ("n", "ra", "s", "li")]
letters = ["."] + sorted(set("".join(words)))
X, Y = [], []
for word in words:
    context = [0] * 3
    for letter in word + ".":
        X.append(context)
        Y.append(letters.index(letter))
        context = context[1:] + [Y[-1]]
X, Y = torch.tensor(X), torch.tensor(Y)
K = len(letters)
"""

LECTURE = """
{names}
C = torch.randn(K, 10)
W1 = torch.randn(30, 200)
b1 = torch.randn(200)
W2 = torch.randn(200, K)
b2 = torch.randn(K)
parameters = [C, W1, b1, W2, b2]
for p in parameters:
    p.requires_grad = True
# %%
losses = []
for step in range(4):
    ix = torch.randint(0, len(X), (32,))
    emb = C[X[ix]]
    h = torch.tanh(emb.view(-1, 30) @ W1 + b1){tanh}
    logits = h @ W2 + b2
    {loss}
    for p in parameters:
        p.grad = None
    loss.backward()
    for p in parameters:
        p.data += -0.01 * p.grad
    losses.append(loss.item())
"""
SMALL = {"W2 = torch.randn(200, K)": "W2 = torch.randn(200, K) * 0.01", "b2 = torch.randn(K)": "b2 = torch.zeros(K)"}


def lecture(loss: str, tanh: str = "") -> str:
    return LECTURE.format(names=NAMES.strip(), loss=loss, tanh=tanh)


for name, loss in {
    "a character model with an output layer from N(0, 1)": "loss = F.cross_entropy(logits, Y[ix])  #!",
    "the same with counts and probabilities by hand": """counts = logits.exp()
    prob = counts / counts.sum(1, keepdims=True)
    loss = -prob[torch.arange(32), Y[ix]].log().mean()  #!""",
    "the same with each step of the cross entropy by hand": """norm_logits = logits - logits.max(1, keepdim=True).values
    counts = norm_logits.exp()
    probs = counts * counts.sum(1, keepdims=True)**-1
    logprobs = probs.log()
    loss = -logprobs[range(32), Y[ix]].mean()  #!""",
    "the same with a log-sum-exp": "loss = (logits.logsumexp(1) - logits[torch.arange(32), Y[ix]]).mean()  #!",
    "the same with the logarithm of a sum": """logp = logits - logits.exp().sum(1, keepdim=True).log()
    loss = -logp.gather(1, Y[ix].unsqueeze(1)).mean()  #!""",
    "the same with log_softmax and nll_loss": "loss = F.nll_loss(F.log_softmax(logits, dim=1), Y[ix])  #!",
    "the same with soft targets": "loss = F.cross_entropy(logits, F.one_hot(Y[ix], K) * 0.9 + 0.1 / K)  #!",
    "the same with smoothed labels": "loss = F.cross_entropy(logits, Y[ix], label_smoothing=0.1)  #!",
    "the same with a penalty": "loss = F.cross_entropy(logits, Y[ix]) + 0.001 * (W2**2).mean()  #!",
}.items():
    ROWS.fault(
        name,
        "first-loss",
        lecture(loss),
        shows="losses[0] > 10",
        cure=SMALL,
        says=("In the first backward call", "`logits` has", "`W2`", "200 of them"),
    )
ROWS.fault(
    "a tanh layer from N(0, 1) with 30 inputs",
    "saturated",
    lecture("loss = F.cross_entropy(logits, Y[ix])", "  #!"),
    shows="abs(array(torch.tanh(C[X].view(-1, 30) @ W1 + b1))).mean() > 0.8",
    cure={"W1 = torch.randn(30, 200)": "W1 = torch.randn(30, 200) * (5 / 3) / 30**0.5"},
    says=("beyond ±0.97 at", "of 6400 elements", "`W1`", "30 of them", "5/3 / √30 = 0.304"),
)

CLASSES = """
class Linear:
    def __init__(self, fan_in, fan_out):
        self.weight = torch.randn(fan_in, fan_out) * {scale}
        self.bias = torch.zeros(fan_out)
    def __call__(self, x):
        self.out = x @ self.weight + self.bias
        return self.out
    def parameters(self):
        return [self.weight, self.bias]
class Tanh:
    def __call__(self, x):
        self.out = torch.tanh(x){tanh}
        return self.out
    def parameters(self):
        return []
x, y = torch.randn(64, 30), torch.randint(0, 27, (64,))
layers = [Linear(30, 50), Tanh(), Linear(50, 50), Tanh(), Linear(50, 27)]
parameters = [p for layer in layers for p in layer.parameters()]
for p in parameters:
    p.requires_grad = True
losses = []
for step in range(3):
    h = x
    for layer in layers:
        h = layer(h)
    loss = F.cross_entropy(h, y){loss}
    for p in parameters:
        p.grad = None
    loss.backward()
    for p in parameters:
        p.data -= 0.01 * p.grad
    losses.append(loss.item())
"""
ROWS.fault(
    "layers as classes, all from N(0, 1)",
    "first-loss",
    CLASSES.format(scale="1.0", tanh="", loss="  #!"),
    shows="losses[0] > 8",
    cure={"* 1.0": "/ fan_in**0.5"},
    says=("`layers[4].weight`", "50 of them"),
)
ROWS.fault(
    "tanh layers as classes, all from N(0, 1)",
    "saturated",
    CLASSES.format(scale="1.0", tanh="  #!", loss=""),
    shows="losses[0] > 8",
    cure={"* 1.0": "/ fan_in**0.5"},
    says=("of 3200 elements of `layers[1].out`", "`layers[3].out`", "`layers[0].weight`", "`layers[2].weight`", "30 and 50"),
)

MODULE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(20, {width})
        self.head = nn.Linear({width}, 10)
        {init}
    def forward(self, x):
        return self.head({act}(self.body(x)))
net = Net()
opt = optim.{optimizer}(net.parameters(), lr={rate})
x, y = torch.randn(64, 20), torch.randint(0, 10, (64,))
# %%
losses = []
for step in range(4):
    opt.zero_grad()
    {loss}
    loss.backward()
    opt.step()
    losses.append(loss.item())
"""


def module(init: str, loss: str = "loss = F.cross_entropy(net(x), y)", act: str = "torch.relu", width: int = 100) -> str:
    return MODULE.format(init=init, loss=loss, act=act, width=width, optimizer="SGD", rate=0.01)


ROWS.fault(
    "the head of a model from N(0, 1)",
    "first-loss",
    module("nn.init.normal_(self.head.weight)", "loss = F.cross_entropy(net(x), y)  #!"),
    shows="losses[0] > 5",
    cure={"nn.init.normal_(self.head.weight)": "nn.init.normal_(self.head.weight, std=0.01)"},
    says=("`net.head.weight`", "100 of them"),
)
ROWS.fault(
    "the same with class weights and another criterion",
    "first-loss",
    module("nn.init.normal_(self.head.weight)", "loss = criterion(net(x), y)  #!").replace(
        "net = Net()", "net = Net()\ncriterion = nn.CrossEntropyLoss(weight=torch.linspace(0.5, 2.0, 10))"
    ),
    shows="losses[0] > 5",
    cure={"nn.init.normal_(self.head.weight)": "nn.init.normal_(self.head.weight, std=0.01)"},
    says=("`net.head.weight`", "ln(10) = 2.3"),
)
ROWS.fault(
    "logits times 30",
    "first-loss",
    module("pass", "loss = F.cross_entropy(net(x) * 30, y)  #!", "torch.tanh"),
    shows="losses[0] > 5",
    cure={"net(x) * 30": "net(x)"},
    says=("is multiplied by 30",),
)
ROWS.fault(
    "a training in functions with a head from N(0, 1)",
    "first-loss",
    """
    def make(k):
        torch.manual_seed(k)
        model = nn.Sequential(nn.Linear(12, 64), nn.Tanh(), nn.Linear(64, 8))
        nn.init.normal_(model[2].weight, std=2.0)
        return model
    def train(model, steps=3):
        opt = optim.Adam(model.parameters(), lr=1e-3)
        x, y = torch.randn(48, 12), torch.randint(0, 8, (48,))
        for step in range(steps):
            loss = F.cross_entropy(model(x), y)  #!
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
    losses = []
    train(make(0))
    """,
    shows="losses[0] > 5",
    cure={"std=2.0": "std=0.05"},
    says=("model[2].weight", "64 of them"),
)
ROWS.fault(
    "an output layer that is the embedding, from N(0, 1)",
    "first-loss",
    """
    emb, body = nn.Embedding(30, 64), nn.GRU(64, 64, batch_first=True)
    norm, head = nn.LayerNorm(64), nn.Linear(64, 30, bias=False)
    head.weight = emb.weight
    opt = optim.Adam([*emb.parameters(), *body.parameters(), *norm.parameters()], lr=1e-3)
    seq = torch.randint(0, 30, (8, 11))
    losses = []
    for step in range(3):
        logits = head(norm(body(emb(seq[:, :-1]))[0]))
        loss = F.cross_entropy(logits.transpose(1, 2), seq[:, 1:])  #!
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    """,
    shows="losses[0] > 10",
    cure={"head.weight = emb.weight": "nn.init.normal_(emb.weight, std=0.02); head.weight = emb.weight"},
    says=("`emb.weight`", "64 of them", "ln(30) = 3.4"),
)
ROWS.fault(
    "a classifier of data that are not standardised",
    "first-loss",
    """
    x, y = torch.rand(64, 20) * 400, torch.randint(0, 5, (64,))
    model = nn.Linear(20, 5)
    opt = optim.SGD(model.parameters(), lr=1e-6)
    losses = []
    for step in range(3):
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)  #!
        loss.backward()
        opt.step()
        losses.append(loss.item())
    """,
    shows="losses[0] > 20",
    cure={"torch.rand(64, 20) * 400": "torch.rand(64, 20) * 2 - 1"},
    says=("`x` has a root mean square of", "Standardise"),
)
ROWS.fault(
    "classes of pixels with a convolution from N(0, 1)",
    "first-loss",
    """
    net = nn.Sequential(nn.Conv2d(2, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 6, 1))
    nn.init.normal_(net[3].weight, std=3.0)
    opt = optim.SGD(net.parameters(), lr=1e-3)
    x, y = torch.randn(2, 2, 6, 6), torch.randint(0, 6, (2, 6, 6))
    losses = []
    for step in range(3):
        loss = F.cross_entropy(net(x), y)  #!
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    """,
    shows="losses[0] > 5",
    cure={"std=3.0": "std=0.1"},
    says=("`net[3].weight`", "16 of them"),
)
for name, loss in {
    "two classes with weights from N(0, 1)": "loss = F.binary_cross_entropy_with_logits((h @ W2).squeeze(1), y)  #!",
    "two classes as probabilities with weights from N(0, 1)": "loss = F.binary_cross_entropy(torch.sigmoid(h @ W2).squeeze(1), y)  #!",
}.items():
    ROWS.fault(
        name,
        "first-loss",
        f"""
        x, y = torch.randn(64, 10), (torch.rand(64) > 0.5).float()
        W1 = (torch.randn(10, 400) / 10**0.5).requires_grad_()
        W2 = torch.randn(400, 1, requires_grad=True)
        opt = optim.SGD([W1, W2], lr=1e-4)
        losses = []
        for step in range(3):
            h = torch.tanh(x @ W1)
            {loss}
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        """,
        shows="losses[0] > 2",
        cure={"W2 = torch.randn(400, 1, requires_grad=True)": "W2 = torch.zeros(400, 1, requires_grad=True)"},
        says=("ln(2) = 0.693", "`W2`", "400 of them"),
    )
ROWS.fault(
    "a sigmoid layer from N(0, 1)",
    "saturated",
    """
    x, y = torch.randn(64, 50), torch.randn(64, 1)
    W1, W2 = torch.randn(50, 40), torch.randn(40, 1) / 40**0.5
    for W in (W1, W2):
        W.requires_grad = True
    losses = []
    for step in range(3):
        h = torch.sigmoid(x @ W1)  #!
        loss = F.mse_loss(h @ W2, y)
        loss.backward()
        with torch.no_grad():
            for W in (W1, W2):
                W -= 0.01 * W.grad
                W.grad = None
        losses.append(loss.item())
    """,
    shows="abs(array(h) - 0.5).mean() > 0.38",
    cure={"W1, W2 = torch.randn(50, 40),": "W1, W2 = torch.randn(50, 40) / 50**0.5,"},
    says=("below 0.015 or above 0.985", "of 2560 elements", "`W1`"),
)
ROWS.fault(
    "a recurrence with weights from N(0, 1)",
    "saturated",
    """
    Wx, Wh, Wo = torch.randn(8, 32, requires_grad=True), torch.randn(32, 32, requires_grad=True), nn.Linear(32, 4)
    opt = optim.SGD([Wx, Wh, *Wo.parameters()], lr=1e-3)
    x, y = torch.randn(6, 16, 8), torch.randint(0, 4, (16,))
    losses = []
    for step in range(3):
        h = torch.zeros(16, 32)
        for t in range(6):
            h = torch.tanh(x[t] @ Wx + h @ Wh)  #!
        loss = F.cross_entropy(Wo(h), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    """,
    shows="(abs(array(h)) > 0.97).mean() > 0.4",
    cure={"x[t] @ Wx + h @ Wh": "x[t] @ Wx / 8**0.5 + h @ Wh / 32**0.5"},
    says=("beyond ±0.97", "of 3072 elements", "`Wx`"),
)
ROWS.fault(
    "a tanh of large embeddings",
    "saturated",
    """
    emb, fc, out = nn.Embedding(20, 16), nn.Linear(16, 32), nn.Linear(32, 5)
    nn.init.normal_(emb.weight, std=8.0)
    opt = optim.SGD([*emb.parameters(), *fc.parameters(), *out.parameters()], lr=0.01)
    x, y = torch.randint(0, 20, (64,)), torch.randint(0, 5, (64,))
    losses = []
    for step in range(3):
        h = torch.tanh(fc(emb(x)))  #!
        loss = F.cross_entropy(out(h), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    """,
    shows="(abs(array(h)) > 0.97).mean() > 0.4",
    cure={"std=8.0": "std=1.0"},
    says=("beyond ±0.97", "of 2048 elements", "root mean square of"),
)
ROWS.fault(
    "biases that shut most of the units at the start",
    "dead",
    module("nn.init.constant_(self.body.bias, -1.35)", "loss = F.cross_entropy(net(x), y)  #!"),
    shows="(array(net.body(x)) <= 0).all(0).mean() > 0.55",
    cure={"-1.35": "0.0"},
    says=("of 100 units", "inactive at all 64 places"),
)
