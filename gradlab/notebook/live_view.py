"""What the live views share: how one is displayed, and the static twin above it.

IPython displays two outputs: the static twin, and the live view below it. They are not one output of two MIME types, because
JupyterLab would show the live view of such an output, and an error in its place where the notebook is reopened without a kernel.
The style sheet hides the twin while a live view is right below it; so a saved, exported or reopened notebook has it, and a front
end without widgets shows it alone. A front end that asks an object for one bundle of MIME types gets both in it.

A view is one ES module and one style sheet, sent as text: it uses no loader of modules and asks no host for anything.
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
        """Answer the messages of views from here on. What answering fails by is shown in the view; a fault beside that is a
        warning."""
        self.on_msg(Faults("answered a live view").guard(self._heard))

    def _heard(self, _: Any, message: Any, buffers: Any) -> None:
        """Answer one message of a view."""
        raise NotImplementedError

    def _said(self) -> str:
        """A text for where the view cannot be shown, which stays true: it is never written anew."""
        raise NotImplementedError

    def _static(self) -> dict[str, str]:
        """The bundle of the static twin; {} once there is nothing to show."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The static twin and the live view in one bundle, for front ends that do not call `_ipython_display_`."""
        data, metadata = self._live()
        return {**data, **self._static()}, metadata

    def _live(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The bundle. (Of an instance, ipywidgets 7 takes the method above away.)"""
        text = {"text/plain": self._said()}
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
    """A static output marked as a live view's. Where the notebook is reopened, it replaces the error of JupyterLab below it."""
    return {**bundle, "text/html": f"<div {TWIN}>{bundle['text/html']}</div>{REOPENED}"}
