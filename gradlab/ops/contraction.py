"""Sums of products over named axes: `einsum`, `tensordot`, `inner` and `kron`.

An einsum is compiled once for an equation and the operands' shapes. The result is a short list of instructions (diagonal,
permute, reshape, sum, product) that run as ordinary operations on tensors. Gradients of any order and batched gradients
therefore need no further code, and a repeated call costs little more than its products.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

from gradlab.core.operator import composite
from gradlab.core.out_argument import takes_out
from gradlab.core.promotion import cast
from gradlab.core.tensor import Tensor
from gradlab.ops.arguments import check_tensors, negative_dim
from gradlab.ops.products import check_dtypes
from gradlab.ops.shapes import UNSAFE_VIEW
from gradlab.rules import elementwise as el
from gradlab.rules import matrix, reductions, shapes

__all__ = ["einsum", "inner", "kron", "tensordot"]

Labels = tuple[Any, ...]  # one label per axis: a letter, or a negative number for an axis of the ellipsis
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


# ---------------------------------------------------------------------------------------------------------- parsing
def parse_subscripts(equation: str) -> tuple[list[list[str]], list[str] | None]:
    """Return the letters of each operand and of the output (None if it is implicit). "..." counts as one letter."""

    def fail(at: int) -> RuntimeError:
        return RuntimeError(
            f"einsum(): invalid subscript given at index {at} in the equation string, subscripts must be in "
            f"[a-zA-Z]. The equation is {equation!r}."
        )

    operands: list[list[str]] = [[]]
    output: list[str] | None = None
    at = 0
    while at < len(equation):
        char, current = equation[at], operands[-1] if output is None else output
        where = f"for operand {len(operands) - 1}" if output is None else "for output"
        if char == ".":
            if "..." in current:
                raise RuntimeError(f"einsum(): found '.' {where} for which an ellipsis was already found")
            if equation[at : at + 3] != "...":
                raise RuntimeError(f"einsum(): found '.' {where} that is not part of any ellipsis (...)")
            current.append("...")
            at += 2
        elif char == "," and output is None:
            operands.append([])
        elif char == "-" and output is None:
            if equation[at : at + 2] != "->":
                raise fail(at)
            output = []
            at += 1
        elif char in LETTERS:
            current.append(char)
        elif char != " ":
            raise fail(at)
        at += 1
    return operands, output


def label_axes(letters: list[str], ndim: int, position: int) -> Labels:
    """Return a label for each axis of an operand."""
    named = len(letters) - ("..." in letters)
    if named > ndim or (named < ndim and "..." not in letters):
        extra = "" if "..." in letters else " and no ellipsis was given"
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({named}) "
            f"{'is more than' if extra == '' else 'does not match'} the number of dimensions "
            f"({ndim}) for operand {position}{extra}"
        )
    spread = tuple(range(named - ndim, 0))
    return tuple(part for letter in letters for part in (spread if letter == "..." else (letter,)))


def label_operands(equation: str, ndims: tuple[int, ...]) -> tuple[list[Labels], Labels]:
    """Return the labels of each operand's axes and of the output's axes."""
    operands, output = parse_subscripts(equation)
    if len(operands) != len(ndims):
        raise RuntimeError(
            f"einsum(): {'fewer' if len(ndims) < len(operands) else 'more'} operands were provided than specified "
            f"in the equation. {equation!r} has {len(operands)}, and {len(ndims)} were given."
        )
    inputs = [label_axes(letters, n, i) for i, (letters, n) in enumerate(zip(operands, ndims, strict=True))]
    seen = [label for labels in inputs for label in labels]
    spread = tuple(sorted({label for label in seen if isinstance(label, int)}))
    if output is None:
        return inputs, spread + tuple(sorted(label for label in seen if isinstance(label, str) and seen.count(label) == 1))
    for letter in output:
        if letter != "...":
            if output.count(letter) > 1:
                raise RuntimeError(f"einsum(): output subscript {letter} appears more than once in the output")
            if letter not in seen:
                raise RuntimeError(f"einsum(): output subscript {letter} does not appear in the equation for any input operand")
    return inputs, tuple(part for letter in output for part in (spread if letter == "..." else (letter,)))


def label_sizes(inputs: list[Labels], sizes: Sequence[tuple[int, ...]]) -> dict[Any, int]:
    """Return the size of each label. Axes of size 1 broadcast."""
    known: dict[Any, int] = {}
    for position, (labels, shape) in enumerate(zip(inputs, sizes, strict=True)):
        own: dict[Any, int] = {}
        for label, n in zip(labels, shape, strict=True):
            if own.setdefault(label, n) != n:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand {position} but the sizes don't match, "
                    f"{n} != {own[label]}"
                )
        for label, n in own.items():
            if known.setdefault(label, n) == 1:
                known[label] = n
            elif n not in (1, known[label]):
                name = label if isinstance(label, str) else "of an ellipsis"
                raise RuntimeError(
                    f"einsum(): subscript {name} has size {n} for operand {position} which does not broadcast "
                    f"with previously seen size {known[label]}"
                )
    return known


# ---------------------------------------------------------------------------------------------------------- compiling
PERMUTE, RESHAPE, SUM = shapes.permute.record, shapes.reshape.record, reductions.sum_.record
DIAGONAL, MM, BMM, MUL = shapes.diagonal.record, matrix.matmul.record, matrix.bmm.record, el.mul.record


class EinsumProgram:
    """List of instructions on numbered values, operands first, with the labels and the shape of each value."""

    def __init__(self, inputs: list[Labels], sizes: Sequence[tuple[int, ...]]) -> None:
        self.steps: list[tuple[Any, tuple[int, ...], dict[str, Any]]] = []
        self.labels, self.shapes = list(inputs), list(sizes)

    def add(self, record: Any, at: tuple[int, ...], labels: Labels, size: tuple[int, ...], **meta: Any) -> int:
        self.steps.append((record, at, meta))
        self.labels.append(labels)
        self.shapes.append(size)
        return len(self.shapes) - 1

    def permute(self, x: int, order: Labels, always: bool = False) -> int:
        labels, shape = self.labels[x], self.shapes[x]
        axes = tuple(labels.index(label) for label in order)
        if axes == tuple(range(len(axes))) and not always:
            return x
        return self.add(PERMUTE, (x,), order, tuple(shape[i] for i in axes), axes=tuple(i - len(axes) for i in axes))

    def reshape(self, x: int, shape: tuple[int, ...], labels: Labels, always: bool = False) -> int:
        if shape == self.shapes[x] and not always:
            self.labels[x] = labels
            return x
        return self.add(RESHAPE, (x,), labels, shape, shape=shape)

    def sum(self, x: int, dropped: Any) -> int:
        """Sum over the labels in `dropped`."""
        labels, shape = self.labels[x], self.shapes[x]
        axes = tuple(i - len(labels) for i, label in enumerate(labels) if label in dropped)
        if not axes:
            return x
        return self.add(
            SUM,
            (x,),
            tuple(label for label in labels if label not in dropped),
            tuple(n for n, label in zip(shape, labels, strict=True) if label not in dropped),
            axis=axes,
            keepdims=False,
        )

    def prepare(self, x: int, known: dict[Any, int]) -> int:
        """Take diagonals so that each label occurs once, and drop axes of size 1 that broadcast."""
        while doubled := next((label for label in self.labels[x] if self.labels[x].count(label) > 1), None):
            labels, shape = self.labels[x], self.shapes[x]
            i, j = [at for at, label in enumerate(labels) if label == doubled][:2]
            rest = [at for at in range(len(labels)) if at not in (i, j)]
            x = self.add(
                DIAGONAL,
                (x,),
                (*(labels[at] for at in rest), doubled),
                (*(shape[at] for at in rest), shape[i]),
                offset=0,
                axes=(i - len(labels), j - len(labels)),
            )
        labels, shape = self.labels[x], self.shapes[x]
        keep = [i for i, label in enumerate(labels) if shape[i] == known[label]]
        return self.reshape(x, tuple(shape[i] for i in keep), tuple(labels[i] for i in keep))

    def product(self, x: int, y: int, keep: frozenset[Any], known: dict[Any, int], last: Labels | None) -> int:
        """Contract a pair of values, summing over labels not in `keep`. `last` is the output's order if this is the last pair."""
        if not (set(self.labels[x]) | set(self.labels[y])) - keep:
            return self.multiply(x, y, known, last)
        one, two = self.labels[x], self.labels[y]
        x, y = self.sum(x, set(one) - set(two) - keep), self.sum(y, set(two) - set(one) - keep)
        one, two = self.labels[x], self.labels[y]
        batch = tuple(label for label in one if label in two and label in keep)
        summed = tuple(label for label in one if label in two and label not in keep)
        rows, columns = tuple(k for k in one if k not in two), tuple(k for k in two if k not in one)

        def size(labels: Labels) -> tuple[int, ...]:
            return tuple(known[label] for label in labels)

        front, inside = size(batch), prod(size(summed))
        x = self.reshape(self.permute(x, batch + rows + summed), (*front, prod(size(rows)), inside), ())
        y = self.reshape(self.permute(y, batch + summed + columns), (*front, inside, prod(size(columns))), ())
        z = self.add(BMM if batch else MM, (x, y), (), (*front, prod(size(rows)), prod(size(columns))))
        labels = batch + rows + columns
        if last is None or last == labels:
            return self.reshape(z, size(labels), labels, always=last is not None)
        return self.reshape(self.permute(self.reshape(z, size(labels), labels), last), size(last), last, always=True)

    def multiply(self, x: int, y: int, known: dict[Any, int], last: Labels | None) -> int:
        """Multiply a pair of values elementwise, if no label is summed."""
        one, two = self.labels[x], self.labels[y]
        order = last or one + tuple(label for label in two if label not in one)
        sides = []
        for side in (x, y):
            own = self.labels[side]
            side = self.permute(side, tuple(label for label in order if label in own))
            lengths = tuple(known[label] if label in own else 1 for label in order)
            while lengths[:1] == (1,) and order[len(order) - len(lengths)] not in own:
                lengths = lengths[1:]
            sides.append(self.reshape(side, lengths, own))
        return self.add(MUL, (sides[0], sides[1]), order, tuple(known[label] for label in order))


