"""Functions whose difference is not in their pickles are distinguished or raise an error, so that results are never mixed."""

from __future__ import annotations

import contextlib
import copyreg
import functools
import json
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from explore.banded import START, make_file, make_x, stop_before_block

import gradlab as gl
from gradlab.explore.jacobian.fingerprint import CannotFingerprintError, part_of, parts_of


class Scaled:
    """Wrap a function like functools.update_wrapper."""

    def __init__(self, function, scale):
        functools.update_wrapper(self, function)
        self.scale = scale

    def __call__(self, x):
        return self.__wrapped__(x) * self.scale


def base(x):
    return x * x


def wrapper(scale):
    return Scaled(base, scale)


def through_the_attribute(scale):
    def f(x):
        return f.__wrapped__(x)

    f.__wrapped__ = lambda x: x * scale
    return f


def cache(scale):
    f = functools.cache(base)
    f.scale = scale
    return lambda x: f(x) * f.scale


class Light:
    """An object that omits its weights from its pickle."""

    def __init__(self, scale):
        self.scale, self.name = scale, "light"

    def __getstate__(self):
        return {"name": self.name}

    def __call__(self, x):
        return x * self.scale


class Remade(Light):
    def __getstate__(self):
        return self.__dict__

    def __reduce__(self):
        return (Remade, (1.0,))


class Registered(Light):
    def __getstate__(self):
        return self.__dict__


copyreg.pickle(Registered, lambda one: (Registered, (1.0,)))


class Slotted:
    __slots__ = ("__scale", "name")

    def __init__(self, scale):
        self.__scale, self.name = scale, "slots"

    def __getstate__(self):
        return (None, {"name": self.name})

    def __call__(self, x):
        return x * self.__scale


class Hidden(Light):
    __getstate__ = object.__getstate__

    def __getattribute__(self, name):
        if name == "__dict__":
            return {"name": "nothing"}
        return super().__getattribute__(name)


class Labelled(np.ndarray):
    """An array with an attribute, which the pickle of arrays drops."""


def array_with_label(scale, kind=Labelled):
    array = np.ones(3).view(kind)
    array.scale = scale
    return lambda x: x * float(array.scale)


class Number(np.float64):
    pass


def number(scale):
    one = Number(2.0)
    one.scale = scale
    return lambda x: x * one.scale


def memory_map(scale):
    array = np.ones(3).view(np.memmap)
    array.scale = scale
    return lambda x: x * array.scale


def weight(scale):
    one = pytest.importorskip("torch").ones(3)
    one.scale = scale
    return lambda x: x * one.scale


def structured_array(scale):
    names = [("a", "f8"), ("b", "f8")] if scale == 1.0 else [("b", "f8"), ("a", "f8")]
    table = np.array([(1.0, 2.0)], names)
    return lambda x: x * float(table["a"][0])


def methods_of_another_class(scale):
    """Return an instance of a class with methods of C from another class."""

    class Model:
        act = str.upper if scale == 1.0 else str.lower

    return lambda x: x * len(Model.act("ab"))


def made_by_another_class(scale):
    class Kind(type):
        def __call__(cls, x):
            return x * scale

    class Model(metaclass=Kind):
        pass

    return Model


MAKERS = [
    wrapper,
    through_the_attribute,
    cache,
    Light,
    Remade,
    Registered,
    Slotted,
    Hidden,
    array_with_label,
    lambda scale: array_with_label(scale, np.recarray),
    number,
    memory_map,
    pytest.param(weight, marks=pytest.mark.torch),
    structured_array,
    methods_of_another_class,
    made_by_another_class,
]


def parts_or_error(make, scale):
    try:
        return parts_of(make(scale), "f")
    except CannotFingerprintError as error:
        return str(error)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: getattr(make, "__name__", "array"))
def test_state_that_a_pickle_omits_matters(make):
    one, same, other = (parts_or_error(make, scale) for scale in (1.0, 1.0, 2.0))
    assert one == same, "equal in another process"
    assert one != other or "cannot be compared between processes" in one
    assert not isinstance(one, str) or make is Registered, "all of these can be fingerprinted"


def test_pickles_of_packages_are_trusted():
    """Masked arrays omit state that depends on how they were used."""
    one, other = (np.ma.masked_array([1.0, 2.0], [True, False]) for _ in range(2))
    other[1:].mask, other.sum()
    assert part_of(one, "it") == part_of(other, "it")


@pytest.mark.parametrize("statement", ["import mine{0}", "from mine{0} import scale", "import mine{0} as m"])
def test_a_module_imported_in_the_function_matters(tmp_path, monkeypatch, statement):
    monkeypatch.syspath_prepend(tmp_path)
    name = f"x{abs(hash(statement))}"
    found = []
    for scale in (1.0, 2.0):
        (tmp_path / f"mine{name}.py").write_text(f"scale = {scale}")
        sys.modules.pop(f"mine{name}", None)
        space = {}
        exec(f"def f(x):\n    {statement.format(name)}\n    return x", space)
        found += [parts_of(space["f"], "f"), parts_of(space["f"], "f")]
    sys.modules.pop(f"mine{name}", None)
    assert found[0] == found[1] != found[2] == found[3]


def test_imported_packages_are_compared_by_version_without_loading_them():
    def f(x):
        import wave

        import numpy.linalg

        return numpy.linalg.norm(x) + wave.nothing

    sys.modules.pop("wave", None)
    assert "the module numpy.linalg in f" in parts_of(f, "f") and "wave" not in sys.modules


