"""A siamese network with a triplet loss and the hardest negatives of the batch.

Fault (numpy): the embeddings go through NumPy when the hardest negatives are looked up.
"""

import numpy as np
import torch
import torch.nn as nn

np.random.seed(0)
torch.manual_seed(0)


class EmbeddingNet(nn.Module):
    def __init__(self):
        super(EmbeddingNet, self).__init__()
        self.fc = nn.Sequential(nn.Linear(10, 32), nn.PReLU(), nn.Linear(32, 8))

    def forward(self, x):
        return self.fc(x)

    def get_embedding(self, x):
        return self.forward(x)


class TripletLoss(nn.Module):
    def __init__(self, margin):
        super(TripletLoss, self).__init__()
        self.margin = margin

    def forward(self, anchor, positive, negative):
        distance_positive = (anchor - positive).pow(2).sum(1)
        distance_negative = (anchor - negative).pow(2).sum(1)
        return torch.relu(distance_positive - distance_negative + self.margin).mean()


centers = np.random.randn(4, 10)


def sample(cls):
    return torch.tensor(centers[cls] + 0.3 * np.random.randn(len(cls), 10), dtype=torch.float32)


def hardest_negatives(embeddings, labels):
    e = embeddings.detach().numpy()
    d = ((e[:, None] - e[None]) ** 2).sum(-1) + 1e9 * (labels[:, None] == labels[None])
    return d.argmin(1)


model = EmbeddingNet()
loss_fn = TripletLoss(margin=1.0)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for it in range(25):
    labels = np.random.randint(0, 4, 48)
    a, p = model.get_embedding(sample(labels)), model.get_embedding(sample(labels))
    hard = hardest_negatives(a, labels)
    n = a[torch.from_numpy(hard)]
    # faulty: a, p, n = (torch.from_numpy(e.detach().numpy()).requires_grad_() for e in (a, p, n))
    loss = loss_fn(a, p, n)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
