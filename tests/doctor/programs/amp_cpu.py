"""Mixed precision on the CPU: autocast to bfloat16, with a GradScaler that is switched off.

Fault (inf-born, nan-born, underflow): the loss takes logarithms of half-precision probabilities, and its 1e-8 is 0 there.
"""

import torch
import torch.nn as nn

torch.manual_seed(24)

use_amp = True
device = "cuda" if torch.cuda.is_available() else "cpu"

net = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 4)).to(device)
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler(device, enabled=use_amp and device == "cuda")


def loss_fn(logits, target):
    return nn.functional.cross_entropy(logits.float(), target)  # healthy
    # faulty: probs = torch.softmax(30 * logits.half(), dim=-1)
    # faulty: return -torch.log(probs + 1e-8)[torch.arange(len(target)), target].mean()


for epoch in range(12):
    data = torch.randn(32, 16, device=device)
    target = data[:, :4].argmax(1)
    with torch.autocast(device_type=device, dtype=torch.bfloat16, enabled=use_amp):
        output = net(data)
        loss = loss_fn(output, target)
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)
    scaler.step(opt)
    scaler.update()
    opt.zero_grad()
    print(epoch, float(loss.detach()))
