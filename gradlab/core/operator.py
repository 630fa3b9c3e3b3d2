"""Declarations of public operators: the names under which each is found, and the docstring that `help` shows.

    exp2 = operator(elementwise("exp2", np.exp2, …), "2 to the power of each element.", "[0., 3.] -> [1., 8.]")

    @composite(inplace="method")
    def mvlgamma(input, p, *, out=None): …

`operator` makes the recording function of a primitive public. Its docstring is generated from the dtype rule, the notation
(`tex`) and an example, which a test runs. `composite` makes a function that calls primitives public. In its docstring `{input}`,
`{out}` and the other keys of PARAMETERS are replaced by the shared descriptions below.

    aliases     further names of the same function
    method      whether `Tensor` has it as a method, with its aliases
    inplace     its in-place twin: "function" if torch has both `gradlab.exp_(x)` and `x.exp_()`, "method" if torch has only the
                method, "" if it has neither; or the twins' names that torch has as functions, separated by spaces
    history     whether the result can have a history; if not, the twin's result replaces the numbers, and no gradient passes
    shares      the operator whose in-place twin this one uses
    twin        what the in-place twin runs, if not the operator itself: another primitive, or a function
    top         whether it is a name of `gradlab` itself
    special     its names in `gradlab.special`

If an in-place twin does more than copy the operator's result, the function carries the twin as its attribute `twin`
(`gradlab.ops.indexed_writes`, `gradlab.ops.inplace_views`).

`gradlab.ops.declared`, `gradlab.ops.declared_special` and `gradlab.methods.declared` export these names. Their stubs, for type
checkers and editors, are written by `python tests/stubs.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import cleandoc
from typing import Any, TypeVar

from gradlab.core.registry import Origin, taken_name_message

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

PARAMETERS = {
    "dim": "dim : int or tuple of ints, optional\n    Dimensions to reduce. Default: all of them. `axis` is an alias.",
    "one_dim": "dim : int\n    Dimension along which to compute. `axis` is an alias.",
    "last_dim": "dim : int, default: -1\n    Dimension along which to compute. `axis` is an alias.",
    "keepdim": "keepdim : bool, default: False\n    Keep each reduced dimension with size 1. `keepdims` is an alias.",
    "dtype": "dtype : dtype, optional\n    Dtype to which `input` is converted first.",
    "unbiased": (
        "unbiased : bool, optional\n    False means `correction=0`. May be passed in place of `dim` to reduce all dimensions: "
        "``x.var(False)``."
    ),
    "correction": "correction : number, default: 1\n    Subtracted from the number of elements in the denominator.",
    "outs": "out : tuple of Tensor, optional\n    Tensors to write the results to. Not allowed if a gradient is required.",
    "no_tensor": "TypeError\n    If `input` is not a Tensor.",
    "no_axis": "IndexError\n    If a dimension is out of range for `input`.",
    "no_axes": (
        "IndexError\n    If a dimension is out of range for `input`.\nRuntimeError\n    If a dimension appears twice in `dim`, "
        "or if `out` is given and a gradient is required."
    ),
    "input": "input : Tensor\n    Input tensor of any shape.",
    "other": "other : Tensor\n    Second operand. Its shape must broadcast with that of `input`.",
    "either": "input : Tensor or number\n    First operand. At least one operand must be a Tensor.",
    "number": "other : Tensor or number\n    Second operand. The shape of a tensor must broadcast with that of `input`.",
    "exponent": "exponent : Tensor or number\n    Exponent. The shape of a tensor must broadcast with that of `input`.",
    "out": (
        "out : Tensor, optional\n    Tensor to write the result to; it is returned. Not allowed if the result would require a "
        "gradient."
    ),
    "dimension": "dim : int\n    Dimension, counted from the end if negative.",
    "first_dim": "dim : int, default: 0\n    Dimension, counted from the end if negative.",
    "at_least_1d": "input : Tensor\n    Input tensor with at least one dimension.",
    "result_dtype": "dtype : dtype, optional\n    Dtype of the result.",
    "device": "device : device or str, optional\n    Device of the result.",
    "tensors": "tensors : sequence of Tensor\n    List or tuple of tensors.",
    "index": "index : Tensor\n    Indices, int64 or int32, with as many dimensions as `input`.",
    "slices": "index : Tensor\n    Indices of the slices along `dim`: integers, 0-d or 1-d.",
    "source_slices": "source : Tensor\n    Slices with the dtype of `input`, one for each index.",
    "offset": "offset : int, default: 0\n    Diagonal to use: positive is above the main diagonal, negative is below.",
    "diagonal": "diagonal : int, default: 0\n    Diagonal to use: positive is above the main diagonal, negative is below.",
    "matrices": "input : Tensor\n    Matrix or batch of matrices.",
    "row_col": "row, col : int\n    Number of rows and of columns.",
    "ignored": "layout, pin_memory : optional\n    Accepted for compatibility with PyTorch; they have no effect.",
    "size": "size : int or sequence of int\n    Shape, as one sequence ``(2, 3)`` or as separate integers.",
    "created_dtype": "dtype : dtype, optional\n    Dtype of the result. Default: the default dtype.",
    "like_dtype": "dtype : dtype, optional\n    Dtype of the result. Default: that of `input`.",
    "like_device": "device : device or str, optional\n    Device of the result. Default: that of `input`.",
    "created_out": "out : Tensor, optional\n    Tensor to write the result to; it is returned.",
    "memory_format": "memory_format : memory_format, optional\n    Memory layout of the result.",
    "requires_grad": (
        "requires_grad : bool, default: False\n    Whether the result requires a gradient. Its dtype must then be floating point."
    ),
    "generator": "generator : Generator, optional\n    Random number generator. Default: the default generator.",
    "mask": "mask : Tensor\n    Boolean tensor. Its shape must broadcast with that of `input`.",
    "include_self": (
        "include_self : bool, default: True\n    Whether to include the existing elements of `input` in the reduction. Elements "
        "to which nothing is scattered keep their value."
    ),
}
# For each dtype rule (`core.promotion`), the dtypes of an operand (a suffix to "of any shape") and the dtype of the result.
DTYPE_DESCRIPTIONS = {
    "same": (" and dtype", "same dtype"),
    "number": (", floating point or integers", "same dtype"),
    "float": (" and dtype; integers and bools are computed in the default dtype", "floating point"),
    "real tensors": (", floating point", "common dtype"),
    "float tensors": (" and dtype; integers and bools are computed in the default dtype", "floating point"),
    "tensors": (" and dtype", "common dtype"),
}
RAISED_BY_RULE = {"number": "NotImplementedError, RuntimeError\n    If `input` is boolean."}
PLACEHOLDER = re.compile(r"^( *)\{(\w+)\}$", re.MULTILINE)
BOOL_PATTERN = re.compile(r"(?<=[\[ ]) *(True|False)")
TWIN_INPUT = "input : Tensor\n    Tensor to modify: `x` in ``x.{}(…)``."
TWIN_RAISES = (
    "RuntimeError\n    If this tensor is a leaf that requires a gradient, if its dtype cannot hold the result, or if the\n"
    "    result has a different shape."
)
NOT_FLOATING = "NotImplementedError\n    If the operands are not floating point."


class Operator:
    """A public operator: its names, documentation and in-place twins. `target` is the primitive or the function."""

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
            refusal = one in NAMES and taken_name_message("an operator", one, NAMES[one].origin, self.origin)
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
        """The names of twins that are also functions of `gradlab`."""
        return self.twins if self.inplace == "function" else [name for name in self.twins if name in self.inplace.split()]

    @property
    def function(self) -> Callable[..., Any]:
        """The function that users call: the recording function of a primitive, or the target itself."""
        function: Callable[..., Any] = self.target.record if self.is_primitive else self.target
        return function

    def public_function(self) -> Callable[..., Any]:
        """Return the function with the name, annotations and docstring that users see."""
        function = self.function
        if self.is_primitive and function.__doc__ is None:
            function.__name__ = function.__qualname__ = self.name
            function.__annotations__ = dict.fromkeys(self.target.public, "Tensor") | {"out": "Tensor | None", "return": "Tensor"}
            function.__doc__ = self.docstring()
        return function

    def docstring(self) -> str:
        """Return the numpydoc docstring of a primitive's function."""
        op = self.target
        operands, result = DTYPE_DESCRIPTIONS[op.promote]
        shapes = "Same shape as `input`" if len(op.args) == 1 else "Broadcast shape of the operands"
        parameters = [PARAMETERS[name] for name in op.public]
        parameters[0] = parameters[0].replace("of any shape.", f"of any shape{operands}.")
        refused = []
        if op.promote in RAISED_BY_RULE:
            refused.append(RAISED_BY_RULE[op.promote])
        if len(op.args) == 2:
            refused.append("RuntimeError\n    If the shapes do not broadcast.")
        if op.promote == "real tensors":
            refused.append(NOT_FLOATING)
        what = "`input` is" if len(op.args) == 1 else "an operand is"
        sections = [
            self.summary,
            section("Parameters", *parameters, PARAMETERS["out"]),
            section("Returns", f"Tensor\n    {shapes}, {result}."),
            section("Raises", f"TypeError\n    If {what} not a Tensor.", *refused),
            section("Notes", self.notation()),
            section("Examples", self.examples()),
        ]
        return "\n\n".join(sections) + "\n"

    def twin_docstring(self) -> str:
        """Return the docstring of the in-place twin: the operator's parameters and errors, and the errors of the write."""
        if self.is_primitive:
            parameters, refused = [PARAMETERS[name] for name in self.target.public[1:]], []
            examples = self.examples()
        elif self.target.__doc__ is None:  # python -OO
            return ""
        else:
            whole = split_sections(self.target.__doc__)
            parameters = [one for one in split_entries(whole["Parameters"])[1:] if not one.startswith("out :")]
            refused, examples = split_entries(whole.get("Raises", "")), whole["Examples"]
        own = getattr(self.twin, "twin_doc", "")
        sections = [
            own or f"In-place version of `{self.name}`.",
            section("Parameters", TWIN_INPUT.format(f"{self.name}_"), *parameters),
            section("Returns", "Tensor\n    This tensor."),
            section("Raises", *refused, getattr(self.twin, "refuses", TWIN_RAISES)),
            *self.twin_examples(examples),
        ]
        return "\n\n".join(sections) + "\n"

    def twin_examples(self, examples: str) -> list[str]:
        """Return the first example as a method call. Results True and False are shown as numbers."""
        for call in (f">>> gl.{self.name}(", f">>> gl.special.{self.name}("):  # faster than one pattern per name
            before, called, after = examples.partition(call)
            if called:
                break
        else:
            return []
        depth = end = 0
        while depth or after[end] not in ",)":  # find the end of the first argument
            depth += (after[end] in "([") - (after[end] in ")]")
            end += 1
        tensor, others = after[:end], after[end:].removeprefix(", ")
        others, _, result = re.split(r"\n>>>|\n\n", others)[0].rstrip().partition("\n")
        if BOOL_PATTERN.search(result) and not BOOL_PATTERN.search(tensor):
            point = "." * ("." in tensor.removeprefix("gl."))
            result = BOOL_PATTERN.sub(lambda match: f"{int(match[1] == 'True')}{point}", result)
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
            given = r"Given the gradient :math:`\bar{y}` with respect to y, the backward pass computes"
            lines += ["", given, "", f".. math:: {op.formula}"]
        return "\n".join(lines)

    def examples(self) -> str:
        arguments, _, result = self.example.partition(" -> ")
        place = "" if self.top else "special."
        operands = ", ".join(f"gl.tensor({one})" for one in arguments.split("; "))
        return f">>> import gradlab as gl\n>>> gl.{place}{self.name}({operands})\ntensor({result})"


