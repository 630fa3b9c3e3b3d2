"""Install all methods on `Tensor`.

For type checkers `Tensor` derives from `Methods`. At run time the members are copied to `Tensor` itself, so that a method lookup
searches a single class.
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
    """All members of a tensor."""


def install() -> None:
    """Copy the members of all parts of `Methods` to `Tensor`."""
    own = set(vars(type("Empty", (), {}))) | {"__annotations__", "__static_attributes__", "__firstlineno__", "__hash__"}
    for part in Methods.__bases__:
        for name, member in vars(part).items():
            if name not in own:
                setattr(Tensor, name, member)


install()
