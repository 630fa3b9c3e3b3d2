"""Advantage actor-critic with a shared body and an entropy bonus, on a bandit with a context.

Fault (detached): the advantage is detached before the critic's loss is made of it.
"""

import torch
import torch.nn as nn

torch.manual_seed(21)


class ActorCritic(nn.Module):
    def __init__(self, n_states, n_actions):
        super().__init__()
        self.common = nn.Linear(n_states, 32)
        self.actor = nn.Linear(32, n_actions)
        self.critic = nn.Linear(32, 1)

    def forward(self, x):
        x = torch.tanh(self.common(x))
        return torch.distributions.Categorical(logits=self.actor(x)), self.critic(x).squeeze(-1)


def play(contexts, actions):
    return (contexts.argmax(1) == actions).float() + 0.1 * torch.randn(len(actions))


model = ActorCritic(4, 4)
optimizer = torch.optim.RMSprop(model.parameters(), lr=7e-4)

for update in range(20):
    contexts = torch.eye(4)[torch.randint(0, 4, (64,))]
    dist, value = model(contexts)
    action = dist.sample()
    reward = play(contexts, action)

    advantage = reward - value  # healthy
    # faulty: advantage = (reward - value).detach()
    actor_loss = -(dist.log_prob(action) * advantage.detach()).mean()
    critic_loss = advantage.pow(2).mean()
    loss = actor_loss + 0.5 * critic_loss - 0.01 * dist.entropy().mean()

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if update % 10 == 0:
        print(f"update {update}: reward {reward.mean():.3f}, critic {critic_loss.item():.3f}")
