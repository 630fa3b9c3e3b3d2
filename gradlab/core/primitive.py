"""Declare primitives: a forward and one derivative rule per argument, from which all other functions are generated.

    tanh = elementwise("tanh", np.tanh, x=lambda out: 1 - out * out, tex=r"\\tanh {x}")

A declaration gives the kind, the forward (a NumPy ufunc also works for CuPy, and saves a Python call) and one rule for each
differentiable argument. The parameter names of a rule say what it needs, and so what a node saves: `g` (the cotangent; in a
hand-written jvp `t`, the tangent), `out`, `xp` (the namespace), `lead` (the batch axes of the cotangent), an argument,
`<its own argument>_shape`, `out_shape`, or metadata (the keyword-only parameters of the forward). They are checked once, here.

    elementwise   the Jacobian is diagonal: the rule is the partial derivative or, if it has a parameter g, a map that applies to
                  cotangents and tangents alike (relu's `where`)
    linear        the rule is the transpose; the jvp is the op itself, its metadata shifted past the batch axes by `batch`
    bilinear      one adjoint per side; the jvp is the op with that side replaced by its tangent
    primitive     hand-written vjp and jvp

Further keywords:

    view        the result aliases the first argument if the library returns a view
    reads       the input elements on which an output element depends: "own", "index", "into", "axes", "all" or a function
                (see `core.sparsity`)
    promote     the dtype rule (see `core.promotion`)
    node        the name of the graph node
    tex         the notation
    formula     LaTeX of the rule, used if the traced rule would be hard to read
    piecewise   the rules only compare their arguments, as for max; torch then treats a recorded cotangent as a constant (for relu
                it records a derivative of 0)
    properties  facts beside the calculus (see `core.properties`): poles, the range, whether data are only moved. `costly` lets
                large arrays use several threads; the forward must then be a ufunc

Every recording function takes `out`.

For float16, a primitive whose dtype rule is in `promotion.WIDENING_RULES` runs as its `half`: the same declaration, but forward
and rules receive float32, and their results are rounded once, as in torch. Its nodes save the arguments as given.

The same rules run on NumPy or CuPy arrays, on Tensors (`create_graph`) and on formulas (`explore.formula`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from gradlab.core import generate
from gradlab.core.errors import RuleError
from gradlab.core.generate import parameters
from gradlab.core.node import PUBLIC_MODULE, Node
from gradlab.core.promotion import GUARDS
from gradlab.core.properties import ORDINARY, Properties, add_derived
from gradlab.core.registry import PRIMITIVES, find_origin, taken_name_message
from gradlab.core.saved_names import saved_properties

Rule = Callable[..., Any]
Rules = Mapping[str, Rule]

KINDS = ("elementwise", "linear", "bilinear", "primitive")
RESERVED = {"g", "t", "xp", "out", "lead", "out_shape", "position"}
# Nodes for which torch saves (and so frees) an index or a mask. Here it is metadata.
# fmt: off
NODES_SAVING_INDICES = frozenset(f"{name}Backward0" for name in (
    "Gather", "Index", "IndexSelect", "Take", "MaskedSelect", "MaskedFill", "MaskedScatter", "Scatter", "ScatterAdd", "IndexAdd",
    "IndexFill", "IndexCopy", "Put", "Sort", "Max", "Min", "Topk", "Cummax", "Cummin", "Kthvalue", "Mode", "Embedding")) | {
    "CopySlices", "MedianBackward1", "NanmedianBackward1"}
# fmt: on
# Nodes for which torch saves arguments even if no gradient needs them.
NODES_SAVING_ALL_ARGUMENTS = frozenset(
    f"{name}Backward0" for name in ("Addcdiv", "Convolution", "Copysign", "NativeBatchNorm", "NativeGroupNorm", "NativeLayerNorm")
)
READS = ("own", "index", "into", "axes", "all")
PUBLIC_ARGUMENT_NAMES = {"x": "input", "a": "input", "b": "other", "start": "input"}


class Primitive:
    """A declared primitive and the functions generated from it. A call on a Tensor is recorded; a call on an array just runs."""

    base: type[Node] = Node  # base class of its nodes

    # Generated on first access, since compiling all of them would slow down the import. (With a `__getattr__` in their place,
    # Python would read each attribute in 19 ns instead of 1.)
    record = cached_property(generate.recording_function)
    apply = cached_property(generate.applying_function)
    vjp = cached_property(lambda self: generate.rule_caller(self, "vjp"))
    scalar_vjp = cached_property(lambda self: generate.rule_caller(self, "scalar_vjp"))
    traced_vjp = cached_property(lambda self: generate.rule_caller(self, "traced_vjp"))
    jvp = cached_property(lambda self: generate.rule_caller(self, "jvp"))
    traced_jvp = cached_property(lambda self: generate.rule_caller(self, "traced_jvp"))
    half = cached_property(lambda self: self.with_node(self.node_name, half=True))

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
        properties: Properties = ORDINARY,
    ) -> None:
        self.name, self.kind, self.forward, self.rules = name, kind, forward, dict(vjp)
        self.tex, self.formula, self.view, self.reads = tex, formula, view, reads
        self.promote, self.batch, self.explain = promote, batch, explain
        self.accumulate_into, self.piecewise = accumulate_into, piecewise
        self.properties = add_derived(properties, kind, view)
        self.is_half = False  # True if it is the `half` of another primitive
        self.foreign = False  # True if its rules are user-defined (see autograd.user_rules)
        self.node_name = node or f"{name.strip('_').title().replace('_', '')}Backward0"
        positional, self.meta, self.variadic = (list(vjp), [], None) if isinstance(forward, np.ufunc) else parameters(forward)
        self.call = positional  # positional parameters of the forward: xp and arguments
        self.args = [p for p in positional if p != "xp"] + ([self.variadic] if self.variadic else [])
        self.public = [PUBLIC_ARGUMENT_NAMES.get(a, a) for a in self.args]
        self.origin = find_origin(forward)
        self._check_declaration()
        self.tangents = {arg: jvp[arg] if jvp else self._derived_jvp(arg) for arg in vjp}
        self.needs = {arg: self._find_needs(arg, vjp[arg], "g") for arg in vjp}  # values that each rule saves
        if jvp:
            for arg in vjp:
                self.needs[arg] |= self._find_needs(arg, jvp[arg], "t")
        if kind == "bilinear" and not jvp:
            for arg in vjp:
                self.needs[arg] |= set(self.args) - {arg}
        self.saves = [n for n in (*self.args, "out") if any(n in needed for needed in self.needs.values())]
        self._finish()
        PRIMITIVES[name] = self

    def _finish(self) -> None:
        self.frees = (
            bool(self.saves)
            or self.node_name in NODES_SAVING_INDICES
            or (self.name == "overwrite" and self.node_name == "IndexPutBackward0")
        )
        self.spared = [not needed for needed in self.needs.values()]  # True if the argument's gradient needs no saved value
        if not self.saves or self.variadic or self.node_name in NODES_SAVING_ALL_ARGUMENTS or not any(self.spared):
            self.spared = []
        self.node_class = type(
            self.node_name, (self.base,), {"__slots__": (), "op": self, "__module__": PUBLIC_MODULE, **saved_properties(self)}
        )

    def with_node(self, node: str, view: bool | None = None, half: bool = False) -> Primitive:
        """Return this primitive with a different node name. Torch numbers its overloads (`SumBackward0`, `SumBackward1`).

        Its properties remain those of this primitive. With `view=False` its results are not registered as views, because no other
        tensor uses their memory.
        """
        copy = object.__new__(Primitive)
        copy.__dict__ |= {k: v for k, v in self.__dict__.items() if not isinstance(getattr(Primitive, k, None), cached_property)}
        copy.node_name, copy.view, copy.is_half = node, self.view if view is None else view, half
        copy._finish()
        return copy

    def _derived_jvp(self, arg: str) -> Rule:
        return self.rules[arg] if self.kind == "elementwise" else self.forward

    def _check_declaration(self) -> None:
        if self.name in PRIMITIVES:
            refusal = taken_name_message("a primitive", self.name, PRIMITIVES[self.name].origin, self.origin)
            if refusal is not None:
                raise RuleError(refusal)
        if unknown := set(self.rules) - set(self.args):
            raise RuleError(f"{self.name}: there is a rule for {sorted(unknown)}, but the arguments are {self.args}.")
        if taken := set(self.args + self.meta) & RESERVED:
            raise RuleError(f"{self.name}: {sorted(taken)} cannot be used as argument names, because they are reserved in rules.")
        if self.kind not in KINDS or not (callable(self.reads) or self.reads in READS):
            raise RuleError(
                f"{self.name}: kind must be one of {KINDS}, and reads must be one of {READS} or a function; got "
                f"kind={self.kind!r}, reads={self.reads!r}."
            )
        if self.promote not in GUARDS:
            raise RuleError(f"{self.name}: promote must be one of {sorted(GUARDS)}, got {self.promote!r}.")
        if self.properties.costly and not isinstance(self.forward, np.ufunc):
            raise RuleError(f"{self.name}: only a ufunc can be costly, because it is computed in pieces; got {self.forward!r}.")

    def _find_needs(self, arg: str, rule: Rule, incoming: str) -> set[str]:
        allowed = {incoming, "xp", "lead", "out", "out_shape", f"{arg}_shape", *self.args, *self.meta}
        if self.variadic:
            allowed |= {"position"}
        names = parameters(rule)[0]
        if wrong := [n for n in names if n not in allowed]:
            raise RuleError(
                f"{self.name}: the rule for {arg!r} has unknown parameters: {', '.join(map(repr, wrong))}. Expected some of: "
                f"{', '.join(sorted(allowed))}."
            )
        return {n for n in names if n in self.args or n == "out"}

    def __call__(self, *args: Any, **meta: Any) -> Any:
        return self.apply(*args, **meta)

    def cotangent(self, arg: str, **values: Any) -> Any:
        """Apply the rule for `arg` to the given values. Formulas and sparsity patterns use it to run the same rules."""
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
    properties: Properties = ORDINARY,
    **rules: Rule,
) -> Primitive:
    """Declare a primitive whose output elements depend only on the inputs at the same position, after broadcasting."""
    return Primitive(
        name,
        "elementwise",
        forward,
        rules,
        None,
        node=node,
        tex=tex,
        formula=formula,
        promote=promote,
        piecewise=piecewise,
        properties=properties,
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
    properties: Properties = ORDINARY,
    **transposes: Rule,
) -> Primitive:
    """Declare a primitive that is linear in its arguments jointly. Each rule is a transpose.

    `batch(lead, *metadata)` returns the metadata of the op applied to a batch. It is needed if they differ from those of the op
    itself; with negative axes they are usually equal. `accumulate_into(total, g, lead, *metadata)` is for a primitive that reads
    a part of its argument. It adds the argument's cotangent to `total` in place, in time proportional to the part, and returns
    True if it did.
    """
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
        properties=properties,
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
    properties: Properties = ORDINARY,
    **adjoints: Rule,
) -> Primitive:
    """Declare a primitive that is linear in each of its two arguments (sums of products). Each rule is the adjoint for a side."""
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
        properties=properties,
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
    properties: Properties = ORDINARY,
) -> Primitive:
    """Declare a primitive with hand-written vjp and jvp rules."""
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
        properties=properties,
    )