OPERATORS: dict[str, Operator] = {}
NAMES: dict[str, Operator] = {}  # includes the aliases


def section(title: str, *entries: str) -> str:
    return "\n".join([title, "-" * len(title), *entries])


def split_sections(doc: str) -> dict[str, str]:
    """Return the text under each heading of a docstring."""
    parts = re.split(r"\n\n(?=[A-Z]\w+\n---)", cleandoc(doc))
    return {title: text for title, _, text in (part.split("\n", 2) for part in parts[1:])}


def split_entries(section: str) -> list[str]:
    """Split a section into its entries, each with its description."""
    return re.split(r"\n(?=\S)", section) if section else []


def build_docstring(summary: str, parameters: str, returns: str, raises: list[str], example: str) -> str:
    """Return a docstring for a function made by a factory.

    `parameters` are keys of PARAMETERS. `example` is a call in `gl` and its result: "exp(x) -> tensor(…)".
    """
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
    """Make a primitive public, under its own name unless `name` is given, and return it."""
    Operator(name or str(getattr(target, "name", "")), target, summary, example, **places)
    return target


def composite(**places: Any) -> Callable[[F], F]:
    """Make a function of tensors public under its own name, with the shared descriptions in its docstring."""

    def publish(function: F) -> F:
        function.__doc__ = fill_placeholders(function.__doc__)
        Operator(function.__name__, function, **places)
        return function

    return publish


def fill_placeholders(doc: str | None) -> str | None:
    """Replace the names in braces by their descriptions in PARAMETERS. Return None if Python runs with -OO."""
    return doc and PLACEHOLDER.sub(lambda match: (match[1] + PARAMETERS[match[2]]).replace("\n", f"\n{match[1]}"), doc)
