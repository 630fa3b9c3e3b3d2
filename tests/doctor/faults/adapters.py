"""Frozen models with parts that learn: reentrant checkpoints without an input that requires grad, and adapters that start at 0."""

from __future__ import annotations

from planting import Table

ROWS = Table()

# ------------------------------------------------------------------------------------------------- checkpoint-without-grad
ROWS.fault(
    "a checkpointed block behind a frozen embedding",
    "checkpoint-without-grad",
    """
    from torch.utils.checkpoint import checkpoint
    emb = nn.Embedding(20, 8)
    emb.requires_grad_(False)
    block, head = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8)), nn.Linear(8, 4)
    opt = optim.Adam([*block.parameters(), *head.parameters()], lr=0.01)
    ids, y = torch.randint(0, 20, (32,)), torch.randint(0, 4, (32,))
    # %%
    for step in range(4):
        opt.zero_grad()
        h = checkpoint(block, emb(ids), use_reentrant=True) #!
        loss = F.cross_entropy(head(h), y)
        loss.backward()
        opt.step()
    """,
    shows="block[0].weight.grad is None and block[2].bias.grad is None and head.weight.grad is not None",
    cure={"use_reentrant=True": "use_reentrant=False"},
    says=("checkpoint(block, emb(ids), use_reentrant=True)", "the 4 parameters of `block[0]` and `block[2]`"),
    libraries=("torch",),
)
ROWS.fault(
    "checkpointed blocks of a model, and nothing else learns",
    "checkpoint-without-grad",
    """
    import torch.utils.checkpoint
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(20, 8).requires_grad_(False)
            self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))
        def forward(self, ids):
            h = self.emb(ids)
            for block in self.blocks:
                h = h + torch.utils.checkpoint.checkpoint(block, h, use_reentrant=True) #!
            return h
    net = Net()
    opt = optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
    loss = F.cross_entropy(net(torch.randint(0, 20, (32,))), torch.randint(0, 8, (32,)))
    loss.backward()
    opt.step()
    """,
    shows="net.blocks[0].weight.grad is None",
    cure={"use_reentrant=True": "use_reentrant=False"},
    raises="RuntimeError",
    says=("has no history", "the 4 parameters of `net.blocks[0]` and `net.blocks[1]`"),
    libraries=("torch",),
)
ROWS.fault(
    "a model in an earlier cell that checkpoints its first block",
    "checkpoint-without-grad",
    """
    from torch.utils import checkpoint as cp
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.head = nn.Linear(6, 12), nn.Linear(12, 12), nn.Linear(12, 3)
        def forward(self, x):
            h = cp.checkpoint(self.first, x, use_reentrant=True)
            return self.head(torch.relu(self.second(torch.relu(h))))
    net = Net()
    opt = optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(32, 6), torch.randint(0, 3, (32,))
    # %%
    opt.zero_grad()
    loss = F.cross_entropy(net(x), y) #!
    loss.backward()
    opt.step()
    """,
    shows="net.first.weight.grad is None and net.second.weight.grad is not None",
    cure={"use_reentrant=True": "use_reentrant=False"},
    says=("cp.checkpoint(self.first, x, use_reentrant=True)", "`net.first.weight` and `net.first.bias`"),
    libraries=("torch",),
)
ROWS.fault(
    "stages that are checkpointed one by one",
    "checkpoint-without-grad",
    """
    from torch.utils.checkpoint import checkpoint
    stages = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(4))
    head = nn.Linear(8, 1)
    opt = optim.SGD([*stages.parameters(), *head.parameters()], lr=0.05)
    x, y = torch.randn(32, 8), torch.randn(32, 1)
    # %%
    for step in range(3):
        h = checkpoint(stages[0], x, use_reentrant=True) #!
        h = checkpoint(stages[1], h, use_reentrant=True) #?
        h = checkpoint(stages[2], h, use_reentrant=True) #?
        h = checkpoint(stages[3], h, use_reentrant=True) #?
        loss = F.mse_loss(head(h + x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    shows="all(p.grad is None for p in stages.parameters()) and head.weight.grad is not None",
    cure={"use_reentrant=True": "use_reentrant=False"},
    libraries=("torch",),
)
ROWS.fault(
    "weights of a function that is checkpointed",
    "checkpoint-without-grad",
    """
    from torch.utils.checkpoint import checkpoint
    w1 = (torch.randn(6, 10) / 3).requires_grad_()
    w2 = (torch.randn(10, 6) / 3).requires_grad_()
    w3 = torch.zeros(6, 1, requires_grad=True)
    x, y = torch.randn(32, 6), torch.randn(32, 1)
    def mix(x):
        return torch.tanh(x @ w1) @ w2
    # %%
    h = checkpoint(mix, x, use_reentrant=True) #!
    loss = F.mse_loss(h @ w3, y)
    loss.backward()
    """,
    shows="w1.grad is None and w2.grad is None and w3.grad is not None",
    cure={"use_reentrant=True": "use_reentrant=False"},
    says=("`w1` and `w2`",),
    libraries=("torch",),
)
ROWS.fault(
    "a sequential model that is checkpointed in segments",
    "checkpoint-without-grad",
    """
    from torch.utils.checkpoint import checkpoint_sequential
    net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    opt = optim.Adam(net.parameters(), lr=0.01)
    x, y = torch.randn(32, 6), torch.randn(32, 1)
    # %%
    for step in range(3):
        opt.zero_grad()
        loss = F.mse_loss(checkpoint_sequential(net, 2, x, use_reentrant=True), y) #!
        loss.backward()
        opt.step()
    """,
    shows="net[0].weight.grad is None and net[4].weight.grad is not None",
    cure={"use_reentrant=True": "use_reentrant=False"},
    says=("`net[0].weight` and `net[0].bias`",),
    libraries=("torch",),
)
ROWS.fault(
    "tensors in a tuple that is passed to a reentrant checkpoint",
    "checkpoint-without-grad",
    """
    from torch.utils.checkpoint import checkpoint
    first, second, head = nn.Linear(6, 8), nn.Linear(16, 8), nn.Linear(8, 1)
    opt = optim.SGD([*first.parameters(), *second.parameters(), *head.parameters()], lr=0.05)
    x, y = torch.randn(32, 6), torch.randn(32, 1)
    def join(parts):
        return torch.tanh(second(torch.cat(parts, 1)))
    # %%
    for step in range(3):
        opt.zero_grad()
        a = first(x)
        h = checkpoint(join, (a, a.tanh()), use_reentrant=True) #!
        loss = F.mse_loss(head(h), y)
        loss.backward()
        opt.step()
    """,
    shows="first.weight.grad is None and second.weight.grad is None and head.weight.grad is not None",
    cure={"use_reentrant=True": "use_reentrant=False"},
    says=("the 4 parameters of `first` and `second`",),
    libraries=("torch",),
)
ROWS.fault(
    "the reentrant form is set where a model enables checkpointing",
    "checkpoint-without-grad",
    """
    from functools import partial
    from torch.utils.checkpoint import checkpoint
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(20, 8).requires_grad_(False)
            self.block, self.head = nn.Linear(8, 8), nn.Linear(8, 4)
            self.run = None
        def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs):
            self.run = partial(checkpoint, **gradient_checkpointing_kwargs)
        def forward(self, ids):
            h = self.emb(ids)
            h = self.block(h) if self.run is None else self.run(self.block, h)
            return self.head(torch.tanh(h))
    ids, y = torch.randint(0, 20, (32,)), torch.randint(0, 4, (32,))
    # %%
    net = Net()
    net.gradient_checkpointing_enable({"use_reentrant": True}) #!
    opt = optim.Adam([p for p in net.parameters() if p.requires_grad], lr=0.01)
    for step in range(3):
        opt.zero_grad()
        loss = F.cross_entropy(net(ids), y)
        loss.backward()
        opt.step()
    """,
    shows="net.block.weight.grad is None and net.head.weight.grad is not None",
    cure={'"use_reentrant": True': '"use_reentrant": False'},
    says=("self.run(self.block, h)", "`net.block.weight` and `net.block.bias`"),
    libraries=("torch",),
)
ROWS.fault(
    "a model whose checkpointing is reentrant by default",
    "checkpoint-without-grad",
    """
    from functools import partial
    from torch.utils.checkpoint import checkpoint
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(20, 8).requires_grad_(False)
            self.block, self.head = nn.Linear(8, 8), nn.Linear(8, 4)
        def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs=None):
            self.run = partial(checkpoint, **(gradient_checkpointing_kwargs or dict(use_reentrant=bool(1))))
        def forward(self, ids):
            return self.head(torch.tanh(self.run(self.block, self.emb(ids))))
    net = Net()
    ids, y = torch.randint(0, 20, (32,)), torch.randint(0, 4, (32,))
    # %%
    net.gradient_checkpointing_enable() #!
    opt = optim.Adam([p for p in net.parameters() if p.requires_grad], lr=0.01)
    for step in range(3):
        opt.zero_grad()
        loss = F.cross_entropy(net(ids), y)
        loss.backward()
        opt.step()
    """,
    shows="net.block.weight.grad is None and net.head.weight.grad is not None",
    cure={"gradient_checkpointing_enable()": 'gradient_checkpointing_enable({"use_reentrant": False})'},
    says=("self.run(self.block, self.emb(ids))",),
    libraries=("torch",),
)

# ------------------------------------------------------------------------------------------------------------ zero-factor
LORA = """
class LoRA(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features ** 0.5)
        self.B = nn.Parameter(torch.zeros(base.out_features, rank))
    def forward(self, x):
        return self.base(x) + 2.0 * (x @ self.A.T @ self.B.T)
