"""Programs that look as if the wrong thing learned: new leaves in each step, losses with a minus, activations as outputs."""

from __future__ import annotations

from planting import Table

ROWS = Table()

# --------------------------------------------------------------------------------------------------- new leaves in each step
ROWS.healthy(
    "a gradient penalty at interpolated points",
    """
    critic = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    opt = optim.Adam(critic.parameters(), lr=1e-3)
    # %%
    for step in range(4):
        real, fake = torch.randn(16, 3) + 1, torch.randn(16, 3)
        alpha = torch.rand(16, 1, requires_grad=True)
        mixed = alpha * real + (1 - alpha) * fake
        (slope,) = torch.autograd.grad(critic(mixed).sum(), [mixed], create_graph=True)
        loss = critic(fake).mean() - critic(real).mean() + 10 * ((slope.norm(dim=1) - 1) ** 2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning([critic[0].weight, critic[2].weight])",
)
ROWS.healthy(
    "collocation points that require a gradient, matrices by hand",
    """
    A, b = torch.randn(1, 8, requires_grad=True), (torch.randn(8) / 3).requires_grad_()
    opt = optim.Adam([A, b], lr=1e-3)
    # %%
    for step in range(4):
        t = torch.rand(32, 1, requires_grad=True)
        u = torch.tanh(t @ A) @ b
        (slope,) = torch.autograd.grad(u.sum(), [t], create_graph=True)
        loss = ((slope.squeeze(1) + u) ** 2).mean() + (u.mean() - 1) ** 2
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning([A, b])",
)
ROWS.healthy(
    "a perturbation of the inputs that is drawn anew for each batch",
    """
    net = nn.Linear(6, 3)
    opt = optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(24, 6), torch.randint(0, 3, (24,))
    # %%
    for step in range(4):
        delta = torch.zeros(24, 6, requires_grad=True)
        F.cross_entropy(net(x + delta), y).backward()
        opt.zero_grad()
        loss = F.cross_entropy(net(x + 0.1 * delta.grad.sign()), y)
        loss.backward(); opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "a latent code for each batch, with its own optimizer",
    """
    decoder = nn.Linear(3, 6)
    opt = optim.Adam(decoder.parameters(), lr=1e-2)
    x = torch.randn(4, 12, 6)
    # %%
    for batch in x:
        z = torch.randn(12, 3, requires_grad=True)
        opt_z = optim.SGD([z], lr=0.5)
        for _ in range(2):
            opt_z.zero_grad(); opt.zero_grad()
            loss = F.mse_loss(decoder(z), batch)
            loss.backward(); opt_z.step()
        opt.step()
    """,
    learns="learning(decoder.parameters()) and learning([z])",
)
ROWS.healthy(
    "meta-learning with copies of the weights, first order",
    """
    net = nn.Linear(4, 1)
    opt = optim.Adam(net.parameters(), lr=1e-2)
    # %%
    for task in range(4):
        x = torch.randn(12, 4)
        y = x @ torch.randn(4, 1)
        fast = [p.detach().clone().requires_grad_() for p in net.parameters()]
        grads = torch.autograd.grad(F.mse_loss(F.linear(x, fast[0], fast[1]), y), fast)
        fast = [(f - 0.1 * g).detach().requires_grad_() for f, g in zip(fast, grads)]
        loss = F.mse_loss(F.linear(x, fast[0], fast[1]), y)
        loss.backward()
        for p, f in zip(net.parameters(), fast):
            p.grad = f.grad
        opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "a matrix for each fold, updated by hand",
    """
    x, y = torch.randn(24, 4), torch.randn(24, 1)
    # %%
    for fold in range(3):
        w = torch.randn(4, 1, requires_grad=True)
        for step in range(3):
            loss = F.mse_loss(x @ w, y)
            loss.backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
                w.grad = None
    """,
    learns="w.requires_grad",
)
ROWS.healthy(
    "a model and its optimizer for each fold",
    """
    x, y = torch.randn(24, 5), torch.randint(0, 3, (24,))
    # %%
    for fold in range(2):
        net = nn.Linear(5, 3)
        opt = optim.Adam(net.parameters(), lr=1e-2)
        for step in range(3):
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(net.parameters())",
)

# ---------------------------------------------------------------------------------------------------------- losses with a minus
ROWS.healthy(
    "a generator that maximises the loss of the discriminator",
    """
    gen, disc = nn.Linear(3, 4), nn.Linear(4, 1)
    og, od = optim.Adam(gen.parameters(), lr=1e-2), optim.Adam(disc.parameters(), lr=1e-2)
    one, zero = torch.ones(16, 1), torch.zeros(16, 1)
    # %%
    for step in range(4):
        fake = gen(torch.randn(16, 3))
        d_loss = F.binary_cross_entropy_with_logits(disc(torch.randn(16, 4) + 2), one)
        d_loss = d_loss + F.binary_cross_entropy_with_logits(disc(fake.detach()), zero)
        od.zero_grad(); d_loss.backward(); od.step()
        g_loss = -F.binary_cross_entropy_with_logits(disc(fake), zero)
        og.zero_grad(); g_loss.backward(); og.step()
    """,
    learns="learning(gen.parameters())",
)
ROWS.healthy(
    "unlearning of some rows",
    """
    net = nn.Linear(6, 3)
    opt = optim.SGD(net.parameters(), lr=0.01)
    forget_x, forget_y = torch.randn(64, 6), torch.randint(0, 3, (64,))
    # %%
    for step in range(4):
        i = torch.randint(0, 64, (16,))
        loss = -F.cross_entropy(net(forget_x[i]), forget_y[i])
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "minus a loss, with maximize=True",
    """
    net = nn.Linear(6, 3)
    opt = optim.SGD(net.parameters(), lr=0.01, maximize=True)
    X, Y = torch.randn(64, 6), torch.randint(0, 3, (64,))
    # %%
    for step in range(4):
        i = torch.randint(0, 64, (16,))
        objective = -F.cross_entropy(net(X[i]), Y[i])
        opt.zero_grad(); objective.backward(); opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "minus a probability, which is bounded",
    """
    net = nn.Linear(6, 1)
    opt = optim.SGD(net.parameters(), lr=0.5)
    x = torch.randn(24, 6) + 1
    # %%
    for step in range(5):
        loss = -torch.sigmoid(net(x)).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "an attack that moves only the inputs",
    """
    net = nn.Linear(6, 3)
    x, y = torch.randn(8, 6), torch.randint(0, 3, (8,))
    noise = torch.zeros(8, 6, requires_grad=True)
    opt = optim.Adam([noise], lr=0.1)
    # %%
    for step in range(4):
        loss = -F.cross_entropy(net(x + noise), y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning([noise])",
)

# ----------------------------------------------------------------------------------------------------- activations as outputs
ROWS.healthy(
    "a denoiser with sigmoid outputs and noisy targets",
    """
    net = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 8), nn.Sigmoid())
    opt = optim.Adam(net.parameters(), lr=1e-2)
    clean = torch.rand(32, 8)
    # %%
    for step in range(4):
        one, other = clean + 0.1 * torch.randn(32, 8), clean + 0.1 * torch.randn(32, 8)
        loss = F.mse_loss(net(one), other)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "tanh outputs for pixels in [-1, 1] with a small overshoot",
    """
    net = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 8), nn.Tanh())
    opt = optim.Adam(net.parameters(), lr=1e-2)
    x = 2.2 * torch.rand(32, 8) - 1.1
    # %%
    for step in range(4):
        loss = F.l1_loss(net(x), x)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "a ReLU output for amounts, some a little below 0",
    """
    net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1), nn.ReLU())
    nn.init.ones_(net[2].bias)
    opt = optim.Adam(net.parameters(), lr=1e-2)
    X, Y = torch.randn(32, 4), 5 * torch.rand(32, 1) - 0.05
    # %%
    for step in range(4):
        loss = F.mse_loss(net(X), Y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "tanh outputs that are scaled to the targets",
    """
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1), nn.Tanh())
    opt = optim.Adam(net.parameters(), lr=1e-2)
    X, Y = torch.randn(32, 4), 2 * torch.randn(32, 1)
    # %%
    for step in range(4):
        loss = F.smooth_l1_loss(8 * net(X), Y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "class weights of which one is 0",
    """
    net = nn.Linear(4, 3)
    opt = optim.SGD(net.parameters(), lr=0.1)
    X, Y = torch.randn(32, 4), torch.arange(32) % 3
    weights = torch.tensor([0., 1., 1.])
    # %%
    for step in range(3):
        loss = F.cross_entropy(net(X), Y, weight=weights)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(net.parameters())",
)

