"""`%load_ext gradlab`: install the magics and hooks in IPython, and remove them."""

from __future__ import annotations

import builtins
from typing import Any

from gradlab.diagnose.faults import Faults
from gradlab.notebook.check_magic import CheckMagics
from gradlab.notebook.gradcheck_magic import GradcheckMagics
from gradlab.notebook.graph_magic import GraphMagics
from gradlab.notebook.jacobian_magic import JacobianMagics
from gradlab.notebook.magics import GradMagics
from gradlab.notebook.options import CELL, DOCTOR, GRAPH, LINE, MATRIX, WATCH, complete
from gradlab.notebook.transform import CELL_MARK, IMPORT_MARK, VALUE_MARK, Instrument, rewrite
from gradlab.notebook.watch_magic import WatchMagics

LINE_MAGICS: tuple[Any, ...] = (
    CheckMagics,
    GradcheckMagics,
    GraphMagics,
    JacobianMagics,
)  # need only registration
REPORT = ("gradlab.explore.report.report", "Report")


def load_ipython_extension(shell: Any) -> None:
    """Install the magics, for `%load_ext gradlab`. A second call has no effect.

    Parameters
    ----------
    shell : InteractiveShell
        IPython's shell.

    Returns
    -------
    None

    Examples
    --------
    >>> from IPython.core.interactiveshell import InteractiveShell
    >>> import gradlab as gl
    >>> shell = InteractiveShell()
    >>> gl.load_ipython_extension(shell)
    >>> "grad" in shell.magics_manager.magics["cell"]
    True
    >>> gl.unload_ipython_extension(shell)
    """
    if _find_magics(shell) is not None:
        return
    magics = GradMagics(shell)
    shell.register_magics(magics)
    for kind in LINE_MAGICS:
        shell.register_magics(kind(shell))
    watching = WatchMagics(shell, magics)
    shell.register_magics(watching)
    setattr(builtins, CELL_MARK, magics.begin)
    setattr(builtins, VALUE_MARK, magics.value)
    setattr(builtins, IMPORT_MARK, magics.meet_libraries)
    shell.input_transformers_cleanup.append(rewrite)
    shell.ast_transformers.append(Instrument())
    shell.events.register("pre_run_cell", magics.before_cell)
    shell.events.register("post_run_cell", watching.after_cell)
    shell.events.register("post_run_cell", magics.after_cell)
    for magic in (CELL, LINE, MATRIX, DOCTOR, GRAPH, WATCH):
        shell.set_hook("complete_command", _completer, str_key=magic)
    shell.display_formatter.ipython_display_formatter.for_type_by_name(*REPORT, _show)


def unload_ipython_extension(shell: Any) -> None:
    """Remove all that was installed, for `%unload_ext gradlab`.

    Parameters
    ----------
    shell : InteractiveShell
        IPython's shell.

    Returns
    -------
    None

    Examples
    --------
    >>> from IPython.core.interactiveshell import InteractiveShell
    >>> import gradlab as gl
    >>> shell = InteractiveShell()
    >>> gl.load_ipython_extension(shell)
    >>> gl.unload_ipython_extension(shell)
    >>> "grad" in shell.magics_manager.magics["cell"]
    False
    """
    magics = _find_magics(shell)
    if magics is None:
        return
    shell.input_transformers_cleanup[:] = [f for f in shell.input_transformers_cleanup if f is not rewrite]
    shell.ast_transformers[:] = [t for t in shell.ast_transformers if not isinstance(t, Instrument)]
    shell.events.unregister("pre_run_cell", magics.before_cell)
    shell.events.unregister("post_run_cell", magics.after_cell)
    watching = shell.magics_manager.registry["WatchMagics"]
    shell.events.unregister("post_run_cell", watching.after_cell)
    watching.unload()
    magics.unload()
    for mark in (CELL_MARK, VALUE_MARK, IMPORT_MARK):
        vars(builtins).pop(mark, None)
    for kind in (GradMagics, WatchMagics, *LINE_MAGICS):
        for where, names in kind.magics.items():
            for name in names:
                shell.magics_manager.magics[where].pop(name, None)
        gone = shell.magics_manager.registry.pop(kind.__name__, None)
        shell.configurables[:] = [one for one in shell.configurables if one is not gone]
    for magic in (CELL, LINE, MATRIX, DOCTOR, GRAPH, WATCH):
        shell.strdispatchers["complete_command"].strs.pop(magic, None)
    formatter = shell.display_formatter.ipython_display_formatter
    formatter.deferred_printers.pop(REPORT, None)
    for known in [t for t in formatter.type_printers if (t.__module__, t.__name__) == REPORT]:
        formatter.type_printers.pop(known)


def _find_magics(shell: Any) -> GradMagics | None:
    return shell.magics_manager.registry.get("GradMagics")


def _completer(shell: Any, event: Any) -> list[str]:
    """Complete a line that begins with one of gradlab's magics."""
    from IPython.core.error import TryNext

    completions: list[str] = []
    with Faults("completed a line"):
        completions = complete(event.line, event.symbol)
    if not completions:
        raise TryNext  # IPython completes names
    return completions


def _show(report: Any) -> None:
    """Show a report as several outputs, so that an export without HTML keeps the table and the picture."""
    from IPython.display import display

    with Faults("showed a report"):
        for part in report.parts():
            display(part)
