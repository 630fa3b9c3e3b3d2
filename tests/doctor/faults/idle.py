"""Trainings in which nothing changes: no step, methods that are not called, learning rates and clipping that leave nothing."""

from __future__ import annotations

from planting import Table

ROWS = Table()

# --------------------------------------------------------------------------------------------------------- uncalled-method
ROWS.fault(
    "step without parentheses",
    "uncalled-method",
    """
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    opt = optim.Adam(net.parameters(), lr=0.01)
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    start = net[0].weight.detach().clone()
    # %%
    for epoch in range(8):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step #!
    """,
    shows="close(start, net[0].weight)",
    cure={"opt.step": "opt.step()"},
    says=("opt.step", "parentheses"),
)
ROWS.fault(
    "zero_grad without parentheses",
    "uncalled-method",
    """
    w = torch.zeros(3, requires_grad=True)
    optimizer = optim.SGD([w], lr=0.01)
    A, b = torch.randn(15, 3), torch.randn(15)
    # %%
    for i in range(8):
        optimizer.zero_grad #!
        loss = (A @ w - b).pow(2).mean()
        loss.backward()
        optimizer.step()
    (fresh,) = torch.autograd.grad((A @ w - b).pow(2).mean(), [w])
    """,
    shows="norm(w.grad) > 3 * norm(fresh)",
    cure={"optimizer.zero_grad #!": "optimizer.zero_grad()"},
    says="gradients are not cleared",
)
ROWS.fault(
    "a scheduler's step without parentheses in a trainer",
    "uncalled-method",
    """
    class Trainer:
        def __init__(self, net):
            self.net = net
            self.opt = optim.SGD(net.parameters(), lr=0.1)
            self.sched = optim.lr_scheduler.StepLR(self.opt, 2, gamma=0.5)

        def fit(self, x, y, epochs):
            for _ in range(epochs):
                self.opt.zero_grad()
                loss = F.mse_loss(self.net(x), y)
                loss.backward()
                self.opt.step()
                self.sched.step #!

    trainer = Trainer(nn.Linear(3, 1))
    trainer.fit(torch.randn(20, 3), torch.randn(20, 1), 6)
    """,
    shows="trainer.opt.param_groups[0]['lr'] == 0.1",
    cure={"self.sched.step #!": "self.sched.step()"},
    says="learning rate",
)

# ---------------------------------------------------------------------------------------------------------- nothing-learns
ROWS.fault(
    "a loop without a step",
    "nothing-learns",
    """
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    losses = []
    # %%
    for epoch in range(10):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward() #!
        losses.append(loss.item())
    """,
    shows="losses[0] == losses[-1]",
    cure={"loss.backward() #!": "loss.backward(); opt.step()"},
    says=("10 times", "opt", "net.weight"),
)
ROWS.fault(
    "a step of the other optimizer",
    "nothing-learns",
    """
    policy, value = nn.Linear(4, 2), nn.Linear(4, 1)
    policy_opt, value_opt = optim.Adam(policy.parameters(), lr=1e-2), optim.Adam(value.parameters(), lr=1e-2)
    s, r = torch.randn(32, 4), torch.randn(32, 1)
    losses = []
    # %%
    for step in range(6):
        value.zero_grad()
        value_loss = F.mse_loss(value(s), r)
        value_loss.backward() #!
        policy_opt.step()
        losses.append(value_loss.item())
    """,
    shows="losses[0] == losses[-1]",
    cure={"policy_opt.step()": "value_opt.step()"},
    says=("policy_opt.step()", "value_opt"),
)
ROWS.fault(
    "accumulation over more micro-batches than there are",
    "nothing-learns",
    """
    net = nn.Linear(6, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    X, Y = torch.randn(40, 6), torch.randn(40, 1)
    accumulate = 8
    start = net.weight.detach().clone()
    # %%
    for epoch in range(1):
        for i, (xb, yb) in enumerate(zip(X.split(8), Y.split(8))):
            loss = F.mse_loss(net(xb), yb) / accumulate
            loss.backward()
            if (i + 1) % accumulate == 0:
                opt.step() #!
                opt.zero_grad()
    """,
    shows="close(start, net.weight)",
    cure={"X.split(8), Y.split(8)": "X.split(5), Y.split(5)"},
    says=("(i + 1) % accumulate == 0", "5 calls"),
)
ROWS.fault(
    "a scaler without a step",
    "nothing-learns",
    """
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    losses = []
    # %%
    for epoch in range(6):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward() #!
        losses.append(loss.item())
    """,
    shows="losses[0] == losses[-1]",
    cure={"backward() #!": "backward(); scaler.step(opt); scaler.update()"},
    says="6 times",
    libraries=("torch",),
)
ROWS.fault(
    "a loss below its floor",
    "nothing-learns",
    """
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    # %%
    for epoch in range(6):
        opt.zero_grad()
        loss = torch.clamp(F.mse_loss(net(x), y), min=20.)
        loss.backward() #!
        opt.step()
    """,
    shows="all_zero(net.weight.grad, net.bias.grad)",
    cure={"torch.clamp(F.mse_loss(net(x), y), min=20.)": "F.mse_loss(net(x), y)"},
    says=("exactly 0", "20"),
)

