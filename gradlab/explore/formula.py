"""Formulas of rules: the rule that runs is called with symbols instead of arrays.

A `Formula` supports the operations of an array or Tensor. Its `rank` is its operator precedence, which determines the brackets.
It also records the operations, so that `evaluate` can compute it: a test compares every formula with its rule's numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from types import SimpleNamespace
from typing import Any

import numpy as np

from gradlab.core.node import Node
from gradlab.core.numpy_warnings import silence
from gradlab.core.primitive import Primitive
from gradlab.core.registry import PRIMITIVES
from gradlab.explore.libraries import GRADLAB

SUM, PRODUCT, PREFIX, POWER, ATOM = 1, 2, 3, 4, 9


class Formula:
    """An expression: its LaTeX, its precedence, and how to compute its value from its parts."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, text: str, rank: int = ATOM, apply: Callable[..., Any] | None = None, *parts: Any) -> None:
        self.text, self.rank, self.apply, self.parts = text, rank, apply, parts
        self.negated = ""  # the negation of a comparison

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """Compute the value, given arrays for the symbols."""
        with silence():
            return self.compute(values)

    def compute(self, values: Mapping[str, Any]) -> Any:
        if self.apply is None:
            return values[self.text]
        return self.apply(*(p.compute(values) if isinstance(p, Formula) else p for p in self.parts))

    def within(self, rank: int) -> str:
        return self.text if self.rank >= rank else rf"\left({self.text}\right)"

    def __repr__(self) -> str:
        return self.text

    def _repr_latex_(self) -> str:
        return f"${self.text}$"

    def __neg__(self) -> Formula:
        return Formula(f"-{self.within(PRODUCT)}", SUM, np.negative, self)

    def __getitem__(self, index: Any) -> Formula:  # indices are not shown, since they only add axes of length 1
        return Formula(self.text, self.rank, lambda x: x[index], self)

    @property
    def mT(self) -> Formula:  # noqa: N802  (the array API's name)
        return Formula(rf"{self.within(POWER + 1)}^{{\top}}", POWER, lambda x: x.mT, self)


def symbol(value: Any) -> Formula:
    """Return a formula unchanged, or a number as a formula."""
    return value if isinstance(value, Formula) else Formula(f"{value:g}", ATOM if value >= 0 else SUM, lambda: value)


def _operator(template: str, rank: int, apply: Callable[..., Any], left: int, right: int, negated: str = "") -> tuple[Any, Any]:
    def build(a: Any, b: Any) -> Formula:
        a, b = symbol(a), symbol(b)
        parts = a.within(left), b.within(right)
        result = Formula(template.format(*parts), rank, apply, a, b)
        result.negated = negated.format(*parts)
        return result

    return build, lambda a, b: build(b, a)


_OPERATORS: dict[str, tuple[str, int, Callable[..., Any], int, int]] = {
    "add": ("{} + {}", SUM, np.add, SUM, SUM),
    "sub": ("{} - {}", SUM, np.subtract, SUM, PRODUCT),
    "mul": (r"{}\,{}", PRODUCT, np.multiply, PRODUCT, PRODUCT),
    "matmul": (r"{}\,{}", PRODUCT, np.matmul, PRODUCT, PRODUCT),
    "truediv": (r"\frac{{{}}}{{{}}}", ATOM, np.divide, -ATOM, -ATOM),
    "pow": ("{}^{{{}}}", POWER, np.power, POWER + 1, -ATOM),
    "gt": ("{} > {}", 0, np.greater, SUM, SUM),
    "ge": (r"{} \ge {}", 0, np.greater_equal, SUM, SUM),
    "lt": ("{} < {}", 0, np.less, SUM, SUM),
    "le": (r"{} \le {}", 0, np.less_equal, SUM, SUM),
    "eq": ("{} = {}", 0, np.equal, SUM, SUM),
    "and": (r"{} \wedge {}", -1, np.logical_and, 0, 0),
}
_NEGATED = {"gt": r"{} \le {}", "ge": "{} < {}", "lt": r"{} \ge {}", "le": "{} > {}", "eq": r"{} \ne {}"}
for _name, _declared in _OPERATORS.items():
    _forward, _reflected = _operator(*_declared, _NEGATED.get(_name, ""))
    setattr(Formula, f"__{_name}__", _forward)
    if _name not in ("gt", "ge", "lt", "le", "eq", "and"):
        setattr(Formula, f"__r{_name}__", _reflected)


def _call(template: str, rank: int, apply: Callable[..., Any], inner: int = ATOM) -> Callable[..., Formula]:
    return lambda x: Formula(template.format(symbol(x).within(inner)), rank, apply, x)


def _where(condition: Formula, a: Any, b: Any) -> Formula:
    """Return Iverson brackets. A branch that is the number 0 is left out."""
    parts = [(f"[{condition.text}]", a), (f"[{condition.negated}]" if condition.negated else rf"[\lnot({condition.text})]", b)]
    text = " + ".join(rf"{mark}\,{symbol(v).within(PRODUCT)}" for mark, v in parts if isinstance(v, Formula) or v != 0)
    return Formula(text, SUM if " + " in text else PRODUCT, np.where, condition, a, b)


