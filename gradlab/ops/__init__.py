"""Functions of tensors with PyTorch's names and signatures. Each normalises its arguments and calls primitives.

`gradlab` exports every name in the `__all__` of these modules. The first parameter is the tensor, so the same functions serve as
methods of `Tensor` (see `gradlab.methods`).
"""

from gradlab.ops.arithmetic import *
from gradlab.ops.at_least import *
from gradlab.ops.broadcasting import *
from gradlab.ops.clamping import *
from gradlab.ops.comparison import *
from gradlab.ops.contraction import *
from gradlab.ops.copies import *
from gradlab.ops.counting import *
from gradlab.ops.creation import *
from gradlab.ops.cumulative import *
from gradlab.ops.declared import *
from gradlab.ops.diagonals import *
from gradlab.ops.distributions import *
from gradlab.ops.dropping import *
from gradlab.ops.elementary import *
from gradlab.ops.even_splits import *
from gradlab.ops.evenly_spaced import *
from gradlab.ops.extremes import *
from gradlab.ops.from_data import *
from gradlab.ops.gamma import *
from gradlab.ops.gather_scatter import *
from gradlab.ops.generators import *
from gradlab.ops.integers import *
from gradlab.ops.interpolation import *
from gradlab.ops.joins import *
from gradlab.ops.legacy_tensors import *
from gradlab.ops.linear_indices import *
from gradlab.ops.masks import *
from gradlab.ops.multiply_add import *
from gradlab.ops.norms import *
from gradlab.ops.permutation import *
from gradlab.ops.powers import *
from gradlab.ops.products import *
from gradlab.ops.quantiles import *
from gradlab.ops.random_sampling import *
from gradlab.ops.rearrangement import *
from gradlab.ops.reductions import *
from gradlab.ops.shapes import *
from gradlab.ops.slices import *
from gradlab.ops.softmax import *
from gradlab.ops.sorting import *
from gradlab.ops.splits import *
from gradlab.ops.spreads import *
from gradlab.ops.types import *
