"""Several losses and several optimizers, where a left-over gradient is cleared or intended."""

from __future__ import annotations

from planting import Table

ROWS = Table()

ADVERSARIES = """
    G = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 2))
    D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    g_opt, d_opt = optim.Adam(G.parameters(), lr=1e-3), optim.Adam(D.parameters(), lr=1e-3)
    bce = nn.BCEWithLogitsLoss()
    ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
    # %%
    for step in range(4):
        fake = G(torch.randn(32, 4))
"""
ROWS.healthy(
    "a GAN that clears what the generator's loss leaves in the discriminator",
    ADVERSARIES
    + """
        g_opt.zero_grad()
        g_loss = bce(D(fake), ones)
        g_loss.backward()
        g_opt.step()
        d_opt.zero_grad()
        d_loss = bce(D(torch.randn(32, 2) + 3), ones) + bce(D(fake.detach()), zeros)
        d_loss.backward()
        d_opt.step()
    """,
    learns="learning(D.parameters())",
)
ROWS.healthy(
    "a GAN that clears all gradients after each step",
    ADVERSARIES
    + """
        g_loss = bce(D(fake), ones)
        g_loss.backward()
        g_opt.step()
        G.zero_grad()
        D.zero_grad()
        real_loss = bce(D(torch.randn(32, 2) + 3), ones)
        real_loss.backward()
        fake_loss = bce(D(fake.detach()), zeros)
        fake_loss.backward()
        d_opt.step()
        G.zero_grad()
        D.zero_grad()
    """,
    learns="G[0].weight.norm() > 0",
)
ROWS.healthy(
    "one loss and an optimizer for each half of the model",
    """
    encoder, decoder = nn.Linear(6, 3), nn.Linear(3, 6)
    enc_opt, dec_opt = optim.SGD(encoder.parameters(), lr=0.05), optim.SGD(decoder.parameters(), lr=0.05)
    X = torch.randn(32, 6)
    # %%
    for step in range(4):
        enc_opt.zero_grad()
        dec_opt.zero_grad()
        loss = F.mse_loss(decoder(torch.tanh(encoder(X))), X)
        loss.backward()
        enc_opt.step()
        dec_opt.step()
    """,
    learns="learning(encoder.parameters())",
)
ROWS.healthy(
    "tasks whose heads step at once and whose encoder steps on their sum",
    """
    encoder, first, second = nn.Linear(6, 4), nn.Linear(4, 1), nn.Linear(4, 1)
    opts = [optim.SGD(part.parameters(), lr=0.05) for part in (encoder, first, second)]
    X = torch.randn(32, 6)
    y, z = X.sum(1, keepdim=True), X.pow(2).sum(1, keepdim=True)
    # %%
    for step in range(4):
        for opt in opts:
            opt.zero_grad()
        one = F.mse_loss(first(torch.tanh(encoder(X))), y)
        one.backward()
        opts[1].step()
        two = F.mse_loss(second(torch.tanh(encoder(X))), z)
        two.backward()
        opts[2].step()
        opts[0].step()
    """,
    learns="learning(encoder.parameters())",
)
ROWS.healthy(
    "an actor and a critic with an optimizer each",
    """
    actor = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1), nn.Tanh())
    critic = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    a_opt, c_opt = optim.Adam(actor.parameters(), lr=1e-3), optim.Adam(critic.parameters(), lr=1e-3)
    states, actions = torch.randn(64, 3), torch.rand(64, 1) * 2 - 1
    rewards = states.sum(1, keepdim=True) * actions
    # %%
    for step in range(4):
        critic_loss = F.mse_loss(critic(torch.cat([states, actions], 1)), rewards)
        c_opt.zero_grad()
        critic_loss.backward()
        c_opt.step()
        actor_loss = -critic(torch.cat([states, actor(states)], 1)).mean()
        a_opt.zero_grad()
        actor_loss.backward()
        a_opt.step()
    """,
    learns="learning(actor.parameters())",
)
