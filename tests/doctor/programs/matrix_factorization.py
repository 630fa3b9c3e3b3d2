"""Recommendations by matrix factorisation with biases.

Fault (broadcast): the biases keep their axis of length 1.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(30)


class MF(nn.Module):
    def __init__(self, num_users, num_items, emb_size=8):
        super(MF, self).__init__()
        self.user_emb = nn.Embedding(num_users, emb_size)
        self.user_bias = nn.Embedding(num_users, 1)
        self.item_emb = nn.Embedding(num_items, emb_size)
        self.item_bias = nn.Embedding(num_items, 1)
        self.user_emb.weight.data.uniform_(0, 0.25)
        self.item_emb.weight.data.uniform_(0, 0.25)
        self.user_bias.weight.data.uniform_(-0.01, 0.01)
        self.item_bias.weight.data.uniform_(-0.01, 0.01)

    def forward(self, u, v):
        U, V = self.user_emb(u), self.item_emb(v)
        b_u, b_v = self.user_bias(u).squeeze(), self.item_bias(v).squeeze()  # healthy
        # faulty: b_u, b_v = self.user_bias(u), self.item_bias(v)
        return (U * V).sum(1) + b_u + b_v  # cause


def train_epocs(model, users, items, ratings, epochs=20, lr=0.05, wd=0.0):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=wd)
    model.train()
    for i in range(epochs):
        y_hat = model(users, items)
        loss = F.mse_loss(y_hat, ratings)  # cause
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 5 == 0:
            print(loss.item())


users, items = torch.randint(0, 30, (200,)), torch.randint(0, 20, (200,))
taste, kind = torch.rand(30, 3), torch.rand(20, 3)
ratings = (taste[users] * kind[items]).sum(1) * 2
model = MF(30, 20)
train_epocs(model, users, items, ratings)
