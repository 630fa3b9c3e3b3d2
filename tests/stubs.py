"""The stubs of the modules whose names follow from declarations: `python tests/stubs.py` writes them, `test_stubs` compares.

They are what type checkers and editors read: the names, the arguments, and the first sentence of the documentation.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import gradlab
from gradlab.core.operator import OPERATORS, Operator

PACKAGE = Path(gradlab.__file__).parent
HEAD = "# Written by `python tests/stubs.py` from the declarations of operators.\n"
TENSOR = "from gradlab.core.tensor import Tensor\n"


def declared() -> list[Operator]:
    return [operator for operator in OPERATORS.values() if operator.is_primitive]


def function(name: str, parameters: list[str], doc: str, indent: str = "") -> str:
    return f'{indent}def {name}({", ".join(parameters)}) -> Tensor:\n{indent}    """{doc}"""\n'


def same(names: list[str], indent: str = "") -> str:
    return "".join(f"{indent}{alias} = {names[0]}\n" for alias in names[1:])


def of_function(operator: Operator, name: str) -> str:
    operands = [f"{operand}: Tensor" for operand in operator.target.public]
    return function(name, [*operands, "*", "out: Tensor | None = None"], operator.summary)


def listed(names: list[str]) -> str:
    return "__all__ = [\n" + "".join(f'    "{name}",\n' for name in sorted(names)) + "]\n"


def functions() -> str:
    names = [name for operator in declared() if operator.top for name in operator.names]
    body = [of_function(operator, operator.name) + same(operator.names) for operator in declared()]
    return "\n".join([HEAD + TENSOR, listed(names), *body])


def home(operator: Operator) -> str:
    return "gradlab.ops.declared" if operator.is_primitive else operator.target.__module__


def special() -> str:
    """Each name is another module's."""
    imports = [
        f"from {home(operator)} import {operator.name} as {name}\n"
        for operator in OPERATORS.values()
        for name in operator.special
    ]
    names = [name for operator in OPERATORS.values() for name in operator.special]
    return HEAD + "".join(sorted(imports)) + "\n" + listed(names)


def rest_of(operator: Operator) -> list[str]:
    """The parameters after the first, as a method has them."""
    if operator.is_primitive:
        return [f"{operand}: Tensor" for operand in operator.target.public[1:]] + ["*", "out: Tensor | None = None"]
    text = str(inspect.signature(operator.target)).replace("'", "").rpartition(" -> ")[0][1:-1]
    return text.split(", ")[1:]


def methods() -> str:
    members, twins, names = [], [], []
    for operator in OPERATORS.values():
        summary = operator.summary or (operator.target.__doc__ or "").split("\n")[0]
        rest = rest_of(operator)
        if operator.method:
            if operator.is_primitive or "-> 'Tensor'" in str(inspect.signature(operator.target)):
                members.append(function(operator.name, ["self", *rest], summary, "    ") + same(operator.names, "    "))
            else:
                text = function(operator.name, ["self", *rest], summary, "    ").replace("-> Tensor:", "-> Any:")
                members.append(text)
        if operator.inplace:
            kept = [one for one in rest if not one.startswith("out:")]
            if kept and kept[-1] == "*":
                kept.pop()
            doc = f"`{operator.name}`, written into this tensor's memory."
            members.append(function(operator.twins[0], ["self", *kept], doc, "    ") + same(operator.twins, "    "))
            first = operator.twin_functions[:1]
            if first:
                doc = f"`{operator.name}`, written into the memory of `input`."
                twins.append(function(first[0], ["input: Tensor", *kept], doc) + same(operator.twin_functions))
                names += operator.twin_functions
    return "\n".join(
        [HEAD + "from typing import Any\n\n" + TENSOR, listed(names), *twins, "class Declared:\n" + "\n".join(members)]
    )


STUBS = {"ops/declared.pyi": functions, "ops/declared_special.pyi": special, "methods/declared.pyi": methods}

if __name__ == "__main__":
    for path, make in STUBS.items():
        (PACKAGE / path).write_text(make())
