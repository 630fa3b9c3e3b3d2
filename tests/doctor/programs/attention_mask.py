"""Self-attention over sentences of different lengths, padded and masked.

Fault (nan-born): one sentence of the batch is empty, so its softmax has no unmasked entry.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(35)


class MaskedAttention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d, d, bias=False) for _ in range(3))

    def forward(self, x, mask):
        scores = self.q(x) @ self.k(x).transpose(1, 2) / x.size(-1) ** 0.5
        scores = scores.masked_fill(~mask[:, None, :], float("-inf"))
        return F.softmax(scores, dim=-1) @ self.v(x)  # cause


class SentenceClassifier(nn.Module):
    def __init__(self, vocab=50, d=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, d, padding_idx=0)
        self.att = MaskedAttention(d)
        self.cls = nn.Linear(d, 2)

    def forward(self, tokens):
        mask = tokens != 0
        h = self.att(self.emb(tokens), mask)
        pooled = (h * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        return self.cls(pooled)


def collate(lengths):
    tokens = torch.zeros(len(lengths), 12, dtype=torch.long)
    for row, length in enumerate(lengths):
        tokens[row, :length] = torch.randint(1, 50, (length,))
    return tokens


model = SentenceClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(6):
    lengths = torch.randint(1, 13, (16,)).tolist()
    # faulty: lengths[5] = 0
    tokens = collate(lengths)
    labels = (tokens[:, 0] > 25).long()
    loss = F.cross_entropy(model(tokens), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
