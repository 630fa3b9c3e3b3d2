"""Residual blocks with batch normalisation on small pictures.

Fault (in-place): the sum with the shortcut is written over the output of the sigmoid, which its derivative needs.
"""

import torch
from torch import nn

torch.manual_seed(1)


class BasicBlock(nn.Module):
    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.gate = nn.Conv2d(planes, planes, 1)
        self.shortcut = nn.Identity()
        if stride != 1 or in_planes != planes:
            self.shortcut = nn.Sequential(nn.Conv2d(in_planes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        out = torch.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out = out * torch.sigmoid(self.gate(out))
        out = torch.sigmoid(out)
        out = out + self.shortcut(x)  # healthy
        # faulty: out += self.shortcut(x)
        return torch.relu(out)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.layer1 = BasicBlock(8, 8)
        self.layer2 = BasicBlock(8, 16, stride=2)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        x = self.layer2(self.layer1(self.stem(x)))
        return self.head(x.mean(dim=(2, 3)))


def main():
    y = torch.randint(0, 4, (64,))
    x = torch.randn(64, 3, 10, 10) + torch.eye(4)[y][:, :3, None, None]
    net = ResNet()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    for step in range(8):
        idx = torch.randperm(64)[:32]
        loss = nn.functional.cross_entropy(net(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, round(loss.item(), 4))


if __name__ == "__main__":
    main()
