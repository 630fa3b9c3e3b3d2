"""Runs the cells of a row in a real IPython shell, under `%%grad` where they say so."""

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
    """The cells of a row, run in `shell` on one library.

    Attributes
    ----------
    last : Ran or None
        What the last cell gave; the earlier ones all ended well. None after `leave`.
    """

    def __init__(self, shell: Any, library: str, texts: tuple[str, ...]) -> None:
        self.shell = shell
        shell.ip.run_line_magic(
            "config", "GradMagics.graph = False"
        )  # nobody looks at the pictures, and they are most of the time
        for name in list(notebook.numbers):
            linecache.cache.pop(name, None)  # a kernel that has just started knows no cells
        shell.ok(PRELUDE.format(library=library))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the libraries warn of some faults; that is not what is tested
            for text in texts[:-1]:
                shell.ok(text)
            self.last = shell.run(texts[-1])

    @property
    def error(self) -> str | None:
        """The name of the error with which the last cell ended."""
        return None if self.last.error is None else type(self.last.error).__name__

    @property
    def said(self) -> str:
        """What the last cell printed, its traceback included."""
        return self.last.stdout + self.last.stderr

    def holds(self, predicate: str) -> bool:
        """Whether a row's predicate holds over the names that the cells left."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns when the .grad of a non-leaf is read
            return bool(eval(predicate, {**self.shell.ns, **SYMPTOMS}))

    def leave(self) -> None:
        """Let go of the cells' tensors, and put right the mode that a fault left behind. May be called again."""
        if self.last is None:
            return
        self.shell.ok("torch.set_grad_enabled(True);")
        self.last = None
        self.shell.ip.InteractiveTB.evalue = self.shell.ip.InteractiveTB.tb = None  # these hold the frames of an error
        sys.last_exc = sys.last_value = sys.last_traceback = None
        self.shell.ip.reset(new_session=False)
