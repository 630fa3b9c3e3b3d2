"""Facts about operations beside their rules: poles, how data are moved, the input of a loss, where an activation saturates.

A primitive states them where it is declared: `properties=Properties(poles=True)`. `gradlab.explore.operations` finds them by the
name of a node, for PyTorch's nodes too. They hold for the default settings of an operation and for real numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

Moves = Literal["", "layout", "order", "part", "join", "cast"]
Reduction = Literal["", "sum", "mean", "nansum", "product", "logsumexp", "norm", "spread", "extreme", "rank"]
Ends = Literal["", "below", "above", "both"]
Product = Literal["", "matrix", "layer"]


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Facts about a loss.

    Attributes
    ----------
    takes : str
        The predictions it expects: "values", "probabilities", "log-probabilities", "logits", or "scores", whose distance from a
        margin it measures.
    nonnegative : bool
        It is at least 0 for predictions that it expects.
    bounded_slope : bool
        Before the sum or the mean, its slope is at most 1 in size.
    """

    takes: Literal["values", "probabilities", "log-probabilities", "logits", "scores"]
    nonnegative: bool = True
    bounded_slope: bool = False


@dataclass(frozen=True, kw_only=True)
class Properties:
    """Facts about an operation.

    Attributes
    ----------
    poles : bool
        A finite cotangent can become infinite or NaN: the derivative is unbounded near a point, as that of a logarithm, grows
        exponentially, as that of `exp`, or is NaN at a point or where the result is infinite, as that of a log-sum-exp. Norms and
        standard deviations count, because their derivative is unbounded before it is set to 0 at 0, or NaN for one element.
        Products of operands do not count, nor do softmaxes and normalisations (`normalises`).
    poles_at : tuple of float
        Of a function of one number: where the function or its derivative is infinite.
    costly : bool
        The forward is a ufunc that takes longer than the memory access, so large arrays are worth several threads. Only gradlab's
        primitives state it.
    elementwise : bool
        An element of the result depends on the elements at the same position, after broadcasting. Derived for primitives.
    flat : bool
        The derivative is 0 everywhere; of an operation that fills a tensor, the derivative with respect to this tensor.
    still : bool
        The derivative is 0 where the input, or the difference that a loss measures, is 0. It may be a subgradient; of a power,
        it holds for exponents above 1.
    low, high : float
        All values of the result are in [low, high].
    keeps_sign : bool
        The result is nowhere negative if the inputs are not, and nowhere positive if they are not. Derived from `moves`.
    steepest : float or None
        The largest size of the derivative of a function of one number; None if it is not known or unbounded.
    saturates : str
        "below", "above" or "both": the ends at which the values approach a number, so that the slope goes to 0.
    rectifier : bool
        An activation that passes one range of its input on with a slope of about 1, and blocks the rest.
    leaky : bool
        An activation that multiplies negative numbers by a small slope and passes the others on.
    sigmoidal : bool
        An activation between two limits.
    ignores_minus_inf : bool
        An input of -inf stands for a masked element: softmaxes, log-sum-exps and maxima are those of the other elements, and
        exp and sigmoid are 0 there.
    moves : str
        How it moves data without computing: "layout" (all elements in another shape, order of axes or memory, or broadcast),
        "order" (elements reversed, shifted or repeated), "part" (some of the elements), "join" (the elements of several tensors)
        or "cast" (another dtype or device). Derived for views.
    transposes : bool
        It changes the order of the axes.
    inserts_axis : bool
        It inserts axes, or broadcasts: `x[:, None]` is recorded as Index, or as Slice and Unsqueeze.
    several : bool
        In PyTorch one node has several outputs with a gradient.
    chooses : bool
        A condition chooses between operands, or between an operand and a number.
    writes : bool
        It puts other values at some or all places of a tensor.
    adds : bool
        A sum or difference of two operands, element by element.
    addend : int or None
        The position of the argument that it adds to a product of the others, such as a bias.
    multiplies : bool
        A product or quotient of two operands, element by element.
    product : str
        It multiplies by a matrix of weights: "matrix" (a product of matrices or vectors) or "layer" (a linear layer or a
        convolution, whose weights have a row for each output, except in transposed convolutions).
    looks_up : bool
        It takes rows of a matrix of weights.
    normalises : bool
        It divides by the spread or the root mean square of a group of elements. With `eps=0` the derivative has poles at groups
        of equal elements, or of zeros.
    reduces : str
        How it reduces a tensor: "sum" and "mean" are linear; "nansum", "product", "logsumexp", "norm", "spread" (variance and
        standard deviation), "extreme" (minimum, maximum) and "rank" (median, mode) are not.
    loss : Loss or None
        Facts about a loss.
    draws : bool
        It draws random numbers.
    drops : bool
        A dropout: it sets random elements to 0.
    recurrent : bool
        It runs layers of a recurrent network over all time steps.
    channels_first : bool
        A convolution, or a normalisation of channels: axis 1 of the result has the channels.
    short_name : str
        Its sign or name in sentences; "" if that is the node's name in lower case.
    """

    poles: bool = False
    poles_at: tuple[float, ...] = ()
    costly: bool = False
    elementwise: bool = False
    flat: bool = False
    still: bool = False
    low: float = -inf
    high: float = inf
    keeps_sign: bool = False
    steepest: float | None = None
    saturates: Ends = ""
    rectifier: bool = False
    leaky: bool = False
    sigmoidal: bool = False
    ignores_minus_inf: bool = False
    moves: Moves = ""
    transposes: bool = False
    inserts_axis: bool = False
    several: bool = False
    chooses: bool = False
    writes: bool = False
    adds: bool = False
    addend: int | None = None
    multiplies: bool = False
    product: Product = ""
    looks_up: bool = False
    normalises: bool = False
    reduces: Reduction = ""
    loss: Loss | None = None
    draws: bool = False
    drops: bool = False
    recurrent: bool = False
    channels_first: bool = False
    short_name: str = ""

    def __post_init__(self) -> None:
        if self.moves:
            object.__setattr__(self, "keeps_sign", True)
        if self.loss is not None and self.loss.nonnegative:
            object.__setattr__(self, "low", 0.0)


ORDINARY = Properties()  # nothing special is known
ELEMENTWISE = Properties(elementwise=True)


def add_derived(properties: Properties, kind: str, view: bool) -> Properties:
    """Return the properties of a primitive with those that follow from its kind, and from its being a view."""
    derived: dict[str, object] = {"elementwise": True} if kind == "elementwise" else {}
    if view and not properties.moves:
        derived |= {"moves": "layout", "keeps_sign": True}
    if not derived:
        return properties
    if properties is ORDINARY and not view:
        return ELEMENTWISE
    copy = object.__new__(Properties)
    copy.__dict__.update(properties.__dict__, **derived)  # `replace` would double the time that the declarations take
    return copy
