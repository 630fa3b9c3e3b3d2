"""`%gradcheck f(x, w)`: compare a function's gradients with difference quotients, and report the result in words.

The call in the line is not executed: function and arguments are evaluated in the cell's namespace, and `autograd.gradcheck` calls
the function. A method of a tensor (`x.tanh()`) is a function of that tensor.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class, needs_local_scope, no_var_expand

LINE = "%gradcheck"
USAGE = f"{LINE} takes a call of the function to check, as in {LINE} f(x, w)"


@magics_class
class GradcheckMagics(Magics):
    """`%gradcheck`."""

    shell: Any

    @no_var_expand
    @needs_local_scope
    @line_magic
    def gradcheck(self, line: str, local_ns: dict[str, Any] | None = None) -> None:
        """%gradcheck f(x, w): check the gradients of f at these arguments.

        Each element of the arguments that require grad is moved by 1e-6 up and down, and the difference quotients are
        compared with the result of backward. Arguments should have double precision, as from x.double(): in single precision
        difference quotients have about three correct digits. No .grad is written.
        """
        names, func, inputs = self._parse_call(line.strip().rstrip(";"), {**self.shell.user_ns, **(local_ns or {})})
        print(verdict(line.strip().rstrip(";"), names, func, inputs))  # noqa: T201  (what a line magic is for)

    def _parse_call(self, line: str, space: dict[str, Any]) -> tuple[list[str], Callable[..., Any], tuple[Any, ...]]:
        """Return the names of the arguments, the function, and the arguments by position."""
        from gradlab.core.tensor import Tensor

        if not line:
            raise UsageError(f"{USAGE}.")
        try:
            call = ast.parse(line, mode="eval").body
        except (SyntaxError, ValueError) as error:
            raise UsageError(f"{USAGE}; {line!r} is not a Python expression ({getattr(error, 'msg', None) or error}).") from None
        if not isinstance(call, ast.Call):
            raise UsageError(f"{USAGE}; {line!r} calls nothing.")
        if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
            raise UsageError(f"{LINE} does not support * and **: write the arguments one by one.")

        def value(node: ast.expr) -> Any:
            return eval(compile(ast.Expression(node), "<%gradcheck>", "eval"), space)  # noqa: S307  (the user's own expression)

        names, inputs = [ast.unparse(a) for a in call.args], [value(a) for a in call.args]
        named = {k.arg: value(k.value) for k in call.keywords if k.arg}
        names += [ast.unparse(k.value) for k in call.keywords]
        owner = value(call.func.value) if isinstance(call.func, ast.Attribute) else None
        count = len(inputs)
        if isinstance(owner, Tensor) and isinstance(call.func, ast.Attribute):
            method, names, inputs, count = call.func.attr, [ast.unparse(call.func.value), *names], [owner, *inputs], count + 1
            function: Any = lambda x, *rest, **options: getattr(x, method)(*rest, **options)  # noqa: E731
        else:
            function = value(call.func)

        def func(*arguments: Any) -> Any:
            return function(*arguments[:count], **dict(zip(named, arguments[count:], strict=True)))

        return names, func, (*inputs, *named.values())


def verdict(shown: str, names: list[str], func: Callable[..., Any], inputs: tuple[Any, ...]) -> str:
    """Compare the gradients of a call with difference quotients, in words."""
    from gradlab.autograd.gradcheck import GradcheckError, compare_jacobians
    from gradlab.core.tensor import Tensor

    for name, x in zip(names, inputs, strict=True):
        if not isinstance(x, Tensor) and type(x).__module__.partition(".")[0] == "torch" and hasattr(x, "requires_grad"):
            raise UsageError(f"{name} is a torch tensor: use torch.autograd.gradcheck.")
    wanted = [name for name, x in zip(names, inputs, strict=True) if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        raise UsageError(
            f"none of the arguments of {shown} requires grad, so there is no gradient to check: call "
            f"{names[0] if names else 'x'}.requires_grad_() first."
        )
    single = [
        name for name, x in zip(names, inputs, strict=True) if isinstance(x, Tensor) and x.requires_grad and x.element_size() < 8
    ]
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Input #.* is not a double precision")
            entries = compare_jacobians(func, inputs)
    except GradcheckError as error:
        said = [f"{shown}: the gradients are NOT what differences give."]
        worst = error.worst
        said.append(str(error) if worst is None else f"The worst entry: {describe_entry(worst, wanted)}.")
        if single:
            said.append(
                f"This may be rounding: {and_(single)} {'is' if len(single) == 1 else 'are'} of single precision, in "
                "which differences keep about three digits. Check again in double precision: "
                f"{LINE} {with_double(shown, single)}"
            )
        elif worst is not None:
            said.append(
                "Look for a step that is not in the graph: detach(), no_grad(), .data, item(), a hook or your own backward; "
                "or for a kink or a jump at this point."
            )
        return "\n".join(said)
    worst = max(entries, key=lambda entry: entry.excess, default=None)
    if worst is None:
        return f"{shown}: no result requires grad, and the difference quotients are zero, too."
    return (
        f"{shown}: the gradients are right; {len(entries)} {'Jacobian agrees' if len(entries) == 1 else 'Jacobians agree'} "
        f"with differences.\nThe worst entry: {describe_entry(worst, wanted)}."
    )


def describe_entry(entry: Any, names: list[str]) -> str:
    """Return an entry in words, with the name of its input."""
    return str(entry).replace(f"with respect to input {entry.input}", f"with respect to {names[entry.input]}", 1)


def and_(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def with_double(shown: str, names: list[str]) -> str:
    """Return the call with `.double()` after these arguments."""

    class Double(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            if isinstance(node, ast.expr) and ast.unparse(node) in names:
                return ast.Call(ast.Attribute(node, "double", ast.Load()), [], [])
            return self.generic_visit(node)

    return ast.unparse(Double().visit(ast.parse(shown, mode="eval")))