x, y = torch.randn(64, 8), torch.randint(0, 4, (64,))
first, second = nn.Linear(8, 16), nn.Linear(16, 4)
net = nn.Sequential(LoRA(first), nn.Tanh(), LoRA(second))
opt = optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=0.01)
""".strip()
TRAIN = """
for step in range(4):
    opt.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
""".strip()
ROWS.fault(
    "both factors of an adapter start at 0",
    "zero-factor",
    LORA.replace("torch.randn(rank, base.in_features) / base.in_features ** 0.5", "torch.zeros(rank, base.in_features)").replace(
        "self.B.T)", "self.B.T) #!"
    )
    + "\n"
    + TRAIN,
    shows="not net[0].A.any() and not net[0].B.any()",
    cure={"torch.zeros(rank": "torch.randn(rank"},
    says=("`net[0].A` and `net[0].B`", "exactly 0"),
)
ROWS.fault(
    "the factor of an adapter that starts at 0 is frozen",
    "zero-factor",
    LORA.replace("torch.zeros(base.out_features, rank)", "torch.zeros(base.out_features, rank), requires_grad=False").replace(
        "self.B.T)", "self.B.T) #!"
    )
    + "\n"
    + TRAIN,
    shows="not net[0].B.any() and not net[0].A.grad.any()",
    cure={", requires_grad=False": ""},
    says=("0 everywhere", "`net[0].A`"),
)
ROWS.fault(
    "the factor of an adapter that starts at 0 is in no optimizer",
    "stale-optimizer",
    LORA.replace("[p for p in net.parameters() if p.requires_grad]", "[net[0].A, net[2].A]")
    + "\n# %%\n"
    + TRAIN.replace("opt.step()", "opt.step() #!"),
    shows="not net[0].B.any() and not net[0].A.grad.any()",
    cure={"[net[0].A, net[2].A]": "[net[0].A, net[2].A, net[0].B, net[2].B]"},
    says=("`net[0].B`",),
)

# ------------------------------------------------------------------------------------------------------ adapters, and cuts
ROWS.fault(
    "adapters in a reentrant checkpoint",
    "checkpoint-without-grad",
    "from torch.utils.checkpoint import checkpoint\n"
    + LORA.replace("opt =", "head = nn.Linear(4, 4)\nopt =").replace(
        "if p.requires_grad]", "if p.requires_grad] + [*head.parameters()]"
    )
    + "\n# %%\n"
    + TRAIN.replace("net(x), y)", "head(checkpoint(net, x, use_reentrant=True)), y) #!"),
    shows="net[0].A.grad is None and net[2].B.grad is None and head.weight.grad is not None",
    cure={"use_reentrant=True": "use_reentrant=False"},
    says=("the 4 parameters of `net[0]` and `net[2]`",),
    libraries=("torch",),
)
ROWS.fault(
    "the transpose of a weight under no_grad",
    "no_grad",
    """
    w1 = (torch.randn(6, 4) / 2).requires_grad_()
    w2 = torch.zeros(1, 6, requires_grad=True)
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    # %%
    with torch.no_grad(): #?
        h = torch.tanh(x @ w1.T) #!
    loss = F.mse_loss(h @ w2.T, y)
    loss.backward()
    """,
    shows="w1.grad is None and w2.grad is not None",
    cure={"with torch.no_grad():": "if True:"},
    says="`w1`",
)

# -------------------------------------------------------------------------------------------------------------- vanishing
ROWS.fault(
    "sigmoids in a row, and a frozen branch that is added to them",
    "vanishing",
    """
    layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(10))
    frozen = nn.Linear(16, 16)
    frozen.requires_grad_(False)
    head = nn.Linear(16, 1)
    x, y = torch.randn(32, 16), torch.randn(32, 1)
    # %%
    h = x
    for layer in layers:
        h = torch.sigmoid(layer(h)) #!
    loss = F.mse_loss(head(h + frozen(x)), y)
    loss.backward()
    """,
    shows="norm(layers[0].weight.grad) < 1e-4 * norm(layers[9].weight.grad)",
    cure={"torch.sigmoid": "h + 0.1 * torch.tanh"},
)
