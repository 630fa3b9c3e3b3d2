"""The live view of a training: the widget that a watched loop feeds.

The kernel is busy while the loop runs, so frames come from inside of it: the watch tells of each step, and at most ten times a
second, and for at most a hundredth of the time, the picture is drawn and goes to the browser (static/watch) with what changed of
the numbers, of which it keeps the history. What the browser asks for only sets a flag, or computes one short answer; it is heard
while the loop runs where the front end sends messages through subshells (ipykernel 7), and after it elsewhere.

Beside itself it displays the static picture, as an output of its own above it, which is brought up to date when the block ends;
the style sheet hides it while the live view stands right below. So a saved, exported or reopened notebook has the picture.
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

FRAME, SHARE = 0.1, 0.01  # seconds between two frames at least; share of the time that they take


class Feed:
    """One run as it is told to the browser.

    Parameters
    ----------
    watch : Watch
    trait : str
        Where the widget keeps the run as it was told in whole, the last time.
    """

    def __init__(self, watch: Watch, trait: str) -> None:
        self.watch, self.trait = watch, trait
        self._told = -1  # the last step with histograms that was told
        self._width = 0

    def whole(self) -> dict[str, Any]:
        """All that is known now."""
        data = view_data(self.watch)
        self._note(data)
        return data

    def frame(self) -> dict[str, Any] | None:
        """The picture and what changed since the last frame; None where all did."""
        watch = self.watch
        watch.flush()
        first = watch.changed()
        if watch.measuring.columns.width != self._width or first == 0:
            return None
        frame = view_data(watch, first, histograms=watch.last_moment() != self._told)
        self._note(frame)
        return frame

    def _note(self, data: dict[str, Any]) -> None:
        self._width = data["width"]
        self._told = self.watch.last_moment()
        self.watch.changed(seen=True)


class WatchWidget(LiveView):
    """A live view of a watched training, made by `Watch.widget()`; of a cell's, if `show` gives it more."""

    _esm, _css = script_and_styles()

    run = traitlets.Dict().tag(sync=True)  # the run as it was told in whole, the last time; of others `run1`, `run2` …
    tabs: traitlets.List[Any] = traitlets.List().tag(sync=True)  # (trait, label) of each run, if there are several
    rest = traitlets.Unicode().tag(sync=True)  # of what is not shown
    live = traitlets.Bool(True).tag(sync=True)
    token = traitlets.Unicode().tag(sync=True)
    timeout = traitlets.Float(10.0).tag(sync=True)

    def __init__(self, watch: Watch, **traits: Any) -> None:
        self._feeds = [Feed(watch, "run")]
        self._shown: Any = watch  # whose picture stays
        self._next = 0.0
        self._picture: Any = None
        super().__init__(run=self._feeds[0].whole(), token=uuid.uuid4().hex, **traits)
        self._listen()
        self._follow(self._feeds[0])

    def show(self, runs: Runs, *, over: bool = False) -> None:
        """Show the trainings of a cell, each on a tab; `over`: there will be no more."""
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
        """A loop has made a step, is held, or is over: the first one's, if it is not said whose."""
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
        watch.spent(spent)

    # ---------------------------------------------------------------------------------------------------------- messages
    def _heard(self, _: Any, message: Any, buffers: Any) -> None:
        """Answer one message of a view: a flag is set, or a step computed again."""
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
        except Exception as error:  # noqa: BLE001  (a callback has nobody above it who could tell the user)
            answer = {"error": f"{type(error).__name__}: {error}"}
        self.send({"answer": str(message.get("id", "")), "ask": ask, "run": trait, **answer})

    # ----------------------------------------------------------------------------------------------------------- display
    def _said(self) -> str:
        return f"live view of the training of {self._feeds[0].watch.of.called or 'tensors'}"

    def _ipython_display_(self, **_: Any) -> None:
        """Display the static picture, and the live view as a second output below it."""
        from IPython.display import display

        self._picture = display(self._static(), raw=True, display_id=True)
        self._show()

    def _static(self) -> dict[str, str]:
        return as_twin(self._shown._repr_mimebundle_())

    def _refresh_picture(self) -> None:
        if self._picture is not None:
            with contextlib.suppress(Exception):  # the training must end as it would
                self._picture.update(self._static(), raw=True)
