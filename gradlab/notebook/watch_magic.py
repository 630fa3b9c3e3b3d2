"""`%%watch`: watch the training in a cell, and show the live view of a watched run.

The cell runs as an ordinary cell (see `transform`). Its first line starts to observe `backward`
(explore/watch/training_finder). From the first call on, it works like `with gl.watch(model, optimizer) as w:` around the cell,
with each loss logged.
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
    """The running `%%watch` cell of this thread: finder, options and IPython's ExecutionInfo; and its live view."""

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

        The loss is the tensor on which backward() is called. The model or tensors, and the optimizer, are found among the cell's
        names. -o assigns the run: NAME.findings, NAME.save("run.html"), NAME.history(). `with gl.watch(model, optimizer) as w:`
        does the same in any program.

        A cell may train several models, one after the other or alternately. Each is labelled with the loop variable that
        distinguishes it (`act=Sigmoid`), or its name. -o then assigns a mapping: NAME["act=Sigmoid"].findings, NAME[0],
        list(NAME).
        """
        self._magics.parse(parse_watch, line)
        raise self._magics.usage_error(WATCH, cell)

    def begin(self, request: Request, info: Any, mentions: tuple[str, ...]) -> None:
        """Start a `%%watch` cell: its first line calls this."""
        from gradlab.explore.doctor.session import NOTEBOOK
        from gradlab.explore.watch.examination import Examination
        from gradlab.explore.watch.training_finder import TrainingFinder

        self.stop()
        finder = TrainingFinder(self._users, int(request.every), on_training=self._show_live)
        self._here.running, self._here.view = (finder, request, info), None
        self._here.examination = Examination(self._users, mentions, NOTEBOOK, ignored_by(request))
        self._here.examination.open()
        finder.open()

    def meet_libraries(self) -> None:
        """Start to observe libraries that the cell has imported."""
        if self._here.running is not None:
            self._here.examination.meet_libraries()
            self._here.running[0].open()

    def after_cell(self, result: Any = None) -> None:
        """Handle IPython's `post_run_cell`, after a cell that succeeded or failed."""
        with Faults("looked at a watched cell that has ended"):
            self._end_cell(result)

    def _end_cell(self, result: Any) -> None:
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
        """Assign the watched runs to the requested name, and show them."""
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
            if result is not None:  # the result shows the other findings
                diagnosis = diagnosis.without({one.kind for one in diagnosis.findings} - ERRORS)
            explain_below(diagnosis, error, self._here.examination.recorder)

    def _show_live(self, finder: Any) -> None:
        """Add a training to the cell's live view, if there is a front end."""
        if self._here.running is None or self._here.running[1].quiet or not self._is_live():
            return
        if self._here.view is None:
            (watch,) = list(finder.runs.values())[:1]
            self._here.view = self._magics.keep(watch.widget())
            display(self._here.view)
        self._here.view.show(finder.runs)

    def show(self, watch: Any) -> None:
        """Show the live view of a run that begins, if there is a front end."""
        if self._is_live():
            display(self._magics.keep(watch.widget()))

    def stop(self) -> None:
        """Stop observing."""
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
        """Remove all state."""
        self.stop()
        VIEWS.pop("a run", None)

    def _is_live(self) -> bool:
        return getattr(self.shell, "kernel", None) is not None

    def _users(self) -> dict[str, Any]:
        return {name: value for name, value in self.shell.user_ns.items() if name not in self.shell.user_ns_hidden}
