"""Images that can be learned: each class has a different spot, at a varying position, with noise."""

import math
import os

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset

COUNT = int(os.environ.get("MADE_UP_IMAGES", "2048"))


def made_up(count, size, channels, seed):
    """`count` images of 10 classes, as uint8 of shape (count, size, size, channels), and their classes."""
    drawn = np.random.default_rng(seed)
    targets = drawn.integers(0, 10, count)
    angles = 2 * math.pi * targets / 10
    centres = size / 2 + size / 4 * np.stack([np.sin(angles), np.cos(angles)], 1) + drawn.normal(0, size / 28, (count, 2))
    places = np.arange(size)
    rows, columns = (np.exp(-(((places - centres[:, k, None]) / (size / 9)) ** 2)) for k in (0, 1))
    spots = rows[:, :, None, None] * columns[:, None, :, None]
    tints = 1 - 0.7 * ((targets[:, None] + np.arange(channels)) % 3 > 0) * (channels > 1)
    images = 220 * spots * tints[:, None, None, :] + drawn.integers(0, 30, (count, size, size, channels))
    return images.clip(0, 255).astype(np.uint8), targets


class _MadeUp(Dataset):
    size, channels = 28, 1

    def __init__(self, root=None, train=True, transform=None, target_transform=None, download=False):
        count = COUNT if train else max(COUNT // 4, 64)
        self.images, self.classes = made_up(count, self.size, self.channels, seed=int(train))
        self.transform, self.target_transform = transform, target_transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = Image.fromarray(self.images[index].squeeze())
        target = int(self.classes[index])
        return (
            image if self.transform is None else self.transform(image),
            target if self.target_transform is None else self.target_transform(target),
        )


class MNIST(_MadeUp):
    @property
    def data(self):
        return torch.from_numpy(self.images).squeeze(-1)

    @property
    def targets(self):
        return torch.from_numpy(self.classes)


class FashionMNIST(MNIST):
    pass


class CIFAR10(_MadeUp):
    size, channels = 32, 3

    @property
    def data(self):
        return self.images

    @property
    def targets(self):
        return self.classes.tolist()
