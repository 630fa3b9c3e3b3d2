"""A public operator is declared once; where its names are found, and what `help` says of it, follows from that.

    exp2 = operator(elementwise("exp2", np.exp2, …), "2 to the power of each element.", "[0., 3.] -> [1., 8.]")

    @composed(inplace="method")
    def mvlgamma(input, p, *, out=None): …

The first says of a primitive that its recording function is public: its docstring is made here, of the dtype rule, the notation
(`tex`) and an example, which a test runs. The second says the same of a function that hands over to primitives; in its docstring
`{input}`, `{out}` and the other names of PARAMETERS stand for what is described once, below.

    aliases     further names, which mean the same function
    method      whether `Tensor` has it as a method, with its aliases
    inplace     its in-place twin: "function" if torch has `gradlab.exp_(x)` beside `x.exp_()`, "method" if only that, "" if none;
                or those of the twins' names that torch has as functions
    history     whether the result can have one; if not, the twin's answers replace the numbers, and no gradient passes
    shares      the operator whose in-place twin is this one's too
    twin        what the in-place twin does, where that is not the operator itself: another primitive, or a function
    top         whether it is a name of `gradlab` itself
    special     its names in `gradlab.special`

A function whose in-place twin is more than its result copied carries it as the attribute `twin` (`gradlab.ops.indexed_writes`,
`gradlab.ops.inplace_views`).

`gradlab.ops.declared`, `gradlab.ops.declared_special` and `gradlab.methods.declared` hand these names on; their stubs, by which
type checkers and editors know them, are written by `python tests/stubs.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import cleandoc
from typing import Any, TypeVar

from gradlab.core.registry import Origin, refuse_taken_name

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

PARAMETERS = {
    "dim": "dim : int or tuple of ints, optional\n    The dimensions that are reduced, all by default. `axis` means the same.",
    "one_dim": "dim : int\n    The dimension along which it is computed. `axis` means the same.",
    "last_dim": "dim : int, default -1\n    The dimension along which it is computed. `axis` means the same.",
    "keepdim": "keepdim : bool, default False\n    Keep each reduced dimension, with size 1. `keepdims` means the same.",
    "dtype": "dtype : dtype, optional\n    What `input` is converted to first.",
    "unbiased": (
        "unbiased : bool, optional\n    False means a `correction` of 0. It may stand in the place of `dim`, for all dimensions: "
        "``x.var(False)``."
    ),
    "correction": "correction : number, default 1\n    What is subtracted from the number of elements in the denominator.",
    "outs": "out : tuple of Tensor, optional\n    Where the results are written. It is refused while a gradient is wanted.",
    "no_tensor": "TypeError\n    If `input` is no tensor.",
    "no_axis": "IndexError\n    If `input` has no such dimension.",
    "no_axes": (
        "IndexError\n    If `input` has no such dimension.\nRuntimeError\n    If a dimension is named twice, or `out` is given "
        "while a gradient is wanted."
    ),
    "input": "input : Tensor\n    The tensor, of any shape.",
    "other": "other : Tensor\n    The second operand, of a shape that broadcasts with that of `input`.",
    "either": "input : Tensor or number\n    The first operand. One of the two is a tensor.",
    "number": "other : Tensor or number\n    The second operand; a tensor of a shape that broadcasts with that of `input`.",
    "exponent": "exponent : Tensor or number\n    The exponent; a tensor of a shape that broadcasts with that of `input`.",
    "out": (
        "out : Tensor, optional\n    Where the result is written, and what is returned. It is refused while a gradient of the "
        "result is wanted."
    ),
    "dimension": "dim : int\n    The dimension, counted from the end if it is negative.",
    "first_dim": "dim : int, default 0\n    The dimension, counted from the end if it is negative.",
    "at_least_1d": "input : Tensor\n    The tensor, of at least one dimension.",
    "result_dtype": "dtype : dtype, optional\n    The dtype of the result.",
    "device": "device : device or str, optional\n    Where the result is.",
    "tensors": "tensors : sequence of Tensor\n    A list or a tuple of tensors.",
    "index": "index : Tensor\n    Integers, int64 or int32, of as many dimensions as `input`.",
    "slices": "index : Tensor\n    Integers, 0-d or 1-d: which slices of the dimension.",
    "source_slices": "source : Tensor\n    The slices, of the dtype of `input`: as many as `index` names.",
    "offset": "offset : int, default 0\n    Which diagonal: above the main one if it is positive, below if negative.",
    "diagonal": "diagonal : int, default 0\n    Which diagonal: above the main one if it is positive, below if negative.",
    "matrices": "input : Tensor\n    A matrix, or a batch of them.",
    "row_col": "row, col : int\n    The sizes of the matrix.",
    "ignored": "layout, pin_memory : optional\n    Taken as torch takes them, and without effect.",
    "size": "size : int or sequence of int\n    The shape: ``(2, 3)`` as one sequence, or as integers one after the other.",
    "created_dtype": "dtype : dtype, optional\n    The dtype of the result; the default one if it is left out.",
    "like_dtype": "dtype : dtype, optional\n    The dtype of the result; that of `input` if it is left out.",
    "like_device": "device : device or str, optional\n    Where the result is; where `input` is, if it is left out.",
    "created_out": "out : Tensor, optional\n    Where the result is written, and what is returned.",
    "memory_format": "memory_format : memory_format, optional\n    How the elements lie in memory.",
    "requires_grad": (
        "requires_grad : bool, default False\n    Whether a gradient of the result is wanted. Its dtype must be floating point."
    ),
    "generator": "generator : Generator, optional\n    The stream that is drawn from; the default one if it is left out.",
    "mask": "mask : Tensor\n    Bools, of a shape that broadcasts with that of `input`.",
    "include_self": (
        "include_self : bool, default True\n    Whether the element that is there counts too. (Where nothing goes, it stays.)"
    ),
}
# By the dtype rule (`core.promotion`): which dtypes an operand may have, and which the result has.
DTYPES = {
    "same": ("of any dtype", "of its dtype"),
    "number": ("floating point or integers", "of its dtype"),
    "float": (
        "of any dtype; integers and bools are computed in the default dtype",
        "floating point",
    ),
    "real tensors": ("floating point", "of the common dtype"),
    "float tensors": ("of any dtype; integers and bools are computed in the default dtype", "floating point"),
    "tensors": ("of any dtype", "of the common dtype"),
}
REFUSED = {"number": "NotImplementedError, RuntimeError\n    If `input` holds bools."}
SHARED = re.compile(r"^( *)\{(\w+)\}$", re.MULTILINE)
BOOLS = re.compile(r"(?<=[\[ ]) *(True|False)")
WRITTEN = "input : Tensor\n    The tensor that is written to: `x` in ``x.{}(…)``."
UNWRITABLE = (
    "RuntimeError\n    If this tensor is a leaf that requires a gradient, if its dtype cannot hold the result, or if the\n"
    "    result has another shape."
)
NOT_FLOATING = "NotImplementedError\n    If the operands are not floating point."


class Operator:
    """What is public of one operator. `target` is the primitive or the function."""

    def __init__(
        self,
        name: str,
        target: Any,
        summary: str = "",
        example: str = "",
        *,
        aliases: str = "",
        method: bool = True,
        inplace: str = "",
        top: bool = True,
        special: str = "",
        history: bool = True,
        shares: str = "",
        twin: Any = None,
    ) -> None:
        self.name, self.target, self.summary, self.example = name, target, summary, example
        self.aliases, self.method, self.inplace, self.top = aliases.split(), method, inplace, top
        self.special, self.history, self.shares = special.split(), history, shares
        self.twin = twin or getattr(target, "twin", None) or target
        self.is_primitive = hasattr(target, "record")
        self.origin: Origin = getattr(target, "origin", None) or (target.__module__, target.__qualname__)
        for one in self.names:
            refusal = one in NAMES and refuse_taken_name("an operator", one, NAMES[one].origin, self.origin)
            if refusal:
                raise ValueError(refusal)
        OPERATORS[name] = self
        NAMES.update(dict.fromkeys(self.names, self))

    @property
    def names(self) -> list[str]:
        return [self.name, *self.aliases]

    @property
    def twins(self) -> list[str]:
        return [f"{name}_" for name in self.names] if self.inplace else []

    @property
    def twin_functions(self) -> list[str]:
        """The names of twins that are functions of `gradlab` too."""
        return self.twins if self.inplace == "function" else [name for name in self.twins if name in self.inplace.split()]

    @property
    def function(self) -> Callable[..., Any]:
        """What users call: the recording function of a primitive, or the function itself."""
        function: Callable[..., Any] = self.target.record if self.is_primitive else self.target
        return function

    def published(self) -> Callable[..., Any]:
        """The function, with the name, the annotations and the docstring that users see."""
        function = self.function
        if self.is_primitive and function.__doc__ is None:
            function.__name__ = function.__qualname__ = self.name
            function.__annotations__ = dict.fromkeys(self.target.public, "Tensor") | {"out": "Tensor | None", "return": "Tensor"}
            function.__doc__ = self.documentation()
        return function

    def documentation(self) -> str:
        """The docstring of a primitive's function, in the sections of numpydoc."""
        op = self.target
        operands, result = DTYPES[op.promote]
        shapes = "The shape of `input`" if len(op.args) == 1 else "The shape that the operands broadcast to"
        parameters = [PARAMETERS[name] for name in op.public]
        parameters[0] = parameters[0].replace("of any shape.", f"of any shape, {operands}.")
        refused = []
        if op.promote in REFUSED:
            refused.append(REFUSED[op.promote])
        if len(op.args) == 2:
            refused.append("RuntimeError\n    If the shapes do not broadcast.")
        if op.promote == "real tensors":
            refused.append(NOT_FLOATING)
        what = "`input` is" if len(op.args) == 1 else "an operand is"
        sections = [
            self.summary,
            section("Parameters", *parameters, PARAMETERS["out"]),
            section("Returns", f"Tensor\n    {shapes}, {result}."),
            section("Raises", f"TypeError\n    If {what} no tensor.", *refused),
            section("Notes", self.notation()),
            section("Examples", self.examples()),
        ]
        return "\n\n".join(sections) + "\n"

    def documentation_of_twin(self) -> str:
        """The docstring of the in-place twin: it takes and refuses what the operator does, and what cannot be written."""
        if self.is_primitive:
            parameters, refused = [PARAMETERS[name] for name in self.target.public[1:]], []
            examples = self.examples()
        elif self.target.__doc__ is None:  # python -OO
            return ""
        else:
            whole = sections_of(self.target.__doc__)
            parameters = [one for one in entries(whole["Parameters"])[1:] if not one.startswith("out :")]
            refused, examples = entries(whole.get("Raises", "")), whole["Examples"]
        own = getattr(self.twin, "twin_doc", "")
        sections = [
            own or f"`{self.name}`, written into this tensor's memory.",
            section("Parameters", WRITTEN.format(f"{self.name}_"), *parameters),
            section("Returns", "Tensor\n    This tensor, with its new elements."),
            section("Raises", *refused, getattr(self.twin, "refuses", UNWRITABLE)),
            *self.examples_of_twin(examples),
        ]
        return "\n\n".join(sections) + "\n"

    def examples_of_twin(self, examples: str) -> list[str]:
        """The first call, as one of the method. Answers that are True and False are written as numbers."""
        for call in (f">>> gl.{self.name}(", f">>> gl.special.{self.name}("):  # a pattern for each would be compiled for each
            before, called, after = examples.partition(call)
            if called:
                break
        else:
            return []
        depth = end = 0
        while depth or after[end] not in ",)":  # to where the first argument ends
            depth += (after[end] in "([") - (after[end] in ")]")
            end += 1
        tensor, others = after[:end], after[end:].removeprefix(", ")
        others, _, result = re.split(r"\n>>>|\n\n", others)[0].rstrip().partition("\n")
        if BOOLS.search(result) and not BOOLS.search(tensor):
            point = "." * ("." in tensor.removeprefix("gl."))
            result = BOOLS.sub(lambda match: f"{int(match[1] == 'True')}{point}", result)
        name, setup = (tensor, "") if tensor.isidentifier() else ("x", f">>> x = {tensor}\n")
        return [section("Examples", f"{before}{setup}>>> {name}.{self.name}_({others}\n{result}")]

    def notation(self) -> str:
        op = self.target
        letters = ", ".join(f"{letter} of `{name}`" for letter, name in zip(op.args, op.public, strict=True))
        lines = [
            f"For each element {letters}:".replace(", ", " and "),
            "",
            f".. math:: y = {op.tex.format(**{a: a for a in op.args})}",
        ]
        if op.formula:
            lines += ["", "A cotangent of y goes back as", "", f".. math:: {op.formula}"]
        return "\n".join(lines)

    def examples(self) -> str:
        arguments, _, result = self.example.partition(" -> ")
        place = "" if self.top else "special."
        operands = ", ".join(f"gl.tensor({one})" for one in arguments.split("; "))
        return f">>> import gradlab as gl\n>>> gl.{place}{self.name}({operands})\ntensor({result})"


