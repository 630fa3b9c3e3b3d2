"""Cells with models, like the everyday cells and faults in `cells`. `TWELVE` names the cells whose pictures are examined."""

from __future__ import annotations

from cells import BOTH, EVERYDAY, FAULTS, Written
from programs import PROGRAMS

MODELS = (
    Written(
        "mlp",
        """%%grad
logits = model(X)
loss = F.cross_entropy(logits, y)
accuracy = (logits.argmax(1) == y).float().mean()
print(f"{loss.item():.3f}  {accuracy.item():.0%}")""",
        """gl.manual_seed(0)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))
X, y = gl.randn(64, 20), gl.randint(0, 5, (64,))""",
        BOTH,
    ),
    Written(
        "cnn",
        """%%grad
loss = criterion(net(images), labels)
loss.backward()""",
        """gl.manual_seed(0)

class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)

    def forward(self, x):
        h = F.relu(self.norm1(self.conv1(x)))
        return F.relu(x + self.norm2(self.conv2(h)))

class Net(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.blocks = nn.Sequential(*[Residual(8) for _ in range(3)])
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(8 * 6 * 6, classes)

    def forward(self, x):
        x = self.pool(self.blocks(self.stem(x)))
        return self.head(x.flatten(1))

net, criterion = Net(), nn.CrossEntropyLoss()
images, labels = gl.randn(4, 3, 12, 12), gl.randint(0, 10, (4,))""",
        BOTH,
    ),
    Written(
        "lstm",
        """%%grad
out, (h, c) = rnn(embedding(tokens[:, :-1]))
scores = head(out)
F.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())""",
        """gl.manual_seed(0)
embedding, rnn, head = nn.Embedding(30, 16), nn.LSTM(16, 32, num_layers=2, batch_first=True), nn.Linear(32, 30)
tokens = gl.randint(0, 30, (8, 12))""",
        BOTH,
    ),
    Written(
        "encoder",
        """%%grad
hidden = encoder(tokens)
logits = head(hidden[:, 0])
loss = F.cross_entropy(logits, labels)""",
        """gl.manual_seed(0)
layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
encoder, head = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False), nn.Linear(32, 3)
tokens, labels = gl.randn(4, 10, 32), gl.randint(0, 3, (4,))
del layer""",
        BOTH,
    ),
    Written(
        "gan",
        """%%grad
noise = gl.randn(32, 8)
fake = generator(noise)
bce = nn.BCEWithLogitsLoss()

# the discriminator's step
d_optimizer.zero_grad()
d_loss = bce(discriminator(real), gl.ones(32, 1)) + bce(discriminator(fake.detach()), gl.zeros(32, 1))
d_loss.backward()
d_optimizer.step()

# the generator's
g_optimizer.zero_grad()
g_loss = bce(discriminator(fake), gl.ones(32, 1))
g_loss.backward()
g_optimizer.step()""",
        """gl.manual_seed(0)
generator = nn.Sequential(nn.Linear(8, 32), nn.LeakyReLU(0.2), nn.Linear(32, 2))
discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
g_optimizer = gl.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
d_optimizer = gl.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
real = gl.randn(32, 2) * 0.1 + 1""",
        BOTH,
    ),
    Written(
        "vae",
        """%%grad
mu, logvar = vae.encode(x)
std = (0.5 * logvar).exp()
z = mu + std * gl.randn_like(std)
reconstruction = F.binary_cross_entropy_with_logits(vae.decode(z), x, reduction="sum")
kl = -0.5 * (1 + logvar - mu ** 2 - logvar.exp()).sum()
elbo = (reconstruction + kl) / len(x)""",
        """gl.manual_seed(0)

class VAE(nn.Module):
    def __init__(self, pixels=64, hidden=32, latent=4):
        super().__init__()
        self.encoder = nn.Linear(pixels, hidden)
        self.mu, self.logvar = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, pixels))

    def encode(self, x):
        h = F.relu(self.encoder(x))
        return self.mu(h), self.logvar(h)

    def decode(self, z):
        return self.decoder(z)

vae, x = VAE(), gl.rand(16, 64)""",
        BOTH,
    ),
    Written(
        "model_in_the_cell",
        """%%grad
class Attention(nn.Module):
    \"\"\"One head, causal.\"\"\"

    def __init__(self, width):
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        scores = q @ k.transpose(-2, -1) / math.sqrt(x.shape[-1])
        causal = gl.ones(x.shape[1], x.shape[1]).tril() == 0
        attention = F.softmax(scores.masked_fill(causal, float("-inf")), dim=-1)  # rows add up to 1, and nothing looks ahead
        return attention @ v

gl.manual_seed(0)
block = Attention(16)
x = gl.randn(2, 5, 16)
block(x).pow(2).mean()""",
        libraries=BOTH,
    ),
    Written(
        "digits",
        """%%grad
logits = net(images)
loss = F.cross_entropy(logits, labels)
loss.backward()""",
        """gl.manual_seed(0)

class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.flatten(1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)

net = LeNet()
images, labels = gl.randn(8, 1, 28, 28), gl.randint(0, 10, (8,))""",
        BOTH,
    ),
    Written(
        "sentiment",
        """%%grad
scores = classifier(tokens)
loss = F.cross_entropy(scores, labels)
loss.backward()""",
        """gl.manual_seed(0)

class Classifier(nn.Module):
    def __init__(self, words=50, width=32, classes=2):
        super().__init__()
        self.emb = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, classes)

    def forward(self, tokens):
        out, (h, c) = self.lstm(self.emb(tokens))
        return self.head(h[-1])

classifier = Classifier()
tokens, labels = gl.randint(0, 50, (8, 20)), gl.randint(0, 2, (8,))""",
        BOTH,
    ),
    Written(
        "language",
        """%%grad
logits = model(tokens)
loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
loss.backward()""",
        PROGRAMS["gpt"].before.replace("torch.", "gl.").replace("GPT(12, 32)", "GPT(2, 32)").rstrip(),
        BOTH,
    ),
    Written(
        "by_hand",
        """%%grad
x = embedding[X].flatten(1)
for layer in layers:
    x = layer(x)
loss = F.cross_entropy(x, Y)
loss.backward()""",
        """gl.manual_seed(0)

class Linear:
    def __init__(self, fan_in, fan_out, bias=True):
        self.weight = gl.randn(fan_in, fan_out) / fan_in**0.5
        self.bias = gl.zeros(fan_out) if bias else None

    def __call__(self, x):
        self.out = x @ self.weight
        if self.bias is not None:
            self.out = self.out + self.bias
        return self.out

    def parameters(self):
        return [self.weight] + ([] if self.bias is None else [self.bias])

class BatchNorm1d:
    def __init__(self, width):
        self.gamma, self.beta = gl.ones(width), gl.zeros(width)

    def __call__(self, x):
        normalized = (x - x.mean(0, keepdim=True)) / (x.var(0, keepdim=True) + 1e-5) ** 0.5
        self.out = self.gamma * normalized + self.beta
        return self.out

    def parameters(self):
        return [self.gamma, self.beta]

class Tanh:
    def __call__(self, x):
        self.out = gl.tanh(x)
        return self.out

    def parameters(self):
        return []

embedding = gl.randn(27, 10)
layers = [Linear(30, 64, bias=False), BatchNorm1d(64), Tanh()]
layers += [Linear(64, 64, bias=False), BatchNorm1d(64), Tanh(), Linear(64, 27)]
parameters = [embedding] + [p for layer in layers for p in layer.parameters()]
for p in parameters:
    p.requires_grad_()
X, Y = gl.randint(0, 27, (32, 3)), gl.randint(0, 27, (32,))""",
        BOTH,
    ),
    Written(
        "physics",
        """%%grad
# u'' + u = 0 with u(0) = 0 and u'(0) = 1
t = gl.linspace(0, 3, 32).reshape(32, 1).requires_grad_()
u = net(t)
du = gl.autograd.grad(u.sum(), t, create_graph=True)[0]
d2u = gl.autograd.grad(du.sum(), t, create_graph=True)[0]
residual = (d2u + u).pow(2).mean()
boundary = u[0, 0] ** 2 + (du[0, 0] - 1) ** 2
loss = residual + boundary
loss.backward()""",
        """gl.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))""",
        BOTH,
    ),
    Written(
        "straight_through",
        """%%grad
class Round(gl.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g

step = gl.tensor(0.25, requires_grad=True)
quantized = Round.apply(weights / step) * step
loss = F.mse_loss(x @ quantized, y)
loss.backward()""",
        """gl.manual_seed(0)
weights = gl.randn(6, 2).requires_grad_()
x, y = gl.randn(32, 6), gl.randn(32, 2)""",
        BOTH,
    ),
    Written(
        "wrong_width",
        """%%grad
loss = F.cross_entropy(model(X), y)
loss.backward()""",
        """gl.manual_seed(0)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(32, 5))
X, y = gl.randn(16, 20), gl.randint(0, 5, (16,))""",
        BOTH,
        reports=False,
        says=("64", "32"),
    ),
)

# What a screenshot is taken of, in the order of a course: a scalar function first, a failing cell last.
TWELVE = (
    "scalar",
    "mlp",
    "digits",
    "cnn",
    "sentiment",
    "language",
    "vae",
    "gan",
    "by_hand",
    "physics",
    "straight_through",
    "wrong_width",
)


def written_for(library: str) -> list[Written]:
    """The cells that are run with a library."""
    return [one for one in EVERYDAY + MODELS + FAULTS if library in one.libraries]


def twelve() -> list[Written]:
    """The cells of `TWELVE`."""
    by_name = {one.name: one for one in EVERYDAY + MODELS + FAULTS}
    return [by_name[name] for name in TWELVE]
