"""`gradlab.nn`: layers that hold their parameters, and `gradlab.nn.functional`, the functions that they call."""

from gradlab.core.errors import names_of as _names_of
from gradlab.nn import functional, init, modules, parameter, utils
from gradlab.nn.modules import *
from gradlab.nn.parameter import *

__getattr__ = _names_of("gradlab.nn")
