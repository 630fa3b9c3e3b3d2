"""Tensors that an output is differentiated with respect to: the leaves of its graph with the user's names, or requested tensors.

Statements here about gradients ("not in the graph") follow from a walk over the recorded graph, never from numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradlab.explore.equivalent_code import is_code
from gradlab.explore.libraries import Library, library_of
from gradlab.explore.markup import Sentence, Span, count, say, shape_text

ROOT = re.compile(r"[.\[]")


@dataclass
class Source:
    """A tensor that an output is differentiated with respect to. Exists only while a report is made."""

    name: str
    tensor: Any
    named: bool  # whether `name` is valid in code
    used: bool  # whether the graph leads from the output to it
    wanted: bool  # whether it requires grad
    gradient: Any = None  # a tensor of the library, once it is computed

    @property
    def is_leaf(self) -> bool:
        """True if no recorded operation made it; then it has a `.grad`."""
        return bool(self.tensor.is_leaf)


def reachable(library: Library, roots: Sequence[Any]) -> dict[Any, None]:
    """Return every node below the roots, including the roots, in the order of the user's expressions; at most as many nodes as
    the library allows to touch."""
    seen: dict[Any, None] = {}
    stack = list(reversed(roots))
    while stack and len(seen) != library.touches:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen[node] = None
        stack.extend(reversed(library.inputs(node)))
    return seen


def sources_of(
    library: Library,
    roots: Sequence[Any],
    names: Mapping[str, Any],
    wrt: Mapping[str, Any] | None = None,
    mentioned: Sequence[str] = (),
    called_then: Mapping[Any, Sequence[str]] | None = None,
) -> list[Source]:
    """Return the tensors to differentiate with respect to, in the order of `wrt` or of their names (a model's parameters in its
    own order). Unnamed ones come last, in the order of the graph.

    Parameters
    ----------
    roots : sequence of nodes
        Nodes at which the cotangents of the outputs arrive.
    names : mapping of str to Tensor
        The user's names for the leaves of the graph.
    wrt : mapping of str to Tensor, optional
        Requested tensors, including non-leaves. By default, all leaves of the graph.
    mentioned : sequence of str
        Names of leaves, or of containers of leaves, to include even if the graph does not lead to them.
    called_then : mapping of node to sequence of str, optional
        Names of leaves when they were recorded: a function's own tensors may no longer exist.
    """
    nodes = reachable(library, roots)
    if wrt is not None:
        return [_source(library, nodes, name, tensor) for name, tensor in wrt.items()]
    called = {id(tensor): name for name, tensor in names.items()}
    sources: list[Source] = []
    unnamed = 0
    for node in nodes:
        leaf = library.variable(node)
        if leaf is None:
            continue
        name = next(iter((called_then or {}).get(node, ())), None) or called.get(id(leaf))
        if name is None:
            unnamed += 1
            name = f"(unnamed {unnamed})"
        sources.append(Source(name, leaf, is_code(name), used=True, wanted=True))
    listed = {id(source.tensor) for source in sources}
    models = {ROOT.split(source.name, maxsplit=1)[0] for source in sources if "." in source.name}
    known = {*mentioned, *models}
    for name, tensor in names.items() if len(nodes) != library.touches else ():  # else it is unknown which are unused
        if id(tensor) in listed or library_of(tensor) is not library or not library.is_leaf(tensor):
            continue
        model = ROOT.split(name, maxsplit=1)[0]  # of `model.fc1.weight` or `params[0]`
        wanted = bool(tensor.requires_grad)
        frozen = model in models and "." in name and library.is_parameter(tensor)  # buffers are not frozen
        if (wanted or frozen) and (name in known or model in known):
            sources.append(Source(name, tensor, is_code(name), used=False, wanted=wanted))
    place = {name: i for i, name in enumerate(names)}
    sources.sort(key=lambda source: place.get(source.name, len(place)))
    return sources


def _source(library: Library, nodes: Mapping[Any, None], name: str, tensor: Any) -> Source:
    node = library.node(tensor)
    used = node is not None and (node in nodes or len(nodes) == library.touches)
    return Source(name, tensor, is_code(name), used=used, wanted=bool(tensor.requires_grad))


def why_not(value: Any, what: str | Span) -> Sentence | None:
    """Return why `value`, called `what`, cannot be differentiated; None if it can."""
    library = library_of(value)
    if library is None:
        if value is None:
            return say(what, " is None")
        return say(what, " is ", _kind(value), ", no tensor")
    if value.requires_grad:
        return None
    dtype = library.dtype_name(value)
    if not dtype.startswith(("float", "bfloat", "complex")):
        return say(what, f" is {dtype}, and only floating point tensors have gradients")
    if known := library.why_lost(value):
        parts = known.split("`")
        return say(what, " has requires_grad=False: ", *(Span(part, "code") if i % 2 else part for i, part in enumerate(parts)))
    return say(
        what,
        " has requires_grad=False: no tensor that it was computed from requires a gradient, or it was made under "
        "no_grad() or by detach()",
    )


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def weights_for(library: Library, out: Any, value: Any, called: str) -> Any:
    """Return the weights `v` as a tensor like `out`.

    Raises
    ------
    TypeError, RuntimeError
        If they are not numbers, belong to another library, or do not have the output's shape.
    """
    shape, other = tuple(out.shape), library_of(value)
    if other is not None and other is not library:
        raise TypeError(f"the weights are a {other.name} tensor and the output is a {library.name} tensor.")
    if other is None:
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise TypeError(
                f"the weights must be numbers, one for each element of {called} (shape {shape}), and are "
                f"{_kind(value)}: {value!r:.80}."
            )
        value = library.tensor(array, like=out)
    if tuple(value.shape) != shape:
        its_shape = tuple(value.shape)
        raise RuntimeError(
            f"Mismatch in shape: grad_output[0] has a shape of {its_shape} and output[0] has a shape of {shape}. "
            f"The weights need one number for each element of {called}: shape {shape}."
        )
    return value


def weights_needed(library: Library, out: Any, called: str, how: str, rows: int | None = None) -> RuntimeError:
    """Return the error for a non-scalar output, with how to choose the weights. `how` shows where to write them: "-v {}"."""
    shape, gl = tuple(out.shape), library.alias
    size = int(np.prod(shape, dtype=np.int64))
    ones = how.format(f"{gl}.ones_like({called})")
    first = ", ".join("0" for _ in shape)
    if not size:
        return RuntimeError(
            f"grad can be implicitly created only for scalar outputs. {called} has shape {shape}, no elements: "
            "there is nothing to differentiate."
        )
    return RuntimeError(
        f"grad can be implicitly created only for scalar outputs. {called} has shape {shape_text(shape)}, "
        f"{count(size, 'element')}, and each has a gradient of its own: say with weights v, of the same shape, which "
        f"combination vᵀJ of them you want. {ones} gives the gradient of their sum; weights that are 1 at one place, [{first}] "
        f"say, and 0 elsewhere give the gradient of that element."
        + (f" (The whole Jacobian has a row for each; it is shown for up to {rows}.)" if rows is not None else "")
    )
