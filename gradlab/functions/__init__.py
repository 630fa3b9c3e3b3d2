"""Functions of tensors, spelled as torch spells them. Each normalises its arguments and hands over to primitives.

What a module lists in `__all__` is a name of `gradlab` itself. The first parameter is the tensor, so the same functions are the
methods of `Tensor` (see `gradlab.methods`).
"""
from gradlab.functions.arithmetic import *
from gradlab.functions.comparison import *
from gradlab.functions.products import *
from gradlab.functions.reductions import *
from gradlab.functions.shapes import *