# ------------------------------------------------------------------------------------------------------ zero-learning-rate
ROWS.fault(
    "a step by hand with a learning rate of 0",
    "zero-learning-rate",
    """
    w, b = torch.randn(3, requires_grad=True), torch.zeros(1, requires_grad=True)
    x, y = torch.randn(40, 3), torch.randn(40)
    lr = 1 // 100
    losses = []
    # %%
    for step in range(6):
        loss = F.mse_loss(x @ w + b, y)
        loss.backward()
        with torch.no_grad():
            w -= lr * w.grad #!
            b -= lr * b.grad #?
        w.grad = b.grad = None
        losses.append(loss.item())
    """,
    shows="losses[0] == losses[-1]",
    cure={"1 // 100": "1 / 100"},
    says=("`lr` is 0", "6 steps"),
)
ROWS.fault(
    "a step in a function with a learning rate of 0",
    "zero-learning-rate",
    """
    net = nn.Linear(3, 1)
    x, y = torch.randn(40, 3), torch.randn(40, 1)
    losses = []
    # %%
    def descend(model, rate):
        with torch.no_grad():
            for p in model.parameters():
                p -= rate * p.grad #!
                p.grad = None

    for step in range(6):
        loss = F.mse_loss(net(x), y)
        loss.backward()
        descend(net, 0)
        losses.append(loss.item())
    """,
    shows="losses[0] == losses[-1]",
    cure={"descend(net, 0)": "descend(net, 0.1)"},
    says=("`rate` is 0", "net.weight"),
)
ROWS.fault(
    "a step in a function with a rate that is computed elsewhere",
    "zero-learning-rate",
    """
    def sgd(params, rate):
        with torch.no_grad():
            for p in params:
                p.add_(p.grad, alpha=-rate) #!
                p.grad = None

    def rate_at(step, total=1000):
        return 0.1 * (step // total)

    net = nn.Linear(4, 1)
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    start = net.weight.detach().clone()
    # %%
    for step in range(6):
        loss = F.mse_loss(net(x), y)
        loss.backward()
        sgd(net.parameters(), rate_at(step))
    """,
    shows="close(start, net.weight)",
    cure={"0.1 * (step // total)": "0.1 * (1 - step / total)"},
    says="rate",
)
ROWS.fault(
    "a schedule for epochs after each batch",
    "zero-learning-rate",
    """
    net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))
    opt = optim.SGD(net.parameters(), lr=0.05)
    sched = optim.lr_scheduler.StepLR(opt, 1, gamma=1e-3)
    X = torch.randn(96, 5)
    Y = X[:, :1] * 2 - X[:, 1:2]
    # %%
    for epoch in range(4):
        for xb, yb in zip(X.split(32), Y.split(32)):
            opt.zero_grad()
            loss = F.mse_loss(net(xb), yb)
            loss.backward()
            opt.step()
            sched.step() #!
    """,
    shows="opt.param_groups[0]['lr'] < 1e-30",
    cure={"        sched.step() #!": "    sched.step()", "gamma=1e-3": "gamma=0.5"},
    says=("sched.step()", "0.05", "12 steps"),
)
ROWS.fault(
    "an exponential schedule with a small factor",
    "zero-learning-rate",
    """
    net = nn.Linear(5, 2)
    optimizer = optim.Adam(net.parameters(), lr=0.01)
    schedule = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.1)
    X, y = torch.randn(64, 5), torch.arange(64) % 2

    # %%
    def train(model, optimizer, schedule):
        for step in range(24):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(X), y)
            loss.backward()
            optimizer.step()
            schedule.step() #!

    train(net, optimizer, schedule)
    """,
    shows="optimizer.param_groups[0]['lr'] < 1e-20",
    cure={"gamma=0.1": "gamma=0.95"},
    says=("schedule.step()", "0.01", "24 steps"),
)
ROWS.fault(
    "a schedule of whole numbers",
    "zero-learning-rate",
    """
    net = nn.Linear(5, 1)
    opt = optim.SGD(net.parameters(), lr=0.02)
    warm = optim.lr_scheduler.LambdaLR(opt, lambda k: 1 // (k + 1))
    X, y = torch.randn(64, 5), torch.randn(64, 1)
    # %%
    for step in range(20):
        opt.zero_grad()
        loss = F.mse_loss(net(X), y)
        loss.backward()
        opt.step()
        warm.step() #!
    """,
    shows="opt.param_groups[0]['lr'] == 0",
    cure={"1 // (k + 1)": "1 / (k + 1)"},
    says=("warm.step()", "0.02"),
)
ROWS.fault(
    "a learning rate that is lowered by hand in each step",
    "zero-learning-rate",
    """
    net = nn.Linear(5, 1)
    opt = optim.SGD(net.parameters(), lr=0.02)
    X, y = torch.randn(64, 5), torch.randn(64, 1)
    # %%
    for step in range(20):
        opt.zero_grad()
        loss = F.mse_loss(net(X), y)
        loss.backward()
        opt.step()
        for group in opt.param_groups:
            group["lr"] *= 0.01 #!
    """,
    shows="opt.param_groups[0]['lr'] < 1e-30",
    cure={"0.01 #!": "0.99"},
    says='group["lr"] *= 0.01',
)