# ---------------------------------------------------------------------------------------------------- losses that are kept
ROWS.healthy(
    "losses of time steps that are added and then differentiated",
    """
    cell, out = nn.RNNCell(2, 4), nn.Linear(4, 1)
    opt = optim.SGD([*cell.parameters(), *out.parameters()], lr=0.05)
    X, Y = torch.randn(5, 8, 2), torch.randn(5, 8, 1)
    # %%
    history = []
    for step in range(3):
        h, total, losses = torch.zeros(8, 4), 0.0, []
        for x, y in zip(X, Y):
            h = cell(x, h)
            loss = F.mse_loss(out(h), y)
            total += loss
            losses.append(loss)
        opt.zero_grad(); (total / 5).backward(); opt.step()
        history.append(total.item())
    """,
    learns="learning(out.parameters())",
)
ROWS.healthy(
    "a running loss of numbers, and one without history",
    """
    w = torch.zeros(3, requires_grad=True)
    opt = optim.SGD([w], lr=0.1)
    X, Y = torch.randn(24, 3), torch.randn(24)
    # %%
    running, total, losses = 0.0, torch.zeros(()), []
    for step in range(4):
        loss = ((X @ w - Y) ** 2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
        running += loss.item()
        losses.append(loss.detach())
        with torch.no_grad():
            total += loss
    """,
    learns="learning([w])",
)
ROWS.healthy(
    "a list of losses, of which the mean is differentiated",
    """
    net = nn.Linear(3, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    X = torch.randn(4, 8, 3)
    # %%
    for step in range(3):
        losses = []
        for x in X:
            loss = (net(x) - 1).pow(2).mean()
            losses.append(loss)
        opt.zero_grad(); torch.stack(losses).mean().backward(); opt.step()
    """,
    learns="learning(net.parameters())",
)

