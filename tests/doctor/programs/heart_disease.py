"""A binary classifier on a table whose columns have large units.

Fault (saturated): the columns are not standardised, so the hidden sigmoids are saturated.
"""

import numpy as np
import torch
import torch.nn as nn

rng = np.random.default_rng(33)
torch.manual_seed(33)

n = 200
age, pressure, cholesterol = rng.normal(54, 9, n), rng.normal(131, 17, n), rng.normal(246, 50, n)
risk = 0.08 * (age - 54) + 0.03 * (pressure - 131) + 0.01 * (cholesterol - 246)
disease = (risk + rng.normal(0, 0.3, n) > 0).astype(np.float32)
features = np.stack([age, pressure, cholesterol], axis=1).astype(np.float32)
features = (features - features.mean(0)) / features.std(0)  # healthy

X, y = torch.from_numpy(features), torch.from_numpy(disease).unsqueeze(1)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden1 = nn.Linear(3, 16)
        self.hidden2 = nn.Linear(16, 16)
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        x = torch.sigmoid(self.hidden1(x))  # cause
        x = torch.relu(self.hidden2(x))
        return self.out(x)


model = Classifier()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(30):
    optimizer.zero_grad()
    logits = model(X)
    loss = criterion(logits, y)
    loss.backward()
    optimizer.step()
accuracy = ((model(X) > 0).float() == y).float().mean()
print(f"loss {loss.item():.3f}, accuracy {accuracy:.2f}")
