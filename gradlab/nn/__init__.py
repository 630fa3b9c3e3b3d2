"""`gradlab.nn`: layers with parameters, and `gradlab.nn.functional`, the functions that they call."""

from gradlab.core.errors import module_getattr as _module_getattr
from gradlab.nn import functional, init, modules, parameter, utils
from gradlab.nn.modules import *
from gradlab.nn.parameter import *

__getattr__ = _module_getattr("gradlab.nn")