OPERATORS: dict[str, Operator] = {}
NAMES: dict[str, Operator] = {}  # the same with their aliases


def section(title: str, *entries: str) -> str:
    return "\n".join([title, "-" * len(title), *entries])


def sections_of(doc: str) -> dict[str, str]:
    """What stands under each heading of a docstring."""
    parts = re.split(r"\n\n(?=[A-Z]\w+\n---)", cleandoc(doc))
    return {title: text for title, _, text in (part.split("\n", 2) for part in parts[1:])}


def entries(section: str) -> list[str]:
    """The entries of a section, each with its description."""
    return re.split(r"\n(?=\S)", section) if section else []


def documented(summary: str, parameters: str, returns: str, raises: list[str], example: str) -> str:
    """A docstring for a function that a factory makes. `parameters` names shared descriptions; `example` is a call of `gl` and
    what it returns: "exp(x) -> tensor(…)"."""
    call, _, result = example.partition(" -> ")
    sections = [
        summary,
        section("Parameters", *(PARAMETERS[name] for name in parameters.split())),
        section("Returns", f"Tensor\n    {returns}"),
        section("Raises", *raises),
        section("Examples", f">>> import gradlab as gl\n>>> gl.{call}\n{result}"),
    ]
    return "\n\n".join(sections) + "\n"


def operator(target: T, summary: str, example: str, *, name: str = "", **places: Any) -> T:
    """Make a primitive public, under its own name unless another is given. It is handed back."""
    Operator(name or str(getattr(target, "name", "")), target, summary, example, **places)
    return target


def composed(**places: Any) -> Callable[[F], F]:
    """Make a function of tensors public, under its own name; its docstring gets the shared descriptions."""

    def publish(function: F) -> F:
        function.__doc__ = described(function.__doc__)
        Operator(function.__name__, function, **places)
        return function

    return publish


def described(doc: str | None) -> str | None:
    """The docstring, with the descriptions of PARAMETERS where it names them in braces. (None if Python runs with -OO.)"""
    return doc and SHARED.sub(lambda match: (match[1] + PARAMETERS[match[2]]).replace("\n", f"\n{match[1]}"), doc)
