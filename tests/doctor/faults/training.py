"""Loops and cells one after the other: accumulation, the order of calls, ascent, steps too large or too small."""

from __future__ import annotations

from planting import Table

ROWS = Table()

# ----------------------------------------------------------------------------------------------------------- accumulated
ROWS.fault(
    "the cell run twice",
    "accumulated",
    """
    x = torch.tensor([1., 2., 3.], requires_grad=True)
    # %% grad
    y = (x ** 2).sum()
    y.backward()
    # %%
    y = (x ** 2).sum()
    y.backward() #!
    """,
    shows="close(x.grad, 4 * x)",
    cure={"# %%\ny = (x ** 2).sum()": "# %%\nx.grad = None\ny = (x ** 2).sum()"},
    says="x",
)
ROWS.fault(
    "a loop without zero_grad",
    "accumulated",
    """
    net = nn.Linear(2, 1)
    opt = optim.SGD(net.parameters(), lr=0.01)
    X, Y = torch.randn(20, 2), torch.randn(20, 1)
    for epoch in range(6):
        loss = F.mse_loss(net(X), Y)
        loss.backward() #!
        opt.step()
    (last,) = torch.autograd.grad(F.mse_loss(net(X), Y), [net.weight])
    """,
    shows="norm(net.weight.grad) > 4 * norm(last)",
    cure={
        "loss = F.mse_loss(net(X), Y)\n    loss.backward()": "loss = F.mse_loss(net(X), Y)\n    opt.zero_grad()\n    loss.backward()"
    },
    says=("zero_grad", "6"),
)
ROWS.fault(
    "zero_grad outside the loop",
    "accumulated",
    """
    w = torch.zeros(3, requires_grad=True)
    optimizer = optim.SGD([w], lr=0.01)
    A, b = torch.randn(15, 3), torch.randn(15)
    optimizer.zero_grad()
    for i in range(8):
        loss = (A @ w - b).pow(2).mean()
        loss.backward() #!
        optimizer.step()
    (fresh,) = torch.autograd.grad((A @ w - b).pow(2).mean(), [w])
    """,
    shows="norm(w.grad) > 3 * norm(fresh)",
    cure={"    loss.backward()": "    optimizer.zero_grad(); loss.backward()"},
    says="zero_grad",
)
ROWS.fault(
    "a loop by hand that never clears",
    "accumulated",
    """
    a, b = torch.tensor(0., requires_grad=True), torch.tensor(0., requires_grad=True)
    xs = torch.linspace(-1, 1, 21)
    ys = 2 * xs + 1
    for epoch in range(10):
        l = ((a * xs + b - ys) ** 2).mean()
        l.backward() #!
        with torch.no_grad():
            a -= 0.01 * a.grad
            b -= 0.01 * b.grad
    ga, gb = torch.autograd.grad(((a * xs + b - ys) ** 2).mean(), [a, b])
    """,
    shows="abs(b.grad.item()) > 2 * abs(gb.item())",
    cure={"b -= 0.01 * b.grad\n": "b -= 0.01 * b.grad\n        a.grad.zero_(); b.grad.zero_()\n"},
    says=("a", "b"),
)
ROWS.fault(
    "zero_grad of the other optimizer",
    "accumulated",
    """
    actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
    opt_a, opt_c = optim.SGD(actor.parameters(), lr=1e-2), optim.SGD(critic.parameters(), lr=1e-2)
    s, r = torch.randn(32, 4), torch.randn(32, 1)
    for step in range(5):
        opt_a.zero_grad()
        critic_loss = F.mse_loss(critic(s), r)
        critic_loss.backward() #!
        opt_c.step()
    (once,) = torch.autograd.grad(F.mse_loss(critic(s), r), [critic.weight])
    """,
    shows="norm(critic.weight.grad) > 2.5 * norm(once)",
    cure={"opt_a.zero_grad()": "opt_c.zero_grad()"},
    says="critic",
)
ROWS.fault(
    "backward in the validation cell",
    "accumulated",
    """
    model = nn.Linear(3, 1)
    X, T = torch.randn(9, 3), torch.randn(9, 1)
    # %% grad
    loss = F.mse_loss(model(X), T)
    loss.backward()
    # %% grad
    check = F.mse_loss(model(X) * 1.0, T)
    check.backward() #!
    # %%
    last = F.mse_loss(model(X), T)
    last.backward() #!
    (g,) = torch.autograd.grad(F.mse_loss(model(X), T), [model.weight])
    """,
    shows="close(model.weight.grad, 3 * g)",
    cure={"check.backward()": "check.item()", "last = F": "model.zero_grad(); last = F"},
    says="3",
)

