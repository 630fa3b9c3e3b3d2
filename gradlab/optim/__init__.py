"""`torch.optim`: optimizers, and `lr_scheduler`."""

from gradlab.core.errors import module_getattr as _module_getattr
from gradlab.optim import lr_scheduler
from gradlab.optim.adaptive import Adadelta, Adagrad, RMSprop
from gradlab.optim.lbfgs import LBFGS
from gradlab.optim.moments import Adam, Adamax, AdamW, NAdam
from gradlab.optim.optimizer import Optimizer
from gradlab.optim.sgd import SGD

__all__ = ["LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RMSprop", "lr_scheduler"]

__getattr__ = _module_getattr("gradlab.optim")
