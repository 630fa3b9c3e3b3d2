"""The script and styles of a training's live view, for the widget and for saved pages, which need no widget."""

from __future__ import annotations

from gradlab.notebook.bundle import script, styles


def script_and_styles() -> tuple[str, str]:
    """Return the ES module, whose default export has `render`, and its style sheet."""
    return script("watch/view.js"), styles("kit/kit.css", "watch/watch.css")