# --------------------------------------------------------------------------------------------------- the order of calls
ROWS.fault(
    "step before backward",
    "step-before-backward",
    """
    net = nn.Linear(3, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    X, Y = torch.randn(10, 3), torch.randn(10, 1)
    w0 = net.weight.detach().clone()
    # %%
    loss = F.mse_loss(net(X), Y)
    opt.zero_grad()
    opt.step() #!
    loss.backward()
    """,
    shows="close(net.weight, w0)",
    cure={"opt.step() #!\nloss.backward()": "loss.backward()\nopt.step()"},
    says=("step", "backward"),
)
ROWS.fault(
    "gradients zeroed before the step",
    "step-before-backward",
    """
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    opt = optim.Adam(model.parameters(), lr=0.01)
    x, t = torch.randn(16, 4), torch.randn(16, 1)
    start = model[0].weight.detach().clone()
    # %%
    for epoch in range(4):
        loss = F.mse_loss(model(x), t)
        loss.backward()
        opt.zero_grad() #!
        opt.step() #?
    """,
    shows="close(model[0].weight, start)",
    cure={"loss.backward()\n    opt.zero_grad() #!\n": "opt.zero_grad()\n    loss.backward()\n"},
    says="zero_grad",
)
ROWS.fault(
    "zeroed by hand before it is used",
    "step-before-backward",
    """
    w = torch.tensor([3.0, -2.0], requires_grad=True)
    for k in range(5):
        loss = (w ** 2).sum()
        loss.backward()
        w.grad.zero_() #!
        with torch.no_grad():
            w -= 0.1 * w.grad #?
    """,
    shows="w.tolist() == [3.0, -2.0]",
    cure={"w.grad.zero_() #!\n": "pass\n", "w -= 0.1 * w.grad #?": "w -= 0.1 * w.grad; w.grad.zero_()"},
    says="w",
)

# ---------------------------------------------------------------------------------------------------------------- ascent
ROWS.fault(
    "steps that go up",
    "ascent",
    """
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    history = []
    for i in range(6):
        loss = (w ** 2).sum()
        history.append(loss.item())
        loss.backward()
        with torch.no_grad():
            w += 0.1 * w.grad #!
            w.grad.zero_()
    """,
    shows="history[-1] > 2 * history[0]",
    cure={"w += 0.1": "w -= 0.1"},
    says="w",
)
ROWS.fault(
    "a likelihood without its minus",
    "ascent",
    """
    clf = nn.Linear(4, 3)
    opt = optim.SGD(clf.parameters(), lr=0.5)
    X = torch.randn(60, 4)
    labels = X[:, :3].argmax(1)
    first = F.cross_entropy(clf(X), labels).item()
    # %%
    for epoch in range(10):
        log_p = F.log_softmax(clf(X), dim=1)
        loss = log_p[range(60), labels].mean() #!
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    shows="F.cross_entropy(clf(X), labels).item() > 2 * first",
    cure={"loss = log_p": "loss = -log_p"},
    says="loss",
)
ROWS.fault(
    "maximize left on",
    "ascent",
    """
    net = nn.Linear(3, 1)
    opt = optim.SGD(net.parameters(), lr=0.1, maximize=True)
    X = torch.randn(30, 3)
    Y = X.sum(1, keepdim=True)
    # %%
    losses = []
    for _ in range(6):
        opt.zero_grad()
        loss = F.mse_loss(net(X), Y)
        losses.append(float(loss))
        loss.backward()
        opt.step() #!
    """,
    shows="losses[-1] > 2 * losses[0]",
    cure={", maximize=True": ""},
    says="maximize",
)
ROWS.fault(
    "a squared error with a minus",
    "ascent",
    """
    slope = torch.tensor(0.5, requires_grad=True)
    xs = torch.linspace(0, 2, 30)
    ys = 2 * xs
    trace = []
    opt = optim.SGD([slope], lr=0.05)
    for t in range(8):
        loss = -((slope * xs - ys) ** 2).mean() #!
        trace.append(loss.item())
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    shows="trace[-1] < trace[0] < 0",
    cure={"loss = -((": "loss = (("},
    says="loss",
)
ROWS.fault(
    "data += with the gradient",
    "ascent",
    """
    layer = nn.Linear(2, 1)
    X, Y = torch.randn(25, 2), torch.randn(25, 1)
    errors = []
    for epoch in range(5):
        layer.zero_grad()
        e = F.mse_loss(layer(X), Y); errors.append(e.item())
        e.backward()
        for p in layer.parameters():
            p.data.add_(p.grad, alpha=0.3) #!
    """,
    shows="errors[-1] > errors[0]",
    cure={"alpha=0.3": "alpha=-0.3"},
    says="add_",
)

