"""`torch.optim`: optimizers, and `lr_scheduler`."""

from gradlab.core.errors import names_of as _names_of
from gradlab.optim import lr_scheduler
from gradlab.optim.adaptive import Adadelta, Adagrad, RMSprop
from gradlab.optim.lbfgs import LBFGS
from gradlab.optim.moments import Adam, Adamax, AdamW, NAdam
from gradlab.optim.optimizer import Optimizer
from gradlab.optim.sgd import SGD

__all__ = ["LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RMSprop", "lr_scheduler"]

__getattr__ = _names_of("gradlab.optim")
