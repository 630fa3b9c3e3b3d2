"""Generate the stubs of modules whose names are created from declarations: run `python tests/stubs.py`.

Type checkers and editors read them. They contain the names, the arguments and the first sentence of the documentation.
`test_stubs` checks that they are up to date.
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


def declared_operators() -> list[Operator]:
    return [operator for operator in OPERATORS.values() if operator.is_primitive]


def function(name: str, parameters: str, doc: str, indent: str = "", returned: str = "Tensor") -> str:
    return f'{indent}def {name}({parameters}) -> {returned}:\n{indent}    """{doc}"""\n'


def join_parameters(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def alias_lines(names: list[str], indent: str = "") -> str:
    return "".join(f"{indent}{alias} = {names[0]}\n" for alias in names[1:])


def function_stub(operator: Operator, name: str) -> str:
    first, *_ = operator.target.public
    return function(name, join_parameters(f"{first}: Tensor", arguments(operator)[0]), operator.summary)


def all_statement(names: list[str]) -> str:
    return "__all__ = [\n" + "".join(f'    "{name}",\n' for name in sorted(names)) + "]\n"


def functions() -> str:
    names = [name for operator in declared_operators() if operator.top for name in operator.names]
    body = [function_stub(operator, operator.name) + alias_lines(operator.names) for operator in declared_operators()]
    return "\n".join([HEAD + TENSOR, all_statement(names), *body])


def defining_module(operator: Operator) -> str:
    return "gradlab.ops.declared" if operator.is_primitive else operator.target.__module__


def special() -> str:
    """Return the stub of `gradlab.special`, which imports names from other modules."""
    imports = [
        f"from {defining_module(operator)} import {operator.name} as {name}\n"
        for operator in OPERATORS.values()
        for name in operator.special
    ]
    names = [name for operator in OPERATORS.values() for name in operator.special]
    return HEAD + "".join(sorted(imports)) + "\n" + all_statement(names)


def arguments(operator: Operator, twin: bool = False) -> tuple[str, str]:
    """Return the parameters of the method, without the first one, and the return annotation. An in-place version has no `out`.

    Both are read from the source and keep its annotations. A default that is not a literal becomes `...`.
    """
    if operator.is_primitive:
        operands = [f"{operand}: Tensor" for operand in operator.target.public[1:]]
        return ", ".join(operands if twin else [*operands, "*", "out: Tensor | None = None"]), "Tensor"
    definition = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(operator.target)))).body[0]
    assert isinstance(definition, ast.FunctionDef), operator.name
    spelled, returned = definition.args, inspect.signature(operator.target).return_annotation
    for argument in [*spelled.posonlyargs, *spelled.args, *spelled.kwonlyargs, *filter(None, (spelled.vararg, spelled.kwarg))]:
        argument.annotation = argument.annotation or ast.Name("Any")
    spelled.defaults = [literal_or_ellipsis(one) for one in spelled.defaults]
    spelled.kw_defaults = [one and literal_or_ellipsis(one) for one in spelled.kw_defaults]
    (spelled.posonlyargs or spelled.args).pop(0)
    del spelled.defaults[: max(0, len(spelled.defaults) - len(spelled.posonlyargs) - len(spelled.args))]
    if twin:
        spelled.kwonlyargs, spelled.kw_defaults = drop_out(spelled)
    return re.sub(r"(?<=[^\s=])=(?=[^\s=])", " = ", ast.unparse(spelled)), returned if isinstance(returned, str) else "Any"


def drop_out(spelled: ast.arguments) -> tuple[list[ast.arg], list[ast.expr | None]]:
    kept = [(one, value) for one, value in zip(spelled.kwonlyargs, spelled.kw_defaults, strict=True) if one.arg != "out"]
    return [one for one, _ in kept], [value for _, value in kept]


def literal_or_ellipsis(default: ast.expr) -> ast.expr:
    try:
        ast.literal_eval(default)
    except ValueError:
        return ast.Constant(...)
    return default


def imports(operators: Iterable[Operator]) -> str:
    """Return the imports that the annotations of these operators need, copied from the modules that define them."""
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
            text = function(operator.name, join_parameters("self", parameters), summary, "    ", returned)
            members.append(text + alias_lines(operator.names, "    "))
        if operator.inplace:
            parameters, _ = arguments(operator, twin=True)
            doc = operator.twin_docstring().split("\n")[0]
            members.append(
                function(operator.twins[0], join_parameters("self", parameters), doc, "    ")
                + alias_lines(operator.twins, "    ")
            )
            if operator.twin_functions:
                doc = f"In-place version of `{operator.name}`."
                twins.append(
                    function(operator.twin_functions[0], join_parameters("input: Tensor", parameters), doc)
                    + alias_lines(operator.twin_functions)
                )
                names += operator.twin_functions
    head = HEAD + imports(public) + "\n"
    return "\n".join([head + all_statement(names), *twins, "class Declared:\n" + "\n".join(members)])


STUBS = {"ops/declared.pyi": functions, "ops/declared_special.pyi": special, "methods/declared.pyi": methods}

if __name__ == "__main__":
    for path, make in STUBS.items():
        (PACKAGE / path).write_text(make())
