"""Making tensors: from data, filled, counted. (Random ones are in `gradlab.random`.)"""

from gradlab.creation.data import *
from gradlab.creation.filled import *
from gradlab.creation.legacy import *
