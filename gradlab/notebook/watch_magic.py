"""`%%watch`: watch the training that a cell runs. And what a notebook shows of a watched run while it runs.

The cell runs as itself (see `transform`); its first line begins to listen for `backward` (explore/watch/finding). From the first
call on it is as if the cell stood in `with gl.watch(model, optimizer) as w:` and logged each loss.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, cell_magic, magics_class, no_var_expand
from IPython.display import display

from gradlab.diagnose.faults import Faults
from gradlab.explore.views import VIEWS
from gradlab.notebook.explained_error import explain_below
from gradlab.notebook.magics import ignored_by
from gradlab.notebook.options import WATCH, Request, parse_watch

if TYPE_CHECKING:
    from gradlab.notebook.magics import GradMagics

NOTHING = "%%watch: the cell called no backward(), so there is nothing to show. It watches the loss that backward() is called on."


class Here(threading.local):
    """The `%%watch` cell that this thread runs: what is found, the options, IPython's ExecutionInfo; the live view, if any."""

    running: tuple[Any, Request, Any] | None = None
    examination: Any = None
    view: Any = None


@magics_class
class WatchMagics(Magics):
    """`%%watch`."""

    shell: Any

    def __init__(self, shell: Any, magics: GradMagics) -> None:
        super().__init__(shell)
        self._magics = magics
        self._here = Here()
        VIEWS["a run"] = self.show

    @no_var_expand
    @cell_magic
    def watch(self, line: str, cell: str) -> None:
        """Watch the training that a cell runs: the loss, gradients and updates of each layer over the steps, and what goes wrong.

            %%watch [--every N] [-o NAME] [-q]
            for x, y in batches:
                optimizer.zero_grad()
                loss = loss_fn(model(x), y)
                loss.backward()
                optimizer.step()

        The loss is what backward() is called on; the model, or the tensors, and the optimizer are found by their names. -o keeps
        the run: NAME.findings, NAME.save("run.html"), NAME.history(). `with gl.watch(model, optimizer) as w:` does the same in
        any program.

        A cell may train several models, one after the other or in turn. Each is shown by itself, by the variable of the loop that
        tells it apart (`act=Sigmoid`), or its name. -o keeps them as a mapping then: NAME["act=Sigmoid"].findings, NAME[0],
        list(NAME).
        """
        self._magics.parsed(parse_watch, line)
        raise self._magics.refused(WATCH, cell)

    def begin(self, request: Request, info: Any, mentions: tuple[str, ...]) -> None:
        """What the first line of a `%%watch` cell calls."""
        from gradlab.explore.doctor.session import NOTEBOOK
        from gradlab.explore.watch.examination import Examination
        from gradlab.explore.watch.finding import Found

        self.stop()
        finder = Found(self._users, int(request.every), tell=self._tell)
        self._here.running, self._here.view = (finder, request, info), None
        self._here.examination = Examination(self._users, mentions, NOTEBOOK, ignored_by(request))
        self._here.examination.open()
        finder.open()

    def imported(self) -> None:
        """What a cell calls after an import: see what a library does from there on."""
        if self._here.running is not None:
            self._here.examination.meet_libraries()
            self._here.running[0].open()

    def after_cell(self, result: Any = None) -> None:
        """IPython's `post_run_cell`: the cell has ended, however it ended."""
        with Faults("looked at a watched cell that has ended"):
            self._ended(result)

    def _ended(self, result: Any) -> None:
        from gradlab.explore.doctor.session import NOTEBOOK

        if self._here.running is None:
            return
        finder, request, info = self._here.running
        if result is not None and result.info is not info:
            return  # a cell within the cell
        error = None if result is None else result.error_before_exec or result.error_in_exec
        self._here.running = None
        try:
            diagnosis = self._here.examination.conclude(error)
            finder.close(error)
            if error is None and finder.runs:
                NOTEBOOK.keep(finder.runs.diagnosis, self._users())
            self._show(finder, request, error, diagnosis)
        finally:
            finder.close(error)
            self._forget_examination()

    def _show(self, finder: Any, request: Request, error: BaseException | None, diagnosis: Any) -> None:
        """Keep what the cell trained where that was asked for, and show it."""
        from gradlab.explore.watch.examination import ERRORS

        view, self._here.view = self._here.view, None
        result = finder.result
        if request.out is not None:
            self.shell.user_ns[request.out] = result
        if request.quiet:
            return
        if finder.trouble:
            print(f"%%watch: {finder.trouble}")  # noqa: T201  (a cell's output)
        elif result is None and error is None:
            print(NOTHING)  # noqa: T201
            if diagnosis.findings:
                display(diagnosis)
        if view is not None:
            view.show(finder.runs, over=True)
        elif result is not None:
            display(result)
        if error is not None:
            if result is not None:  # which shows the others
                diagnosis = diagnosis.without({one.kind for one in diagnosis.findings} - ERRORS)
            explain_below(diagnosis, error, self._here.examination.recorder)

    def _tell(self, finder: Any) -> None:
        """Show a training that was found, live, where there is a front end; beside those that the cell's view shows already."""
        if self._here.running is None or self._here.running[1].quiet or not self._is_live():
            return
        if self._here.view is None:
            (watch,) = list(finder.runs.values())[:1]
            self._here.view = self._magics.keep(watch.widget())
            display(self._here.view)
        self._here.view.show(finder.runs)

    def show(self, watch: Any) -> None:
        """Show a run that begins, live, where there is a front end."""
        if self._is_live():
            display(self._magics.keep(watch.widget()))

    def stop(self) -> None:
        """Listen no more."""
        if self._here.running is not None:
            finder, _, _ = self._here.running
            finder.close()
            self._here.running = None
        self._forget_examination()

    def _forget_examination(self) -> None:
        if self._here.examination is not None:
            self._here.examination.close()
            self._here.examination = None

    def unload(self) -> None:
        """Leave nothing behind."""
        self.stop()
        VIEWS.pop("a run", None)

    def _is_live(self) -> bool:
        return getattr(self.shell, "kernel", None) is not None

    def _users(self) -> dict[str, Any]:
        return {name: value for name, value in self.shell.user_ns.items() if name not in self.shell.user_ns_hidden}
