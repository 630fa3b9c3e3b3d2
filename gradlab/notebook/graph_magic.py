"""`%graph`: the graph behind a tensor, as a picture, live, or kept under a name.

The line is turned into the call that it stands for, and this is evaluated in the user's namespace: so tensors are called by the
user's names, as in a call that the user wrote.
"""

from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class, needs_local_scope, no_var_expand
from IPython.display import display

from gradlab.explore.libraries import library_of
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
        shown, outputs, names = self._made(request, space)
        if request.out is not None:
            self.shell.user_ns[request.out] = shown
        if request.quiet:
            return
        if request.live and getattr(self.shell, "kernel", None) is not None:
            grad: GradMagics = self.shell.magics_manager.registry["GradMagics"]
            display(grad.keep(_widget(shown, outputs, names, grad.users())))  # it shows the picture too
        else:
            display(shown)

    def _made(self, request: Request, space: dict[str, Any]) -> tuple[Any, list[Any], dict[str, Any]]:
        """The graph that the line asks for, the tensors that it is of, and the names. Where no code of the user's failed, an
        error is one sentence."""
        from gradlab.explore.graph import graph

        __tracebackhide__ = True
        value = eval(compile(request.expression, f"<{GRAPH}>", "eval"), space)  # noqa: S307  (the user's own)
        grad: GradMagics = self.shell.magics_manager.registry["GradMagics"]
        first = (request.expression,) if request.expression.isidentifier() else ()
        names = grad.names(space, first)
        try:
            shown = graph(value, names, level=request.level)
        except (TypeError, RuntimeError, ValueError) as error:
            raise UsageError(f"{request.expression}: {error}") from None
        return shown, [value] if library_of(value) is not None else list(value), names


def _widget(shown: Any, outputs: list[Any], names: dict[str, Any], space: dict[str, Any]) -> Any:
    from gradlab.explore.explorer import Explorer
    from gradlab.notebook.graph_widget import GraphWidget

    return GraphWidget(Explorer.around(shown, outputs, space, names))


# The help that `%graph?` shows.
GraphMagics.graph.__doc__ = f"""Show the graph of the operations that made a tensor, as a picture or live.

    {GRAPH} OUT [options]

OUT is a tensor of gradlab or PyTorch that requires grad, or a list of them, without blanks outside of brackets. Nothing of
yours is changed, and no .grad is written; with -i one sweep is run, which keeps the graph.

{usage(GRAPH)}

A ; at the end shows nothing, for use with -o. In Python: gl.graph(OUT), of which help(gl.graph) says more, and
gl.graph(OUT).widget().

    %graph loss                        %graph loss -i                        %graph [a,b] --level code -o g
"""
