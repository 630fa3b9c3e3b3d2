"""Deep Q-learning with a replay memory and a target network.

Fault (broadcast): the Q values of the actions keep their axis of length 1, and the targets do not.
"""

import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.optim as optim

random.seed(5)
torch.manual_seed(5)

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward", "done"))


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 32)
        self.layer2 = nn.Linear(32, 32)
        self.layer3 = nn.Linear(32, n_actions)

    def forward(self, x):
        return self.layer3(torch.relu(self.layer2(torch.relu(self.layer1(x)))))


BATCH_SIZE, GAMMA, TAU, EPS = 32, 0.95, 0.01, 0.3
policy_net, target_net = DQN(2, 2), DQN(2, 2)
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.AdamW(policy_net.parameters(), lr=1e-3, amsgrad=True)
memory = ReplayMemory(1000)


def step_env(state, action):
    position = state[0].item() + (0.1 if action == 1 else -0.1)
    reward = 1.0 - abs(position - 0.5)
    return torch.tensor([position, state[1].item() + 0.05]), reward


def select_action(state):
    if random.random() > EPS:
        with torch.no_grad():
            return policy_net(state).argmax().item()
    return random.randrange(2)


def optimize_model():
    if len(memory) < BATCH_SIZE:
        return None
    batch = Transition(*zip(*memory.sample(BATCH_SIZE), strict=True))
    state_batch, next_batch = torch.stack(batch.state), torch.stack(batch.next_state)
    action_batch = torch.tensor(batch.action).unsqueeze(1)
    reward_batch, done_batch = torch.tensor(batch.reward), torch.tensor(batch.done)

    state_action_values = policy_net(state_batch).gather(1, action_batch).squeeze(1)  # healthy
    # faulty: state_action_values = policy_net(state_batch).gather(1, action_batch)
    with torch.no_grad():
        next_state_values = target_net(next_batch).max(1).values
    expected = reward_batch + GAMMA * next_state_values * (1 - done_batch)
    loss = ((state_action_values - expected) ** 2).mean()  # cause

    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    return loss.item()


for episode in range(5):
    state, losses = torch.zeros(2), []
    for t in range(15):
        action = select_action(state)
        next_state, reward = step_env(state, action)
        memory.push(state, action, next_state, reward, float(t == 14))
        state = next_state
        loss = optimize_model()
        if loss is not None:
            losses.append(loss)
        for target, source in zip(target_net.parameters(), policy_net.parameters(), strict=True):
            target.data.copy_(TAU * source.data + (1 - TAU) * target.data)
    print(f"episode {episode}: {sum(losses) / max(len(losses), 1):.4f}")
