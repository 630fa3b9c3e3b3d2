"""`%graph`: show the graph of a tensor, or the run of a model, as a picture or a live view, or assign it to a name.

The expression is evaluated in the user's namespace. If it calls a model, the picture shows that run, otherwise the graph of the
value.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class, needs_local_scope, no_var_expand
from IPython.display import display

from gradlab.explore.libraries import library_of
from gradlab.notebook.line_source import compile_line
from gradlab.notebook.magics import GradMagics
from gradlab.notebook.options import GRAPH, OptionError, Request, parse_graph, usage


@magics_class
class GraphMagics(Magics):
    """`%graph`."""

    shell: Any

    @no_var_expand
    @needs_local_scope
    @line_magic
    def graph(self, line: str, local_ns: dict[str, Any] | None = None) -> None:
        __tracebackhide__ = True
        try:
            request = parse_graph(line)
        except OptionError as error:
            raise UsageError(str(error)) from None
        space = {**self.shell.user_ns, **(local_ns or {})}
        shown, outputs, names = self._compute(request, space)
        if request.out is not None:
            self.shell.user_ns[request.out] = shown
        if request.quiet:
            return
        if request.live and getattr(self.shell, "kernel", None) is not None:
            grad: GradMagics = self.shell.magics_manager.registry["GradMagics"]
            display(grad.keep(_widget(shown, outputs, names, grad.users())))  # it shows the picture too
        else:
            display(shown)

    def _compute(self, request: Request, space: dict[str, Any]) -> tuple[Any, list[Any], dict[str, Any]]:
        """Return the requested graph, its output tensors, and the names. Errors outside the user's code are one sentence."""
        from gradlab.explore.graph import graph

        __tracebackhide__ = True
        compiled = compile_line(request.expression)
        grad: GradMagics = self.shell.magics_manager.registry["GradMagics"]
        first = (request.expression,) if request.expression.isidentifier() else ()
        names = grad.names(space, first)
        if _calls_something(request.expression) and request.level is None:
            run, value = _run(lambda: eval(compiled, space), request, space, names)  # noqa: S307  (the user's own)
            if run is not None:
                return run, [], names
        else:
            value = eval(compiled, space)  # noqa: S307  (the user's own)
        if request.values or request.time:
            raise UsageError(
                f"{request.expression}: --values and --time are for the run of a model, as in %graph model(x) --time"
            )
        try:
            shown = graph(value, names=names, level=request.level)
        except (TypeError, RuntimeError, ValueError) as error:
            raise UsageError(f"{request.expression}: {error}") from None
        return shown, [value] if library_of(value) is not None else list(value), names


def _calls_something(expression: str) -> bool:
    return any(isinstance(node, ast.Call) for node in ast.walk(ast.parse(expression, mode="eval")))


def _run(call: Callable[[], Any], request: Request, space: dict[str, Any], names: dict[str, Any]) -> tuple[Any, Any]:
    """Return the graph of the run if the expression called a model, else None; and the value of the expression."""
    from gradlab.explore.forward.front import models_in, record

    __tracebackhide__ = True
    run, value, error = record(
        call, request.expression, models=models_in(space), names=names, space=space, values=request.values, timed=request.time
    )
    if run is not None and run.calls_modules:
        if request.live:
            raise UsageError(f"{request.expression}: -i is for the graph of a tensor; the run of a model is only a picture")
        return run, value
    if error is not None:
        raise error
    return None, value


def _widget(shown: Any, outputs: list[Any], names: dict[str, Any], space: dict[str, Any]) -> Any:
    from gradlab.explore.explorer import Explorer
    from gradlab.notebook.graph_widget import GraphWidget

    return GraphWidget(Explorer.around(shown, outputs, space, names))


# The help that `%graph?` shows.
GraphMagics.graph.__doc__ = f"""Show the graph of the operations that computed a tensor, or the run of a model.

    {GRAPH} OUT [options]

OUT is a tensor of gradlab or PyTorch that requires grad, or a list of them, without blanks outside brackets. No variable is
changed, and no .grad is written; -i runs one sweep, which keeps the graph. If OUT calls a model, as in model(x), its run is
drawn: the input on top, each module and function with its shape, up to the error if it fails.

{usage(GRAPH)}

A ; at the end hides the output, for use with -o. In Python: gl.graph(OUT) and gl.graph(OUT).widget(); see help(gl.graph).

    %graph loss                        %graph loss -i                        %graph [a,b] --level code -o g
    %graph model(x)                    %graph model(x) --time                %graph model(x) --values -o run
"""