def _sum(x: Formula, axis: Any = None, keepdims: bool = False) -> Formula:
    return Formula(rf"\textstyle\sum {x.within(PRODUCT)}", PREFIX, lambda v: np.sum(v, axis=axis, keepdims=keepdims), x)


def _mean(x: Formula, axis: Any = None, keepdims: bool = False) -> Formula:
    return Formula(rf"\overline{{{x.text}}}", ATOM, lambda v: np.mean(v, axis=axis, keepdims=keepdims), x)


SYMBOLS = SimpleNamespace(  # NumPy's names on formulas
    log=_call(r"\log {}", PREFIX, np.log, PREFIX),
    log1p=_call(r"\log(1 + {})", PREFIX, np.log1p, SUM),
    sqrt=_call(r"\sqrt{{{}}}", ATOM, np.sqrt, -ATOM),
    sinh=_call(r"\sinh {}", PREFIX, np.sinh, PREFIX),
    cosh=_call(r"\cosh {}", PREFIX, np.cosh, PREFIX),
    exp=_call("e^{{{}}}", POWER, np.exp, -ATOM),
    sin=_call(r"\sin {}", PREFIX, np.sin, PREFIX),
    cos=_call(r"\cos {}", PREFIX, np.cos, PREFIX),
    sign=_call(r"\mathrm{{sgn}}\,{}", PREFIX, np.sign, PREFIX),
    zeros_like=lambda x: Formula("0", ATOM, np.zeros_like, x),
    where=_where,
    sum=_sum,
    mean=_mean,
)


class Rules(dict[str, Formula | str]):
    """Mapping {argument: formula of its cotangent}; "out" is the operation's own notation. Displayed as LaTeX."""

    def __init__(self, name: str, rules: Mapping[str, Formula | str]) -> None:
        super().__init__(rules)
        self.name = name

    def lines(self) -> list[str]:
        """Return a line of LaTeX for the operation, then one for each argument that gets a gradient."""
        ruled = [str(v) if isinstance(v, str) else rf"\bar{{{a}}} = {v.text}" for a, v in self.items() if a != "out"]
        return [f"y = {self['out']}", *ruled]

    def _repr_latex_(self) -> str:
        return r"$$\begin{aligned}" + r" \\ ".join(line.replace("=", "&=", 1) for line in self.lines()) + r"\end{aligned}$$"

    def __repr__(self) -> str:
        return f"{self.name}: " + "; ".join(self.lines())


def traceable(op: Primitive) -> bool:
    """Return whether the rule is readable as it runs: it moves no elements, and no formula is declared for it."""
    return op.formula is None and op.kind in ("elementwise", "bilinear") and op.name not in ("clone", "fill")


def formula(what: Primitive | Any) -> Rules:
    r"""Return the rules of an operation as formulas: how a cotangent passes back through it.

    If the rule that runs is not readable (it moves elements, or was parsed from a text), the declared formula is shown, or
    else only the notation.

    Parameters
    ----------
    what : str, Primitive or node
        The operation: its name ("tanh"), its primitive, or a node (`y.grad_fn`).

    Returns
    -------
    Rules
        Shown as LaTeX in a notebook. ȳ is the upstream gradient, x̄ the gradient for x.

    Raises
    ------
    ValueError
        If it is a custom Function, whose rule is code, or if there is no such operation.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([0.5], requires_grad=True)
    >>> gl.formula(x.tanh().grad_fn)
    TanhBackward0: y = \tanh x; \bar{x} = \bar{y}\,\left(1 - y\,y\right)
    """
    if isinstance(what, Node):
        what = GRADLAB.whole(what)
    written = getattr(what, "_forward_cls", None)
    if written is not None:
        raise ValueError(
            f"formula(): the rule of {written.__name__} is its own backward, which is code and not a formula: read "
            f"{written.__name__}.backward."
        )
    op = PRIMITIVES.get(what) if isinstance(what, str) else what if isinstance(what, Primitive) else getattr(what, "op", None)
    if op is None:
        near = get_close_matches(str(what), PRIMITIVES, n=5) or ["tanh", "mul", "matmul"]
        raise ValueError(f"formula() takes a primitive's name (such as {', '.join(near)}) or a node; got {what!r}.")
    meta: dict[str, Any] = {}
    if op.meta and not isinstance(what, (str, Primitive)) and not op.variadic:
        meta = dict(zip(op.meta, what.meta, strict=True))
    shown = {k: f"{v:g}" if isinstance(v, (int, float)) else str(k) for k, v in ({k: k for k in op.meta} | meta).items()}
    notation = (op.tex or rf"\mathrm{{{op.name}}}({', '.join(op.args)})").format(**{a: a for a in op.args}, **shown)
    rules: dict[str, Formula | str] = {"out": notation}
    if traceable(op) and (meta or not op.meta):  # a rule may depend on a setting, which must be known
        symbols = {a: Formula(a) for a in op.args}
        symbols_of = symbols | {k: meta.get(k, Formula(k)) for k in op.meta} | {f"{a}_shape": () for a in op.args}
        for arg in op.rules:
            rules[arg] = symbol(op.cotangent(arg, g=Formula(r"\bar{y}"), out=Formula("y"), xp=SYMBOLS, lead=(), **symbols_of))
    elif op.formula:
        rules["formula"] = op.formula
    return Rules(op.node_name, rules)
