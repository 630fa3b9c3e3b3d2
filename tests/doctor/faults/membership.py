"""Optimizers that hold a parameter twice or with a learning rate of 0, two optimizers for one parameter, and broken ties."""

from __future__ import annotations

from planting import Table

ROWS = Table()

# --------------------------------------------------------------------------------------------------------- stale-optimizer
ROWS.fault(
    "a cell makes the optimizer, then a new head",
    "stale-optimizer",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(6, 8)
            self.fc = nn.Linear(8, 10)
        def forward(self, x):
            return self.fc(torch.relu(self.body(x)))
    inputs, labels = torch.randn(16, 6), torch.randint(0, 2, (16,))
    # %%
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    model.fc = nn.Linear(8, 2)
    before = model.fc.weight.detach().clone()
    for epoch in range(4):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step() #!
    """,
    shows="close(model.fc.weight, before)",
    cure={
        "optimizer = optim.SGD(model.parameters(), lr=0.1)\nmodel.fc = nn.Linear(8, 2)": "model.fc = nn.Linear(8, 2)\n"
        "optimizer = optim.SGD(model.parameters(), lr=0.1)"
    },
    says=("model.fc = nn.Linear(8, 2)", "on line 4 replaced them"),
)
# -------------------------------------------------------------------------------------------------------------- held-twice
ROWS.fault(
    "a layer is added to the list that has it",
    "held-twice",
    """
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    start = net[2].weight.detach().clone()
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    # %%
    params = list(net.parameters()) + list(net[2].parameters())
    opt = optim.SGD(params, lr=0.1) #!
    for step in range(4):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        before = net[2].weight.detach().clone()
        opt.step()
    """,
    shows="norm(before - net[2].weight.detach()) > 0.15 * norm(net[2].weight.grad)",
    cure={"params = list(net.parameters()) + list(net[2].parameters())": "params = list(net.parameters())"},
    says=("opt", "net[2].weight", "twice"),
)
ROWS.fault(
    "two lists share a tied weight",
    "held-twice",
    """
    embed, head = nn.Embedding(10, 8), nn.Linear(8, 10, bias=False)
    head.weight = embed.weight
    optimizer = optim.SGD([*embed.parameters(), *head.parameters()], lr=0.1)
    tokens, following = torch.randint(0, 10, (32,)), torch.randint(0, 10, (32,))
    # %%
    for step in range(4):
        optimizer.zero_grad()
        loss = F.cross_entropy(head(embed(tokens)), following)
        loss.backward()
        before = embed.weight.detach().clone()
        optimizer.step() #!
    """,
    shows="norm(before - embed.weight.detach()) > 0.15 * norm(embed.weight.grad)",
    cure={"[*embed.parameters(), *head.parameters()]": "[*embed.parameters()]"},
    says=("optimizer", "embed.weight", "twice"),
)
ROWS.fault(
    "a group contains a parameter three times",
    "held-twice",
    """
    body, head = nn.Linear(4, 8), nn.Linear(8, 1)
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    # %%
    groups = [
        {"params": [*body.parameters(), body.weight, body.weight], "lr": 0.1},
        {"params": head.parameters()},
    ]
    opt = optim.SGD(groups, lr=0.1) #!
    for step in range(4):
        opt.zero_grad()
        loss = F.mse_loss(head(body(x).tanh()), y)
        loss.backward()
        before = body.weight.detach().clone()
        opt.step()
    """,
    shows="norm(before - body.weight.detach()) > 0.25 * norm(body.weight.grad)",
    cure={", body.weight, body.weight]": "]"},
    says=("opt", "body.weight", "3 times"),
)
ROWS.fault(
    "one group with a repeated parameter, by a name",
    "held-twice",
    """
    body, head = nn.Linear(4, 8), nn.Linear(8, 1)
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    # %%
    groups = [dict(params=[*body.parameters(), *head.parameters(), body.weight], lr=0.1)]
    opt = optim.SGD(groups, lr=0.2) #!
    for step in range(4):
        opt.zero_grad()
        loss = F.mse_loss(head(body(x).tanh()), y)
        loss.backward()
        before = body.weight.detach().clone()
        opt.step()
    """,
    shows="norm(before - body.weight.detach()) > 0.15 * norm(body.weight.grad)",
    cure={", body.weight]": "]"},
    says=("opt", "body.weight", "twice"),
    never="in place of",
)
# ---------------------------------------------------------------------------------------------------------- two-optimizers
ROWS.fault(
    "the generator's optimizer holds the discriminator",
    "two-optimizers",
    """
    generator = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    critic = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
    opt_d = optim.SGD(critic.parameters(), lr=0.1)
    opt_g = optim.SGD([*generator.parameters(), *critic.parameters()], lr=0.1)
    real, ones, zeros = torch.randn(32, 1) + 3, torch.ones(32, 1), torch.zeros(32, 1)
    bce = F.binary_cross_entropy_with_logits
    # %%
    for step in range(4):
        fake = generator(torch.randn(32, 2))
        opt_d.zero_grad()
        d_loss = bce(critic(real), ones) + bce(critic(fake.detach()), zeros)
        d_loss.backward()
        opt_d.step()
        opt_g.zero_grad()
        g_loss = bce(critic(fake), ones)
        g_loss.backward()
        before = critic[0].weight.detach().clone()
        opt_g.step() #!
    """,
    shows="norm(before - critic[0].weight.detach()) > 0",
    cure={"[*generator.parameters(), *critic.parameters()]": "generator.parameters()"},
    says=("opt_d", "opt_g", "critic", "in turn"),
)
# -------------------------------------------------------------------------------------------------------------- idle-group
ROWS.fault(
    "a group of the optimizer has a learning rate of 0",
    "idle-group",
    """
    body, head = nn.Linear(4, 8), nn.Linear(8, 1)
    groups = [{"params": body.parameters(), "lr": 0.0}, {"params": head.parameters()}]
    opt = optim.Adam(groups, lr=0.01)
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    start = body.weight.detach().clone()
    # %%
    for step in range(4):
        opt.zero_grad()
        loss = F.mse_loss(head(body(x).tanh()), y)
        loss.backward()
        opt.step() #!
    """,
    shows="norm(start - body.weight.detach()) == 0",
    cure={'"lr": 0.0': '"lr": 0.01'},
    says=("opt.param_groups[0]", "body.weight", "learning rate of 0"),
)
ROWS.fault(
    "two of three groups have a learning rate of 0",
    "idle-group",
    """
    layers = nn.ModuleList([nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 1)])
    rates = (0.0, 0.05, 0.0)
    opt = optim.SGD([{"params": one.parameters(), "lr": rate} for one, rate in zip(layers, rates)])
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    # %%
    for step in range(4):
        opt.zero_grad()
        loss = F.mse_loss(layers[2](layers[1](layers[0](x).tanh()).tanh()), y)
        loss.backward()
        opt.step() #!
    """,
    shows="norm(layers[2].weight.grad) > 0 and opt.param_groups[2]['lr'] == 0",
    cure={"(0.0, 0.05, 0.0)": "(0.05, 0.05, 0.05)"},
    says=("opt.param_groups[0]", "layers[0].weight"),
)
# -------------------------------------------------------------------------------------------------------------- broken-tie
TIED = """
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(10, 8)
            self.mix = nn.Linear(8, 8)
            self.head = nn.Linear(8, 10, bias=False)
            self.head.weight = self.embed.weight
        def forward(self, tokens):
            return self.head(self.mix(self.embed(tokens)))
    tokens, following = torch.randint(0, 10, (32,)), torch.randint(0, 10, (32,))
