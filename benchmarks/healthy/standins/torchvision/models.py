"""A residual network of four blocks with the names of torchvision's ResNet."""

from itertools import pairwise

from torch import nn


class _Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.downsample = None
        if stride != 1 or before != after:
            self.downsample = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        beside = x if self.downsample is None else self.downsample(x)
        return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))) + beside)


class _ResNet(nn.Module):
    def __init__(self, widths=(64, 32, 32, 64, 64)):
        super().__init__()
        self.conv1 = nn.Conv2d(3, widths[0], 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        blocks = [_Block(before, after, 1 + k % 2) for k, (before, after) in enumerate(pairwise(widths))]
        self.layers = nn.Sequential(*blocks)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(widths[-1], 1000)

    def forward(self, x):
        return self.fc(self.avgpool(self.layers(self.maxpool(self.relu(self.bn1(self.conv1(x)))))).flatten(1))


def resnet18(weights=None):
    return _ResNet()
