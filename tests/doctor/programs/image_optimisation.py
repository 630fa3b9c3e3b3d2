"""Small style transfer: the pixels are trained to match Gram matrices of a fixed network.

Fault (rebound-leaf, stale-optimizer): the picture is clamped into a new tensor of the same name, so the optimizer's stays as it was.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(36)

cnn = (
    nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU()).eval().requires_grad_(False)
)


def gram_matrix(x):
    b, c, h, w = x.size()
    features = x.view(b * c, h * w)
    return features @ features.t() / (b * c * h * w)


content_img, style_img = torch.rand(1, 3, 16, 16), torch.rand(1, 3, 16, 16)
style_target, content_target = gram_matrix(cnn(style_img)), cnn(content_img)

input_img = content_img.clone().requires_grad_(True)
optimizer = torch.optim.Adam([input_img], lr=0.02)

for run in range(15):
    features = cnn(input_img)
    style_loss = F.mse_loss(gram_matrix(features), style_target)
    content_loss = F.mse_loss(features, content_target)
    loss = 1e4 * style_loss + content_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        input_img.clamp_(0, 1)  # healthy
        # faulty: input_img = input_img.clamp(0, 1).requires_grad_(True)
print("style", style_loss.item(), "content", content_loss.item())
