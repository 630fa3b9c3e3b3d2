"""Short healthy cells: by hand, with optimizers, over several cells."""

from __future__ import annotations

from planting import Table

ROWS = Table()

ROWS.healthy(
    "a square",
    """
    x = torch.tensor([1., 2., 3.], requires_grad=True)
    (x ** 2).sum()
    """,
    learns="close(x.grad, 2 * x)",
)
ROWS.healthy(
    "a vector output",
    """
    x = gl.tensor([1., 2., 3.], requires_grad=True)
    x ** 2 + x
    """,
    learns="x.grad is None",
)
ROWS.healthy(
    "at a minimum",
    """
    w = torch.tensor([1., 2.], requires_grad=True)
    target = torch.tensor([1., 2.])
    loss = ((w - target) ** 2).sum()
    """,
    learns="all_zero(w.grad)",
    remarks="zero-factor",
)
ROWS.healthy(
    "a zero input that makes a zero gradient",
    """
    x = torch.tensor([0., 1., 2.])
    w = torch.ones(3, requires_grad=True)
    y = (x * w).sum()
    y.backward()
    """,
    learns="w.grad.tolist() == [0., 1., 2.]",
)
ROWS.healthy(
    "linear regression by hand",
    """
    X = torch.randn(50, 3)
    y = X @ torch.tensor([1., -2., 3.]) + 0.5
    w = torch.zeros(3, requires_grad=True)
    b = torch.zeros(1, requires_grad=True)
    lr = 0.1
    for epoch in range(20):
        loss = ((X @ w + b - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            w -= lr * w.grad
            b -= lr * b.grad
            w.grad.zero_()
            b.grad.zero_()
        if epoch % 5 == 0:
            print(epoch, loss.item())
    """,
    learns="loss.item() < 1",
)
ROWS.healthy(
    "descent through data",
    """
    p = torch.tensor(4.0, requires_grad=True)
    for _ in range(5):
        l = (p - 1) ** 2
        l.backward()
        p.data -= 0.2 * p.grad.data
        p.grad = None
    l
    """,
    learns="abs(p.item() - 1) < 1",
)
ROWS.healthy(
    "descent that makes new leaves",
    """
    w = torch.tensor([5.0, -4.0], requires_grad=True)
    for i in range(6):
        loss = (w ** 2).sum()
        loss.backward()
        w = (w - 0.1 * w.grad).detach().requires_grad_(True)
    """,
    learns="norm(w) < 4",
)
ROWS.healthy(
    "descent with autograd.grad, rebound on purpose",
    """
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    for i in range(4):
        (g,) = torch.autograd.grad((w ** 2).sum(), w)
        w = w - 0.1 * g
    loss = (w ** 2).sum()
    """,
    learns="norm(w) < 3",
    remarks="rebound-leaf",
)
ROWS.healthy(
    "gradient ascent on purpose",
    """
    theta = torch.tensor(0.2, requires_grad=True)
    heads, tails = 7, 3
    for i in range(10):
        log_likelihood = heads * torch.log(theta) + tails * torch.log(1 - theta)
        log_likelihood.backward()
        with torch.no_grad():
            theta += 0.01 * theta.grad
            theta.grad = None
    """,
    learns="0.5 < theta.item() < 0.8",
)
ROWS.healthy(
    "logistic regression",
    """
    X = torch.randn(100, 2)
    labels = (X[:, 0] + X[:, 1] > 0).float()
    model = nn.Linear(2, 1)
    opt = optim.SGD(model.parameters(), lr=0.5)
    for epoch in range(10):
        opt.zero_grad()
        logits = model(X).squeeze(1)
        loss = F.binary_cross_entropy_with_logits(logits, labels)
        loss.backward()
        opt.step()
        with torch.no_grad():
            acc = ((logits > 0).float() == labels).float().mean()
    """,
    learns="learning(model.parameters()) and acc.item() > 0.8",
)
ROWS.healthy(
    "a classifier with argmax for its accuracy",
    """
    torch.manual_seed(1)
    X, y = torch.randn(60, 5), torch.randint(0, 3, (60,))
    net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(net.parameters(), lr=1e-2)
    history = {"loss": [], "acc": []}
    for epoch in range(5):
        optimizer.zero_grad()
        out = net(X)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()
        history["loss"].append(loss.item())
        history["acc"].append((out.argmax(1) == y).float().mean().item())
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "training and validation",
    """
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    opt = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    Xt, Yt, Xv, Yv = torch.randn(40, 4), torch.randn(40, 1), torch.randn(10, 4), torch.randn(10, 1)
    best, patience, bad = float("inf"), 3, 0
    for epoch in range(12):
        net.train()
        opt.zero_grad()
        train_loss = F.mse_loss(net(Xt), Yt)
        train_loss.backward()
        opt.step()
        net.eval()
        with torch.no_grad():
            val_loss = F.mse_loss(net(Xv), Yv).item()
        if val_loss < best:
            best, bad = val_loss, 0
        else:
            bad += 1
            if bad >= patience:
                break
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "two cells, zeroed between them",
    """
    w = torch.ones(3, requires_grad=True)
    # %% grad
    (w ** 2).sum().backward()
    # %%
    w.grad.zero_()
    loss = (w ** 3).sum()
    loss.backward()
    """,
    learns="close(w.grad, 3 * w ** 2)",
)
ROWS.healthy(
    "the same cell by the magic's own backward, twice",
    """
    w = torch.ones(3, requires_grad=True)
    # %% grad
    loss = (w ** 2).sum()
    # %%
    loss = (w ** 2).sum()
    """,
    learns="close(w.grad, 2 * w)",
)
ROWS.healthy(
    "numpy for a plot",
    """
    x = torch.linspace(-2, 2, 41)
    a = torch.tensor(1.5, requires_grad=True)
    y = torch.sin(a * x)
    xs, ys = x.numpy(), y.detach().numpy()
    peak = float(ys.max())
    loss = (y - 0.5 * x).pow(2).mean()
    loss.backward()
    """,
    learns="a.grad is not None",
)
ROWS.healthy(
    "data from NumPy",
    """
    rng = np.random.default_rng(0)
    Xn = rng.normal(size=(30, 4)).astype(np.float32)
    yn = Xn @ np.array([1, 2, 3, 4], dtype=np.float32)
    X, y = torch.from_numpy(Xn), torch.tensor(yn)
    w = torch.zeros(4, requires_grad=True)
    loss = F.mse_loss(X @ w, y)
    """,
    learns="norm(w.grad) > 0",
)
ROWS.healthy(
    "sigmoid once, and at an ordinary place",
    """
    w = torch.tensor([0.5, -0.5], requires_grad=True)
    x = torch.tensor([1.0, 2.0])
    p = torch.sigmoid(w @ x)
    loss = -torch.log(p)
    loss.backward()
    """,
    learns="norm(w.grad) > 0",
    remarks="unstable",
)
ROWS.healthy(
    "broadcast of a bias and of a scale",
    """
    X = torch.randn(12, 5)
    gamma = torch.ones(5, requires_grad=True)
    beta = torch.zeros(5, requires_grad=True)
    mu, sd = X.mean(0, keepdim=True), X.std(0, keepdim=True)
    Z = gamma * (X - mu) / sd + beta
    loss = (Z - X).abs().mean()
    """,
    learns="beta.grad is not None",
)
ROWS.healthy(
    "all pairs, meant",
    """
    a = torch.randn(7, 2, requires_grad=True)
    b = torch.randn(9, 2)
    d2 = ((a[:, None, :] - b[None, :, :]) ** 2).sum(-1)
    K = torch.exp(-d2 / 2)
    K.mean().backward()
    """,
    learns="norm(a.grad) > 0",
)
ROWS.healthy(
    "an outer difference of columns and rows, meant",
    """
    t = torch.linspace(0, 1, 15)
    ls = torch.tensor(0.3, requires_grad=True)
    gram = torch.exp(-0.5 * ((t[:, None] - t) / ls) ** 2) + 1e-2 * torch.eye(15)
    y = torch.sin(6 * t)
    nll = 0.5 * y @ torch.linalg.solve(gram, y) + 0.5 * torch.logdet(gram)
    nll.backward()
    """,
    learns="ls.grad is not None",
)
ROWS.healthy(
    "second derivatives",
    """
    x = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
    y = (x ** 3).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    g.sum().backward()
    """,
    learns="close(x.grad, 6 * x)",
)
ROWS.healthy(
    "a relu at its kink",
    """
    x = torch.tensor([-1., 0., 1., 2.], requires_grad=True)
    torch.relu(x).sum()
    """,
    learns="x.grad.tolist() == [0., 0., 1., 1.]",
)
ROWS.healthy(
    "a maximum sends its gradient to one",
    """
    scores = torch.tensor([0.1, 2.0, -1.0], requires_grad=True)
    top = scores.max()
    top.backward()
    """,
    learns="scores.grad.tolist() == [0., 1., 0.]",
)
ROWS.healthy(
    "a sum, with a step that suits it",
    """
    X, y = torch.randn(8, 2), torch.randn(8)
    w = torch.zeros(2, requires_grad=True)
    opt = optim.SGD([w], lr=0.01)
    for _ in range(5):
        opt.zero_grad()
        loss = 0.5 * ((X @ w - y) ** 2).sum()
        loss.backward()
        opt.step()
    """,
    learns="norm(w.grad) > 0",
)
ROWS.healthy(
    "LBFGS with its closure",
    """
    z = torch.tensor([-1.0, 1.5], requires_grad=True)
    opt = optim.LBFGS([z], lr=0.5, max_iter=5)
    def closure():
        opt.zero_grad()
        f = (1 - z[0]) ** 2 + 10 * (z[1] - z[0] ** 2) ** 2
        f.backward()
        return f
    for _ in range(3):
        value = opt.step(closure)
    """,
    learns="z.grad is not None",
)
ROWS.healthy(
    "float64 and small numbers",
    """
    eps = torch.tensor(1e-9, dtype=torch.float64, requires_grad=True)
    y = 1e-9 * torch.sin(eps)
    y.backward()
    """,
    learns="0 < eps.grad.item() < 1e-8",
)
ROWS.healthy(
    "a hidden layer with an ordinary share of zeros",
    """
    W1 = (torch.randn(10, 50) * (2 / 10) ** 0.5).requires_grad_()
    W2 = (torch.randn(50, 1) * (1 / 50) ** 0.5).requires_grad_()
    X, Y = torch.randn(64, 10), torch.randn(64, 1)
    H = torch.relu(X @ W1)
    loss = ((H @ W2 - Y) ** 2).mean()
    """,
    learns="learning([W1, W2]) and 0.3 < zero_share(H) < 0.7",
)
