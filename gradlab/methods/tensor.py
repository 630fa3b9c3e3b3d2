"""All members of `Tensor`, and how it gets them.

`Tensor` derives from `Methods` for type checkers; at run time it takes its members, so that a call looks in one class.
"""

from __future__ import annotations

from gradlab.core.tensor import Tensor
from gradlab.interop import Interop
from gradlab.methods.attributes import Attributes
from gradlab.methods.comparison import Comparison
from gradlab.methods.converting import Converting
from gradlab.methods.creating import Creating
from gradlab.methods.declared import Declared
from gradlab.methods.elementary import Elementary
from gradlab.methods.gradients import Gradients
from gradlab.methods.python import Python
from gradlab.methods.random import Random
from gradlab.methods.removed import Removed


class Methods(
    Comparison,
    Declared,
    Elementary,
    Gradients,
    Attributes,
    Converting,
    Creating,
    Random,
    Removed,
    Interop,
    Python,
):
    """What every tensor can do."""


def install() -> None:
    """Give `Tensor` its members."""
    own = set(vars(type("Empty", (), {}))) | {"__annotations__", "__static_attributes__", "__firstlineno__", "__hash__"}
    for part in Methods.__bases__:
        for name, member in vars(part).items():
            if name not in own:
                setattr(Tensor, name, member)


install()
