"""Gradients of four micro-batches are added up before each step.

Fault (accumulated): they are never set to zero again after a step.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(16)

accumulation_steps = 4
x = torch.randn(256, 10)
y = (x @ torch.randn(10, 1)).squeeze(1) + 0.1 * torch.randn(256)
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
loss_fn = nn.MSELoss()

model.zero_grad()
for epoch in range(3):
    for i, (inputs, labels) in enumerate(loader):
        predictions = model(inputs).squeeze(1)
        loss = loss_fn(predictions, labels) / accumulation_steps
        loss.backward()  # cause
        if (i + 1) % accumulation_steps == 0:
            optimizer.step()  # cause
            model.zero_grad()  # healthy
    print(f"epoch {epoch}: {loss.item() * accumulation_steps:.4f}")
