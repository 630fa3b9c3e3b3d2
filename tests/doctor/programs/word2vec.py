"""Skip-gram with negative sampling, sparse gradients and SparseAdam.

Fault (inf-born, nan-born): the logarithm is taken of a sigmoid that has been rounded to 0.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(19)


class SkipGramModel(nn.Module):
    def __init__(self, emb_size, emb_dimension):
        super(SkipGramModel, self).__init__()
        self.u_embeddings = nn.Embedding(emb_size, emb_dimension, sparse=True)
        self.v_embeddings = nn.Embedding(emb_size, emb_dimension, sparse=True)
        nn.init.normal_(self.u_embeddings.weight, std=3)
        nn.init.normal_(self.v_embeddings.weight, std=3)

    def forward(self, pos_u, pos_v, neg_v):
        emb_u = self.u_embeddings(pos_u)
        emb_v = self.v_embeddings(pos_v)
        emb_neg_v = self.v_embeddings(neg_v)
        score = torch.sum(emb_u * emb_v, dim=1)
        neg_score = torch.bmm(emb_neg_v, emb_u.unsqueeze(2)).squeeze(2)
        score = -F.logsigmoid(score)  # healthy
        # faulty: score = -torch.log(torch.sigmoid(score))
        neg_score = -torch.sum(F.logsigmoid(-neg_score), dim=1)
        return torch.mean(score + neg_score)


sentence = torch.randint(0, 40, (600,))
skip_gram_model = SkipGramModel(40, 16)
optimizer = torch.optim.SparseAdam(list(skip_gram_model.parameters()), lr=0.05)

for i in range(15):
    at = torch.randint(1, 599, (64,))
    pos_u, pos_v = sentence[at], sentence[at + 1]
    neg_v = torch.randint(0, 40, (64, 5))
    optimizer.zero_grad()
    loss = skip_gram_model(pos_u, pos_v, neg_v)
    loss.backward()
    optimizer.step()
print("Loss: " + str(loss.item()))
