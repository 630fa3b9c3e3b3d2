"""Activations, layers and losses as functions of tensors, with the names of `torch.nn.functional`."""

from gradlab.core.errors import module_getattr as _module_getattr
from gradlab.nn.functional.activations import *
from gradlab.nn.functional.attention import *
from gradlab.nn.functional.average_pooling import *
from gradlab.nn.functional.binary_losses import *
from gradlab.nn.functional.class_losses import *
from gradlab.nn.functional.convolution import *
from gradlab.nn.functional.distances import *
from gradlab.nn.functional.dropouts import *
from gradlab.nn.functional.embeddings import *
from gradlab.nn.functional.layers import *
from gradlab.nn.functional.likelihoods import *
from gradlab.nn.functional.losses import *
from gradlab.nn.functional.margins import *
from gradlab.nn.functional.max_pooling import *
from gradlab.nn.functional.normalization import *
from gradlab.nn.functional.padding import *
from gradlab.nn.functional.resampling import *
from gradlab.nn.functional.sampling import *
from gradlab.nn.functional.shuffles import *
from gradlab.nn.functional.smooth_activations import *
from gradlab.nn.functional.softmaxes import *

__getattr__ = _module_getattr("gradlab.nn.functional")
