"""`gradlab.nn.utils`: gradients clipped, parameters as one vector, sequences padded."""

from gradlab.core.errors import names_of as _names_of
from gradlab.nn.utils import rnn
from gradlab.nn.utils.clip_grad import *
from gradlab.nn.utils.convert_parameters import *

__getattr__ = _names_of("gradlab.nn.utils")
