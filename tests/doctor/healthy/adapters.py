"""Frozen models with parts that learn, in which nothing is wrong: adapters that start at 0, and checkpoints."""

from __future__ import annotations

from planting import Table

ROWS = Table()
ROWS.healthy(
    "a checkpoint that is not reentrant behind a frozen embedding",
    """
    from torch.utils.checkpoint import checkpoint
    emb = nn.Embedding(20, 8)
    emb.requires_grad_(False)
    block, head = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8)), nn.Linear(8, 4)
    opt = optim.Adam([*block.parameters(), *head.parameters()], lr=0.01)
    ids, y = torch.randint(0, 20, (32,)), torch.randint(0, 4, (32,))
    before = block[0].weight.detach().clone()
    # %%
    for step in range(4):
        opt.zero_grad()
        loss = F.cross_entropy(head(checkpoint(block, emb(ids), use_reentrant=False)), y)
        loss.backward()
        opt.step()
    """,
    learns="bool((block[0].weight != before).any())",
    libraries=("torch",),
)
ROWS.healthy(
    "a reentrant checkpoint whose input is made to require grad",
    """
    from torch.utils.checkpoint import checkpoint
    emb = nn.Embedding(20, 8)
    emb.requires_grad_(False)
    emb.register_forward_hook(lambda module, args, result: result.requires_grad_())
    block, head = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8)), nn.Linear(8, 4)
    opt = optim.Adam([*block.parameters(), *head.parameters()], lr=0.01)
    ids, y = torch.randint(0, 20, (32,)), torch.randint(0, 4, (32,))
    before = block[0].weight.detach().clone()
    # %%
    for step in range(4):
        opt.zero_grad()
        loss = F.cross_entropy(head(checkpoint(block, emb(ids), use_reentrant=True)), y)
        loss.backward()
        opt.step()
    """,
    learns="bool((block[0].weight != before).any())",
    libraries=("torch",),
)
ROWS.healthy(
    "a frozen block in a reentrant checkpoint, and blocks that learn behind it",
    """
    from torch.utils.checkpoint import checkpoint
    frozen = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8)).requires_grad_(False)
    first, second, head = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)
    opt = optim.Adam([*first.parameters(), *second.parameters(), *head.parameters()], lr=0.01)
    x, y = torch.randn(32, 8), torch.randint(0, 4, (32,))
    before = second.weight.detach().clone()
    # %%
    for step in range(4):
        opt.zero_grad()
        h = checkpoint(frozen, x, use_reentrant=True)
        h = torch.tanh(first(h))
        h = checkpoint(second, h, use_reentrant=True)
        loss = F.cross_entropy(head(h), y)
        loss.backward()
        opt.step()
    """,
    learns="bool((second.weight != before).any())",
    libraries=("torch",),
)
ROWS.healthy(
    "a block of which the optimizer has no parameter, in a reentrant checkpoint",
    """
    from torch.utils.checkpoint import checkpoint
    features, head = nn.Sequential(nn.Linear(8, 16), nn.Tanh()), nn.Linear(16, 4)
    opt = optim.Adam(head.parameters(), lr=0.01)
    x, y = torch.randn(32, 8), torch.randint(0, 4, (32,))
    first = None
    # %%
    for step in range(4):
        opt.zero_grad()
        loss = F.cross_entropy(head(checkpoint(features, x, use_reentrant=True)), y)
        loss.backward()
        opt.step()
        first = first or loss.item()
    """,
    learns="loss.item() < first",
    libraries=("torch",),
)
ROWS.healthy(
    "a layer that a reentrant checkpoint without gradients and one with gradients share",
    """
    from torch.utils.checkpoint import checkpoint
    shared, between, head = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)
    opt = optim.Adam([*shared.parameters(), *between.parameters(), *head.parameters()], lr=0.01)
    x, y = torch.randn(32, 8), torch.randint(0, 4, (32,))
    before = shared.weight.detach().clone()
    # %%
    for step in range(4):
        opt.zero_grad()
        h = checkpoint(shared, x, use_reentrant=True)
        h = checkpoint(shared, torch.tanh(between(h)), use_reentrant=True)
        loss = F.cross_entropy(head(h), y)
        loss.backward()
        opt.step()
    """,
    learns="bool((shared.weight != before).any())",
    libraries=("torch",),
)
ROWS.healthy(
    "a model that is evaluated and checkpointed",
    """
    from torch.utils.checkpoint import checkpoint
    stem, block, head = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)
    opt = optim.Adam([*stem.parameters(), *block.parameters(), *head.parameters()], lr=0.01)
    x, y = torch.randn(32, 8), torch.randint(0, 4, (32,))
    def net(x):
        return head(torch.relu(checkpoint(block, torch.relu(stem(x)), use_reentrant=True)))
    before = block.weight.detach().clone()
    # %%
    for step in range(4):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        with torch.no_grad():
            right = (net(x).argmax(1) == y).float().mean().item()
    """,
    learns="bool((block.weight != before).any())",
    libraries=("torch",),
)