# ------------------------------------------------------------------------------------------------------------- advantages
ROWS.healthy(
    "actor and critic with an advantage that is detached in the product",
    """
    actor, critic = nn.Linear(4, 3), nn.Linear(4, 1)
    opt = optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-2)
    # %%
    for step in range(3):
        s, G, a = torch.randn(16, 4), torch.randn(16, 1), torch.randint(0, 3, (16, 1))
        adv = G - critic(s)
        log_prob = F.log_softmax(actor(s), 1).gather(1, a)
        loss = -(log_prob * adv.detach()).mean() + adv.pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(critic.parameters())",
)
ROWS.healthy(
    "a reparameterised policy whose gradient goes through the critic",
    """
    actor, q = nn.Linear(4, 4), nn.Linear(6, 1)
    log_alpha = torch.zeros(1, requires_grad=True)
    oa, oq = optim.Adam([*actor.parameters(), log_alpha], lr=1e-2), optim.Adam(q.parameters(), lr=1e-2)
    # %%
    for step in range(3):
        s = torch.randn(16, 4)
        mean, log_std = actor(s).chunk(2, 1)
        act = mean + log_std.exp() * torch.randn(16, 2)
        log_pi = (-0.5 * ((act - mean) / log_std.exp()) ** 2 - log_std).sum(1, keepdim=True)
        q_loss = F.mse_loss(q(torch.cat([s, act.detach()], 1)), torch.randn(16, 1))
        oq.zero_grad(); q_loss.backward(); oq.step()
        a_loss = (log_alpha.exp().detach() * log_pi - q(torch.cat([s, act], 1))).mean()
        a_loss = a_loss - (log_alpha * (log_pi + 2).detach()).mean()
        oa.zero_grad(); a_loss.backward(); oa.step()
    """,
    learns="learning(actor.parameters())",
)
ROWS.healthy(
    "log-probabilities weighted by a confidence that is also trained",
    """
    net, confidence = nn.Linear(4, 3), nn.Linear(4, 1)
    opt = optim.Adam([*net.parameters(), *confidence.parameters()], lr=1e-2)
    # %%
    for step in range(3):
        x, y = torch.randn(16, 4), torch.randint(0, 3, (16, 1))
        c = torch.sigmoid(confidence(x))
        logp = F.log_softmax(net(x), 1).gather(1, y)
        loss = -(logp * c).mean() + F.mse_loss(c, torch.ones(16, 1))
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "a learned optimizer, whose inner parameters start at 0 in each step",
    """
    cell, out = nn.Linear(2, 8), nn.Linear(8, 1)
    meta = optim.Adam([*cell.parameters(), *out.parameters()], lr=0.02)
    # %%
    for step in range(6):
        A, b = torch.eye(4) + 0.2 * torch.randn(4, 4), torch.ones(4, 1)
        theta = torch.zeros(4, 1, requires_grad=True)
        total = 0
        for t in range(4):
            loss = ((A @ theta - b) ** 2).mean()
            total = total + loss
            (g,) = torch.autograd.grad(loss, theta, create_graph=True)
            theta = theta - 0.1 * out(torch.tanh(cell(torch.cat([g.detach(), theta], 1))))
        meta.zero_grad()
        total.backward()
        meta.step()
    """,
    learns="learning([*cell.parameters(), *out.parameters()])",
    remarks="rebound-leaf",
)

