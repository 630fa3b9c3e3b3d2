"""REINFORCE on a walk along a line: discounted returns, normalised, weigh the log probabilities.

Fault (re-wrapped): the log probabilities are made into a new tensor.
"""

import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions import Categorical

torch.manual_seed(543)
GAMMA = 0.99


class LineWorld:
    """The agent starts at 0 and is rewarded at +3; the episode ends there, at -3, or after 20 steps."""

    def reset(self):
        self.at, self.time = 0, 0
        return self.state()

    def state(self):
        return torch.tensor([self.at / 3.0, self.time / 20.0])

    def step(self, action):
        self.at += 1 if action == 1 else -1
        self.time += 1
        reward = 1.0 if self.at == 3 else -0.05
        return self.state(), reward, abs(self.at) == 3 or self.time == 20


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(2, 24)
        self.affine2 = nn.Linear(24, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        return torch.softmax(self.affine2(torch.relu(self.affine1(x))), dim=-1)


policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
env = LineWorld()


def select_action(state):
    m = Categorical(policy(state.unsqueeze(0)))
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()


def finish_episode():
    R = 0
    returns = []
    for r in policy.rewards[::-1]:
        R = r + GAMMA * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    log_probs = torch.cat(policy.saved_log_probs)  # healthy
    # faulty: log_probs = torch.tensor(policy.saved_log_probs, requires_grad=True)
    policy_loss = -(log_probs * returns).sum()
    optimizer.zero_grad()
    policy_loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]


for i_episode in range(10):
    state, done, ep_reward = env.reset(), False, 0
    while not done:
        action = select_action(state)
        state, reward, done = env.step(action)
        policy.rewards.append(reward)
        ep_reward += reward
    finish_episode()
    print(f"Episode {i_episode}\treward {ep_reward:.2f}")
