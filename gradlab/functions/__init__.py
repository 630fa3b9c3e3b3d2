"""Functions of tensors, spelled as torch spells them. Each normalises its arguments and hands over to primitives.

What a module lists in `__all__` is a name of `gradlab` itself. The first parameter is the tensor, so the same functions are the
methods of `Tensor` (see `gradlab.methods`).
"""

from gradlab.functions.arithmetic import *
from gradlab.functions.comparison import *
from gradlab.functions.contraction import *
from gradlab.functions.counting import *
from gradlab.functions.cumulative import *
from gradlab.functions.diagonals import *
from gradlab.functions.dropping import *
from gradlab.functions.elementary import *
from gradlab.functions.gamma import *
from gradlab.functions.joins import *
from gradlab.functions.picking import *
from gradlab.functions.products import *
from gradlab.functions.rearrangement import *
from gradlab.functions.reductions import *
from gradlab.functions.shapes import *
from gradlab.functions.slices import *
from gradlab.functions.sorting import *
from gradlab.functions.splits import *
from gradlab.functions.types import *
