"""The stubs of the modules whose names follow from declarations: `python tests/stubs.py` writes them, `test_stubs` compares.

They are what type checkers and editors read: the names, the arguments, and the first sentence of the documentation.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

import gradlab
from gradlab.core.operator import OPERATORS, Operator

PACKAGE = Path(gradlab.__file__).parent
HEAD = "# Written by `python tests/stubs.py` from the declarations of operators.\n"
TENSOR = "from gradlab.core.tensor import Tensor\n"


def declared() -> list[Operator]:
    return [operator for operator in OPERATORS.values() if operator.is_primitive]


def function(name: str, parameters: str, doc: str, indent: str = "", returned: str = "Tensor") -> str:
    return f'{indent}def {name}({parameters}) -> {returned}:\n{indent}    """{doc}"""\n'


def joined(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def same(names: list[str], indent: str = "") -> str:
    return "".join(f"{indent}{alias} = {names[0]}\n" for alias in names[1:])


def of_function(operator: Operator, name: str) -> str:
    first, *_ = operator.target.public
    return function(name, joined(f"{first}: Tensor", arguments(operator)[0]), operator.summary)


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


def arguments(operator: Operator, twin: bool = False) -> tuple[str, str]:
    """The parameters after the first, as a method has them, and the annotation of what is returned. A twin has no `out`.

    Both are read from the source, whose annotations are kept as they are written. A default that is no literal is `...`.
    """
    if operator.is_primitive:
        operands = [f"{operand}: Tensor" for operand in operator.target.public[1:]]
        return ", ".join(operands if twin else [*operands, "*", "out: Tensor | None = None"]), "Tensor"
    definition = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(operator.target)))).body[0]
    assert isinstance(definition, ast.FunctionDef), operator.name
    spelled, returned = definition.args, inspect.signature(operator.target).return_annotation
    for argument in [*spelled.posonlyargs, *spelled.args, *spelled.kwonlyargs, *filter(None, (spelled.vararg, spelled.kwarg))]:
        argument.annotation = argument.annotation or ast.Name("Any")
    spelled.defaults = [shown(one) for one in spelled.defaults]
    spelled.kw_defaults = [one and shown(one) for one in spelled.kw_defaults]
    (spelled.posonlyargs or spelled.args).pop(0)
    del spelled.defaults[: max(0, len(spelled.defaults) - len(spelled.posonlyargs) - len(spelled.args))]
    if twin:
        spelled.kwonlyargs, spelled.kw_defaults = without_out(spelled)
    return re.sub(r"(?<=[^\s=])=(?=[^\s=])", " = ", ast.unparse(spelled)), returned if isinstance(returned, str) else "Any"


def without_out(spelled: ast.arguments) -> tuple[list[ast.arg], list[ast.expr | None]]:
    kept = [(one, value) for one, value in zip(spelled.kwonlyargs, spelled.kw_defaults, strict=True) if one.arg != "out"]
    return [one for one, _ in kept], [value for _, value in kept]


def shown(default: ast.expr) -> ast.expr:
    try:
        ast.literal_eval(default)
    except ValueError:
        return ast.Constant(...)
    return default


def imports(operators: Iterable[Operator]) -> str:
    """The imports that the annotations of these operators need, as the modules that they stand in make them."""
    lines = {"from typing import Any", "from gradlab.core.tensor import Tensor"}
    for operator in operators:
        if operator.is_primitive:
            continue
        parameters, returned = arguments(operator)
        text = f"def f({parameters}) -> {returned}: ..."
        names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)} - {"Any", "Tensor"}
        module = inspect.unwrap(operator.target).__module__
        source = Path(importlib.import_module(module).__file__ or "").read_text()
        defined = {
            alias.asname or alias.name: f"from {node.module} import {alias.name}"
            + (f" as {alias.asname}" if alias.asname else "")
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        lines |= {
            defined.get(name, f"from {module} import {name}") for name in names if not hasattr(builtins, name) or name in defined
        }
    return "".join(f"{line}\n" for line in sorted(lines))


def methods() -> str:
    members, twins, names = [], [], []
    public = [operator for operator in OPERATORS.values() if operator.method or operator.inplace]
    for operator in public:
        summary = operator.summary or (operator.target.__doc__ or "").split("\n")[0]
        parameters, returned = arguments(operator)
        if operator.method:
            text = function(operator.name, joined("self", parameters), summary, "    ", returned)
            members.append(text + same(operator.names, "    "))
        if operator.inplace:
            parameters, _ = arguments(operator, twin=True)
            doc = operator.documentation_of_twin().split("\n")[0]
            members.append(function(operator.twins[0], joined("self", parameters), doc, "    ") + same(operator.twins, "    "))
            if operator.twin_functions:
                doc = f"`{operator.name}`, written into the memory of `input`."
                twins.append(
                    function(operator.twin_functions[0], joined("input: Tensor", parameters), doc) + same(operator.twin_functions)
                )
                names += operator.twin_functions
    head = HEAD + imports(public) + "\n"
    return "\n".join([head + listed(names), *twins, "class Declared:\n" + "\n".join(members)])


STUBS = {"ops/declared.pyi": functions, "ops/declared_special.pyi": special, "methods/declared.pyi": methods}

if __name__ == "__main__":
    for path, make in STUBS.items():
        (PACKAGE / path).write_text(make())
