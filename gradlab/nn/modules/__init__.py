"""The layers, one module for each family. Names in `__all__` of a family are names of `gradlab.nn`."""

from gradlab.nn.modules import (
    activation,
    attention,
    container,
    conv,
    distance,
    dropout,
    flatten,
    linear,
    loss,
    module,
    normalization,
    padding,
    parameter_containers,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
)
from gradlab.nn.modules.activation import *
from gradlab.nn.modules.attention import *
from gradlab.nn.modules.container import *
from gradlab.nn.modules.conv import *
from gradlab.nn.modules.distance import *
from gradlab.nn.modules.dropout import *
from gradlab.nn.modules.flatten import *
from gradlab.nn.modules.linear import *
from gradlab.nn.modules.loss import *
from gradlab.nn.modules.module import *
from gradlab.nn.modules.normalization import *
from gradlab.nn.modules.padding import *
from gradlab.nn.modules.parameter_containers import *
from gradlab.nn.modules.pooling import *
from gradlab.nn.modules.rnn import *
from gradlab.nn.modules.sparse import *
from gradlab.nn.modules.transformer import *
from gradlab.nn.modules.upsampling import *

__all__ = (
    activation.__all__
    + attention.__all__
    + container.__all__
    + conv.__all__
    + distance.__all__
    + dropout.__all__
    + flatten.__all__
    + linear.__all__
    + loss.__all__
    + module.__all__
    + normalization.__all__
    + padding.__all__
    + parameter_containers.__all__
    + pooling.__all__
    + rnn.__all__
    + sparse.__all__
    + transformer.__all__
    + upsampling.__all__
)
