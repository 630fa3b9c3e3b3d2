"""What `help` says: each public name has a docstring with numpydoc's sections, and examples, which run."""

from __future__ import annotations

import builtins
import doctest
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
from grouped import check_each, grouped

import gradlab
from gradlab import autograd, func, homework, linalg, nn, optim, special
from gradlab.core.operator import OPERATORS
from gradlab.utils import checkpoint, data

SPACES = {"": gradlab, "special.": special, "linalg.": linalg, "nn.": nn, "nn.functional.": nn.functional}
SPACES |= {"nn.init.": nn.init, "nn.utils.": nn.utils, "optim.lr_scheduler.": optim.lr_scheduler}
SPACES |= {
    "utils.data.": data,
    "utils.checkpoint.": checkpoint,
    "optim.": optim,
    "autograd.": autograd,
    "func.": func,
    "homework.": homework,
}


# What is called from within, and is no name of torch's: methods that a class has for its own family.
INTERNAL = {
    "RNNBase": ("check_input", "run", "layers", "checked_hidden", "directions"),
    "RNNCellBase": ("step",),
    "Decorating": ("fresh", "clone"),
    "ChannelNorm": ("check_dims",),
    "Affine": ("scaled",),
    "Convolution": ("edges",),
    "Transposed": ("missing",),
    "EmbeddingTable": ("described",),
    "Layer": ("feed_forward", "fed"),
    "Elementwise": ("slots", "numbers", "move", "start", "decay"),
}
# What a layer or a Function computes is told by its class: its `forward` is not called by hand.
FORWARD = "forward"
# For who writes checks: their classes tell how they go together, and a homework's own checks show them at work.
IN_PROSE = {
    "homework.Homework": ("exercise", "check", "case"),
    "homework.Student": ("check", "close", "stop", "function", "like_gradlab", "value"),
    "homework.Verdict": ("headline",),
}
EXCEPT = {f"{kind}.{name}" for kind, names in IN_PROSE.items() for name in names}
EXCEPT |= {"utils.checkpoint.CheckpointFunction"}  # a name that torch has, for what `checkpoint` calls


def public() -> Iterator[tuple[str, Any]]:
    """(name, function or class) of all that users call, each once."""
    seen = set()
    for place, space in SPACES.items():
        for name in [*getattr(space, "__all__", dir(space)), *(gradlab._LAZY if space is gradlab else ())]:
            value = getattr(space, name)
            if not name.startswith("_") and callable(value) and not inspect.ismodule(value):
                yield place + name, value
                if inspect.isclass(value) and value is not gradlab.Tensor and not issubclass(value, BaseException):
                    for method, function in methods(place, value):
                        if function not in seen:
                            seen.add(function)
                            yield method, function
    for name, value in vars(gradlab.Tensor).items():
        if not name.startswith("_") and inspect.isfunction(value):
            yield f"Tensor.{name}", value


def methods(place: str, kind: type) -> Iterator[tuple[str, Any]]:
    """What a public class has of methods, its own and those of bases that are not public; save what has the docstring of the
    method that it overrides."""
    for base in kind.__mro__:
        if not base.__module__.startswith("gradlab") or issubclass(gradlab.Tensor, base):
            continue
        hidden = (FORWARD, *INTERNAL.get(base.__name__, ()))
        for name, value in vars(base).items():
            function = getattr(value, "__func__", value)
            if name.startswith("_") or name in hidden or not inspect.isfunction(function):
                continue
            if function.__doc__ or not any(hasattr(above, name) for above in base.__mro__[1:]):
                yield f"{place}{base.__name__}.{name}", function


