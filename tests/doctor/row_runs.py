"""Run the cells of a row in a real IPython shell, with their `%%grad` lines."""

from __future__ import annotations

import linecache
import sys
import warnings
from typing import Any

from symptoms import SYMPTOMS

from gradlab.diagnose.source_locations import notebook

PRELUDE = """
import math
import numpy as np
import {library} as torch
import {library} as gl
import {library}.nn as nn
import {library}.nn.functional as F
import {library}.optim as optim
torch.manual_seed(0)
np.random.seed(0);
"""


class Run:
    """The cells of a row, run in `shell` with one library.

    Attributes
    ----------
    last : Ran or None
        Result of the last cell; all earlier cells succeeded. None after `leave`.
    """

    def __init__(self, shell: Any, library: str, texts: tuple[str, ...]) -> None:
        self.shell = shell
        shell.ip.run_line_magic(
            "config", "GradMagics.graph = False"
        )  # drawing takes most of the time, and no test looks at the pictures
        for name in list(notebook.numbers):
            linecache.cache.pop(name, None)  # a new kernel has no cells
        shell.ok(PRELUDE.format(library=library))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the libraries warn about some faults, which is not tested here
            for text in texts[:-1]:
                shell.ok(text)
            self.last = shell.run(texts[-1])

    @property
    def error(self) -> str | None:
        """Name of the error that the last cell raised, or None."""
        return None if self.last.error is None else type(self.last.error).__name__

    @property
    def said(self) -> str:
        """Output of the last cell, including its traceback."""
        return self.last.stdout + self.last.stderr

    def holds(self, predicate: str) -> bool:
        """Return whether a predicate of the row is true for the names that the cells defined."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns when the .grad of a non-leaf is read
            return bool(eval(predicate, {**self.shell.ns, **SYMPTOMS}))

    def leave(self) -> None:
        """Release the cells' tensors, and restore the grad mode. May be called again."""
        if self.last is None:
            return
        self.shell.ok("torch.set_grad_enabled(True);")
        self.last = None
        self.shell.ip.InteractiveTB.evalue = self.shell.ip.InteractiveTB.tb = None  # these hold the frames of an error
        sys.last_exc = sys.last_value = sys.last_traceback = None
        self.shell.ip.reset(new_session=False)