# -------------------------------------------------------------------------------------------------------------- step sizes
ROWS.fault(
    "steps larger than the weights",
    "update-ratio",
    """
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    opt = optim.SGD(net.parameters(), lr=50.)
    X, Y = torch.randn(32, 8), torch.randn(32, 1)
    before = norm_before = net[0].weight.detach().clone()
    # %%
    loss = F.mse_loss(net(X), Y)
    opt.zero_grad()
    loss.backward()
    opt.step() #!
    """,
    shows="norm(net[0].weight - before) > norm(before)",
    cure={"lr=50.": "lr=0.05"},
    says="50",
)
ROWS.fault(
    "steps that move nothing",
    "update-ratio",
    """
    net = nn.Linear(8, 1)
    opt = optim.SGD(net.parameters(), lr=1e-10)
    X, Y = torch.randn(32, 8), torch.randn(32, 1)
    before = net.weight.detach().clone()
    # %%
    for i in range(10):
        opt.zero_grad()
        loss = F.mse_loss(net(X), Y)
        loss.backward()
        opt.step() #!
    """,
    shows="norm(net.weight - before) < 1e-7 * norm(before)",
    cure={"lr=1e-10": "lr=1e-2"},
    says="1e-10",
)
ROWS.fault(
    "a loss that blows up step by step",
    "update-ratio",
    """
    A = torch.diag(torch.tensor([1.0, 30.0]))
    z = torch.tensor([1.0, 1.0], requires_grad=True)
    vals = []
    for it in range(15):
        q = 0.5 * z @ A @ z
        vals.append(q.item())
        q.backward()
        with torch.no_grad():
            z -= 0.1 * z.grad #!
        z.grad = None
    """,
    shows="vals[-1] > 1e4 * vals[0]",
    cure={"z -= 0.1 *": "z -= 0.05 *"},
    says="z",
)
ROWS.fault(
    "a rate that is too large for fresh batches",
    "update-ratio",
    """
    torch.manual_seed(3)
    w, b = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    opt = optim.SGD([w, b], lr=1.05)
    history = []
    # %%
    for i in range(60):
        x = torch.randn(32, 1)
        y = x[:, 0] * 0.7 + 1 + torch.randn(32)
        loss = ((x @ w + b - y) ** 2).mean()
        history.append(loss.item())
        opt.zero_grad()
        loss.backward()
        opt.step() #!
    """,
    shows="history[-1] > 100 * history[0]",
    cure={"lr=1.05": "lr=0.1"},
    says="1.05",
)
ROWS.fault(
    "a loss that swings",
    "update-ratio",
    """
    w = torch.tensor(2.0, requires_grad=True)
    opt = optim.SGD([w], lr=0.999)
    curve = []
    for it in range(12):
        opt.zero_grad()
        loss = (w - 1) ** 2
        curve.append(w.item())
        loss.backward()
        opt.step() #!
    """,
    shows="all((a - 1) * (b - 1) < 0 for a, b in zip(curve, curve[1:]))",
    cure={"lr=0.999": "lr=0.1"},
    says="0.999",
)
