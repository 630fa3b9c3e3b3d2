"""A primitive is one declaration, and everything else follows from it.

    tanh = elementwise("tanh", np.tanh, x=lambda out: 1 - out * out, tex=r"\\tanh {x}")

A declaration names its kind, its forward (a NumPy ufunc serves CuPy too, and saves a Python call) and one rule for each
differentiable argument. The *names* of a rule's parameters say what it needs, and therefore what a node saves: `g` (the
cotangent; in a hand-written jvp `t`, the tangent), `out`, `xp` (the namespace), `lead` (the batch axes of the cotangent),
an argument, `<its own argument>_shape`, `out_shape`, or metadata (the forward's keyword-only parameters). They are checked
once, here.

    elementwise   the Jacobian is diagonal: the rule is the partial derivative or, if it names g, a map (relu's `where`) that
                  serves cotangents and tangents alike
    linear        the rule is the transpose; the jvp is the op itself, its metadata shifted past the batch axes by `batch`
    bilinear      one adjoint per side; the jvp is the op with that side swapped for its tangent
    primitive     vjp and jvp by hand

Further keywords: `view` (the result aliases its first argument where the library makes a view), `reads` (which input
elements an output element depends on: "own", "index", "into", "axes", "all" or a function; see `core.sparsity`), `promote`
(its dtype rule, see `core.promotion`), `node` (its graph node's name), `tex` (its notation), `formula` (LaTeX
with its source, where the traced rule would not be read), `piecewise` (the rules read their arguments to compare them and no
more, as max's: torch then holds a recorded cotangent for a constant; of relu's it says that its derivative is 0). Every
recording function takes `out`.

Of float16, a primitive whose dtype rule says so (`promotion.WIDENING`) runs as its `half`: the same declaration, but forward and
rules are given float32, and what they return is rounded once, as in torch. Its nodes save what was given.

The same rules run on NumPy or CuPy arrays, on Tensors (`create_graph`) and on formulas (`explore.formula`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gradlab.core import generate
from gradlab.core.errors import RuleError
from gradlab.core.generate import parameters
from gradlab.core.node import PUBLIC_MODULE, Node
from gradlab.core.promotion import GUARDS
from gradlab.core.registry import PRIMITIVES, find_origin, refuse_taken_name
from gradlab.core.saved_names import properties

Rule = Callable[..., Any]
Rules = Mapping[str, Rule]

KINDS = ("elementwise", "linear", "bilinear", "primitive")
RESERVED = {"g", "t", "xp", "out", "lead", "out_shape", "position"}
# What torch saves an index or a mask for, and so frees; here it is metadata.
# fmt: off
INDEXED = frozenset(f"{name}Backward0" for name in (
    "Gather", "Index", "IndexSelect", "Take", "MaskedSelect", "MaskedFill", "MaskedScatter", "Scatter", "ScatterAdd", "IndexAdd",
    "IndexFill", "IndexCopy", "Put", "Sort", "Max", "Min", "Topk", "Cummax", "Cummin", "Kthvalue", "Mode", "Embedding")) | {
    "CopySlices", "MedianBackward1", "NanmedianBackward1"}
# fmt: on
# What torch saves arguments for whose gradients are not wanted.
SAVING = frozenset(
    f"{name}Backward0" for name in ("Addcdiv", "Convolution", "Copysign", "NativeBatchNorm", "NativeGroupNorm", "NativeLayerNorm")
)
READS = ("own", "index", "into", "axes", "all")
PUBLIC = {"x": "input", "a": "input", "b": "other", "start": "input"}  # what users call the arguments


class Primitive:
    """What was declared, and the functions built from it. Called on a Tensor it records; on an array it just runs."""

    base: type[Node] = Node  # what its nodes are

    def __init__(
        self,
        name: str,
        kind: str,
        forward: Callable[..., Any],
        vjp: Rules,
        jvp: Rules | None,
        *,
        node: str | None = None,
        tex: str | None = None,
        formula: str | None = None,
        view: bool = False,
        reads: Any = "own",
        promote: str = "same",
        batch: Callable[..., dict[str, Any]] | None = None,
        accumulate_into: Callable[..., bool] | None = None,
        explain: Callable[..., Exception | None] | None = None,
        piecewise: bool = False,
    ) -> None:
        self.name, self.kind, self.forward, self.rules = name, kind, forward, dict(vjp)
        self.tex, self.formula, self.view, self.reads = tex, formula, view, reads
        self.promote, self.batch, self.explain = promote, batch, explain
        self.accumulate_into, self.piecewise = accumulate_into, piecewise
        self.is_half = False  # whether it is another's `half`
        self.foreign = False  # whether its rules are a user's (see autograd.user_rules)
        self.node_name = node or f"{name.strip('_').title().replace('_', '')}Backward0"
        positional, self.meta, self.variadic = (list(vjp), [], None) if isinstance(forward, np.ufunc) else parameters(forward)
        self.call = positional  # what the forward is given, in order: xp and arguments
        self.args = [p for p in positional if p != "xp"] + ([self.variadic] if self.variadic else [])
        self.public = [PUBLIC.get(a, a) for a in self.args]
        self.origin = find_origin(forward)
        self._check_declaration()
        self.tangents = {arg: jvp[arg] if jvp else self._derived_jvp(arg) for arg in vjp}
        self.needs = {arg: self._checked(arg, vjp[arg], "g") for arg in vjp}  # what each rule saves
        if jvp:
            for arg in vjp:
                self.needs[arg] |= self._checked(arg, jvp[arg], "t")
        if kind == "bilinear" and not jvp:
            for arg in vjp:
                self.needs[arg] |= set(self.args) - {arg}
        self.saves = [n for n in (*self.args, "out") if any(n in needed for needed in self.needs.values())]
        self._finish()
        PRIMITIVES[name] = self

    def _finish(self) -> None:
        self.frees = (
            bool(self.saves) or self.node_name in INDEXED or (self.name == "overwrite" and self.node_name == "IndexPutBackward0")
        )
        self.spared = [not needed for needed in self.needs.values()]  # whose gradient needs nothing saved
        if not self.saves or self.variadic or self.node_name in SAVING or not any(self.spared):
            self.spared = []
        self.node_class = type(
            self.node_name, (self.base,), {"__slots__": (), "op": self, "__module__": PUBLIC_MODULE, **properties(self)}
        )

    def named(self, node: str, view: bool | None = None, half: bool = False) -> Primitive:
        """The same primitive under another node name: torch numbers its overloads (`SumBackward0`, `SumBackward1`). With
        view=False its results are not noted as views: their memory is nobody else's."""
        twin = object.__new__(Primitive)
        twin.__dict__ |= {k: v for k, v in self.__dict__.items() if k not in generate.GENERATED}
        twin.node_name, twin.view, twin.is_half = node, self.view if view is None else view, half
        twin._finish()
        return twin

    def _derived_jvp(self, arg: str) -> Rule:
        return self.rules[arg] if self.kind == "elementwise" else self.forward

    def __getattr__(self, name: str) -> Any:
        """The functions are generated when first asked for: compiling all of them would slow the import."""
        if name not in generate.GENERATED:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name == "half":
            self.half = self.named(self.node_name, half=True)
            return self.half
        make = {"record": generate.recording_function, "apply": generate.applying_function}.get(name)
        function = make(self) if make else generate.rule_caller(self, name)
        setattr(self, name, function)
        return function

    def _check_declaration(self) -> None:
        if self.name in PRIMITIVES:
            refusal = refuse_taken_name("a primitive", self.name, PRIMITIVES[self.name].origin, self.origin)
            if refusal is not None:
                raise RuleError(refusal)
        if unknown := set(self.rules) - set(self.args):
            raise RuleError(f"{self.name}: there is a rule for {sorted(unknown)}, but the arguments are {self.args}.")
        if taken := set(self.args + self.meta) & RESERVED:
            raise RuleError(f"{self.name}: {sorted(taken)} cannot be the name of an argument: rules use it for something else.")
        if self.kind not in KINDS or not (callable(self.reads) or self.reads in READS):
            raise RuleError(
                f"{self.name}: kind={self.kind!r}, reads={self.reads!r}. A kind is one of {KINDS}; reads is "
                f"one of {READS} or a function."
            )
        if self.promote not in GUARDS:
            raise RuleError(f"{self.name}: promote={self.promote!r} is none of {sorted(GUARDS)}.")

    def _checked(self, arg: str, rule: Rule, incoming: str) -> set[str]:
        allowed = {incoming, "xp", "lead", "out", "out_shape", f"{arg}_shape", *self.args, *self.meta}
        if self.variadic:
            allowed |= {"position"}
        names = parameters(rule)[0]
        if wrong := [n for n in names if n not in allowed]:
            raise RuleError(
                f"{self.name}: the rule for {arg!r} names {', '.join(map(repr, wrong))}, which is nothing it can "
                f"be given. A rule may name: {', '.join(sorted(allowed))}."
            )
        return {n for n in names if n in self.args or n == "out"}

    def __call__(self, *args: Any, **meta: Any) -> Any:
        return self.apply(*args, **meta)

    def cotangent(self, arg: str, **values: Any) -> Any:
        """The rule for `arg` on whatever is given: how formulas and sparsity patterns run the very same rule."""
        names = parameters(self.rules[arg])[0]
        result = self.rules[arg](*(values[p] for p in names))
        return result if self.kind != "elementwise" or "g" in names else values["g"] * result

    def __repr__(self) -> str:
        return f"<{self.kind} primitive {self.name}>"