"""
ROWS.fault(
    "a state is assigned to a model with tied weights",
    "broken-tie",
    TIED
    + """
    state = Tied().state_dict()
    # %%
    lm = Tied()
    lm.load_state_dict(state, assign=True) #!
    opt = optim.Adam(lm.parameters(), lr=0.01)
    for step in range(4):
        opt.zero_grad()
        loss = F.cross_entropy(lm(tokens), following)
        loss.backward()
        opt.step()
    """,
    shows="lm.head.weight is not lm.embed.weight",
    cure={", assign=True": ""},
    says=("lm.head.weight", "lm.embed.weight", "self.head.weight = self.embed.weight", "assign=True"),
    libraries=("torch",),
)
ROWS.fault(
    "an assigned state has other values for the tied weights",
    "broken-tie",
    TIED
    + """
    state = Tied().state_dict()
    state["head.weight"] = torch.randn(10, 8)
    # %%
    lm = Tied()
    lm.load_state_dict(state, strict=True, assign=True) #!
    opt = optim.SGD(lm.parameters(), lr=0.01)
    for step in range(4):
        opt.zero_grad()
        loss = F.cross_entropy(lm(tokens), following)
        loss.backward()
        opt.step()
    """,
    shows="lm.head.weight is not lm.embed.weight",
    cure={", assign=True": ""},
    says=("lm.head.weight", "lm.embed.weight", "two"),
    libraries=("torch",),
)
ROWS.fault(
    "a model with tied weights leaves the meta device",
    "broken-tie",
    TIED
    + """
    state = Tied().state_dict()
    # %%
    with torch.device("meta"):
        lm = Tied()
    lm = lm.to_empty(device="cpu") #!
    lm.load_state_dict(state)
    opt = optim.SGD(lm.parameters(), lr=0.01)
    for step in range(4):
        opt.zero_grad()
        loss = F.cross_entropy(lm(tokens), following)
        loss.backward()
        opt.step()
    """,
    shows="lm.head.weight is not lm.embed.weight",
    cure={'with torch.device("meta")': 'with torch.device("cpu")'},
    says=("lm.head.weight", "lm.embed.weight", "to_empty"),
    libraries=("torch",),
)
ROWS.fault(
    "weights that a cell ties before it assigns a state",
    "broken-tie",
    """
    lm = nn.ModuleDict({"embed": nn.Embedding(10, 8), "head": nn.Linear(8, 10, bias=False)})
    state = lm.state_dict()
    tokens, following = torch.randint(0, 10, (32,)), torch.randint(0, 10, (32,))
    # %%
    lm.head.weight = lm.embed.weight
    lm.load_state_dict(state, assign=True) #!
    opt = optim.SGD(lm.parameters(), lr=0.01)
    for step in range(4):
        opt.zero_grad()
        loss = F.cross_entropy(lm.head(lm.embed(tokens)), following)
        loss.backward()
        opt.step()
    """,
    shows='lm["head"].weight is not lm["embed"].weight',
    cure={", assign=True": ""},
    says=("assign=True",),
    libraries=("torch",),
)
ROWS.fault(
    "a config says that embeddings are tied, and a state is assigned",
    "broken-tie",
    """
    class Config:
        tie_word_embeddings = True
    class LM(nn.Module):
        def __init__(self):
            super().__init__()
            self.config = Config()
            self.embed = nn.Embedding(10, 8)
            self.head = nn.Linear(8, 10, bias=False)
            self.tie_weights()
        def get_input_embeddings(self):
            return self.embed
        def get_output_embeddings(self):
            return self.head
        def tie_weights(self):
            self.get_output_embeddings().weight = self.get_input_embeddings().weight
        def forward(self, tokens):
            return self.head(self.embed(tokens))
    state = LM().state_dict()
    tokens, following = torch.randint(0, 10, (32,)), torch.randint(0, 10, (32,))
    # %%
    lm = LM()
    lm.load_state_dict(state, assign=True) #!
    opt = optim.Adam(lm.parameters(), lr=0.01)
    for step in range(4):
        opt.zero_grad()
        loss = F.cross_entropy(lm(tokens), following)
        loss.backward()
        opt.step()
    """,
    shows="lm.head.weight is not lm.embed.weight",
    cure={", assign=True": ""},
    says=("lm.config.tie_word_embeddings", "lm.tie_weights()", "assign=True"),
    libraries=("torch",),
)