# ------------------------------------------------------------------------------------------------------ clipped-to-nothing
ROWS.fault(
    "clipping to a norm of 0",
    "clipped-to-nothing",
    """
    net = nn.Linear(4, 1)
    opt = optim.Adam(net.parameters(), lr=0.1)
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    start = net.weight.detach().clone()
    # %%
    for epoch in range(6):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0) #!
        opt.step()
    """,
    shows="close(start, net.weight)",
    cure={"parameters(), 0)": "parameters(), 1.0)"},
    says=("max_norm=0", "opt.step()"),
    never="zero_grad",
)
ROWS.fault(
    "clipping to a tiny norm",
    "clipped-to-nothing",
    """
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1))
    opt = optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    clip = 1e-9
    start = net[0].weight.detach().clone()

    # %%
    def train_step(xb, yb):
        loss = F.mse_loss(net(xb), yb)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), max_norm=clip) #!
        opt.step()
        opt.zero_grad()

    for epoch in range(6):
        train_step(x, y)
    """,
    shows="close(start, net[0].weight)",
    cure={"clip = 1e-9": "clip = 1.0"},
    says=("max_norm=1e-09", "`clip`"),
    never="learning rate",
)
ROWS.fault(
    "clipping to a tiny norm that is an attribute of a class",
    "clipped-to-nothing",
    """
    class Trainer:
        max_norm = 1e-9

        def __init__(self):
            self.net = nn.Linear(4, 1)
            self.opt = optim.SGD(self.net.parameters(), lr=0.1)

        def step(self, x, y):
            self.opt.zero_grad()
            loss = F.mse_loss(self.net(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(self.net.parameters(), self.max_norm) #!
            self.opt.step()

    trainer = Trainer()
    net, opt = trainer.net, trainer.opt
    start = net.weight.detach().clone()
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    for epoch in range(6):
        trainer.step(x, y)
    """,
    shows="close(start, net.weight)",
    cure={"max_norm = 1e-9": "max_norm = 1.0"},
    never="zero_grad",
)
ROWS.fault(
    "clipping each element to 0",
    "clipped-to-nothing",
    """
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    start = net.weight.detach().clone()
    # %%
    for epoch in range(6):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        nn.utils.clip_grad_value_(net.parameters(), clip_value=0.0) #!
        opt.step()
    """,
    shows="close(start, net.weight)",
    cure={"clip_value=0.0": "clip_value=1.0"},
    says="clip_value=0",
)
ROWS.fault(
    "gradients that are multiplied by 0",
    "clipped-to-nothing",
    """
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    scale = 0
    start = net.weight.detach().clone()
    # %%
    for epoch in range(6):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        for p in net.parameters():
            p.grad *= scale #!
        opt.step()
    """,
    shows="close(start, net.weight)",
    cure={"scale = 0": "scale = 0.5"},
    says=("factor=0", "scale"),
    never="zero_grad",
)
ROWS.fault(
    "gradients that are clamped to tiny numbers",
    "clipped-to-nothing",
    """
    w = torch.ones(4, requires_grad=True)
    opt = optim.SGD([w], lr=0.1)
    x, y = torch.randn(32, 4), torch.randn(32)
    # %%
    for epoch in range(6):
        opt.zero_grad()
        loss = F.mse_loss(x @ w, y)
        loss.backward()
        w.grad.clamp_(-1e-10, 1e-10) #!
        opt.step()
    """,
    shows="w.detach().tolist() == [1.0] * 4",
    cure={"clamp_(-1e-10, 1e-10)": "clamp_(-1.0, 1.0)"},
    says="limit=1e-10",
)
ROWS.fault(
    "scaled gradients that are clipped",
    "clipped-to-nothing",
    """
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    start = net.weight.detach().clone()
    # %%
    for epoch in range(6):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0) #!
        scaler.step(opt)
        scaler.update()
    """,
    shows="norm(start - net.weight) < 1e-4",
    cure={"nn.utils": "scaler.unscale_(opt); nn.utils"},
    says="scaler",
    libraries=("torch",),
)

