"""A character LSTM trained by truncated backpropagation through time.

Fault (freed): the hidden state is carried to the next window with its history.
"""

import torch
import torch.nn as nn

torch.manual_seed(3)

corpus = "hello world, this is a tiny corpus for a tiny model. " * 20
vocab = sorted(set(corpus))
char2idx = {c: i for i, c in enumerate(vocab)}
encoded = torch.tensor([char2idx[c] for c in corpus])


class CharRNN(nn.Module):
    def __init__(self, vocab_size, embed=16, hidden=32):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed)
        self.lstm = nn.LSTM(embed, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, vocab_size)

    def forward(self, x, state):
        out, state = self.lstm(self.embedding(x), state)
        return self.fc(out), state


seq_len, batch = 20, 4
rows = encoded[: (len(encoded) // batch) * batch].view(batch, -1)
model = CharRNN(len(vocab))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

hidden = (torch.zeros(1, batch, 32), torch.zeros(1, batch, 32))
for i in range(0, 200, seq_len):
    inputs, targets = rows[:, i : i + seq_len], rows[:, i + 1 : i + 1 + seq_len]
    hidden = tuple(h.detach() for h in hidden)  # healthy
    output, hidden = model(inputs, hidden)  # cause
    loss = criterion(output.reshape(-1, len(vocab)), targets.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    print(f"{i:4d} {loss.item():.3f}")
