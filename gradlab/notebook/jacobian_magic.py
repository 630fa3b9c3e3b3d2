"""`%jacobian`: show the Jacobian of a tensor or a function, as a picture or a live view, or assign it to a name.

The line is converted to a call of `gl.jacobian`, evaluated in the user's namespace, so that tensors have the user's names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class, needs_local_scope, no_var_expand
from IPython.display import display

from gradlab.notebook.magics import GradMagics
from gradlab.notebook.options import MATRIX, OptionError, Request, parse_jacobian, usage

CALL = "_gradlab_jacobian"  # the name of `jacobian` in the evaluated line


@magics_class
class JacobianMagics(Magics):
    """`%jacobian`."""

    shell: Any

    @no_var_expand
    @needs_local_scope
    @line_magic
    def jacobian(self, line: str, local_ns: dict[str, Any] | None = None) -> None:
        __tracebackhide__ = True
        try:
            request = parse_jacobian(line)
        except OptionError as error:
            raise UsageError(str(error)) from None
        matrix = self._compute(request, {**self.shell.user_ns, **(local_ns or {})})
        if request.out is not None:
            self.shell.user_ns[request.out] = matrix
        if request.quiet:
            return
        if request.live and getattr(self.shell, "kernel", None) is not None:
            grad: GradMagics = self.shell.magics_manager.registry["GradMagics"]
            display(grad.keep(matrix.widget()))  # it shows the picture too
        else:
            display(matrix)

    def _compute(self, request: Request, space: dict[str, Any]) -> Any:
        """Return the requested Jacobian. Errors outside the user's code are one sentence."""
        from gradlab.explore.jacobian import jacobian

        __tracebackhide__ = True
        output, *inputs = request.expressions
        asked = inputs[0] if len(inputs) == 1 else f"({', '.join(inputs)})"
        chunk = f", chunk_size={request.chunk}" if request.chunk else ""
        call = f"{CALL}({output}, {asked}, method={request.method!r}{chunk})"
        named = [node.id for text in request.expressions for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
        first = {name: space[name] for name in named if name in space}  # preferred names, if a tensor has several
        try:
            return eval(compile(call, f"<{MATRIX}>", "eval"), {**space, CALL: jacobian}, first)  # noqa: S307  (the user's own)
        except Exception as error:  # noqa: BLE001  (raised again, or as one sentence)
            traces = list(_traces(error))[2:]  # without this function and the line
            theirs = next((one for one in traces if not one.tb_frame.f_globals.get("__name__", "").startswith("gradlab.")), None)
            if theirs is not None:
                raise error.with_traceback(theirs)  # noqa: B904  (the same error, from the user's function on)
            prefix = "" if traces else f"{output}, {asked}: {type(error).__name__}: "
            raise UsageError(f"{prefix}{error}") from None


def _traces(error: BaseException) -> Iterator[TracebackType]:
    trace = error.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next


# The help that `%jacobian?` shows.
JacobianMagics.jacobian.__doc__ = f"""Show the Jacobian of a tensor, or of a function, with respect to one or several tensors.

    {MATRIX} OUT INPUT [INPUT …] [options]

OUT is a tensor computed from the INPUTs, or a function of them, which is called once on copies. Each is a name or an
expression without blanks outside brackets; commas between them are optional. No variable is changed, and no .grad is
written. A Jacobian that takes under a second is computed and drawn; otherwise the plan is shown, and how to start it.

{usage(MATRIX)}

A ; at the end hides the output, for use with -o. In Python: J = gl.jacobian(OUT, (INPUT, …)); see help(gl.jacobian).

    %jacobian z x                      %jacobian f x -i                      %jacobian loss model.weight -o J --method rows
"""
