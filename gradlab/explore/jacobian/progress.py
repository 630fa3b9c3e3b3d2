"""Progress of a long run: a bar, a function of the user's, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gradlab import clock

LONG_SECONDS = 2.0  # longer runs, by estimate, show a bar
FIRST_SECONDS = 0.2  # time before the estimate: the first block may be slow
BAR = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}{unit} [{elapsed}<{remaining}, {rate_noinv_fmt}]"


def check_progress(progress: Any) -> None:
    """Raise if `progress` is not None, a boolean or callable."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(
            f"progress={progress!r}: it takes None (a bar for runs of over {LONG_SECONDS:.0f} s), True, False, or a function "
            "that is called as progress(done, total)"
        )


@contextmanager
def report_progress(progress: Any, known: int, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """Yield a function that is called with the number done. It shows a bar, calls `progress`, or does nothing."""
    if progress is False:
        yield lambda done: None
        return
    if callable(progress):
        yield lambda done: progress(done, total)
        return
    start, bar = clock.now(), None

    def report(done: int) -> None:
        nonlocal bar
        if bar is None:
            spent = clock.now() - start
            expected = spent / max(1, done - known) * (total - known)
            if progress is None and (spent < FIRST_SECONDS or expected < LONG_SECONDS):
                return
            from tqdm.auto import tqdm

            bar = tqdm(total=total, initial=known, unit=f" {unit}", desc="Jacobian", bar_format=BAR)
            bar.start_t -= spent
        bar.update(done - bar.n)

    try:
        if progress:
            report(known)
        yield report
    finally:
        if bar is not None:
            bar.close()
