"""Segmentation by a small U-Net with a Dice loss.

Fault (non-differentiable): the Dice loss is computed from the mask of the most likely class.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)


def double_conv(in_channels, out_channels):
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(out_channels, out_channels, 3, padding=1),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, n_class):
        super().__init__()
        self.down1, self.down2 = double_conv(1, 8), double_conv(8, 16)
        self.bottom = double_conv(16, 16)
        self.up2, self.up1 = double_conv(32, 8), double_conv(16, 8)
        self.last = nn.Conv2d(8, n_class, 1)

    def forward(self, x):
        c1 = self.down1(x)
        c2 = self.down2(F.max_pool2d(c1, 2))
        x = self.bottom(F.max_pool2d(c2, 2))
        x = self.up2(torch.cat([F.interpolate(x, scale_factor=2), c2], dim=1))
        x = self.up1(torch.cat([F.interpolate(x, scale_factor=2), c1], dim=1))
        return self.last(x)


def dice_loss(prediction, target, smooth=1.0):
    intersection = (prediction * target).sum(dim=(1, 2))
    return (1 - (2.0 * intersection + smooth) / (prediction.sum(dim=(1, 2)) + target.sum(dim=(1, 2)) + smooth)).mean()


def discs(n, size=16):
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    cx, cy, r = torch.randint(4, 12, (n, 1, 1)), torch.randint(4, 12, (n, 1, 1)), torch.randint(2, 5, (n, 1, 1))
    mask = (((xx - cx) ** 2 + (yy - cy) ** 2) < r**2).float()
    return mask[:, None] + 0.2 * torch.randn(n, 1, size, size), mask


def train(epochs=6):
    net = UNet(2)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(epochs):
        inputs, masks = discs(8)
        logits = net(inputs)
        predicted = logits.softmax(dim=1)[:, 1]  # healthy
        # faulty: predicted = logits.argmax(dim=1).float()
        loss = dice_loss(predicted, masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("epoch", epoch, "dice", 1 - loss.item())
    return net


net = train()