ROWS.healthy(
    "a last batch of few examples in which no unit is active",
    """
    net = nn.Sequential(nn.Linear(1, 3), nn.ReLU(), nn.Linear(3, 1))
    with torch.no_grad():
        net[0].weight.fill_(1.0)
        net[0].bias.zero_()
    opt = optim.SGD(net.parameters(), lr=0.01)
    X = torch.cat([torch.rand(24, 1), -torch.rand(4, 1)])
    t = X.relu()
    for start in range(0, 28, 4):
        opt.zero_grad()
        loss = F.mse_loss(net(X[start:start + 4]), t[start:start + 4])
        loss.backward()
        opt.step()
    """,
    learns="net[0].weight.min() > 0",
)

ROWS.healthy(
    "a last batch whose features are all 0",
    """
    net = nn.Sequential(nn.Linear(2, 4), nn.Sigmoid(), nn.Linear(4, 1), nn.Sigmoid())
    opt = optim.SGD(net.parameters(), lr=0.1)
    X = torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    t = torch.tensor([[0.0], [1.0], [1.0], [0.0], [0.0], [0.0]])
    for epoch in range(3):
        for start in range(0, 6, 4):
            opt.zero_grad()
            loss = F.mse_loss(net(X[start:start + 4]), t[start:start + 4])
            loss.backward()
            opt.step()
    """,
    learns="norm(net[0].weight.grad) == 0 and norm(net[0].bias.grad) > 0",
)

ROWS.healthy(
    "momentum that carries one number up for a few batches of one example",
    """
    b = torch.tensor(0.0, requires_grad=True)
    opt = optim.SGD([b], lr=0.001, momentum=0.95)
    labels = [1.0] * 20 + [0.0] * 5
    for label in labels:
        opt.zero_grad()
        loss = F.binary_cross_entropy_with_logits(b, torch.tensor(label))
        loss.backward()
        opt.step()
    """,
    learns="b.item() > 0",
)