@lru_cache(1024)
def compile_einsum(equation: str, sizes: tuple[tuple[int, ...], ...]) -> list[tuple[Any, tuple[int, ...], dict[str, Any]]]:
    """Return the instructions for an equation and the shapes of its operands."""
    inputs, output = label_operands(equation, tuple(map(len, sizes)))
    known = label_sizes(inputs, sizes)
    plan = EinsumProgram(inputs, sizes)
    waiting = [plan.prepare(i, known) for i in range(len(sizes))]
    while len(waiting) > 1:
        i, j = cheapest_pair(plan, waiting, output, known)
        later = frozenset(output).union(*(plan.labels[k] for k in waiting if k not in (i, j)))
        waiting = [k for k in waiting if k not in (i, j)]
        waiting.append(plan.product(i, j, later, known, None if waiting else output))
    only = waiting[0]
    if len(sizes) == 1:
        dropped = set(plan.labels[only]) - set(output)
        order = output if not dropped else output + tuple(k for k in plan.labels[only] if k in dropped)
        only = plan.sum(plan.permute(only, order, always=not dropped), dropped)
    return plan.steps


def cheapest_pair(plan: EinsumProgram, waiting: list[int], output: Labels, known: dict[Any, int]) -> tuple[int, int]:
    """Return the pair of values to contract next.

    It minimises the size of the result minus the sizes of the pair, then the number of multiplications, then the position. This
    is the greedy order of Daniel Smith and Johnnie Gray, "opt_einsum", JOSS 2018.
    """

    def size(labels: Any) -> int:
        return prod(known[label] for label in labels)

    def cost(i: int, j: int) -> tuple[int, int, int, int]:
        keep = set(output).union(*(plan.labels[k] for k in waiting if k not in (i, j)))
        both = set(plan.labels[i]) | set(plan.labels[j])
        return size(both & keep) - size(plan.labels[i]) - size(plan.labels[j]), size(both), i, j

    if len(waiting) == 2:
        return waiting[0], waiting[1]
    return min((cost(i, j) for n, i in enumerate(waiting) for j in waiting[n + 1 :]))[2:]


