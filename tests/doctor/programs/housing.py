"""Regression on a table with a multilayer perceptron.

Fault (dead): the hidden biases start at -10, and no rectifier opens.
"""

import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader

torch.manual_seed(32)


class HousingDataset(Dataset):
    def __init__(self, n):
        self.X = torch.randn(n, 8)
        self.y = 2 * self.X[:, 0] - self.X[:, 1] * self.X[:, 2] + 0.1 * torch.randn(n)

    def __len__(self):
        return len(self.X)

    def __getitem__(self, i):
        return self.X[i], self.y[i]


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
        self.apply(self._init)

    @staticmethod
    def _init(m):
        if isinstance(m, nn.Linear):
            nn.init.xavier_uniform_(m.weight)
            nn.init.constant_(m.bias, 0.0)  # healthy
            # faulty: nn.init.constant_(m.bias, -10.0)

    def forward(self, x):
        return self.layers(x)  # cause


trainloader = DataLoader(HousingDataset(160), batch_size=20, shuffle=True)
mlp = MLP()
loss_function = nn.L1Loss()
optimizer = torch.optim.Adam(mlp.parameters(), lr=1e-3)
for epoch in range(3):
    current_loss = 0.0
    for inputs, targets in trainloader:
        targets = targets.reshape((targets.shape[0], 1))
        optimizer.zero_grad()
        outputs = mlp(inputs)
        loss = loss_function(outputs, targets)
        loss.backward()
        optimizer.step()
        current_loss += loss.item()
    print(f"Loss after epoch {epoch + 1}: {current_loss / len(trainloader):.3f}")
