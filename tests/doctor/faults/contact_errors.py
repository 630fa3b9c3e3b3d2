"""Gradients that a line elsewhere switched off: a decorator, a call, a block around the caller."""

from __future__ import annotations

from planting import Table

ROWS = Table()

ROWS.fault(
    "a decorator left on one method of a model",
    "no_grad",
    """
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.signal, self.words, self.head = nn.Linear(8, 16), nn.Embedding(50, 16), nn.Linear(16, 16)

        @torch.no_grad() #!
        def embed(self, t):
            return self.words(t).mean(1)

        def forward(self, x, t):
            return F.normalize(self.signal(x), dim=1) @ F.normalize(self.head(self.embed(t)), dim=1).T / 0.1

    net = Pair()
    opt = optim.Adam(net.parameters(), lr=1e-3)
    x, t = torch.randn(32, 8), torch.randint(0, 50, (32, 7))
    loss = F.cross_entropy(net(x, t), torch.arange(32))
    opt.zero_grad()
    loss.backward()
    opt.step()
    """,
    shows="net.words.weight.grad is None and net.head.weight.grad is not None",
    cure={"@torch.no_grad() #!": ""},
    says=("`@torch.no_grad()` on line 7", "net.words.weight"),
)
ROWS.fault(
    "a decorator left in an earlier cell",
    "no_grad",
    """
    encoder, head = nn.Linear(6, 4), nn.Linear(4, 1)
    opt = optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)

    @torch.no_grad()
    def features(x):
        return torch.tanh(encoder(x))
    # %%
    x, y = torch.randn(16, 6), torch.randn(16, 1)
    loss = F.mse_loss(head(features(x)), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    """,
    shows="encoder.weight.grad is None and head.weight.grad is not None",
    cure={"@torch.no_grad()": ""},
    says=("`@torch.no_grad()` at cell In[", "line 4"),
)
ROWS.fault(
    "gradients switched off at the top",
    "no_grad",
    """
    torch.set_grad_enabled(False) #!
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    opt = optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    """,
    shows="net[0].weight.grad is None",
    raises="RuntimeError",
    cure={"torch.set_grad_enabled(False)": "torch.set_grad_enabled(True)"},
    says="`torch.set_grad_enabled(False)` on line 2",
)
ROWS.fault(
    "an evaluation that leaves gradients off",
    "no_grad",
    """
    net = nn.Linear(6, 3)
    opt = optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))

    def evaluate():
        torch.autograd.set_grad_enabled(False) #!
        return (net(x).argmax(1) == y).float().mean().item()
    print(evaluate())
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    """,
    shows="net.weight.grad is None",
    raises="RuntimeError",
    cure={"    torch.autograd.set_grad_enabled(False)": "    torch.autograd.set_grad_enabled(True)"},
    says="`torch.autograd.set_grad_enabled(False)` on line 7",
)
ROWS.fault(
    "a helper that its caller calls under no_grad",
    "no_grad",
    """
    encoder, head = nn.Linear(6, 4), nn.Linear(4, 1)
    opt = optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
    x, y = torch.randn(16, 6), torch.randn(16, 1)

    def encode(x):
        return torch.tanh(encoder(x)) #!
    with torch.no_grad(): #?
        h = encode(x)
    loss = F.mse_loss(head(h), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    """,
    shows="encoder.weight.grad is None",
    cure={"with torch.no_grad():": "if True:"},
    says="`with torch.no_grad():` on line 8",
)
