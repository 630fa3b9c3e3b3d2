"""A denoising autoencoder.

Fault (stale-optimizer): the optimizer was given the encoder alone.
"""

import torch
import torch.nn as nn
import torch.optim as optim

torch.manual_seed(2)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(25, 16), nn.ReLU(), nn.Linear(16, 5))
        self.decoder = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 25), nn.Sigmoid())

    def forward(self, x):
        return self.decoder(self.encoder(x))


patterns = (torch.rand(5, 25) > 0.5).float()
model = Autoencoder()
loss_function = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-8)  # healthy
# faulty: optimizer = optim.Adam(model.encoder.parameters(), lr=1e-2, weight_decay=1e-8)

losses = []
for epoch in range(40):
    clean = patterns[torch.randint(0, 5, (32,))]
    noisy = clean + 0.2 * torch.randn_like(clean)
    reconstructed = model(noisy)
    loss = loss_function(reconstructed, clean)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # cause
    losses.append(loss.item())
print(losses[0], "->", losses[-1])
