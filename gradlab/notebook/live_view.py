"""The base class of live views: how they are displayed, with a static twin above.

IPython displays two outputs: the static twin, and the live view below it. They are not one output of two MIME types, because
JupyterLab would show the live view of such an output, and an error in its place where the notebook is reopened without a kernel.
The style sheet hides the twin while a live view is right below it. So a saved, exported or reopened notebook has the twin, and a
front end without widgets shows only the twin. A front end that asks an object for one bundle of MIME types gets both in it.

A view is one ES module and one style sheet, sent as text: it uses no module loader and loads nothing from the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anywidget

from gradlab.diagnose.faults import Faults

TWIN = "data-gradlab-twin"  # marks the static output of a live view; the style sheet looks for it
MISSING = f".jp-OutputArea-child:has([{TWIN}])+.jp-OutputArea-child .jp-OutputArea-output.jupyter-widgets"  # no model was found
HINT = "Run the cell to make it live."
REOPENED = f'<style>{MISSING}{{font-size:0}}{MISSING}::after{{content:"{HINT}";font-size:12px;opacity:.72}}</style>'
VIEW = "application/vnd.jupyter.widget-view+json"
VIEW_VERSION = {"version_major": 2, "version_minor": 0}


class LiveView(anywidget.AnyWidget):
    """A widget below its static twin."""

    def _listen(self) -> None:
        """Start to answer the messages of views. Errors are shown in the view; other internal errors are warnings."""
        self.on_msg(Faults("answered a live view").guard(self._answer))

    def _answer(self, _: Any, message: Any, buffers: Any) -> None:
        """Answer one message of a view."""
        raise NotImplementedError

    def _text(self) -> str:
        """Return a text for front ends that cannot show the view. It is never updated."""
        raise NotImplementedError

    def _static(self) -> dict[str, str]:
        """Return the bundle of the static twin, or {} if there is nothing to show."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the static twin and the live view in one bundle, for front ends that do not call `_ipython_display_`."""
        data, metadata = self._live()
        return {**data, **self._static()}, metadata

    def _live(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the live view's bundle. (ipywidgets 7 removes the method above from instances.)"""
        text = {"text/plain": self._text()}
        if self.comm is None:
            return text, {}
        inherited = getattr(super(), "_repr_mimebundle_", None)  # ipywidgets 7 has none
        bundle = inherited() if inherited is not None else {VIEW: {**VIEW_VERSION, "model_id": self.model_id}}
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        return {**data, **text}, metadata

    def _show(self) -> None:
        """Display the live view."""
        from IPython.display import display

        data, metadata = self._live()
        display(data, metadata=metadata, raw=True)


def as_twin(bundle: Mapping[str, str]) -> dict[str, str]:
    """Mark a static output as a live view's twin. In a reopened notebook, it replaces JupyterLab's error below it."""
    return {**bundle, "text/html": f"<div {TWIN}>{bundle['text/html']}</div>{REOPENED}"}