def documented(name: str, value: Any) -> str:
    """What the docstring lacks, or nothing."""
    doc = inspect.getdoc(value) or ""
    if not doc.split("\n")[0].strip().endswith((".", ":")):
        return "a summary"
    if inspect.isclass(value) and issubclass(value, BaseException):
        return ""  # what is raised is not made by hand
    try:
        parameters = list(inspect.signature(value).parameters)
    except ValueError:
        return "a signature"
    if name.startswith("Tensor.") or inspect.isclass(value) or parameters[:1] in (["self"], ["cls"]):
        parameters = parameters[1:] if parameters and parameters[0] in ("self", "cls", "input") else parameters
    described = re.search(r"Parameters\n-+\n((?:.+\n?)+)", doc)
    words = set(re.findall(r"^([\w, *\\]+) : ", described.group(1), re.MULTILINE)) if described else set()
    missing = set(parameters) - {one.strip(" *\\") for line in words for one in line.split(",")}
    if missing:
        return f"a description of {sorted(missing)}"
    nothing = getattr(value, "__annotations__", {}).get("return") in ("None", None) and "return" in getattr(
        value, "__annotations__", {}
    )
    if not inspect.isclass(value) and not nothing and not re.search(r"^Returns\n-------\n", doc, re.MULTILINE):
        return "Returns"
    return "" if re.search(r"^Examples\n--------\n(.|\n)*>>> ", doc, re.MULTILINE) else "Examples"


def test_every_public_name_is_documented():
    names = dict(public())
    lacking = {name: what for name, value in names.items() if (what := documented(name, value))}
    assert set(lacking) == EXCEPT and len(EXCEPT) < 0.01 * len(names), lacking


def test_what_lacks_a_section_is_seen():
    def whole(x):
        """Something.

        Parameters
        ----------
        x : Tensor
            It.

        Returns
        -------
        Tensor
            It.

        Examples
        --------
        >>> 1
        1
        """

    doc = whole.__doc__
    assert documented("whole", whole) == ""
    lost = {"Something.": "a summary", "x : ": "a description of ['x']", "Returns": "Returns", ">>>": "Examples"}
    for piece, what in lost.items():
        whole.__doc__ = doc.replace(piece, "Some")
        assert documented("whole", whole) == what


def properties() -> dict[str, property]:
    """The attributes of tensors that are computed, but for `volatile`, which `dir` does not show."""
    shown = dir(gradlab.ones(1))
    members = vars(gradlab.Tensor).items()
    return {f"Tensor.{n}": v for n, v in members if isinstance(v, property) and n in shown and not n.startswith("_")}


def test_the_attributes_of_tensors_are_documented():
    lacking = [
        name
        for name, value in properties().items()
        if not re.search(r"^Examples\n-{8}\n(.|\n)*>>> ", inspect.getdoc(value), re.MULTILINE)
    ]
    assert len(properties()) > 20 and lacking == []
    assert all(value.__doc__.split("\n")[0].endswith(".") for value in properties().values())


def examples() -> dict[str, list[Any]]:
    """By what the names are in."""
    finder = doctest.DocTestFinder(recurse=False)
    named: dict[int, Any] = {id(value): (name, value) for name, value in properties().items()}
    for name, value in public():
        if not documented(name, value) and ">>>" in (inspect.getdoc(value) or ""):
            named.setdefault(id(value), (name, value))
    found = [test for name, value in named.values() for test in finder.find(value, name, globs={}, module=False)]
    return grouped(found, lambda test: f"gradlab.{test.name}".rpartition(".")[0])


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled", "ignore:Error detected in")
@pytest.mark.parametrize("place", EXAMPLES := examples())
def test_the_examples_run(place, monkeypatch):
    monkeypatch.setattr(builtins, "_", None, raising=False)  # doctest leaves its last result there
    check_each(EXAMPLES[place], runs)


def runs(test):
    report: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert result.attempted and not result.failed, "".join(report)


def test_no_brace_is_left_of_a_shared_description():
    for operator in OPERATORS.values():
        assert not re.search(r"^ *\{\w+\}$", operator.published().__doc__ or "", re.MULTILINE), operator.name
    for name, value in public():
        assert not re.search(r"^ *\{\w+\}$", value.__doc__ or "", re.MULTILINE), name
