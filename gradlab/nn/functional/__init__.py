"""Activations, layers and losses as functions of tensors, as `torch.nn.functional` spells them."""

from gradlab.core.errors import names_of as _names_of
from gradlab.nn.functional.activations import *
from gradlab.nn.functional.attention import *
from gradlab.nn.functional.class_losses import *
from gradlab.nn.functional.convolution import *
from gradlab.nn.functional.distances import *
from gradlab.nn.functional.layers import *
from gradlab.nn.functional.losses import *
from gradlab.nn.functional.margins import *
from gradlab.nn.functional.normalization import *
from gradlab.nn.functional.padding import *
from gradlab.nn.functional.pooling import *
from gradlab.nn.functional.resampling import *
from gradlab.nn.functional.sampling import *

__getattr__ = _names_of("gradlab.nn.functional")
