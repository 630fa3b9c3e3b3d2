"""Trainings whose optimizers, parameter groups and tied weights are as they were meant."""

from __future__ import annotations

from planting import Table

ROWS = Table()

ROWS.healthy(
    "parameters of two modules in one list",
    """
    body, head = nn.Linear(4, 8), nn.Linear(8, 1)
    opt = optim.SGD([*body.parameters(), *head.parameters()], lr=0.05)
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    first = F.mse_loss(head(body(x).tanh()), y).item()
    # %%
    for step in range(6):
        opt.zero_grad()
        loss = F.mse_loss(head(body(x).tanh()), y)
        loss.backward()
        opt.step()
    """,
    learns="loss.item() < first",
)
ROWS.healthy(
    "a list without the repeated parameters",
    """
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    params = list(dict.fromkeys([*net.parameters(), *net[2].parameters()]))
    opt = optim.SGD(params, lr=0.05)
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    first = F.mse_loss(net(x), y).item()
    # %%
    for step in range(6):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
    """,
    learns="loss.item() < first",
)
ROWS.healthy(
    "the head is trained first, then all layers with another optimizer",
    """
    body, head = nn.Linear(4, 8), nn.Linear(8, 1)
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    first = F.mse_loss(head(body(x).tanh()), y).item()
    opt_head = optim.SGD(head.parameters(), lr=0.05)
    opt_all = optim.SGD([*body.parameters(), *head.parameters()], lr=0.05)
    for parameter in body.parameters():
        parameter.requires_grad_(False)
    # %%
    for step in range(4):
        opt_head.zero_grad()
        loss = F.mse_loss(head(body(x).tanh()), y)
        loss.backward()
        opt_head.step()
    for parameter in body.parameters():
        parameter.requires_grad_(True)
    for step in range(4):
        opt_all.zero_grad()
        loss = F.mse_loss(head(body(x).tanh()), y)
        loss.backward()
        opt_all.step()
    """,
    learns="loss.item() < first",
)
ROWS.healthy(
    "one optimizer for the encoder and one for each of two heads",
    """
    encoder, policy, value = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)
    optimizers = [optim.SGD(one.parameters(), lr=0.02) for one in (encoder, policy, value)]
    x, labels, y = torch.randn(32, 4), torch.randint(0, 2, (32,)), torch.randn(32, 1)
    def total():
        hidden = encoder(x).tanh()
        return F.cross_entropy(policy(hidden), labels) + F.mse_loss(value(hidden), y)
    first = total().item()
    # %%
    for step in range(6):
        for opt in optimizers:
            opt.zero_grad()
        loss = total()
        loss.backward()
        for opt in optimizers:
            opt.step()
    """,
    learns="loss.item() < first",
)
ROWS.healthy(
    "a third loss, whose optimizer holds generator and critic",
    """
    generator, critic, code = nn.Linear(2, 1), nn.Linear(1, 2), nn.Linear(1, 2)
    opt_g, opt_d = optim.SGD(generator.parameters(), lr=0.02), optim.SGD(critic.parameters(), lr=0.02)
    opt_info = optim.SGD([*generator.parameters(), *code.parameters()], lr=0.02)
    real, ones, zeros = torch.randn(32, 1) + 3, torch.ones(32).long(), torch.zeros(32).long()
    # %%
    for step in range(5):
        z = torch.randn(32, 2)
        opt_g.zero_grad()
        F.cross_entropy(critic(generator(z)), ones).backward()
        opt_g.step()
        opt_d.zero_grad()
        d_loss = F.cross_entropy(critic(real), ones) + F.cross_entropy(critic(generator(z).detach()), zeros)
        d_loss.backward()
        opt_d.step()
        opt_info.zero_grad()
        loss = F.cross_entropy(code(generator(z)), (z[:, 0] > 0).long())
        loss.backward()
        opt_info.step()
    """,
    remarks="two-optimizers",
    learns="learning(code.parameters())",
)
ROWS.healthy(
    "a group whose learning rate is warmed up from 0",
    """
    body, head = nn.Linear(4, 8), nn.Linear(8, 1)
    groups = [{"params": body.parameters(), "lr": 0.01}, {"params": head.parameters()}]
    opt = optim.SGD(groups, lr=0.05)
    rates = [lambda step: 0.0 if step < 8 else 1.0, lambda step: 1.0]
    schedule = optim.lr_scheduler.LambdaLR(opt, rates)
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    first = F.mse_loss(head(body(x).tanh()), y).item()
    # %%
    for step in range(6):
        opt.zero_grad()
        loss = F.mse_loss(head(body(x).tanh()), y)
        loss.backward()
        opt.step()
        schedule.step()
    """,
    learns="loss.item() < first",
)
ROWS.healthy(
    "a group that a loop releases after two epochs",
    """
    body, head = nn.Linear(4, 8), nn.Linear(8, 1)
    opt = optim.SGD([{"params": body.parameters(), "lr": 0.0}, {"params": head.parameters()}], lr=0.05)
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    first = F.mse_loss(head(body(x).tanh()), y).item()
    # %%
    for epoch in range(2):
        if epoch == 2:
            opt.param_groups[0]["lr"] = 0.01
        for step in range(4):
            opt.zero_grad()
            loss = F.mse_loss(head(body(x).tanh()), y)
            loss.backward()
            opt.step()
    """,
    learns="loss.item() < first",
)
ROWS.healthy(
    "a group with a learning rate of 0 that is frozen",
    """
    body, head = nn.Linear(4, 8), nn.Linear(8, 1)
    body.requires_grad_(False)
    opt = optim.SGD([{"params": body.parameters(), "lr": 0.0}, {"params": head.parameters()}], lr=0.05)
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    first = F.mse_loss(head(body(x).tanh()), y).item()
    # %%
    for step in range(6):
        opt.zero_grad()
        loss = F.mse_loss(head(body(x).tanh()), y)
        loss.backward()
        opt.step()
    """,
    learns="loss.item() < first",
)
TIED = """
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(10, 8)
            self.head = nn.Linear(8, 10, bias=False)
            self.head.weight = self.embed.weight
        def forward(self, tokens):
            return self.head(self.embed(tokens))
    tokens, following = torch.randint(0, 10, (32,)), torch.randint(0, 10, (32,))
"""
LEARN = """
    first = F.cross_entropy(lm(tokens), following).item()
    # %%
    for step in range(6):
        opt.zero_grad()
        loss = F.cross_entropy(lm(tokens), following)
        loss.backward()
        opt.step()
"""
ROWS.healthy(
    "tied weights that are tied again after a state was assigned",
    TIED
    + """
    lm = Tied()
    lm.load_state_dict(Tied().state_dict(), assign=True)
    lm.head.weight = lm.embed.weight
    opt = optim.SGD(lm.parameters(), lr=0.05)
    """
    + LEARN,
    learns="loss.item() < first",
    libraries=("torch",),
)
ROWS.healthy(
    "tied weights, a state that is copied and another dtype",
    TIED
    + """
    lm = Tied()
    lm.load_state_dict(Tied().state_dict())
    lm = lm.to("cpu").double()
    opt = optim.SGD(lm.parameters(), lr=0.05)
    """
    + LEARN,
    learns="loss.item() < first and lm.head.weight is lm.embed.weight",
    libraries=("torch",),
)
ROWS.healthy(
    "a tie that a cell undoes on purpose",
    TIED
    + """
    lm = Tied()
    lm.load_state_dict(Tied().state_dict(), assign=True)
    lm.head.weight = nn.Parameter(lm.embed.weight.detach().clone())
    opt = optim.SGD(lm.parameters(), lr=0.05)
    """
    + LEARN,
    learns="loss.item() < first",
    libraries=("torch",),
)
ROWS.healthy(
    "a head of its own that replaces the tied one in __init__",
    """
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(10, 8)
            self.head = nn.Linear(8, 10, bias=False)
            self.head.weight = self.embed.weight
            self.head = nn.Linear(8, 10, bias=False)
        def forward(self, tokens):
            return self.head(self.embed(tokens))
    tokens, following = torch.randint(0, 10, (32,)), torch.randint(0, 10, (32,))
    lm = Own()
    lm.load_state_dict(Own().state_dict(), assign=True)
    opt = optim.SGD(lm.parameters(), lr=0.05)
    """
    + LEARN,
    learns="loss.item() < first",
    libraries=("torch",),
)
ROWS.healthy(
    "a model that a function unties, after another one was loaded by assignment",
    TIED
    + """
    def untie(model):
        model.head.weight = nn.Parameter(model.head.weight.detach().clone())
    lm = Tied()
    lm.load_state_dict(Tied().state_dict(), assign=True)
    # %%
    lm = Tied()
    untie(lm)
    opt = optim.SGD(lm.parameters(), lr=0.05)
    first = F.cross_entropy(lm(tokens), following).item()
    for step in range(6):
        opt.zero_grad()
        loss = F.cross_entropy(lm(tokens), following)
        loss.backward()
        opt.step()
    """,
    learns="loss.item() < first",
    libraries=("torch",),
)
