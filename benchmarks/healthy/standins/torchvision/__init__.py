"""A stand-in for torchvision: data sets of made-up images, and the transforms and tools that the programs use.

The real package downloads its data, and its wheel must match the build of PyTorch.
"""

from torchvision import datasets, models, transforms, utils
