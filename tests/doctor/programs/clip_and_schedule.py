"""A regressor with clipped gradients, warm-up and a cosine schedule.

Fault (step-before-backward): the step is taken right after the gradients were zeroed, before backward.
"""

import math

import torch
import torch.nn as nn

torch.manual_seed(22)

total_steps, warmup = 40, 5
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)


def lr_lambda(step):
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total_steps - warmup)))


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda)

for step in range(total_steps):
    x = 4 * torch.rand(64, 1) - 2
    target = torch.sin(3 * x)
    optimizer.zero_grad()
    # faulty: optimizer.step()
    loss = nn.functional.mse_loss(model(x), target)
    loss.backward()
    grad_norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    optimizer.step()  # healthy
    scheduler.step()
    if step % 10 == 0:
        print(f"step {step:3d} lr {scheduler.get_last_lr()[0]:.2e} |g| {grad_norm:.3f} loss {loss.item():.4f}")
