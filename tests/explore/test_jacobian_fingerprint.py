"""Fingerprints of functions, which are equal in two processes, and values that cannot be compared."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import operator
import os
import re
import subprocess
import sys
import textwrap
import threading
import types

import numpy as np
import pytest
import scipy.special

import gradlab as gl
from gradlab.explore.jacobian.fingerprint import CannotFingerprintError, part_of, parts_of


def digest(value):
    return part_of(value, "it").digest


def differences(one, other):
    """Return the names of the parts in which two functions differ."""
    one, other = parts_of(one, "f"), parts_of(other, "f")
    found = [what for what in one.keys() | other.keys() if one.get(what) != other.get(what)]
    return sorted(re.sub(r" no\. \d+$", "", what) for what in found)  # Python determines the order of constants


def define(text, name="f", **names):
    space = dict(names)
    exec(textwrap.dedent(text), space)
    return space[name]


# ---------------------------------------------------------------------------------------------------------------- values
VALUES = [
    None,
    True,
    1,
    1.0,
    1 + 0j,
    "1",
    b"1",
    -0.0,
    0.0,
    float("nan"),
    2**70,
    ...,
    (),
    [],
    {},
    set(),
    frozenset(),
    (1,),
    [1],
    {1},
    {1: 1},
    (1, 2),
    (2, 1),
    ((1,), 2),
    (1, (2,)),
    "ab",
    ("a", "b"),
    {"a": 1, "b": 2},
    {"b": 2, "a": 1},
    slice(1),
    range(1),
    np.zeros(2),
    np.zeros(2, np.float32),
    np.zeros((1, 2)),
    np.zeros((2, 1)),
    np.float64(1.0),
    np.int64(1),
    np.zeros(0),
    np.array([1, "a"], object),
    np.dtype("f4"),
    np.array(["2020"], "M8[D]"),
    gl.zeros(2),
    gl.zeros(2).requires_grad_(),
    gl.zeros(2, dtype=gl.float64),
    gl.float32,
    functools.partial(len),
    functools.partial(abs),
    collections.deque([1]),
    len,
    abs,
    np.sin,
    np.cos,
    scipy.special.gamma,
    scipy.special.erf,
    operator.itemgetter(1),
    operator.itemgetter(2),
    int,
    float,
    gl.tanh,
    gl.sin,
    np,
    os,
    gl.nn.Linear,
    [1].append,
    np.random.default_rng(0),
    np.random.default_rng(1),
    np.ma.masked_array([1.0], [True]),
    np.ma.masked_array([1.0], [False]),
]


def test_different_values_have_different_digests():
    """The type matters: 1, 1.0 and True are different constants."""
    digests = [digest(value) for value in VALUES]
    twice = [(VALUES[i], VALUES[k]) for i in range(len(VALUES)) for k in range(i) if digests[i] == digests[k]]
    assert not twice


def test_equal_values_have_equal_digests():
    same = [
        ([1, {"a": np.arange(3.0)}], [1, {"a": np.arange(3.0)}]),
        (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3))),
        (np.arange(8)[::2], np.array([0, 2, 4, 6])),
        (gl.tensor([1.0, 2.0]), gl.tensor([1.0, 2.0])),
        (functools.partial(len, (1,)), functools.partial(len, (1,))),
        (np.random.default_rng(3), np.random.default_rng(3)),
        ([shared := [1], shared], [[1], [1]]),
    ]
    for one, other in same:
        assert digest(one) == digest(other), one


def test_a_memmap_is_compared_by_its_values(tmp_path):
    mapped = np.memmap(tmp_path / "a", np.float64, "w+", shape=3)
    mapped[:] = [1, 2, 3]
    assert digest(mapped) == digest(np.array([1.0, 2.0, 3.0]))


def test_reference_cycles():
    def ring(value):
        one = [value]
        one.append({"back": one})
        return one

    assert digest(ring(1)) == digest(ring(1)) != digest(ring(2))


def test_too_deep_a_structure_is_an_error():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(
        CannotFingerprintError, match=r"it .*a list, which cannot be compared between processes \(it is nested too deeply\)"
    ):
        digest(deep)


class Model:
    def __init__(self, weight):
        self.weight, self.parts = weight, {"scale": 2.0}

    def __call__(self, x):
        return x * self.weight


class Net(gl.nn.Module):
    def __init__(self, seed):
        super().__init__()
        gl.manual_seed(seed)
        self.layer = gl.nn.Linear(3, 3)

    def forward(self, x):
        return gl.tanh(self.layer(x))


@dataclasses.dataclass
class Settings:
    rate: float = 0.1
    names: list = dataclasses.field(default_factory=list)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


Colour = enum.Enum("Colour", "RED GREEN")


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        (Model(np.ones(3)), Model(np.ones(3)), Model(np.zeros(3))),
        (Net(0), Net(0), Net(1)),
        (Net(0), Net(0), Net(0).eval()),
        (Settings(), Settings(), Settings(0.2)),
        (Slotted(1), Slotted(1), Slotted(2)),
        (Colour.RED, Colour.RED, Colour.GREEN),
        (Model(np.ones(3)).__call__, Model(np.ones(3)).__call__, Model(np.zeros(3)).__call__),
        (gl.nn.Sequential(gl.nn.ReLU()), gl.nn.Sequential(gl.nn.ReLU()), gl.nn.Sequential(gl.nn.Tanh())),
    ],
    ids=["object", "model", "mode", "dataclass", "slots", "enum", "method", "layers"],
)
def test_objects_are_compared_by_their_state(one, same, other):
    assert parts_of(one, "f") == parts_of(same, "f")
    assert parts_of(one, "f") != parts_of(other, "f")


def test_the_code_of_a_class_matters():
    text = """
        class Model:
            slope = {slope}
            def __call__(self, x):
                return x {op} 2
    """
    one, same, slope, op = (
        define(text.format(slope=slope, op=op), "Model")() for slope, op in ((1, "*"), (1, "*"), (2, "*"), (1, "+"))
    )
    assert digest(one) == digest(same) and len({digest(one), digest(slope), digest(op)}) == 3


# ------------------------------------------------------------------------------------------------------------- functions
def test_comments_names_and_line_numbers_do_not_matter():
    one = define("def f(x):\n    return x * 2.0")
    other = define("\n\n\ndef f(x):\n    # twice\n    return (x\n        * 2.0)")
    assert differences(one, other) == []


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("def f(x, k=1.0): return x + 2.0", {}, ["f's code"]),
        ("def f(x, k=1.0): return x * 3.0", {}, ["f's constant"]),
        ("def f(x, k=2.0): return x * 2.0", {}, ["the default of f's argument k"]),
        ("def f(x, k=1.0): return x * -2.0", {}, ["f's constant"]),
    ],
)
def test_the_part_of_a_function_that_differs(text, names, expected):
    assert differences(define("def f(x, k=1.0): return x * 2.0"), define(text)) == expected


def test_zero_and_minus_zero_and_one_and_true_are_different_constants():
    functions = [define(f"def f(x): return (x, {constant})") for constant in ("0.0", "-0.0", "0", "False")]
    assert all(differences(one, other) for i, one in enumerate(functions) for other in functions[:i])


def test_closures_globals_attributes_and_inner_functions_matter():
    text = """
        def outer(k):
            def inner(x):
                return sum(value * scale for value in [x, k])
            inner.note = note
            return inner
        f = outer(k)
    """
    base = {"k": np.ones(2), "scale": 2.0, "note": "a"}

    def make(**change):
        return define(text, **(base | change))

    assert differences(make(), make()) == []
    assert differences(make(), make(k=np.zeros(2))) == ["f's closure variable k"]
    assert differences(make(), make(scale=3.0)) == ["the global scale in f"]
    assert differences(make(), make(note="b")) == ["f.note"]
    inner = text.replace("value * scale", "scale - value")
    assert differences(make(), define(inner, **base)) == ["f's code"]


def test_functions_that_a_function_uses_matter():
    text = """
        def h(x): return x * {constant}
        def g(x): return h(x) + 1
        def f(x): return g(x) if x is not None else f(x)
    """
    one, other = (define(text.format(constant=constant)) for constant in (2.0, 3.0))
    assert differences(one, other) == ["h's constant"]
    assert {"f's code", "g's code", "h's code", "the global f in f"} <= parts_of(one, "f").keys()


def test_two_functions_with_one_name_are_distinguished():
    f = define("f = (lambda a, b: lambda x: a(x) + b(x))(lambda x: x * 2, lambda x: x * 3)")
    assert {"f's code", "<lambda>'s code", "<lambda> (2)'s code"} <= parts_of(f, "f").keys()


def test_functions_inside_wrappers_of_the_standard_library_matter():
    def make(constant, wrap):
        return wrap(define(f"def f(x): return x * {constant}"))

    for wrap in (
        functools.cache,
        functools.partial,
        staticmethod,
        lambda f: functools.wraps(f)(lambda x: f(x) + 1),
        lambda f: [f].pop,
    ):
        assert parts_of(make(2.0, wrap), "f") == parts_of(make(2.0, wrap), "f")
        assert parts_of(make(2.0, wrap), "f") != parts_of(make(3.0, wrap), "f")


def test_packages_are_compared_by_version():
    found = parts_of(lambda x: np.sin(x) + scipy.special.erf(x) + gl.tanh(x) + len(os.sep), "f")
    assert found["the version of numpy"].said == np.__version__
    assert found["the version of scipy"].said == scipy.__version__
    assert found["the version of gradlab"].said == gl.__version__
    assert found["the version of Python"].said == ".".join(map(str, sys.version_info[:3]))
    assert not any("of os" in what for what in found)


def test_a_module_of_the_user_is_compared_by_its_source_and_the_values_used(tmp_path):
    def module(source, **names):
        new = types.ModuleType("mine")
        new.__file__ = str(tmp_path / "mine.py")
        (tmp_path / "mine.py").write_text(source)
        exec(compile(source, new.__file__, "exec"), new.__dict__)
        new.__dict__.update(names)
        return new

    def parts(source, **names):
        return parts_of(define("def f(x): return mine.g(x) * mine.scale", mine=module(source, **names)), "f")

    source = "scale = 2\nother = 3\ndef g(x): return x\n"
    assert parts(source) == parts(source) == parts(source, other=4)
    assert parts(source) != parts(source, scale=5)
    assert parts(source) != parts(source + "\n")


def test_a_module_within_a_module_matters(tmp_path):
    def parts(scale):
        outer, inner = types.ModuleType("outer"), types.ModuleType("inner")
        outer.inner, inner.scale = inner, scale
        return parts_of(define("def f(x): return x * outer.inner.scale", outer=outer), "f")

    assert parts(np.ones(2)) == parts(np.ones(2)) != parts(np.zeros(2))


def test_an_undefined_name_is_not_an_error():
    assert parts_of(define("def f(x): return missing(x)"), "f")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda thing: define("def f(x): return thing", thing=thing), "the global thing in f is a "),
        (lambda thing: define("f = (lambda thing: lambda x: thing)(thing)", thing=thing), "f's closure variable thing is a "),
        (lambda thing: define("def f(x, k=None): return k", thing=thing), None),
        (lambda thing: define("def f(x, k=thing): return k", thing=thing), "the default of f's argument k is a "),
        (lambda thing: define("def f(x): return held", held={"a": [thing]}), "the global held in f holds a "),
    ],
)
def test_the_error_names_the_value_that_cannot_be_compared(make, message):
    lock = threading.Lock()
    if message is None:
        assert parts_of(make(lock), "f")
        return
    with pytest.raises(CannotFingerprintError, match=f"^{message}lock, which cannot be compared between processes"):
        parts_of(make(lock), "f")


def test_other_values_that_cannot_be_compared(tmp_path):
    with (tmp_path / "file").open("w") as file:
        for thing in (
            file,
            (i for i in [1]),
            sys._getframe(),
            np.frompyfunc(abs, 1, 1),
            types.ModuleType("made_here"),
            memoryview(b"a"),
        ):
            with pytest.raises(CannotFingerprintError, match="cannot be compared between processes"):
                digest(thing)


@pytest.mark.e2e
def test_digests_are_the_same_in_another_process():
    """The order of sets differs between processes."""
    code = textwrap.dedent("""
        import numpy as np, scipy.special, gradlab as gl
        from gradlab.explore.jacobian.fingerprint import parts_of
        gl.manual_seed(0)
        model, table, chosen = gl.nn.Linear(3, 3), {"b": 1, "a": np.arange(3)}, {"red", "green", "blue"}
        def f(x, k=frozenset({"one", "two", "three"})):
            return gl.tanh(model(x)) * table["a"] + scipy.special.erf(2) + len(chosen) + (x in {"p", "q", "r"})
        print({what: part.digest for what, part in parts_of(f, "f").items()})
    """)
    said = [
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1] and "the global model in f" in said[0]


@pytest.mark.torch
def test_torch(tmp_path):
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self, seed):
            super().__init__()
            torch.manual_seed(seed)
            self.layer = torch.nn.Linear(3, 3)

        def forward(self, x):
            return torch.tanh(self.layer(x))

    def make(seed=0, weight=1.0):
        net, w = Net(seed), torch.full((3,), weight)
        return lambda x: torch.nn.functional.relu(net(x)) * w + torch.einsum("i,i->", x, x)

    assert differences(make(), make()) == []
    assert differences(make(), make(seed=1)) == ["f's closure variable net"]
    assert differences(make(), make(weight=2.0)) == ["f's closure variable w"]
    assert parts_of(make(), "f")["the version of torch"].said == torch.__version__
    assert parts_of(Net(0), "f") == parts_of(Net(0), "f") != parts_of(Net(0).eval(), "f")
    values = [
        torch.zeros(2),
        torch.zeros(2, dtype=torch.bfloat16),
        torch.zeros(2).requires_grad_(),
        gl.zeros(2),
        torch.tanh,
        torch.sin,
        torch.float32,
        torch.float64,
        torch.Size([1]),
        torch.device("cpu"),
        torch.func.vmap(torch.tanh),
        torch.func.vmap(torch.sin),
    ]
    assert len({digest(value) for value in values}) == len(values)
