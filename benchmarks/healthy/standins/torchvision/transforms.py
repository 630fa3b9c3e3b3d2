"""The transforms of torchvision that the programs use, for PIL images."""

import random

import numpy as np
import torch
from PIL import Image


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x


class ToTensor:
    def __call__(self, image):
        values = torch.from_numpy(np.array(image, dtype=np.float32) / 255)
        return values[None] if values.ndim == 2 else values.permute(2, 0, 1)


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = (torch.as_tensor(np.array(x), dtype=torch.float32).reshape(-1, 1, 1) for x in (mean, std))

    def __call__(self, x):
        return (x - self.mean) / self.std


class Resize:
    def __init__(self, size):
        self.size = (size, size) if isinstance(size, int) else tuple(size)

    def __call__(self, image):
        return image.resize(self.size[::-1])


class Lambda:
    def __init__(self, function):
        self.function = function

    def __call__(self, x):
        return self.function(x)


class RandomHorizontalFlip:
    def __call__(self, image):
        return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if random.random() < 0.5 else image


class RandomResizedCrop:
    def __init__(self, size, scale=(0.08, 1.0), ratio=(0.75, 4 / 3)):
        self.size, self.scale = size if isinstance(size, tuple) else (size, size), scale

    def __call__(self, image):
        side = max(1, round(min(image.size) * random.uniform(*self.scale) ** 0.5))
        left, top = (random.randint(0, length - side) for length in image.size)
        return image.resize(self.size, box=(left, top, left + side, top + side))