# ------------------------------------------------------------------------------------------------- adapters that start at 0
LORA = """
class LoRA(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features ** 0.5)
        self.B = nn.Parameter(torch.zeros(base.out_features, rank))
    def forward(self, x):
        return self.base(x) + 2.0 * (x @ self.A.T @ self.B.T)
net = nn.Sequential(LoRA(nn.Linear(8, 16)), nn.Tanh(), LoRA(nn.Linear(16, 4)))
x, y = torch.randn(64, 8), torch.randint(0, 4, (64,))
opt = optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=0.01)
A = net[0].A.detach().clone()
# %%
""".strip()
TRAIN = """
for step in range({steps}):
    opt.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
""".strip()
ROWS.healthy(
    "the first step of an adapter",
    LORA + "\n" + TRAIN.format(steps=1),
    learns="bool(net[0].B.any()) and not net[0].A.grad.any()",
    remarks=("zero-factor",),
)
ROWS.healthy(
    "many steps of an adapter",
    LORA + "\n" + TRAIN.format(steps=8),
    learns="bool((net[0].A != A).any())",
)
ROWS.healthy(
    "an adapter of two layers with dropout, clipped",
    """
    class LoRA(nn.Module):
        def __init__(self, base, rank=4):
            super().__init__()
            self.base = base
            self.base.requires_grad_(False)
            self.drop = nn.Dropout(0.1)
            self.down = nn.Linear(base.in_features, rank, bias=False)
            self.up = nn.Linear(rank, base.out_features, bias=False)
            nn.init.zeros_(self.up.weight)
        def forward(self, x):
            return self.base(x) + 2.0 * self.up(self.down(self.drop(x)))
    net = nn.Sequential(LoRA(nn.Linear(8, 16)), nn.ReLU(), LoRA(nn.Linear(16, 16)), nn.ReLU(), LoRA(nn.Linear(16, 1)))
    x, y = torch.randn(64, 8), torch.randn(64, 1)
    learning = [p for p in net.parameters() if p.requires_grad]
    opt = optim.AdamW(learning, lr=0.01)
    before = net[0].down.weight.detach().clone()
    # %%
    for step in range(6):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(learning, 1.0)
        opt.step()
    """,
    learns="bool((net[0].down.weight != before).any())",
)
ROWS.healthy(
    "adapters of the queries and values of an attention",
    """
    torch.manual_seed(1)
    class LoRA(nn.Module):
        def __init__(self, base, rank=2):
            super().__init__()
            self.base = base.requires_grad_(False)
            self.A = nn.Parameter(torch.empty(rank, base.in_features))
            self.B = nn.Parameter(torch.zeros(base.out_features, rank))
            nn.init.kaiming_uniform_(self.A, a=5 ** 0.5)
        def forward(self, x):
            return F.linear(x, self.base.weight + 4.0 * self.B @ self.A, self.base.bias)
    class Attention(nn.Module):
        def __init__(self, width=16):
            super().__init__()
            self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        def forward(self, x):
            q, k, v = self.q(x), self.k(x), self.v(x)
            return self.out(torch.softmax(q @ k.transpose(-2, -1) / 4, -1) @ v)
    net = Attention().requires_grad_(False)
    net.q, net.v = LoRA(net.q), LoRA(net.v)
    x, y = torch.randn(8, 5, 16), torch.randn(8, 5, 16)
    opt = optim.Adam([p for p in net.parameters() if p.requires_grad], lr=0.02)
    before = net.q.A.detach().clone()
    # %%
    for step in range(6):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
    """,
    learns="bool((net.q.A != before).any())",
)
ROWS.healthy(
    "an adapter that learns slowly",
    LORA.replace("lr=0.01", "lr=1e-6") + "\n" + TRAIN.format(steps=4),
    learns="bool((net[0].A != A).any())",
)
ROWS.healthy(
    "an adapter in a checkpoint",
    "from torch.utils.checkpoint import checkpoint\n"
    + LORA
    + "\n"
    + TRAIN.format(steps=5).replace("net(x)", "checkpoint(net, x, use_reentrant=False)"),
    learns="bool((net[0].A != A).any())",
    libraries=("torch",),
)
