"""Six PyTorch models, each a function that returns the model and the arguments of one forward pass.

They differ in the structure that a picture of a run shows: a chain, residual blocks, a recurrent layer, twelve equal blocks,
skip connections, and a branch that depends on data. `build` makes one from a seed, in eval mode. One forward takes about 5 to
50 ms on two cores.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

ModelAndArguments = tuple[nn.Module, tuple[Tensor, ...]]


class BasicBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet18(nn.Module):
    """The modules of torchvision's resnet18, with the same names."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(BasicBlock(64, 64), BasicBlock(64, 64))
        self.layer2 = nn.Sequential(BasicBlock(64, 128, 2), BasicBlock(128, 128))
        self.layer3 = nn.Sequential(BasicBlock(128, 256, 2), BasicBlock(256, 256))
        self.layer4 = nn.Sequential(BasicBlock(256, 512, 2), BasicBlock(512, 512))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class LSTMClassifier(nn.Module):
    def __init__(self, words: int = 5000, width: int = 128, hidden: int = 128, classes: int = 5) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, hidden, num_layers=2, bidirectional=True, batch_first=True, dropout=0.2)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        _, (hidden, _) = self.lstm(self.embedding(tokens))
        return self.head(torch.cat([hidden[-2], hidden[-1]], dim=1))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        out = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(out.transpose(1, 2).reshape(batch, length, width))


class MLP(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc = nn.Linear(width, 4 * width)
        self.act = nn.GELU()
        self.proj = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.proj(self.act(self.fc(x))))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ln2 = nn.LayerNorm(width)
        self.mlp = MLP(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, words: int = 1000, width: int = 256, heads: int = 8, blocks: int = 12, length: int = 128) -> None:
        super().__init__()
        self.tokens = nn.Embedding(words, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.ln = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))


class TwoConvolutions(nn.Sequential):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU()
        )


class UNet(nn.Module):
    """Three levels down and up; each level up is joined with the level down of its size."""

    def __init__(self, width: int = 16, classes: int = 2) -> None:
        super().__init__()
        self.down1 = TwoConvolutions(3, width)
        self.down2 = TwoConvolutions(width, 2 * width)
        self.down3 = TwoConvolutions(2 * width, 4 * width)
        self.pool = nn.MaxPool2d(2)
        self.bottom = TwoConvolutions(4 * width, 8 * width)
        self.up3 = nn.ConvTranspose2d(8 * width, 4 * width, 2, 2)
        self.join3 = TwoConvolutions(8 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2)
        self.join2 = TwoConvolutions(4 * width, 2 * width)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.join1 = TwoConvolutions(2 * width, width)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        d1 = self.down1(x)
        d2 = self.down2(self.pool(d1))
        d3 = self.down3(self.pool(d2))
        y = self.bottom(self.pool(d3))
        y = self.join3(torch.cat([d3, self.up3(y)], dim=1))
        y = self.join2(torch.cat([d2, self.up2(y)], dim=1))
        y = self.join1(torch.cat([d1, self.up1(y)], dim=1))
        return self.head(y)


class Branch(nn.Module):
    """One of two sub-modules runs, by the sign of a mean."""

    def __init__(self, width: int = 1024) -> None:
        super().__init__()
        self.stem = nn.Linear(width, width)
        self.positive = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.negative = nn.Linear(width, width)
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.stem(x))
        if h.mean() > 0:  # noqa: SIM108
            h = self.positive(h)
        else:
            h = self.negative(h)
        return self.head(h)


def random_values(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def random_tokens(words: int, *shape: int) -> Tensor:
    return torch.randint(words, shape, generator=torch.Generator().manual_seed(1))


def build(name: str) -> ModelAndArguments:
    """Build a model of `MODELS` from a seed, in eval mode. The global random state does not change."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model, args = MODELS[name]()
    return model.eval(), args


def mlp() -> ModelAndArguments:
    layers = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    return layers, (random_values(2048, 784),)


def resnet18() -> ModelAndArguments:
    return ResNet18(), (random_values(1, 3, 224, 224),)


def lstm_classifier() -> ModelAndArguments:
    return LSTMClassifier(), (random_tokens(5000, 8, 64),)


def gpt() -> ModelAndArguments:
    return GPT(), (random_tokens(1000, 2, 128),)


def unet() -> ModelAndArguments:
    return UNet(), (random_values(1, 3, 128, 128),)


def branch() -> ModelAndArguments:
    return Branch(), (random_values(256, 1024) + 0.5,)


MODELS = {make.__name__: make for make in (mlp, resnet18, lstm_classifier, gpt, unet, branch)}
