"""Frozen parts that change: running statistics in training mode, and parameters that the optimizer still moves."""

from __future__ import annotations

from planting import Table

ROWS = Table()

# ------------------------------------------------------------------------------------------------------ moving-statistics
ROWS.fault(
    "a frozen backbone in training mode under a new head",
    "moving-statistics",
    """
    x, y = torch.randn(64, 5), torch.randint(0, 3, (64,))
    backbone = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU())
    with torch.no_grad():
        for step in range(30):
            backbone(x)
    for p in backbone.parameters():
        p.requires_grad = False
    model = nn.Sequential(backbone, nn.Linear(8, 3))
    opt = optim.SGD(model[1].parameters(), lr=0.05)
    before = backbone[1].running_mean.clone()
    # %%
    model.train() #!
    for step in range(6):
        loss = F.cross_entropy(model(2 * x - 1), y)
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    shows="norm(backbone[1].running_mean - before) > 0.3",
    cure={"model.train()": "model.train(); backbone.eval()"},
    says=("`backbone[1]` (BatchNorm1d)", "standard deviations", "`backbone`"),
)
ROWS.fault(
    "a teacher in training mode",
    "moving-statistics",
    """
    teacher = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
    with torch.no_grad():
        for step in range(20):
            teacher(torch.randn(64, 4))
    teacher.requires_grad_(False)
    student = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    opt = optim.Adam(student.parameters(), lr=0.01)
    before = teacher[1].running_var.clone()
    # %%
    for step in range(5):
        x = 2 * torch.randn(32, 4) + 1
        target = teacher(x) #!
        loss = F.mse_loss(student(x), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    shows="teacher[1].running_var.sum() > 1.2 * before.sum()",
    cure={"target = teacher(x)": "teacher.eval(); target = teacher(x)"},
    says=("`teacher[1]` and `teacher[4]` (BatchNorm1d) are frozen", "`teacher`"),
)
ROWS.fault(
    "a pretrained convolutional network with another last layer",
    "moving-statistics",
    """
    class Block(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.conv, self.bn = nn.Conv2d(n, n, 3, padding=1, bias=False), nn.BatchNorm2d(n)
        def forward(self, x):
            return F.relu(x + self.bn(self.conv(x)))
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1, self.layer1, self.fc = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), Block(4), nn.Linear(4, 10)
        def forward(self, x):
            return self.fc(self.layer1(F.relu(self.bn1(self.conv1(x)))).mean((2, 3)))
    net = Net()
    with torch.no_grad():
        for step in range(20):
            net(torch.randn(8, 1, 8, 8))
    # %%
    for p in net.parameters():
        p.requires_grad = False
    net.fc = nn.Linear(4, 2)
    opt = optim.SGD(net.fc.parameters(), lr=0.05, momentum=0.9)
    before = net.bn1.running_var.clone()
    for epoch in range(3):
        net.train() #!
        for images in torch.randn(2, 8, 1, 8, 8):
            loss = F.cross_entropy(net(3 * images + 1), torch.tensor([0, 1] * 4))
            opt.zero_grad(); loss.backward(); opt.step()
    """,
    shows="net.bn1.running_var.sum() > 2 * before.sum()",
    cure={"net.train()": "net.train(); net.bn1.eval(); net.layer1.eval()"},
    says=("`net.bn1` and `net.layer1.bn` (BatchNorm2d) are frozen",),
)
ROWS.fault(
    "the first blocks of a list are frozen, and the optimizer holds all",
    "moving-statistics",
    """
    def block():
        return nn.Sequential(nn.Linear(6, 6, bias=False), nn.BatchNorm1d(6), nn.ReLU())
    net = nn.Sequential(block(), block(), block(), nn.Linear(6, 2))
    with torch.no_grad():
        for step in range(20):
            net(torch.randn(64, 6))
    for part in net[:2]:
        for p in part.parameters():
            p.requires_grad_(False)
    opt = optim.Adam(net.parameters(), lr=0.005)
    before = net[0][1].running_var.clone()
    # %%
    def train(model, steps):
        model.train()
        for step in range(steps):
            optimizer = opt
            loss = F.cross_entropy(model(1 + 3 * torch.randn(32, 6)), torch.arange(32) % 2) #!
            optimizer.zero_grad(); loss.backward(); optimizer.step()
    train(net, 5)
    """,
    shows="net[0][1].running_var.sum() > 2 * before.sum()",
    cure={"loss = ": "net[0].eval(); net[1].eval(); loss = "},
    says=("`net[0][1]` and `net[1][1]` (BatchNorm1d) are frozen", "`net[0]` and `net[1]`"),
)
ROWS.fault(
    "training mode again after each validation",
    "moving-statistics",
    """
    net = nn.Sequential(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8, momentum=0.2), nn.ReLU()), nn.Linear(8, 2))
    with torch.no_grad():
        for step in range(20):
            net(torch.randn(64, 6))
    net[0].requires_grad_(False)
    opt = optim.Adam(net[1].parameters(), lr=0.005)
    before = net[0][1].running_mean.clone()
    # %%
    for epoch in range(3):
        for step in range(2):
            loss = F.cross_entropy(net(2 * torch.randn(32, 6) - 1), torch.arange(32) % 2) #!
            opt.zero_grad(); loss.backward(); opt.step()
        net.eval()
        with torch.no_grad():
            right = (net(torch.randn(8, 6)).argmax(1) == 0).sum()
        net.train()
    """,
    shows="norm(net[0][1].running_mean - before) > 0.3",
    cure={"loss = ": "net[0].eval(); loss = "},
    says=("`net[0][1]` (BatchNorm1d)", "`net[0].eval()` before `loss = "),
)
ROWS.fault(
    "one function trains everything, then the head",
    "moving-statistics",
    """
    net = nn.Sequential(nn.Sequential(nn.Linear(6, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU()), nn.Linear(8, 2))
    # %%
    def fit(model, opt, shift, steps):
        model.train()
        for step in range(steps):
            loss = F.cross_entropy(model(torch.randn(32, 6) + shift), torch.arange(32) % 2) #!
            opt.zero_grad(); loss.backward(); opt.step()
    fit(net, optim.Adam(net.parameters(), lr=0.005), 0, 6)
    net[0].requires_grad_(False)
    before = net[0][1].running_mean.clone()
    fit(net, optim.Adam(net[1].parameters(), lr=0.005), 1, 6)
    """,
    shows="norm(net[0][1].running_mean - before) > 0.3",
    cure={"loss = ": "model[0].train(shift == 0); loss = "},
    says="`net[0][1]` (BatchNorm1d) is frozen",
    never=("` before `", "` after `"),
)
ROWS.fault(
    "a frozen body that is called in another function",
    "moving-statistics",
    """
    def loss_of(m, x, y):
        return F.cross_entropy(m(x), y) #!
    def main():
        body = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU())
        with torch.no_grad():
            for step in range(20):
                body(torch.randn(64, 6))
        body.requires_grad_(False)
        net = nn.Sequential(body, nn.Linear(8, 2))
        opt = optim.Adam(net[1].parameters(), lr=0.005)
        before = body[1].running_mean.clone()
        for step in range(5):
            loss = loss_of(net, 2 * torch.randn(32, 6) - 1, torch.arange(32) % 2)
            opt.zero_grad(); loss.backward(); opt.step()
        return body, net, before
    body, net, before = main()
    """,
    shows="norm(body[1].running_mean - before) > 0.3",
    cure={"body.requires_grad_(False)": "body.requires_grad_(False).eval()"},
    says="(BatchNorm1d) is frozen",
    never="` before `",
)
ROWS.fault(
    "features under no_grad in training mode",
    "moving-statistics",
    """
    encoder = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8, momentum=0.3), nn.Tanh())
    with torch.no_grad():
        for step in range(10):
            encoder(torch.randn(64, 6))
    encoder.requires_grad_(False)
    head = nn.Linear(8, 1)
    opt = optim.SGD(head.parameters(), lr=0.05)
    before = encoder[1].running_mean.clone()
    # %%
    for step in range(4):
        x = torch.randn(16, 6) + 1
        with torch.no_grad():
            features = encoder(x) #!
        loss = F.mse_loss(head(features), x[:, :1])
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    shows="norm(encoder[1].running_mean - before) > 0.3",
    cure={"features = encoder(x)": "encoder.eval(); features = encoder(x)"},
    says=("`encoder[1]` (BatchNorm1d)",),
)
ROWS.fault(
    "statistics computed, frozen and fine-tuned in one cell",
    "moving-statistics",
    """
    x, y = torch.randn(64, 5), torch.randn(64, 1)
    net = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    opt = optim.SGD(net.parameters(), lr=0.02)
    with torch.no_grad():
        for step in range(20):
            net(x)
    net[0].requires_grad_(False)
    net[1].requires_grad_(False)
    before = net[1].running_mean.clone()
    for step in range(6):
        loss = F.mse_loss(net(x + 1), y + 1) #!
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    shows="norm(net[1].running_mean - before) > 0.2",
    cure={"loss = F.mse_loss(net(x + 1), y + 1)": "net[1].eval(); loss = F.mse_loss(net(x + 1), y + 1)"},
    says=("`net[1]` (BatchNorm1d)",),
)

# ----------------------------------------------------------------------------------------------------------- frozen-moves
ROWS.fault(
    "a layer that is frozen halfway, momentum and gradients of zeros",
    "frozen-moves",
    """
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    opt = optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    x = torch.randn(64, 4)
    y = x[:, :1] - x[:, 1:2]
    # %%
    for step in range(12):
        if step == 4:
            net[0].requires_grad_(False)
            before = net[0].weight.clone()
        loss = F.mse_loss(net(x), y)
        opt.zero_grad(set_to_none=False)
        loss.backward()
        opt.step() #!
    """,
    shows="norm(net[0].weight - before) > 0.01",
    cure={"zero_grad(set_to_none=False)": "zero_grad()"},
    says=("`opt.step()`", "`net[0].weight`", "8 of these steps", "requires_grad is False"),
)
ROWS.fault(
    "Adam and a loop that freezes the parameters",
    "frozen-moves",
    """
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    opt = optim.Adam(net.parameters(), lr=0.01)
    x = torch.randn(64, 4)
    y = x[:, :1] + x[:, 1:2]
    # %%
    def train(steps):
        for step in range(steps):
            loss = F.mse_loss(net(x), y)
            opt.zero_grad(set_to_none=False)
            loss.backward()
            opt.step() #!
    train(5)
    for p in net[0].parameters(): p.requires_grad = False
    before = net[0].bias.clone()
    train(7)
    """,
    shows="norm(net[0].bias - before) > 0.001",
    cure={"p.requires_grad = False": "p.requires_grad = False; p.grad = None"},
    says=("`net[0].weight` and `net[0].bias`", "7 of these steps"),
)
ROWS.fault(
    "weight decay of an embedding that is frozen",
    "frozen-moves",
    """
    emb, out = nn.Embedding(10, 4), nn.Linear(4, 3)
    opt = optim.SGD([*emb.parameters(), *out.parameters()], lr=0.1, weight_decay=0.1)
    tokens, y = torch.randint(0, 10, (32,)), torch.randint(0, 3, (32,))
    for step in range(3):
        loss = F.cross_entropy(out(emb(tokens)), y)
        opt.zero_grad(set_to_none=False); loss.backward(); opt.step()
    # %%
    emb.weight.requires_grad = False
    before = emb.weight.clone()
    for step in range(5):
        loss = F.cross_entropy(out(emb(tokens)), y)
        opt.zero_grad(set_to_none=False); loss.backward(); opt.step() #!
    """,
    shows="norm(emb.weight - before) > 0.01 * norm(before)",
    cure={"emb.weight.requires_grad = False": "emb.weight.requires_grad = False; emb.weight.grad = None"},
    says=("`emb.weight`", "it still has a gradient", "5 of these steps"),
)
ROWS.fault(
    "an old gradient of the body that nobody clears",
    "frozen-moves",
    """
    body, head = nn.Linear(4, 6), nn.Linear(6, 1)
    opt = optim.SGD([*body.parameters(), *head.parameters()], lr=0.02)
    x = torch.randn(64, 4)
    y = x.sum(1, keepdim=True)
    for step in range(2):
        loss = F.mse_loss(head(torch.tanh(body(x))), y)
        opt.zero_grad(); loss.backward(); opt.step()
    # %%
    for name, p in body.named_parameters():
        p.requires_grad_(False)
    before = body.weight.clone()
    for step in range(6):
        loss = F.mse_loss(head(torch.tanh(body(x))), y)
        head.zero_grad()
        loss.backward()
        opt.step() #!
    """,
    shows="norm(body.weight - before) > 0.01",
    cure={"p.requires_grad_(False)": "p.requires_grad_(False); p.grad = None"},
    says=("`body.weight` and `body.bias`", "6 of these steps"),
)
ROWS.fault(
    "frozen in an earlier cell",
    "frozen-moves",
    """
    w1 = torch.randn(3, 4, requires_grad=True)
    w2 = torch.randn(4, 1, requires_grad=True)
    opt = optim.SGD([w1, w2], lr=0.02, momentum=0.8)
    x = torch.randn(50, 3)
    y = x.sum(1, keepdim=True)
    for step in range(4):
        loss = F.mse_loss(torch.tanh(x @ w1) @ w2, y)
        opt.zero_grad(); loss.backward(); opt.step()
    w1.requires_grad_(False)
    before = w1.clone()
    # %%
    for step in range(5):
        opt.zero_grad(set_to_none=False)
        loss = F.mse_loss(torch.tanh(x @ w1) @ w2, y)
        loss.backward()
        opt.step() #!
    """,
    shows="norm(w1 - before) > 0.005",
    cure={"zero_grad(set_to_none=False)": "zero_grad()"},
    says=("`w1`", "5 of these steps"),
)
