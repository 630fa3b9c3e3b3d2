"""`gradlab.nn.utils`: gradient clipping, parameters as one vector, and padding of sequences."""

from gradlab.core.errors import module_getattr as _module_getattr
from gradlab.nn.utils import rnn
from gradlab.nn.utils.clip_grad import *
from gradlab.nn.utils.convert_parameters import *

__getattr__ = _module_getattr("gradlab.nn.utils")
