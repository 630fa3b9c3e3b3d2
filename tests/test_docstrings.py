"""Check the docstrings of all public names: each has numpydoc's sections, and its examples run."""

from __future__ import annotations

import builtins
import doctest
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
from grouped import check_each, group_by

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


# Internal methods without an underscore, which base classes share with their subclasses.
INTERNAL = {
    "RNNBase": ("check_input", "run", "layers", "check_hidden", "directions"),
    "RNNCellBase": ("step",),
    "DecoratorContextManager": ("new_context", "clone"),
    "ChannelNorm": ("check_dims",),
    "Affine": ("register_affine",),
    "Convolution": ("edges",),
    "TransposedConvolution": ("missing_output_padding",),
    "EmbeddingTable": ("repr_fields",),
    "Layer": ("make_feed_forward", "apply_feed_forward"),
    "Elementwise": ("slots", "numbers", "move", "start", "decay"),
}
# `forward` is not called by users. The docstring of the class describes what it computes.
FORWARD = "forward"
# Methods for authors of checks, which the docstrings of their classes describe together.
IN_PROSE = {
    "homework.Homework": ("exercise", "check", "case"),
    "homework.Student": ("check", "close", "stop", "function", "like_gradlab", "value"),
    "homework.Verdict": ("headline",),
}
EXCEPTIONS = {f"{kind}.{name}" for kind, names in IN_PROSE.items() for name in names}
EXCEPTIONS |= {"utils.checkpoint.CheckpointFunction"}  # torch's name of an internal class of `checkpoint`


def public() -> Iterator[tuple[str, Any]]:
    """Yield (name, function or class) for all public callables, each once."""
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
    """Yield (name, method) for a public class, including methods of its private bases.

    Methods without a docstring that override another method are skipped.
    """
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


def missing_section(name: str, value: Any) -> str:
    """Return the part that is missing from a docstring, or ""."""
    doc = inspect.getdoc(value) or ""
    if not doc.split("\n")[0].strip().endswith((".", ":")):
        return "a summary"
    if inspect.isclass(value) and issubclass(value, BaseException):
        return ""  # users do not create exceptions
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
    undocumented = {name: what for name, value in names.items() if (what := missing_section(name, value))}
    assert set(undocumented) == EXCEPTIONS and len(EXCEPTIONS) < 0.01 * len(names), undocumented


def test_missing_sections_are_found():
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
    assert missing_section("whole", whole) == ""
    lost = {"Something.": "a summary", "x : ": "a description of ['x']", "Returns": "Returns", ">>>": "Examples"}
    for piece, what in lost.items():
        whole.__doc__ = doc.replace(piece, "Some")
        assert missing_section("whole", whole) == what


def properties() -> dict[str, property]:
    """Return the properties of tensors by name, except `volatile`, which `dir` hides."""
    shown = dir(gradlab.ones(1))
    members = vars(gradlab.Tensor).items()
    return {f"Tensor.{n}": v for n, v in members if isinstance(v, property) and n in shown and not n.startswith("_")}


def test_the_attributes_of_tensors_are_documented():
    undocumented = [
        name
        for name, value in properties().items()
        if not re.search(r"^Examples\n-{8}\n(.|\n)*>>> ", inspect.getdoc(value), re.MULTILINE)
    ]
    assert len(properties()) > 20 and undocumented == []
    assert all(value.__doc__.split("\n")[0].endswith(".") for value in properties().values())


def examples() -> dict[str, list[Any]]:
    """Return the examples of all docstrings, grouped by namespace."""
    finder = doctest.DocTestFinder(recurse=False)
    named: dict[int, Any] = {id(value): (name, value) for name, value in properties().items()}
    for name, value in public():
        if not missing_section(name, value) and ">>>" in (inspect.getdoc(value) or ""):
            named.setdefault(id(value), (name, value))
    found = [test for name, value in named.values() for test in finder.find(value, name, globs={}, module=False)]
    return group_by(found, lambda test: f"gradlab.{test.name}".rpartition(".")[0])


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled", "ignore:Error detected in")
@pytest.mark.parametrize("place", EXAMPLES := examples())
def test_the_examples_run(place, monkeypatch):
    monkeypatch.setattr(builtins, "_", None, raising=False)  # doctest sets it to the last result
    check_each(EXAMPLES[place], run_example)


def run_example(test):
    report: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert result.attempted and not result.failed, "".join(report)


def test_shared_descriptions_are_filled_in():
    for operator in OPERATORS.values():
        assert not re.search(r"^ *\{\w+\}$", operator.public_function().__doc__ or "", re.MULTILINE), operator.name
    for name, value in public():
        assert not re.search(r"^ *\{\w+\}$", value.__doc__ or "", re.MULTILINE), name