def parse_sublists(args: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """Convert einsum(a, [0, 1], b, [1, 2], [0, 2]) to an equation and a list of operands."""

    def letters(sublist: Any) -> str:
        text = ""
        for label in sublist:
            if label is Ellipsis:
                text += "..."
            elif isinstance(label, int) and 0 <= label < len(LETTERS):
                text += LETTERS[label]
            else:
                raise ValueError(
                    f"einsum(): the subscripts list must contain Ellipsis or integers in the range [0, 52), got {label!r}"
                )
        return text

    equation = ",".join(letters(labels) for labels in args[1::2])
    if len(args) % 2:
        equation = ",".join(letters(labels) for labels in args[1:-1:2]) + "->" + letters(args[-1])
    return equation, list(args[:-1:2] if len(args) % 2 else args[::2])


def einsum(*args: Any) -> Tensor:
    """Sum products of the operands' elements along axes named in Einstein notation.

    Parameters
    ----------
    *args : str and Tensor
        Equation and operands: `einsum("ij,jk->ik", a, b)`. The operands may be in a list. Alternatively, each operand followed
        by its axes as a list of integers, then the axes of the output: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.

    Returns
    -------
    Tensor
        Tensor with the axes named in the output.

    Raises
    ------
    RuntimeError
        If the equation is invalid or does not match the shapes.

    Notes
    -----
    Letters name the axes of each operand. Letters that are missing from the output are summed over. Without "->", the output has
    the axes of the ellipsis, then the letters that appear once, in alphabetical order. A letter that appears twice in one operand
    takes its diagonal. "..." stands for any number of axes, which broadcast.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.einsum("ij,jk->ik", gl.tensor([[1.0, 2.0]]), gl.tensor([[3.0], [4.0]]))
    tensor([[11.]])
    >>> gl.einsum("ii", gl.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list"
        )
    equation, operands = (args[0], args[1:]) if isinstance(args[0], str) else parse_sublists(args)
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    for position, x in enumerate(operands):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {position} in argument 1, but got {type(x).__name__}")
    values = list(operands)
    mixed = len({x.array.dtype for x in operands}) > 1  # (intermediate sums of small integers are int64)
    for record, at, meta in compile_einsum(equation, tuple([x.array.shape for x in operands])):
        if len(at) == 1:
            values.append(record(values[at[0]], **meta))
        else:
            a, b = values[at[0]], values[at[1]]
            if mixed and a.array.dtype is not b.array.dtype and record is not MUL:
                raise RuntimeError(
                    f"expected scalar type {a.dtype.word} but found {b.dtype.word}. Convert one of them: "
                    "x.float(), x.to(y.dtype)."
                )
            values.append(record(a, b))
    return values[-1]


# ---------------------------------------------------------------------------------------------------------- tensordot
@takes_out
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Contract two tensors over pairs of axes.

    Parameters
    ----------
    a, b : Tensor
        Operands.
    dims : int or pair of lists of int, default: 2
        An integer n contracts the last n axes of `a` with the first n axes of `b`. A pair of lists names the axes of each.

    Returns
    -------
    Tensor
        Remaining axes of `a`, then the remaining axes of `b`.

    Raises
    ------
    RuntimeError
        If the numbers of axes differ, or paired axes differ in size.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.tensordot(gl.ones(2, 3), gl.ones(3, 4), dims=1).shape
    gradlab.Size([2, 4])
    """
    check_tensors("tensordot", a=a, b=b)
    m, n = a.array.ndim, b.array.ndim
    if isinstance(dims, Tensor):
        dims = dims.array.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(m, n):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        axes: tuple[list[int], list[int]] = list(range(-dims, 0)), list(range(dims))
    else:
        first, second = dims
        axes = [first] if isinstance(first, int) else list(first), [second] if isinstance(second, int) else list(second)
    return contract(a, b, *axes)


def contract(a: Tensor, b: Tensor, of_a: list[int], of_b: list[int]) -> Tensor:
    """Compute `tensordot` for lists of axes."""
    if len(of_a) != len(of_b):
        raise RuntimeError("both dimension lists should have same length")
    if a.array.dtype is not b.array.dtype:
        raise RuntimeError("both inputs should have same dtype")
    if a.array.dtype.kind == "b":
        check_dtypes(a, b)
    one, two, m, n = a.array.shape, b.array.shape, a.array.ndim, b.array.ndim
    left, right = [negative_dim(d, m) for d in of_a], [negative_dim(d, n) for d in of_b]
    for i, j, p, q in zip(left, right, of_a, of_b, strict=True):
        if one[i] != two[j] and 1 not in (one[i], two[j]):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {one[i]} in dim {p} and second has size "
                f"{two[j]} in dim {q}"
            )
        if one[i] != two[j]:  # sum over the broadcast axis first
            if one[i] == 1:
                b = cast(reductions.sum_.record(b, axis=(j,), keepdims=True), a.array.dtype)
            else:
                a = cast(reductions.sum_.record(a, axis=(i,), keepdims=True), b.array.dtype)
    one, two = a.array.shape, b.array.shape
    rows = [i for i in range(-m, 0) if i not in left]
    columns = [j for j in range(-n, 0) if j not in right]
    inside, result = prod(one[i] for i in left), tuple(one[i] for i in rows) + tuple(two[j] for j in columns)
    if not rows and not columns:
        flat = (shapes.reshape.record(x, shape=(inside,)) for x in (permute_to(a, left), permute_to(b, right)))
        return shapes.reshape.record(matrix.dot.record(*flat), shape=())
    x = shapes.reshape.record(permute_to(a, rows + left), shape=(prod(one[i] for i in rows), inside))
    y = shapes.reshape.record(permute_to(b, right + columns), shape=(inside, prod(two[j] for j in columns)))
    return shapes.reshape.record(matrix.matmul.record(x, y), shape=result)


