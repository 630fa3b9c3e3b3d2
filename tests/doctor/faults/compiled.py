"""Functions of `torch.compile`, which run as they are written: faults inside them, with their lines."""

from __future__ import annotations

from planting import Table

ROWS = Table()

ROWS.fault(
    "a compiled function detaches its result",
    "detached",
    """
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    head = nn.Linear(4, 1)
    x, y = torch.randn(32, 8), torch.randn(32, 1)
    @torch.compile(backend="eager")
    def features(x):
        return net(x).detach() #!
    # %%
    loss = F.mse_loss(head(features(x)), y)
    loss.backward()
    """,
    shows="net[0].weight.grad is None",
    cure={"net(x).detach()": "net(x)"},
    libraries=("torch",),
)
ROWS.fault(
    "a compiled model is trained without clearing its gradients",
    "accumulated",
    """
    layers = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    net = torch.compile(layers, backend="eager")
    opt = optim.SGD(net.parameters(), lr=0.001)
    x, y = torch.randn(32, 8), torch.randn(32, 1)
    # %%
    for step in range(10):
        loss = F.mse_loss(net(x), y)
        loss.backward() #!
        opt.step()
    (own,) = torch.autograd.grad(F.mse_loss(layers(x), y), [layers[2].weight])
    """,
    shows="norm(layers[2].weight.grad) > 5 * norm(own)",
    cure={"loss.backward()": "opt.zero_grad(); loss.backward()"},
    libraries=("torch",),
)
