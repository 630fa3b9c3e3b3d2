"""Convolutional nets, normalisations, U-Nets, deep residual nets."""

from __future__ import annotations

from planting import Table

ROWS = Table()

ROWS.healthy(
    "a small CNN",
    """
    class CNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
            self.conv2 = nn.Conv2d(4, 8, 3, padding=1)
            self.pool = nn.MaxPool2d(2)
            self.fc = nn.Linear(8 * 3 * 3, 10)

        def forward(self, x):
            x = self.pool(F.relu(self.conv1(x)))
            x = self.pool(F.relu(self.conv2(x)))
            return self.fc(x.flatten(1))

    model = CNN()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    images, labels = torch.rand(16, 1, 12, 12), torch.randint(0, 10, (16,))
    # %%
    for epoch in range(3):
        for i in range(0, 16, 8):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images[i:i + 8]), labels[i:i + 8])
            loss.backward()
            optimizer.step()
    """,
    learns="learning(model.parameters())",
)
ROWS.healthy(
    "biases before a batch norm",
    """
    net = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 2))
    x, y = torch.randn(8, 3, 8, 8), torch.randint(0, 2, (8,))
    # %%
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    """,
    learns="norm(net[0].bias.grad) < 1e-5 and norm(net[0].weight.grad) > 1e-3",
    remarks="cancelled",
)
ROWS.healthy(
    "a linear layer before a batch norm",
    """
    mlp = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 1))
    F.mse_loss(mlp(torch.randn(32, 6)), torch.randn(32, 1))
    """,
    learns="norm(mlp[0].weight.grad) > 1e-3",
    remarks="cancelled",
)
ROWS.healthy(
    "a residual net whose last norms start at zero",
    """
    class BasicBlock(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c)
            self.conv2, self.bn2 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c)
            nn.init.zeros_(self.bn2.weight)
        def forward(self, x):
            out = F.relu(self.bn1(self.conv1(x)))
            return F.relu(x + self.bn2(self.conv2(out)))
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *[BasicBlock(8) for _ in range(3)], nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
    # %%
    x, y = torch.randn(6, 3, 6, 6), torch.randint(0, 4, (6,))
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    """,
    learns="norm(net[6].weight.grad) > 0 and all_zero(net[1].conv1.weight.grad)",
    remarks="zero-factor",
)
ROWS.healthy(
    "a U-Net for segmentation",
    """
    def double(i, o):
        return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU(), nn.Conv2d(o, o, 3, padding=1), nn.ReLU())

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.d1, self.d2 = double(1, 4), double(4, 8)
            self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
            self.u1 = double(8, 4)
            self.out = nn.Conv2d(4, 1, 1)

        def forward(self, x):
            c1 = self.d1(x)
            c2 = self.d2(F.max_pool2d(c1, 2))
            return self.out(self.u1(torch.cat([self.up(c2), c1], 1)))

    def dice(logits, target, eps=1.0):
        p = torch.sigmoid(logits)
        return 1 - (2 * (p * target).sum() + eps) / (p.sum() + target.sum() + eps)

    unet = UNet()
    opt = optim.Adam(unet.parameters(), lr=1e-3)
    image, mask = torch.rand(2, 1, 8, 8), (torch.rand(2, 1, 8, 8) > 0.7).float()
    # %%
    for it in range(2):
        logits = unet(image)
        loss = F.binary_cross_entropy_with_logits(logits, mask) + dice(logits, mask)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    learns="learning(unet.parameters())",
)
ROWS.healthy(
    "a deep residual net",
    """
    class Block(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.norm, self.lin = nn.LayerNorm(d), nn.Linear(d, d)
        def forward(self, x):
            return x + F.gelu(self.lin(self.norm(x)))
    deep = nn.Sequential(nn.Linear(8, 16), *[Block(16) for _ in range(20)], nn.LayerNorm(16), nn.Linear(16, 1))
    # %%
    loss = F.mse_loss(deep(torch.randn(32, 8)), torch.randn(32, 1))
    loss.backward()
    """,
    learns="learning(deep.parameters())",
)
ROWS.healthy(
    "ten layers with He's initialisation",
    """
    net = nn.Sequential(*[m for _ in range(10) for m in (nn.Linear(64, 64), nn.ReLU())], nn.Linear(64, 1))
    for m in net.modules():
        if isinstance(m, nn.Linear):
            nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
            nn.init.zeros_(m.bias)
    # %%
    loss = F.mse_loss(net(torch.randn(48, 64)), torch.randn(48, 1))
    loss.backward()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "eight tanh layers with Xavier's initialisation",
    """
    Ws = []
    for _ in range(8):
        W = torch.empty(32, 32)
        nn.init.xavier_normal_(W)
        Ws.append(W.requires_grad_())
    h = torch.randn(20, 32)
    for W in Ws:
        h = torch.tanh(h @ W)
    loss = h.pow(2).mean()
    """,
    learns="learning(Ws)",
)
ROWS.healthy(
    "mixup and label smoothing",
    """
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 5))
    opt = optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2)
    x, y = torch.rand(12, 1, 4, 4), torch.randint(0, 5, (12,))
    # %%
    for step in range(3):
        lam = float(np.random.beta(0.4, 0.4))
        perm = torch.randperm(12)
        mixed = lam * x + (1 - lam) * x[perm]
        logits = net(mixed)
        loss = lam * F.cross_entropy(logits, y, label_smoothing=0.1) + (1 - lam) * F.cross_entropy(logits, y[perm], label_smoothing=0.1)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    """,
    learns="learning(net.parameters())",
)
ROWS.healthy(
    "an autoencoder of images",
    """
    enc = nn.Sequential(nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(64, 6))
    dec = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Unflatten(1, (4, 4, 4)), nn.ConvTranspose2d(4, 1, 2, stride=2), nn.Sigmoid())
    params = list(enc.parameters()) + list(dec.parameters())
    opt = optim.Adam(params, lr=2e-3)
    imgs = torch.rand(10, 1, 8, 8)
    # %%
    for epoch in range(3):
        recon = dec(enc(imgs))
        loss = F.binary_cross_entropy(recon, imgs)
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        codes = enc(imgs).numpy()
    """,
    learns="learning(params)",
)
ROWS.healthy(
    "style transfer: the image is the leaf, the net is frozen",
    """
    features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU())
    for p in features.parameters():
        p.requires_grad_(False)
    content, style = torch.rand(1, 3, 10, 10), torch.rand(1, 3, 10, 10)
    def gram(f):
        a = f.flatten(2)
        return a @ a.transpose(1, 2) / a.numel()
    with torch.no_grad():
        want_c, want_s = features(content), gram(features(style))
    canvas = (content + 0.1 * torch.randn_like(content)).requires_grad_()
    opt = optim.Adam([canvas], lr=0.02)
    # %%
    for i in range(3):
        f = features(canvas)
        loss = F.mse_loss(f, want_c) + 1e3 * F.mse_loss(gram(f), want_s)
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            canvas.clamp_(0, 1)
    """,
    learns="norm(canvas.grad) > 0",
)
ROWS.healthy(
    "a saliency map",
    """
    net = nn.Sequential(nn.Linear(12, 20), nn.ReLU(), nn.Linear(20, 4)).eval()
    image = torch.rand(1, 12, requires_grad=True)
    # %%
    score = net(image)
    best = score.argmax().item()
    score[0, best].backward()
    saliency = image.grad.abs()
    """,
    learns="norm(saliency) > 0",
)
ROWS.healthy(
    "an adversarial example",
    """
    net = nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 3))
    x, label = torch.rand(1, 6), torch.tensor([1])
    delta = torch.zeros_like(x, requires_grad=True)
    # %%
    for _ in range(4):
        loss = F.cross_entropy(net(x + delta), label)
        (grad,) = torch.autograd.grad(loss, delta)
        with torch.no_grad():
            delta += 0.01 * grad.sign()
            delta.clamp_(-0.03, 0.03)
    """,
    learns="norm(delta) > 0",
)
ROWS.healthy(
    "focal loss with hardly any positives",
    """
    head = nn.Linear(8, 1)
    anchors, hits = torch.randn(200, 8), torch.zeros(200, 1)
    hits[:3] = 1.
    opt = optim.SGD(head.parameters(), lr=0.1)
    def focal(logits, t, gamma=2.0, alpha=0.25):
        ce = F.binary_cross_entropy_with_logits(logits, t, reduction="none")
        p_t = torch.exp(-ce)
        w = alpha * t + (1 - alpha) * (1 - t)
        return (w * (1 - p_t) ** gamma * ce).sum() / t.sum()
    # %%
    for k in range(3):
        opt.zero_grad(); loss = focal(head(anchors), hits); loss.backward(); opt.step()
    """,
    learns="learning(head.parameters())",
)
