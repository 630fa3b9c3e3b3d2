"""A graph convolutional network by hand: a normalised adjacency matrix times features.

Fault (inf-born, nan-born, nan-input): self-loops were forgotten, and a node without neighbours is divided by its degree of 0.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)

n_nodes, n_classes = 30, 3
label = torch.arange(n_nodes) % n_classes
prob = torch.where(label[:, None] == label[None], 0.4, 0.03)
A = torch.triu((torch.rand(n_nodes, n_nodes) < prob).float(), diagonal=1)
A = A + A.T
A[4] = 0
A[:, 4] = 0  # a hermit
X = torch.eye(n_nodes)


def normalize(A):
    A = A + torch.eye(len(A))  # healthy
    d_inv_sqrt = A.sum(1).pow(-0.5)  # cause
    return d_inv_sqrt[:, None] * A * d_inv_sqrt[None]  # cause


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass):
        super().__init__()
        self.W0 = nn.Parameter(torch.empty(nfeat, nhid))
        self.W1 = nn.Parameter(torch.empty(nhid, nclass))
        for W in (self.W0, self.W1):
            nn.init.xavier_uniform_(W)

    def forward(self, x, adj):
        x = F.relu(adj @ (x @ self.W0))
        return F.log_softmax(adj @ (x @ self.W1), dim=1)


adj = normalize(A)
train_idx = torch.randperm(n_nodes)[:15]
gcn = GCN(n_nodes, 16, n_classes)
opt = torch.optim.Adam(gcn.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(30):
    gcn.train()
    opt.zero_grad()
    output = gcn(X, adj)
    loss_train = F.nll_loss(output[train_idx], label[train_idx])
    loss_train.backward()
    opt.step()
    if epoch % 10 == 0:
        print("Epoch: {:04d}".format(epoch), "loss_train: {:.4f}".format(loss_train.item()))
