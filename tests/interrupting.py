"""An interrupt at a place of one's choice.

CPython looks for one when a function begins, when a loop jumps back, and when a call of what is written in C has returned.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import os
import sys

import gradlab

OURS = os.path.dirname(gradlab.__file__), contextlib.__file__
CALLS = {name for name in dis.opmap if name.startswith("CALL") and "INTRINSIC" not in name}


@functools.cache
def instructions(code):
    return {i.offset: i.opname for i in dis.get_instructions(code)}


class Interrupt:
    """Raises KeyboardInterrupt at the `at`-th place in `files` at which one may come; `seen` says how many there were."""

    def __init__(self, at, files):
        self.at, self.files, self.seen, self.where = at, files, 0, None

    def place(self, frame, name):
        self.seen += 1
        if self.seen == self.at:
            self.where = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}", name
            sys.settrace(None)
            raise KeyboardInterrupt

    def __call__(self, frame, event, arg):
        self.entered = True  # so what was called is no C function
        if not frame.f_code.co_filename.startswith(self.files):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self.place(frame, f"the beginning of {frame.f_code.co_name}")
        last = ""

        def follow(frame, event, arg):
            nonlocal last
            if event == "opcode":
                if (last in CALLS and not self.entered) or last == "JUMP_BACKWARD":
                    self.place(frame, f"{frame.f_code.co_name} after {last}")
                self.entered, last = False, instructions(frame.f_code).get(frame.f_lasti, "")
            elif event == "return":
                self.entered = True
            return follow

        return follow


def interrupted(work, at, files=OURS):
    """Run `work` with an interrupt at the `at`-th place in files whose names begin so; 0 only counts them."""
    interrupt, before = Interrupt(at, files), sys.gettrace()
    sys.settrace(interrupt)
    try:
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return interrupt
