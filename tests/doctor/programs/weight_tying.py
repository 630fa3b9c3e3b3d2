"""A language model whose decoder shares the embedding's weights.

Fault (stale-optimizer, re-wrapped): each epoch the embedding is normalised into a new Parameter, which the optimizer does not hold.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(28)


class RNNModel(nn.Module):
    def __init__(self, ntoken=20, ninp=24):
        super().__init__()
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.GRU(ninp, ninp, batch_first=True)
        self.decoder = nn.Linear(ninp, ntoken, bias=False)
        self.decoder.weight = self.encoder.weight

    def forward(self, tokens):
        output, _ = self.rnn(self.encoder(tokens))
        return self.decoder(output)


model = RNNModel()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(3):
    with torch.no_grad():
        model.encoder.weight.copy_(F.normalize(model.encoder.weight, dim=1))  # healthy
        # faulty: model.encoder.weight = model.decoder.weight = nn.Parameter(F.normalize(model.encoder.weight, dim=1))
    for _ in range(6):
        start = torch.randint(0, 20, (16, 1))
        seq = (start + torch.arange(9)) % 20
        logits = model(seq[:, :-1])
        loss = F.cross_entropy(logits.transpose(1, 2), seq[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # cause
    print(f"| epoch {epoch} | loss {loss.item():5.2f} | ppl {loss.exp().item():8.2f}")
