"""No object in the user's namespace makes a cell fail."""

from __future__ import annotations

import textwrap

import pytest

import gradlab as gl
from gradlab.explore.libraries import library_of
from gradlab.explore.names import names_in

HOSTILE = {
    "a metaclass that raises": """
        class Kind(type):
            def __getattribute__(cls, name): raise ZeroDivisionError(name)
        class Hostile(metaclass=Kind): pass
        """,
    "an object of a class whose metaclass raises": """
        class Kind(type):
            def __getattribute__(cls, name): raise ZeroDivisionError(name)
        class Hostile(metaclass=Kind): pass
        hostile = object.__new__(Hostile)
        """,
    "attributes that raise": """
        class Hostile:
            def __getattribute__(self, name): raise ZeroDivisionError(name)
        hostile = Hostile()
        """,
    "missing attributes that raise": """
        class Hostile:
            def __getattr__(self, name): raise ZeroDivisionError(name)
        hostile = Hostile()
        """,
    "a __class__ that raises": """
        class Hostile:
            @property
            def __class__(self): raise ZeroDivisionError
        hostile = Hostile()
        """,
    "a __class__ that lies": """
        class Hostile: __class__ = gl.Tensor
        hostile = Hostile()
        """,
    "methods that raise": """
        class Hostile:
            def fail(self, *given): raise ZeroDivisionError
            __eq__ = __hash__ = __repr__ = __bool__ = __len__ = __iter__ = __getitem__ = __call__ = fail
        hostile = Hostile()
        """,
    "a module that raises": """
        import types
        class Hostile(types.ModuleType):
            def __getattribute__(self, name): raise ZeroDivisionError(name)
        hostile = Hostile("hostile")
        """,
    "parameters that raise": """
        class Hostile:
            def named_parameters(self): yield 1
            def parameters(self): raise ZeroDivisionError
            def requires_grad_(self): raise ZeroDivisionError
        hostile = Hostile()
        """,
    "containers that raise": """
        class Hostile(list):
            def __iter__(self): raise ZeroDivisionError
            __len__ = __getitem__ = __iter__
        class Key(str):
            def __repr__(self): raise ZeroDivisionError
        hostile, held = Hostile([1]), {Key("a"): x, (1,): x}
        """,
    "names that are none": "globals()[1] = 2; globals()[('a',)] = x",
}
CELLS = [
    "%%grad\n(x * 2).sum()",
    "%%grad x -o report\nloss = (x * 2).sum()\nloss.backward()",
    "%grad (x * 2).sum()",
    "%%grad\nx.detach().sum()",
    "%jacobian x*2 x",
    "gl.explain((x * 2).sum())",
    "gl.graph((x * 2).sum())",
    "gl.jacobian(x * 2, x)",
    "gl.jacobian(lambda v: v * v, x)[0]",
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_cell_breaks(shell, hostile):
    shell.ok("import gradlab as gl\nx = gl.tensor([1., 2., 3.], requires_grad=True)")
    shell.ok(textwrap.dedent(HOSTILE[hostile]))
    for cell in CELLS:
        ran = shell.ok(cell)
        assert "ZeroDivisionError" not in ran.stdout + ran.stderr, cell
    broken = shell.run("%%grad\n(x * 2).backward()")
    assert "`(x * 2).backward(gl.ones_like((x * 2)))`" in " ".join(str(broken.error).split())
    failed = shell.run("%%grad\nw = gl.ones(3)\nloss = w.sum()\nloss.backward()")
    assert "call w.requires_grad_() before line 3" in str(failed.error)


def test_kinds_of_objects_are_determined_by_their_types():
    class Liar:
        __class__ = gl.Tensor

    assert library_of(Liar()) is None and names_in({"liar": Liar(), "x": (x := gl.ones(1))}) == {"x": x}
    assert library_of(gl.nn.Parameter(x)) is library_of(x) is not None
