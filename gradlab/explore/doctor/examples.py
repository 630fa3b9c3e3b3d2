"""Run the two programs of a kind of findings: the one with the fault, and the healthy one next to it.

The documentation shows their findings, and the tests check them. The programs are text of this package (see `registry`).
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Iterator

from gradlab import clock
from gradlab.explore.doctor.after_run import diagnose_after_run
from gradlab.explore.doctor.findings import Diagnosis
from gradlab.explore.doctor.registry import KINDS, RUN, STATE, homes_of, split_marks
from gradlab.explore.script.program import Program, script_environment
from gradlab.explore.script.running import public_names, run_script

WATCH = "watch"
RUN_AS = "example.py"


def for_library(source: str, library: str) -> str:
    """Return a program for PyTorch as one for gradlab, if `library` is "gradlab"."""
    if library != "gradlab":
        return source
    source = re.sub(r"^import torch$", "import gradlab as torch", source, flags=re.MULTILINE)
    return re.sub(r"^(import|from) torch\b", rf"\1 {library}", source, flags=re.MULTILINE)


def looks_at(kind: str) -> str:
    """Return where a kind is found: in a recorded run, in the error and the state after a run, or in a run with `gl.watch`."""
    homes = homes_of(kind)
    return WATCH if not homes else RUN if RUN in homes else STATE


def diagnose_example(kind: str, *, healthy: bool = False, library: str = "torch", recorded: bool | None = None) -> Diagnosis:
    """Run a program of a kind, and return its diagnosis.

    Parameters
    ----------
    kind : str
        The name of a kind.
    healthy : bool, default: False
        Whether to run the healthy program, and not the one with the fault.
    library : {"torch", "gradlab", "keras"}
        "keras" for the kinds of models of Keras.
    recorded : bool, optional
        Whether to record the run. Default: if the kind is found in recorded runs (see `looks_at`).

    Returns
    -------
    Diagnosis
        Of a recorded run, what `gradlab doctor` reports, for every backward call. Of an error or a state, what `gl.doctor()`
        reports after the run. Of a watched run, the findings of the last `Watch` in its namespace.
    """
    declared = KINDS[kind]
    source = for_library(split_marks(declared.healthy if healthy else declared.fault)[0], library)
    where = looks_at(kind)
    program = Program(RUN_AS, f"/{RUN_AS}", source, (), "")
    with _quiet():
        if where == RUN if recorded is None else recorded:
            return run_script(program, every=True).diagnosis
        # With a stopped clock, gl.watch reads every step.
        with script_environment(program) as main, clock.use_source(lambda: 0.0):
            error: BaseException | None = None
            try:
                exec(program.compile_source(), vars(main))  # noqa: S102  (text of this package)
            except Exception as raised:  # noqa: BLE001  (some faults end in an error)
                error = raised
            namespace = public_names(main)
            if where == STATE:
                return diagnose_after_run(namespace, error)
        watches: list[Diagnosis] = [value.findings for value in namespace.values() if type(value).__name__ == "Watch"]
        return watches[-1]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Discard what a program prints, and its warnings."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
