"""`%gradcheck f(x, w)`: compare a function's gradients with differences of the function, and say in words how they agree.

The line is a call, and it is not run: the function is taken apart from its arguments, and `autograd.gradcheck` calls it. A method
of a tensor (`x.tanh()`) is a function of that tensor. What the line means is evaluated where any line of the cell would be.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class, needs_local_scope, no_var_expand

LINE = "%gradcheck"
USAGE = f"{LINE} takes a call of a function whose gradients are to be checked, as in {LINE} f(x, w)"


@magics_class
class GradcheckMagics(Magics):
    """`%gradcheck`."""

    shell: Any

    @no_var_expand
    @needs_local_scope
    @line_magic
    def gradcheck(self, line: str, local_ns: dict[str, Any] | None = None) -> None:
        """%gradcheck f(x, w): are the gradients of f at these arguments right?

        Every element of the arguments that require grad is moved by 1e-6 up and down, and the differences of what f returns are
        compared with what backward gives. Arguments should be of double precision, as x.double() makes them: in single
        precision differences keep about three digits. No .grad is written.
        """
        names, func, inputs = self._taken_apart(line.strip().rstrip(";"), {**self.shell.user_ns, **(local_ns or {})})
        print(verdict(line.strip().rstrip(";"), names, func, inputs))  # noqa: T201  (what a line magic is for)

    def _taken_apart(self, line: str, space: dict[str, Any]) -> tuple[list[str], Callable[..., Any], tuple[Any, ...]]:
        """What the arguments are called, the function, and the arguments by position."""
        from gradlab.core.tensor import Tensor

        if not line:
            raise UsageError(f"{USAGE}.")
        try:
            call = ast.parse(line, mode="eval").body
        except (SyntaxError, ValueError) as error:
            raise UsageError(f"{USAGE}; {line!r} is no Python expression ({getattr(error, 'msg', None) or error}).") from None
        if not isinstance(call, ast.Call):
            raise UsageError(f"{USAGE}; {line!r} calls nothing.")
        if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
            raise UsageError(f"{LINE} cannot tell what * or ** stands for: write the arguments one by one.")

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
    """How the gradients of a call agree with differences, in words."""
    from gradlab.autograd.gradcheck import GradcheckError, compare_jacobians
    from gradlab.core.tensor import Tensor

    for name, x in zip(names, inputs, strict=True):
        if not isinstance(x, Tensor) and type(x).__module__.partition(".")[0] == "torch" and hasattr(x, "requires_grad"):
            raise UsageError(f"{name} is a tensor of torch's: torch.autograd.gradcheck checks its functions.")
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
        said.append(str(error) if worst is None else f"The worst entry: {placed(worst, wanted)}.")
        if single:
            said.append(
                f"This may be rounding: {and_(single)} {'is' if len(single) == 1 else 'are'} of single precision, in "
                "which differences keep about three digits. Check again in double precision: "
                f"{LINE} {doubled(shown, single)}"
            )
        elif worst is not None:
            said.append(
                "Look for a step that the graph does not see: detach(), no_grad(), .data, item(), a hook or a backward "
                "of your own; or for a kink or a jump at this very point."
            )
        return "\n".join(said)
    worst = max(entries, key=lambda entry: entry.excess, default=None)
    if worst is None:
        return f"{shown}: nothing that it returns requires grad, and differences agree that it is constant."
    return (
        f"{shown}: the gradients are right; {len(entries)} {'Jacobian agrees' if len(entries) == 1 else 'Jacobians agree'} "
        f"with differences.\nThe worst entry: {placed(worst, wanted)}."
    )


def placed(entry: Any, names: list[str]) -> str:
    """An entry in words, its input by name."""
    return str(entry).replace(f"with respect to input {entry.input}", f"with respect to {names[entry.input]}", 1)


def and_(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def doubled(shown: str, names: list[str]) -> str:
    """The call with `.double()` after the arguments of these names."""

    class Double(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            if isinstance(node, ast.expr) and ast.unparse(node) in names:
                return ast.Call(ast.Attribute(node, "double", ast.Load()), [], [])
            return self.generic_visit(node)

    return ast.unparse(Double().visit(ast.parse(shown, mode="eval")))
