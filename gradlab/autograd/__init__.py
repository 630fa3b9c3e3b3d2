"""Gradients, as `torch.autograd` spells them."""
from gradlab.autograd import graph
from gradlab.autograd.functions import backward, grad, jvp_of_graph
from gradlab.autograd.variable import Variable
from gradlab.core.errors import names_of as _names_of
from gradlab.core.modes import enable_grad, no_grad, set_grad_enabled

__all__ = ["Variable", "backward", "enable_grad", "grad", "graph", "jvp_of_graph", "no_grad", "set_grad_enabled"]

__getattr__ = _names_of("gradlab.autograd")
