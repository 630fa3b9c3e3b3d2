"""A stand-in for torchvision: data sets of made-up images, and the few transforms and tools that the programs use.

The real one fetches its data, and its wheel must fit PyTorch's to the build.
"""

from torchvision import datasets, models, transforms, utils