def elementwise(
    name: str,
    forward: Callable[..., Any],
    *,
    node: str | None = None,
    tex: str | None = None,
    formula: str | None = None,
    promote: str = "same",
    piecewise: bool = False,
    **rules: Rule,
) -> Primitive:
    """A primitive whose output elements each depend on the input elements at their own place, after broadcasting."""
    return Primitive(
        name, "elementwise", forward, rules, None, node=node, tex=tex, formula=formula, promote=promote, piecewise=piecewise
    )


def linear(
    name: str,
    forward: Callable[..., Any],
    *,
    reads: Any,
    node: str | None = None,
    tex: str | None = None,
    formula: str | None = None,
    view: bool = False,
    promote: str = "same",
    batch: Callable[..., dict[str, Any]] | None = None,
    accumulate_into: Callable[..., bool] | None = None,
    **transposes: Rule,
) -> Primitive:
    """A primitive linear in each argument taken together; each rule is a transpose.

    `batch(lead, *metadata)` is the metadata of the same op on a batch, where negative axes do not make them equal.
    `accumulate_into(total, g, lead, *metadata)`, of one that reads a part of its argument, adds the argument's cotangent to
    `total` in place: time for the part, not for the whole. It returns whether it has."""
    return Primitive(
        name,
        "linear",
        forward,
        transposes,
        None,
        node=node,
        tex=tex,
        formula=formula,
        view=view,
        reads=reads,
        promote=promote,
        batch=batch,
        accumulate_into=accumulate_into,
    )


def bilinear(
    name: str,
    forward: Callable[..., Any],
    *,
    reads: Any,
    node: str | None = None,
    tex: str | None = None,
    formula: str | None = None,
    jvp: Rules | None = None,
    explain: Callable[..., Exception | None] | None = None,
    **adjoints: Rule,
) -> Primitive:
    """A primitive linear in each of its two arguments, sums of products; each rule is the adjoint for its side."""
    return Primitive(
        name,
        "bilinear",
        forward,
        adjoints,
        jvp,
        node=node,
        tex=tex,
        formula=formula,
        reads=reads,
        promote="single",
        explain=explain,
    )


def primitive(
    name: str,
    forward: Callable[..., Any],
    *,
    vjp: Rules,
    jvp: Rules,
    reads: Any,
    node: str | None = None,
    tex: str | None = None,
    formula: str | None = None,
    promote: str = "same",
    explain: Callable[..., Exception | None] | None = None,
    piecewise: bool = False,
) -> Primitive:
    """A primitive with both rules by hand."""
    return Primitive(
        name,
        "primitive",
        forward,
        vjp,
        jvp,
        node=node,
        tex=tex,
        formula=formula,
        reads=reads,
        promote=promote,
        explain=explain,
        piecewise=piecewise,
    )
