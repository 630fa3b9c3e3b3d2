"""Fixture with a real IPython shell in this process. The extension is loaded before each test and unloaded after it."""

from __future__ import annotations

import builtins
import sys
from dataclasses import dataclass
from typing import Any

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from gradlab.core.modes import mode
from gradlab.core.observers import observers
from gradlab.notebook.extension import load_ipython_extension, unload_ipython_extension
from gradlab.notebook.transform import CELL_MARK, VALUE_MARK


@dataclass
class CellResult:
    """Result of a cell."""

    success: bool
    result: Any  # the value in Out
    error: BaseException | None
    outputs: list[dict[str, str]]  # displayed MIME bundles
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        return "\n".join(bundle.get("text/plain", "") for bundle in self.outputs)


class Shell:
    """Shell that runs cells and captures their output."""

    def __init__(self, ip: InteractiveShell, capsys: Any) -> None:
        self.ip, self.ns, self._capsys = ip, ip.user_ns, capsys

    def run(self, cell: str) -> CellResult:
        publisher, before = CapturingDisplayPublisher(), self.ip.display_pub
        self.ip.display_pub = publisher
        self._capsys.readouterr()
        try:
            result = self.ip.run_cell(cell, store_history=True)
        finally:
            self.ip.display_pub = before
        out, err = self._capsys.readouterr()
        return CellResult(
            result.success,
            result.result,
            result.error_in_exec or result.error_before_exec,
            [output["data"] for output in publisher.outputs],
            out,
            err,
        )

    def traces(self) -> dict[str, Any]:
        return traces(self.ip)

    def ok(self, cell: str) -> CellResult:
        ran = self.run(cell)
        assert ran.success, ran.stdout + ran.stderr
        return ran


@pytest.fixture(scope="session")
def interactive():
    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "nocolor"
    main = sys.modules["__main__"]
    ip = InteractiveShell.instance(config=config)
    sys.modules["__main__"] = main
    yield ip
    InteractiveShell.clear_instance()


def is_from_gradlab(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).startswith("gradlab.")


def traces(ip: InteractiveShell) -> dict[str, Any]:
    """Return everything in the shell that an extension could leave behind."""
    return {
        "input": list(ip.input_transformers_cleanup),
        "ast": list(ip.ast_transformers),
        "events": {name: list(callbacks) for name, callbacks in ip.events.callbacks.items()},
        "magics": {
            kind: {name for name, magic in found.items() if is_from_gradlab(magic)}
            for kind, found in ip.magics_manager.magics.items()
        },
        "configurables": [type(one).__name__ for one in ip.configurables if is_from_gradlab(type(one))],
        "registry": {name for name, one in ip.magics_manager.registry.items() if is_from_gradlab(type(one))},
        "completers": set(ip.strdispatchers["complete_command"].strs),
        "formatters": set(ip.display_formatter.ipython_display_formatter.deferred_printers)
        | set(ip.display_formatter.ipython_display_formatter.type_printers),
        "marks": [mark for mark in (CELL_MARK, VALUE_MARK) if hasattr(builtins, mark)],
    }


@pytest.fixture
def shell(interactive, capsys, monkeypatch):
    ip = interactive
    # Restored after the test: child processes need pytest's own __main__.
    monkeypatch.setitem(sys.modules, "__main__", ip.user_module)
    ip.reset(new_session=False)
    ip.config.pop("GradMagics", None)
    before = traces(ip)
    load_ipython_extension(ip)
    shell = Shell(ip, capsys)
    shell.ok("import gradlab as gl")
    yield shell
    assert observers.active == (), "an observer was left behind"
    assert mode.grad, "a grad mode was left behind"
    unload_ipython_extension(ip)
    ip.extension_manager.loaded.discard("gradlab")  # the first cell of a notebook may have run %load_ext
    assert traces(ip) == before
