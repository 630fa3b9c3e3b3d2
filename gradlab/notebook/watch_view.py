"""What the live view of a training is drawn by: for the widget, and for a page that is saved, which needs no widget."""

from __future__ import annotations

from gradlab.notebook.bundle import script, styles


def script_and_styles() -> tuple[str, str]:
    """The ES module, whose default export has `render`, and its style sheet."""
    return script("watch/view.js"), styles("kit/kit.css", "watch/watch.css")