def permute_to(x: Tensor, axes: list[int]) -> Tensor:
    return x if axes == list(range(-len(axes), 0)) else shapes.permute.record(x, axes=tuple(axes))


@composite()
@takes_out
def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sum products of elements over the last axes of two tensors.

    Parameters
    ----------
    input : Tensor
        Tensor of shape (…, n).
    other : Tensor
        Tensor of shape (…, n). If either operand is 0-d, the result is their product.
    {out}

    Returns
    -------
    Tensor
        All axes of `input` except the last, then all axes of `other` except the last.

    Raises
    ------
    TypeError
        If an operand is not a Tensor.
    RuntimeError
        If the last axes differ in size.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.inner(gl.tensor([[1., 2.], [3., 4.]]), gl.tensor([1., 2.]))
    tensor([ 5., 11.])
    """
    check_tensors("inner", input=input, other=other)
    one, two = input.array.shape, other.array.shape
    if not one or not two:
        return el.mul.record(input, other)
    if one[-1] != two[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(one)} and {list(two)}"
        )
    return contract(input, other, [-1], [-1])


@composite()
@takes_out
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the Kronecker product: blocks of each element of `input` times `other`.

    Parameters
    ----------
    input : Tensor
        Tensor of any shape.
    other : Tensor
        Tensor of any shape. The operand with fewer axes gets axes of size 1 in front.
    {out}

    Returns
    -------
    Tensor
        Each size is the product of the operands' sizes; common dtype.

    Raises
    ------
    TypeError
        If an operand is not a Tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.kron(gl.tensor([1., 2.]), gl.tensor([[1., 2.], [3., 4.]]))
    tensor([[1., 2., 2., 4.],
            [3., 4., 6., 8.]])
    """
    check_tensors("kron", input=input, other=other)
    ndim = max(input.array.ndim, other.array.ndim)
    one, two = ((1,) * (ndim - x.array.ndim) + x.array.shape for x in (input, other))
    blocks = shapes.reshape.record(input, shape=tuple(k for n in one for k in (n, 1)))
    inside = shapes.reshape.record(other, shape=tuple(k for m in two for k in (1, m)))
    return UNSAFE_VIEW.record(el.mul.record(blocks, inside), shape=tuple(n * m for n, m in zip(one, two, strict=True)))
