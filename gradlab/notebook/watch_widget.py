"""The live view of a training: a widget that is updated from the watched loop.

The kernel is busy while the loop runs, so frames are sent from the loop: the watch reports each step, and at most ten times a
second, for at most 1 % of the time, the picture is drawn and sent to the browser (static/watch) with the changed numbers. The
browser keeps their history. Its messages only set a flag or need one short answer. They arrive during the loop if the front end
uses subshells (ipykernel 7), otherwise after it.

The static picture is a separate output above it, updated when the block ends and hidden by the style sheet while the live view
is right below. So a saved, exported or reopened notebook has the picture.
"""

from __future__ import annotations

import contextlib
import uuid
import weakref
from typing import Any

import traitlets

from gradlab import clock
from gradlab.explore.watch import Watch
from gradlab.explore.watch.page import view_data
from gradlab.explore.watch.runs import Runs
from gradlab.notebook.live_view import LiveView, as_twin
from gradlab.notebook.watch_view import script_and_styles

FRAME, SHARE = 0.1, 0.01  # minimum seconds between two frames; maximum share of the time


class Feed:
    """One run, as sent to the browser.

    Parameters
    ----------
    watch : Watch
    trait : str
        The widget's trait with the last complete data of the run.
    """

    def __init__(self, watch: Watch, trait: str) -> None:
        self.watch, self.trait = watch, trait
        self._histogram_step = -1  # the last step whose histograms were sent
        self._width = 0

    def whole(self) -> dict[str, Any]:
        """Return the complete current data."""
        data = view_data(self.watch)
        self._note(data)
        return data

    def frame(self) -> dict[str, Any] | None:
        """Return the picture and the changes since the last frame; None if everything changed."""
        watch = self.watch
        watch.flush()
        first = watch.first_changed_column()
        if watch.measuring.columns.width != self._width or first == 0:
            return None
        frame = view_data(watch, first, histograms=watch.last_histogram_step() != self._histogram_step)
        self._note(frame)
        return frame

    def _note(self, data: dict[str, Any]) -> None:
        self._width = data["width"]
        self._histogram_step = self.watch.last_histogram_step()
        self.watch.first_changed_column(reset=True)


class WatchWidget(LiveView):
    """A live view of a watched training, made by `Watch.widget()`. `show` adds other trainings of a cell."""

    _esm, _css = script_and_styles()

    run = traitlets.Dict().tag(sync=True)  # the last complete data of the run; of further ones `run1`, `run2` …
    tabs: traitlets.List[Any] = traitlets.List().tag(sync=True)  # (trait, label) of each run, if there are several
    rest = traitlets.Unicode().tag(sync=True)  # about trainings that are not shown
    live = traitlets.Bool(True).tag(sync=True)
    token = traitlets.Unicode().tag(sync=True)
    timeout = traitlets.Float(10.0).tag(sync=True)

    def __init__(self, watch: Watch, **traits: Any) -> None:
        self._feeds = [Feed(watch, "run")]
        self._shown: Any = watch  # shown in the static picture
        self._next = 0.0
        self._picture: Any = None
        super().__init__(run=self._feeds[0].whole(), token=uuid.uuid4().hex, **traits)
        self._listen()
        self._follow(self._feeds[0])

    def show(self, runs: Runs, *, over: bool = False) -> None:
        """Show the trainings of a cell, each on a tab. `over` says that there will be no more."""
        known = {id(feed.watch): feed for feed in self._feeds}
        for watch in runs.values():
            if id(watch) not in known:
                feed = known[id(watch)] = Feed(watch, f"run{len(self._feeds)}")
                self._feeds.append(feed)
                self.add_traits(**{feed.trait: traitlets.Dict(feed.whole()).tag(sync=True)})
                self._follow(feed)
        if len(runs) > 1:
            self.tabs = [[known[id(watch)].trait, label] for label, watch in runs.items()]
        self.rest = runs.unwatched_text
        if len(runs) > 1 or self.rest:
            self._shown = runs
            if over:
                self._refresh_picture()

    def _follow(self, feed: Feed) -> None:
        me = weakref.ref(self)

        def listener(watch: Watch) -> None:
            widget = me()
            if widget is not None:
                widget.step(feed)

        feed.watch.listeners.append(listener)

    # ------------------------------------------------------------------------------------------------------------ frames
    def step(self, feed: Feed | None = None) -> None:
        """Handle a step, a pause or the end of a loop, by default the first one."""
        feed = feed or self._feeds[0]
        watch = feed.watch
        if watch.ended:
            self.set_trait(feed.trait, feed.whole())
            if self._shown is watch:
                self._refresh_picture()
            return
        began = clock.now()
        if began < self._next and not watch.is_paused:
            return
        frame = feed.frame()
        if frame is not None:
            self.send({"frame": frame, "run": feed.trait})
        else:
            self.set_trait(feed.trait, feed.whole())
        spent = clock.now() - began
        self._next = began + max(FRAME, spent / SHARE)
        watch.add_cost(spent)

    # ---------------------------------------------------------------------------------------------------------- messages
    def _answer(self, _: Any, message: Any, buffers: Any) -> None:
        """Answer one message of a view: set a flag, or recompute a step."""
        message = message if isinstance(message, dict) else {}
        ask, trait = str(message.get("ask")), message.get("run", "run")
        watch = next((feed.watch for feed in self._feeds if feed.trait == trait), self._feeds[0].watch)
        answer: dict[str, Any] = {}
        try:
            if ask == "pause":
                watch.pause()
            elif ask == "resume":
                watch.resume()
            elif ask == "once":
                watch.resume(once=True)
            elif ask == "replay":
                answer["report"] = watch.replay().text()
            answer["paused"] = watch.is_paused and not watch.ended
        except Exception as error:  # noqa: BLE001  (no caller could report it to the user)
            answer = {"error": f"{type(error).__name__}: {error}"}
        self.send({"answer": str(message.get("id", "")), "ask": ask, "run": trait, **answer})

    # ----------------------------------------------------------------------------------------------------------- display
    def _text(self) -> str:
        return f"live view of the training of {self._feeds[0].watch.target.model_name or 'tensors'}"

    def _ipython_display_(self, **_: Any) -> None:
        """Display the static picture, and the live view as a second output below it."""
        from IPython.display import display

        self._picture = display(self._static(), raw=True, display_id=True)
        self._show()

    def _static(self) -> dict[str, str]:
        return as_twin(self._shown._repr_mimebundle_())

    def _refresh_picture(self) -> None:
        if self._picture is not None:
            with contextlib.suppress(Exception):  # an error in drawing must not affect the training
                self._picture.update(self._static(), raw=True)
