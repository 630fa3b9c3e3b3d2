"""Modules, optimizers, schedulers and data loaders, as a first training course uses them."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Net(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, kernel_size=3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Sequential(nn.Linear(4 * 4 * 4, hidden), nn.ReLU(), nn.Dropout(p=0.2), nn.Linear(hidden, 3))

    def forward(self, x):
        x = self.pool(F.relu(self.bn(self.conv1(x))))
        return self.fc(torch.flatten(x, 1))


class Squares(Dataset):
    def __init__(self, n):
        self.x = torch.arange(float(n))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.x[index] ** 2


torch.manual_seed(0)
net = Net()
print(net)
print(sum(p.numel() for p in net.parameters() if p.requires_grad))
for name, parameter in net.named_parameters():
    print(name, tuple(parameter.shape), f"{parameter.detach().abs().sum().item():.4f}")
print(list(net.state_dict())[:8])

images, labels = torch.rand(60, 1, 8, 8), torch.randint(0, 3, (60,))
train, test = random_split(TensorDataset(images, labels), [48, 12])
print(len(train), len(test), test.indices)
loader = DataLoader(train, batch_size=16, shuffle=True)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
print(optimizer)
for epoch in range(4):
    net.train()
    running = 0.0
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(net(inputs), targets)
        loss.backward()
        optimizer.step()
        running += loss.item() * inputs.size(0)
    scheduler.step()
    print(f"epoch {epoch} loss {running / len(train):.3f} lr {scheduler.get_last_lr()}")
net.eval()
with torch.no_grad():
    scores = net(torch.stack([x for x, _ in test]))
print(scores.argmax(1).shape, [f"{v:.3f}" for v in net.bn.running_mean.tolist()])
state = net.state_dict()
other = Net()
print(other.load_state_dict(state))
other.eval()
print(torch.equal(other(images[:2]), net(images[:2])))
try:
    Net(8).load_state_dict(state)
except RuntimeError as error:
    print(error)

for batch in DataLoader(Squares(5), batch_size=2):
    print(batch)
torch.manual_seed(3)
line = nn.Linear(1, 1)
adam = optim.Adam(line.parameters(), lr=0.05)
x = torch.linspace(-1, 1, 20).unsqueeze(1)
y = 3 * x + 0.5 + 0.1 * torch.randn(x.size())
for step in range(120):
    loss = nn.MSELoss()(line(x), y)
    adam.zero_grad()
    loss.backward()
    adam.step()
print(f"{loss.item():.4f} {line.weight.item():.3f} {line.bias.item():.3f}")
print(line.weight, line.weight.grad.shape, isinstance(line.weight, nn.Parameter))
lstm = nn.LSTM(3, 5, num_layers=2, batch_first=True)
out, (h, c) = lstm(torch.randn(2, 4, 3))
out.sum().backward()
print(out.shape, h.shape, f"{out.sum().item():.4f} {lstm.weight_hh_l1.grad.norm().item():.4f}")
layer = nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16, dropout=0.0, batch_first=True)
print(layer(torch.randn(2, 3, 8)).shape, len(list(layer.parameters())))
nn.utils.clip_grad_norm_(lstm.parameters(), 1.0)
nn.init.xavier_uniform_(line.weight)
print(line.weight)
