"""Programs that look as if the wrong thing learned: axes of size 1 beside layers that learn, losses over the batch, frozen layers,
constant weights."""

from __future__ import annotations

from planting import Table

ROWS = Table()

# ----------------------------------------------------------------------------------------------------- axes of one element
ROWS.healthy(
    "an attention whose last sequence has one key",
    """
    q, k, v = nn.Linear(6, 6, bias=False), nn.Linear(6, 6, bias=False), nn.Linear(6, 6)
    opt = optim.SGD([*q.parameters(), *k.parameters(), *v.parameters()], lr=0.1)
    for length in (4, 3, 1):
        x, y = torch.randn(8, length, 6), torch.randn(8, length, 6)
        weights = torch.softmax(q(x) @ k(x).transpose(-2, -1) / 6 ** 0.5, dim=-1)
        loss = F.mse_loss(weights @ v(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="norm(v.weight.grad) > 0",
)
ROWS.healthy(
    "an attention over one token",
    """
    q, k, v = nn.Linear(6, 6, bias=False), nn.Linear(6, 6, bias=False), nn.Linear(6, 6)
    x, y = torch.randn(8, 1, 6), torch.randn(8, 1, 6)
    weights = torch.softmax(q(x) @ k(x).transpose(-2, -1) / 6 ** 0.5, dim=-1)
    loss = F.mse_loss(weights @ v(x), y)
    loss.backward()
    """,
    learns="norm(v.weight.grad) > 0 and all_zero(q.weight.grad)",
    remarks="cancelled",
)
ROWS.healthy(
    "the best of three experts, with a balanced gate",
    """
    gate, experts = nn.Linear(5, 3), nn.ModuleList([nn.Linear(5, 2) for _ in range(3)])
    opt = optim.Adam([*gate.parameters(), *experts.parameters()], lr=0.01)
    x, y = torch.randn(24, 5), torch.randn(24, 2)
    for step in range(3):
        z = gate(x)
        best, which = z.topk(1, dim=1)
        weight = F.softmax(best, dim=1)
        out = sum(weight * experts[j](x) * (which == j).float() for j in range(3))
        loss = F.mse_loss(out, y) + 0.1 * (F.softmax(z, 1).mean(0) ** 2).sum()
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="norm(gate.weight.grad) > 0",
)
ROWS.healthy(
    "norms of several features and groups",
    """
    model = nn.Sequential(nn.Linear(6, 8), nn.GroupNorm(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 1))
    opt = optim.Adam(model.parameters(), lr=0.01)
    x, y = torch.randn(16, 6), torch.randn(16, 1)
    for step in range(3):
        out = model(x)
        loss = F.mse_loss(out / out.norm(dim=0, keepdim=True), y) + (out - out.mean(0, keepdim=True)).pow(2).sum(1).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(model[3].parameters())",
    remarks="cancelled",
)
# -------------------------------------------------------------------------------------------------- a softmax over the batch
ROWS.healthy(
    "pairs that are contrasted both ways",
    """
    text, image = nn.Linear(6, 4), nn.Linear(5, 4)
    opt = optim.Adam([*text.parameters(), *image.parameters()], lr=0.01)
    a, b, pairs = torch.randn(10, 6), torch.randn(10, 5), torch.arange(10)
    for step in range(3):
        logits = F.normalize(text(a), dim=1) @ F.normalize(image(b), dim=1).T / 0.1
        rows, columns = F.cross_entropy(logits, pairs), F.nll_loss(F.log_softmax(logits, dim=0), pairs)
        loss = (rows + columns + F.cross_entropy(logits.T, pairs)) / 3
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning([text.weight, image.weight])",
)
ROWS.healthy(
    "an attention over the first axis",
    """
    score, head = nn.Linear(4, 4, bias=False), nn.Linear(4, 3)
    opt = optim.Adam([*score.parameters(), *head.parameters()], lr=0.01)
    items = torch.rand(12, 4)
    items = items / items.sum(1, keepdim=True)
    label = torch.tensor([1])
    for step in range(3):
        weights = torch.softmax(score(items), dim=0)
        pooled = (weights * items).sum(0, keepdim=True)
        loss = F.cross_entropy(head(pooled), label)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(score.parameters())",
)
ROWS.healthy(
    "classes in the first axis",
    """
    W = torch.randn(3, 5, requires_grad=True)
    x, y = torch.randn(5, 12), torch.eye(3)[torch.randint(0, 3, (12,))].T
    opt = optim.Adam([W], lr=0.01)
    for step in range(3):
        p = torch.softmax(W @ x, dim=0)
        loss = -(y * p.log()).sum(0).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="norm(W.grad) > 0",
    remarks="unstable",  # the logarithm of a softmax
)
ROWS.healthy(
    "a mixture, and one example without a batch",
    """
    logits, means = torch.zeros(3, requires_grad=True), torch.randn(3, requires_grad=True)
    net = nn.Linear(4, 3)
    opt = optim.Adam([logits, means, *net.parameters()], lr=0.01)
    x, one = torch.randn(20), torch.randn(4)
    for step in range(3):
        weights = torch.softmax(logits, dim=0)
        density = (weights * torch.exp(-0.5 * (x[:, None] - means) ** 2)).sum(1)
        loss = -torch.log(density).mean() + F.nll_loss(F.log_softmax(net(one), dim=0), torch.tensor(1))
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning([logits, means, net.weight])",
)
# ------------------------------------------------------------------------------------------------------------- broadcasting
ROWS.healthy(
    "quantiles, an ensemble and values beside advantages",
    """
    quantiles, ensemble = nn.Linear(5, 3), nn.Linear(5, 4)
    value, advantage = nn.Linear(5, 1), nn.Linear(5, 3)
    parameters = [p for m in (quantiles, ensemble, value, advantage) for p in m.parameters()]
    opt = optim.Adam(parameters, lr=0.01)
    x, y, targets, mask = torch.randn(20, 5), torch.randn(20, 1), torch.randn(20, 3), torch.ones(20, 1)
    q = torch.tensor([0.1, 0.5, 0.9])
    for step in range(3):
        e = y - quantiles(x)
        pinball = torch.maximum(q * e, (q - 1) * e).mean()
        members = ((ensemble(x) - y) ** 2).mean()
        a = advantage(x)
        dueling = value(x) + a - a.mean(1, keepdim=True)
        loss = pinball + members + ((dueling - targets) ** 2 * mask).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning([quantiles.weight, ensemble.weight, value.weight, advantage.weight])",
    remarks="cancelled",
)
ROWS.healthy(
    "one level for all columns of the data",
    """
    level = torch.zeros(20, 1, requires_grad=True)
    data = torch.randn(20, 3)
    opt = optim.SGD([level], lr=0.5)
    for step in range(3):
        loss = ((data - level) ** 2).mean() + F.mse_loss(level.expand(20, 3), data)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="norm(level.grad) > 0",
)
ROWS.healthy(
    "one prediction for three measurements",
    """
    net = nn.Linear(5, 1)
    opt = optim.Adam(net.parameters(), lr=0.01)
    x, measured = torch.randn(20, 5), torch.randn(20, 3)
    for step in range(3):
        loss = F.mse_loss(net(x), measured)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(net.parameters())",
    remarks="broadcast",
)
# ----------------------------------------------------------------------------------------------------------- evaluation mode
ROWS.healthy(
    "validation after each epoch, and evaluation at the end",
    """
    x, y = torch.randn(32, 5), torch.randn(32, 1)
    model = nn.Sequential(nn.Linear(5, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1))
    opt = optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(3):
        model.train()
        for step in range(2):
            loss = F.mse_loss(model(x), y)
            opt.zero_grad(); loss.backward(); opt.step()
        model.eval()
        valid = F.mse_loss(model(x), y).item()
    model.eval()
    prediction = model(x)
    """,
    learns="bool(model[1].running_mean.any())",
)
ROWS.healthy(
    "pretrained batch norms that stay in evaluation mode",
    """
    def build():
        return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 1))
    x, y = torch.randn(32, 5), torch.randn(32, 1)
    old = build()
    with torch.no_grad():
        for _ in range(3):
            old(x)
    # %%
    model = build()
    model.load_state_dict(old.state_dict())
    model.eval()
    opt = optim.SGD(model.parameters(), lr=0.01)
    for step in range(3):
        loss = F.mse_loss(model(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(model.parameters())",
)
ROWS.healthy(
    "frozen batch norms in a model that trains",
    """
    x, y = torch.randn(32, 5), torch.randn(32, 1)
    model = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    for m in model.modules():
        if isinstance(m, nn.BatchNorm1d):
            m.eval()
            m.requires_grad_(False)
    opt = optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.01)
    for step in range(3):
        loss = F.mse_loss(model(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(model[0].parameters())",
)
ROWS.healthy(
    "a fixed extractor, and features as a loss",
    """
    features = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU()).eval().requires_grad_(False)
    generator = nn.Linear(3, 5)
    opt = optim.Adam(generator.parameters(), lr=0.01)
    z, real = torch.randn(16, 3), torch.randn(16, 5)
    for step in range(3):
        loss = F.mse_loss(features(generator(z)), features(real))
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(generator.parameters())",
)
ROWS.healthy(
    "a critic in evaluation mode while its generator steps",
    """
    G, D = nn.Linear(4, 2), nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(8, 1))
    opt_g, opt_d = optim.Adam(G.parameters(), lr=1e-3), optim.Adam(D.parameters(), lr=1e-3)
    for step in range(3):
        real, z = torch.randn(16, 2), torch.randn(16, 4)
        D.train()
        d_loss = F.softplus(-D(real)).mean() + F.softplus(D(G(z).detach())).mean()
        opt_d.zero_grad(); d_loss.backward(); opt_d.step()
        D.eval()
        g_loss = F.softplus(-D(G(z))).mean()
        opt_g.zero_grad(); g_loss.backward(); opt_g.step()
    """,
    learns="learning(G.parameters())",
    remarks="cancelled",
)
ROWS.healthy(
    "examples that are attacked in evaluation mode",
    """
    x, y = torch.randn(32, 5), torch.randn(32, 1)
    model = nn.Sequential(nn.Linear(5, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    opt = optim.Adam(model.parameters(), lr=0.01)
    for step in range(3):
        model.eval()
        attacked = x.clone().requires_grad_(True)
        F.mse_loss(model(attacked), y).backward()
        near = (x + 0.1 * attacked.grad.sign()).detach()
        model.train()
        opt.zero_grad()
        loss = F.mse_loss(model(near), y)
        loss.backward()
        opt.step()
    """,
    learns="learning(model.parameters())",
)
ROWS.healthy(
    "train that is forgotten after the validation",
    """
    x, y = torch.randn(32, 5), torch.randn(32, 1)
    model = nn.Sequential(nn.Linear(5, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    opt = optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(3):
        for step in range(2):
            loss = F.mse_loss(model(x), y)
            opt.zero_grad(); loss.backward(); opt.step()
        model.eval()
        with torch.no_grad():
            valid = F.mse_loss(model(x), y)
    """,
    learns="learning(model.parameters())",
    remarks="evaluation-mode",
)
# ------------------------------------------------------------------------------------------------------------ constant weights
ROWS.healthy(
    "a constant hidden layer before a random one",
    """
    x = torch.randn(40, 4)
    y = torch.sin(2 * x[:, :1])
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    nn.init.constant_(model[0].weight, 0.5)
    nn.init.zeros_(model[0].bias)
    opt = optim.SGD(model.parameters(), lr=1e-4)
    for step in range(4):
        loss = F.mse_loss(model(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(model.parameters())",
)
ROWS.healthy(
    "a linear model and a softmax regression that start at zero",
    """
    x, y = torch.randn(40, 4), torch.randint(0, 3, (40,))
    w, b = torch.zeros(4, requires_grad=True), torch.zeros(1, requires_grad=True)
    net = nn.Linear(4, 3)
    nn.init.zeros_(net.weight)
    opt = optim.SGD([w, b, *net.parameters()], lr=0.1)
    for step in range(4):
        loss = F.binary_cross_entropy_with_logits(x @ w + b, (y > 0).float()) + F.cross_entropy(net(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning([w, b, *net.parameters()])",
)
ROWS.healthy(
    "one step by hand, of a net of one number",
    """
    x, y = torch.randn(40, 4), torch.randn(40, 1)
    W1, W2 = torch.full((4, 3), 0.3, requires_grad=True), torch.ones(3, 1, requires_grad=True)
    # %%
    loss = ((torch.tanh(x @ W1) @ W2 - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        W1 -= 0.1 * W1.grad
        W2 -= 0.1 * W2.grad
    """,
    learns="learning([W1, W2])",
)
ROWS.healthy(
    "fixed averages, a constant embedding and dropout between equal units",
    """
    images, words, y = torch.randn(8, 1, 6, 6), torch.randint(0, 5, (8,)), torch.randint(0, 2, (8,))
    blur = nn.Conv2d(1, 4, 3, bias=False).requires_grad_(False)
    nn.init.constant_(blur.weight, 1 / 9)
    table = nn.Embedding(5, 4)
    nn.init.constant_(table.weight, 0.1)
    hidden, out = nn.Linear(68, 6), nn.Linear(6, 2)
    for p in (*hidden.parameters(), out.weight):
        nn.init.constant_(p, 0.05)
    opt = optim.SGD([*table.parameters(), *hidden.parameters(), *out.parameters()], lr=0.1)
    for step in range(4):
        h = torch.tanh(hidden(torch.cat([blur(images).flatten(1), table(words)], 1)))
        loss = F.cross_entropy(out(F.dropout(h, 0.5)), y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="norm(hidden.weight.grad) > 0",
)
