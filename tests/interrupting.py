"""Raise KeyboardInterrupt at a chosen place.

CPython handles interrupts at the beginning of a function, at a backward jump, and after a call of a C function.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import os
import sys

import gradlab

GRADLAB_FILES = os.path.dirname(gradlab.__file__), contextlib.__file__
CALL_OPCODES = {name for name in dis.opmap if name.startswith("CALL") and "INTRINSIC" not in name}


@functools.cache
def opcode_names(code):
    return {i.offset: i.opname for i in dis.get_instructions(code)}


class Interrupt:
    """Trace function that raises KeyboardInterrupt at the `at`-th possible place in `files`. `seen` counts the places."""

    def __init__(self, at, files):
        self.at, self.files, self.seen, self.where = at, files, 0, None

    def place(self, frame, name):
        self.seen += 1
        if self.seen == self.at:
            self.where = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}", name
            sys.settrace(None)
            raise KeyboardInterrupt

    def __call__(self, frame, event, arg):
        self.entered = True  # a Python function was called, not a C function
        if not frame.f_code.co_filename.startswith(self.files):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self.place(frame, f"the beginning of {frame.f_code.co_name}")
        last = ""

        def follow(frame, event, arg):
            nonlocal last
            if event == "opcode":
                if (last in CALL_OPCODES and not self.entered) or last == "JUMP_BACKWARD":
                    self.place(frame, f"{frame.f_code.co_name} after {last}")
                self.entered, last = False, opcode_names(frame.f_code).get(frame.f_lasti, "")
            elif event == "return":
                self.entered = True
            return follow

        return follow


def run_interrupted(work, at, files=GRADLAB_FILES):
    """Run `work` with an interrupt at the `at`-th place in files whose names start with one of `files`. 0 only counts places."""
    interrupt, before = Interrupt(at, files), sys.gettrace()
    sys.settrace(interrupt)
    try:
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return interrupt