@pytest.mark.e2e
def test_a_file_of_the_user_with_the_name_of_a_standard_module(tmp_path):
    code = textwrap.dedent("""
        import sys
        sys.path.insert(0, sys.argv[1])
        import wave
        from gradlab.explore.jacobian.fingerprint import parts_of
        print(parts_of(lambda x: x * wave.scale, "f")["the global wave in f"].digest)
    """)
    said = []
    for scale in (1, 2):
        (tmp_path / "wave.py").write_text(f"scale = {scale}")
        ran = subprocess.run([sys.executable, "-B", "-c", code, tmp_path], capture_output=True, text=True, check=True)
        said.append(ran.stdout)
    assert said[0] != said[1]


def test_errors_in_the_users_code_are_reported():
    class Hostile:
        @property
        def __name__(self):
            raise ZeroDivisionError("no")

    with pytest.raises(CannotFingerprintError, match=r"the global held in f is a Hostile, which cannot be .*ZeroDivisionError"):
        parts_of(eval("lambda x: held", {"held": Hostile()}), "f")


# -------------------------------------------------------------------------------------------------------------------- files
def resume_in_file(tmp_path, f, mode="r+", **options):
    return gl.jacobian(f, make_x(), out=make_file(tmp_path, mode), method="batched", chunk_size=5, resume=True, **options)


def half(tmp_path, f, **options):
    J = resume_in_file(tmp_path, f, "w+", **options)
    stop_before_block(J, 2, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        np.asarray(J)


class Shifted(Light):
    """The function start + scale·(x − start), whose output at `start` does not depend on the scale, but whose derivative does."""

    def __call__(self, x):
        start = gl.tensor(START, dtype=gl.float64)
        return start + (x - start) * self.scale


@pytest.mark.parametrize("make", [Shifted, lambda scale: Scaled(Shifted(scale), 1.0)], ids=["state", "wrapped"])
def test_functions_whose_outputs_agree_are_not_mixed(tmp_path, make):
    half(tmp_path, make(1.0))
    with pytest.raises(ValueError, match="differs"):
        resume_in_file(tmp_path, make(2.0))
    np.testing.assert_allclose(np.asarray(resume_in_file(tmp_path, make(1.0))), np.eye(12), atol=1e-14)


def test_derivatives_are_compared_if_digests_are_equal(tmp_path):
    """The function reads a file, and its outputs are equal by accident."""
    file = tmp_path / "scale"

    def f(x):
        start = gl.tensor(START, dtype=gl.float64)
        return start + (x - start) * float(file.read_text())

    file.write_text("1")
    half(tmp_path, f)
    file.write_text("2")
    with pytest.raises(ValueError, match="the derivative of the function differs, although inputs and code are the same"):
        resume_in_file(tmp_path, f)


@pytest.mark.parametrize("at", [0, 5, 11])
def test_one_small_element_of_the_output_is_compared(tmp_path, at):
    file = tmp_path / "more"

    def f(x):
        more = np.zeros(12)
        more[at] = float(file.read_text())
        return x * gl.tensor(np.r_[1e4, np.ones(11)]) + gl.tensor(more)

    file.write_text("0")
    half(tmp_path, f)
    file.write_text("0.3")
    with pytest.raises(ValueError, match="the output of the function differs"):
        resume_in_file(tmp_path, f)


# -------------------------------------------------------------------------------------------------------------------- key=
class Locked:
    def __init__(self, scale=3.0):
        self.lock, self.scale = threading.Lock(), scale

    def __call__(self, x):
        return x * self.scale


def test_the_error_for_an_incomparable_function_suggests_a_key(tmp_path):
    with pytest.raises(TypeError, match=r"cannot be compared between processes.* Identify the function by key="):
        resume_in_file(tmp_path, Locked(), "w+")
    for key, other in (("model 7", "model 8"), (b"\x00\xff", "\x00")):
        with contextlib.suppress(FileNotFoundError):
            (tmp_path / "J.bin.json").unlink()
        half(tmp_path, Locked(), key=key)
        J = resume_in_file(tmp_path, Locked(), key=key)
        assert J.store.done == {0, 1}
        np.testing.assert_allclose(np.asarray(J), 3 * np.eye(12))
        with pytest.raises(ValueError, match=r"the key differs: .* instead of "):
            resume_in_file(tmp_path, Locked(), key=other)
        with pytest.raises(ValueError, match="the output of the function differs, although its key is the same"):
            resume_in_file(tmp_path, Locked(4.0), key=key)
        with pytest.raises(ValueError, match="base's code is new"):
            resume_in_file(tmp_path, base)
    assert json.loads((tmp_path / "J.bin.json").read_text())["facts"]["the key"][1] == repr(b"\x00\xff")


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        ({"resume": True, "key": 3}, TypeError, r"key= takes a string or bytes that name the function; got 3"),
        ({"resume": True, "key": ""}, TypeError, r"key= takes a string or bytes that name the function; got ''"),
        ({"key": "a"}, ValueError, r"key= identifies the function of a run that can be resumed: pass resume=True"),
    ],
)
def test_invalid_keys(tmp_path, ask, error, message):
    with pytest.raises(error, match=message):
        gl.jacobian(base, make_x(), out=make_file(tmp_path), **ask)