# ----------------------------------------------------------------------------------------------------------- idle-clipping
ROWS.fault(
    "clipping before backward",
    "idle-clipping",
    """
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=0.001)
    x, y = torch.randn(32, 4), 100 * torch.randn(32, 1)
    # %%
    for epoch in range(4):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0) #!
        loss.backward()
        opt.step()
    """,
    shows="norm(net.weight.grad) > 1.0",
    cure={
        "    nn.utils.clip_grad_norm_(net.parameters(), 1.0) #!\n": "",
        "loss.backward()": "loss.backward(); nn.utils.clip_grad_norm_(net.parameters(), 1.0)",
    },
    says=("loss.backward()", "no effect"),
)
ROWS.fault(
    "clipping after the step",
    "idle-clipping",
    """
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=0.001)
    x, y = torch.randn(32, 4), 100 * torch.randn(32, 1)
    start = net.weight.detach().clone()

    # %%
    def train(epochs):
        for epoch in range(epochs):
            loss = F.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            nn.utils.clip_grad_value_(net.parameters(), 1.0) #!

    train(4)
    """,
    shows="norm(start - net.weight) > 4 * 0.001 * 2",
    cure={
        "        nn.utils.clip_grad_value_(net.parameters(), 1.0) #!\n": "",
        "opt.step()": "nn.utils.clip_grad_value_(net.parameters(), 1.0); opt.step()",
    },
    says=("opt.step()", "no effect"),
)

# ------------------------------------------------------------------------------------------------------------ weight decay
ROWS.fault(
    "the weight decay of one group is far too large",
    "update-ratio",
    """
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    groups = [{"params": net[0].parameters(), "weight_decay": 8.0}, {"params": net[2].parameters()}]
    opt = optim.SGD(groups, lr=0.1)
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    # %%
    for step in range(30):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step() #!
    """,
    shows="norm(net[0].weight) < 0.1",
    cure={"8.0": "1e-4"},
    says="weight_decay=8",
)
