"""Reinforcement learning, physics, graphs, meta-learning, fits of formulas."""

from __future__ import annotations

from planting import Table

ROWS = Table()

ROWS.healthy(
    "a DQN with a target network",
    """
    def make():
        return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    q, q_target = make(), make()
    q_target.load_state_dict(q.state_dict())
    opt = optim.Adam(q.parameters(), lr=1e-3)
    s, a, r, s2, done = torch.randn(32, 4), torch.randint(0, 2, (32,)), torch.randn(32), torch.randn(32, 4), torch.rand(32) < 0.1
    # %%
    for step in range(4):
        qa = q(s).gather(1, a[:, None]).squeeze(1)
        with torch.no_grad():
            best = q_target(s2).max(1).values
            goal = r + 0.99 * best * (~done).float()
        loss = F.smooth_l1_loss(qa, goal)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(q.parameters(), 10.0)
        opt.step()
        if step % 2 == 0:
            q_target.load_state_dict(q.state_dict())
    """,
    learns="learning(q.parameters()) and q_target[0].weight.grad is None",
)
ROWS.healthy(
    "REINFORCE",
    """
    policy = nn.Sequential(nn.Linear(3, 12), nn.Tanh(), nn.Linear(12, 4))
    opt = optim.Adam(policy.parameters(), lr=1e-2)
    obs = torch.randn(15, 3)
    # %%
    logits = policy(obs)
    probs = logits.softmax(-1)
    actions = torch.multinomial(probs.detach(), 1).squeeze(1)
    rewards = [1.0 if a.item() == 2 else -0.1 for a in actions]
    G, returns = 0.0, []
    for r in reversed(rewards):
        G = r + 0.9 * G
        returns.insert(0, G)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-8)
    logp = logits.log_softmax(-1)[torch.arange(15), actions]
    loss = -(logp * returns).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(policy.parameters())",
)
ROWS.healthy(
    "actor and critic, the advantage detached",
    """
    class AC(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.pi, self.v = nn.Linear(4, 16), nn.Linear(16, 2), nn.Linear(16, 1)
        def forward(self, x):
            h = torch.tanh(self.body(x))
            return self.pi(h), self.v(h).squeeze(-1)
    ac = AC()
    opt = optim.RMSprop(ac.parameters(), lr=7e-4)
    S, A, R = torch.randn(20, 4), torch.randint(0, 2, (20,)), torch.randn(20)
    # %%
    logits, values = ac(S)
    adv = (R - values).detach()
    logp = F.log_softmax(logits, -1)
    pg = -(logp[range(20), A] * adv).mean()
    entropy = -(logp.exp() * logp).sum(-1).mean()
    loss = pg + 0.5 * F.mse_loss(values, R) - 0.01 * entropy
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(ac.parameters(), 0.5)
    opt.step()
    """,
    learns="learning(ac.parameters())",
)
ROWS.healthy(
    "PPO clips some ratios",
    """
    pi = nn.Linear(4, 3)
    s, a = torch.randn(50, 4), torch.randint(0, 3, (50,))
    adv = torch.randn(50)
    with torch.no_grad():
        old = F.log_softmax(pi(s), -1)[torch.arange(50), a]
        pi.weight.add_(0.4 * torch.randn(3, 4))
    # %%
    new = F.log_softmax(pi(s), -1)[torch.arange(50), a]
    ratio = (new - old).exp()
    loss = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
    loss.backward()
    """,
    learns="learning(pi.parameters())",
)
ROWS.healthy(
    "the actor's step of DDPG goes through a critic that is not stepped",
    """
    actor, critic = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1), nn.Tanh()), nn.Linear(4, 1)
    a_opt, c_opt = optim.Adam(actor.parameters(), lr=1e-3), optim.Adam(critic.parameters(), lr=1e-3)
    s = torch.randn(20, 3)
    # %%
    actor_loss = -critic(torch.cat([s, actor(s)], 1)).mean()
    a_opt.zero_grad()
    actor_loss.backward()
    a_opt.step()
    c_opt.zero_grad()
    """,
    learns="learning(actor.parameters())",
)
ROWS.healthy(
    "soft actor-critic's temperature",
    """
    log_alpha = torch.zeros(1, requires_grad=True)
    opt = optim.Adam([log_alpha], lr=3e-4)
    logp = torch.randn(32) - 1
    # %%
    loss = -(log_alpha * (logp + 2.0).detach()).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="log_alpha.grad is not None",
)
ROWS.healthy(
    "a physics-informed net",
    """
    u = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
    opt = optim.Adam(u.parameters(), lr=1e-3)
    # %%
    for it in range(2):
        x = torch.rand(30, 1, requires_grad=True)
        y = u(x)
        dy = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]
        d2y = torch.autograd.grad(dy, x, torch.ones_like(dy), create_graph=True)[0]
        residual = d2y + math.pi ** 2 * torch.sin(math.pi * x)
        ends = u(torch.tensor([[0.], [1.]]))
        loss = residual.pow(2).mean() + ends.pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    learns="learning(u.parameters())",
)
ROWS.healthy(
    "the rate of a differential equation",
    """
    k = torch.tensor(0.3, requires_grad=True)
    dt, steps = 0.05, 40
    data = torch.exp(-0.8 * dt * torch.arange(steps + 1))
    y, path = torch.tensor(1.0), [torch.tensor(1.0)]
    for n in range(steps):
        y = y + dt * (-k * y)
        path.append(y)
    loss = (torch.stack(path) - data).pow(2).mean()
    loss.backward()
    """,
    learns="k.grad is not None",
)
ROWS.healthy(
    "a pendulum by Runge and Kutta",
    """
    g_over_l = torch.tensor(9.0, requires_grad=True)
    def f(s): return torch.stack([s[1], -g_over_l * torch.sin(s[0])])
    s = torch.tensor([0.5, 0.0])
    for n in range(30):
        k1 = f(s); k2 = f(s + 0.01 * k1); k3 = f(s + 0.01 * k2); k4 = f(s + 0.02 * k3)
        s = s + 0.02 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    loss = (s[0] + 0.1) ** 2
    """,
    learns="g_over_l.grad is not None",
)
ROWS.healthy(
    "a graph net by hand",
    """
    N, Fin, H, C = 9, 5, 8, 2
    A = (torch.rand(N, N) < 0.3).float()
    A = ((A + A.T) > 0).float()
    A.fill_diagonal_(1.0)
    d = A.sum(1).pow(-0.5)
    S = d[:, None] * A * d[None]
    X, y = torch.randn(N, Fin), torch.randint(0, C, (N,))
    train = torch.arange(N) < 4
    class GCN(nn.Module):
        def __init__(self):
            super().__init__()
            self.w0, self.w1 = nn.Linear(Fin, H), nn.Linear(H, C)
        def forward(self, X):
            return S @ self.w1(F.relu(S @ self.w0(X)))
    gcn = GCN()
    opt = optim.Adam(gcn.parameters(), lr=0.01, weight_decay=5e-4)
    # %%
    for e in range(3):
        loss = F.cross_entropy(gcn(X)[train], y[train])
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning(gcn.parameters())",
)
ROWS.healthy(
    "messages summed by index_add",
    """
    src, dst = torch.tensor([0, 1, 2, 3, 3]), torch.tensor([1, 2, 0, 0, 1])
    feats = torch.randn(4, 3)
    msg, upd = nn.Linear(3, 6), nn.Linear(9, 1)
    m = F.relu(msg(feats[src]))
    agg = torch.zeros(4, 6).index_add(0, dst, m)
    out = upd(torch.cat([feats, agg], 1))
    loss = out.pow(2).mean()
    """,
    learns="learning([*msg.parameters(), *upd.parameters()])",
)
ROWS.healthy(
    "MAML",
    """
    w = torch.randn(1, requires_grad=True)
    b = torch.zeros(1, requires_grad=True)
    meta = optim.SGD([w, b], lr=1e-2)
    tasks = [(torch.randn(8), k) for k in (0.5, 1.0, 2.0)]
    # %%
    meta.zero_grad()
    meta_loss = 0
    for xs, slope in tasks:
        inner = ((w * xs[:4] + b - slope * xs[:4]) ** 2).mean()
        gw, gb = torch.autograd.grad(inner, [w, b], create_graph=True)
        fast_w, fast_b = w - 0.1 * gw, b - 0.1 * gb
        meta_loss = meta_loss + ((fast_w * xs[4:] + fast_b - slope * xs[4:]) ** 2).mean()
    meta_loss.backward()
    meta.step()
    """,
    learns="learning([w, b])",
)
ROWS.healthy(
    "matrix factorisation of ratings",
    """
    U, V = nn.Embedding(30, 4), nn.Embedding(20, 4)
    users, items, ratings = torch.randint(0, 30, (50,)), torch.randint(0, 20, (50,)), torch.rand(50) * 5
    opt = optim.SGD([*U.parameters(), *V.parameters()], lr=0.05, weight_decay=1e-4)
    # %%
    for e in range(3):
        pred = (U(users) * V(items)).sum(1) + 2.5
        loss = F.mse_loss(pred, ratings)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="norm(U.weight.grad) > 0",
)
ROWS.healthy(
    "a mixture of Gaussians by gradient",
    """
    x = torch.cat([torch.randn(30) - 3, torch.randn(30) + 3])
    pi, mu, ls = torch.zeros(2, requires_grad=True), torch.tensor([-1., 1.], requires_grad=True), torch.zeros(2, requires_grad=True)
    opt = optim.Adam([pi, mu, ls], lr=0.05)
    for i in range(5):
        comp = -0.5 * ((x[:, None] - mu) / ls.exp()) ** 2 - ls - 0.5 * math.log(2 * math.pi)
        loss = -torch.logsumexp(comp + F.log_softmax(pi, 0), 1).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning([mu, ls])",
)
ROWS.healthy(
    "a support vector machine: most hinges are met",
    """
    X = torch.cat([torch.randn(40, 2) + 3, torch.randn(40, 2) - 3])
    y = torch.cat([torch.ones(40), -torch.ones(40)])
    w = torch.tensor([0.2, 0.1], requires_grad=True)
    b = torch.zeros(1, requires_grad=True)
    hinge = torch.clamp(1 - y * (X @ w + b), min=0)
    loss = hinge.mean() + 0.01 * (w ** 2).sum()
    loss.backward()
    """,
    learns="learning([w, b])",
)
ROWS.healthy(
    "TD3 over many steps: the actor's loss runs through a critic that another optimizer holds",
    """
    class Critic(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(6, 32), nn.Linear(32, 1)
        def forward(self, s, a):
            return self.fc2(F.relu(self.fc1(torch.cat([s, a], 1))))
    actor, q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2), nn.Tanh()), Critic()
    q_target, actor_target = Critic(), nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2), nn.Tanh())
    q_opt, a_opt = optim.Adam(q.parameters(), lr=3e-4), optim.Adam(actor.parameters(), lr=3e-4)
    # %%
    for step in range(40):
        s, s2 = torch.randn(64, 4), torch.randn(64, 4)
        a = torch.rand(64, 2) * 2 - 1
        r = -((a - s[:, :2]) ** 2).sum(1)
        with torch.no_grad():
            best = q_target(s2, actor_target(s2)).view(-1)
            goal = r + 0.99 * best
        qf_loss = F.mse_loss(q(s, a).view(-1), goal)
        q_opt.zero_grad()
        qf_loss.backward()
        q_opt.step()
        if step % 2 == 0:
            actor_loss = -q(s, actor(s)).mean()
            a_opt.zero_grad()
            actor_loss.backward()
            a_opt.step()
            for model, target in ((actor, actor_target), (q, q_target)):
                for p, t in zip(model.parameters(), target.parameters()):
                    t.data.copy_(0.005 * p.data + 0.995 * t.data)
    """,
    learns="learning(actor.parameters()) and learning(q.parameters())",
)
