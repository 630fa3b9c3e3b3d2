"""Checkpoints: a record beside the file that a Jacobian is written to, of the finished blocks and of the work.

`<file>.json` (`gradlab.json` in a zarr store) lists the blocks in the file, a digest of their contents for each run of
neighbouring blocks, and digests of the work: the bytes of the inputs, the function (see `fingerprint`) and the plan. A process
that resumes compares all of these. Differences are named in an error, and nothing is overwritten. The output and one weighted
backward are compared numerically, too, up to rounding. This detects what digests cannot: a function that draws random numbers or
reads a file.

The order of writing makes it safe to kill the process at any time. The values of a block are written and flushed. Then a
checkpoint that includes the block is written beside the old one, flushed, and renamed over it. So a checkpoint never lists blocks
that the file does not hold, and other blocks are computed again. Values that were changed, for example by opening the file with
mode "w+", are detected by their digest and computed again, too.
"""

from __future__ import annotations

import bisect
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from gradlab.explore.caller_warning import warn_at_the_caller
from gradlab.explore.jacobian.fingerprint import FingerprintPart
from gradlab.explore.jacobian.targets.target import Place

WHAT, VERSION = "the record of a Jacobian that gradlab computes", 3
NAMED = 4  # differences listed in a message
CELL, CELLS = 16, 256  # a stretch does not cross a multiple of this many blocks, or of this part of all; it is lost as a whole
STRETCHES = 64  # of an output, each compared separately


MODULUS = 1 << 128


def digest_of(number: int, arrays: Sequence[np.ndarray]) -> int:
    """Return the digest of block `number`, whose values are `arrays`. A stretch of blocks has the sum of their digests (modulo
    2¹²⁸), so blocks can finish in any order."""
    hasher = hashlib.blake2b(number.to_bytes(8, "little"), digest_size=16)
    for array in arrays:
        hasher.update(array.nbytes.to_bytes(8, "little"))
        hasher.update(_bytes(array))
    return int.from_bytes(hasher.digest(), "little")


class Checkpoint:
    """Record of the finished blocks of one target. Made by `begin`.

    Attributes
    ----------
    stretches : list of [start, stop, digest]
        Runs of neighbouring blocks in the target, in order. Adjacent runs meet at the end of a cell, a fixed number of blocks.
    """

    def __init__(
        self,
        place: Place,
        what: str,
        facts: Mapping[str, FingerprintPart],
        called: Mapping[str, str],
        values: Mapping[str, list[float]],
        blocks: int,
    ) -> None:
        self.place, self.what = place, what
        self.facts, self.called, self.values, self.blocks = facts, called, values, blocks
        self.stretches: list[list[int]] = []
        self.cell = max(CELL, -(-blocks // CELLS))

    @property
    def finished_blocks(self) -> set[int]:
        """Numbers of the blocks in the target."""
        return {i for start, stop, _ in self.stretches for i in range(start, stop)}

    def mark(self, blocks: Mapping[int, int]) -> None:
        """Record blocks that are safely in the target: their numbers and digests."""
        for number, digest in blocks.items():
            self._join(number, number + 1, digest)
        self.write()

    def _join(self, start: int, stop: int, digest: int) -> None:
        """Add a stretch, merged with those that it touches."""
        low = high = bisect.bisect_right(self.stretches, start, key=lambda stretch: stretch[0])
        if low and self.stretches[low - 1][1] > start:
            return  # already recorded
        if low and self.stretches[low - 1][1] == start and start % self.cell:
            low -= 1
            start, digest = self.stretches[low][0], digest + self.stretches[low][2]
        if high < len(self.stretches) and self.stretches[high][0] == stop and stop % self.cell:
            stop, digest = self.stretches[high][1], digest + self.stretches[high][2]
            high += 1
        self.stretches[low:high] = [[start, stop, digest % MODULUS]]  # in one step, so that an interrupt leaves all or nothing

    def write(self) -> None:
        """Write the checkpoint atomically."""
        self.place.write(
            json.dumps(
                {
                    "what": WHAT,
                    "version": VERSION,
                    "facts": self.facts,
                    "values": self.values,
                    "blocks": self.blocks,
                    "done": [{"from": start, "to": stop, "digest": f"{digest:032x}"} for start, stop, digest in self.stretches],
                },
                indent=1,
                ensure_ascii=False,
            )
        )

    def go_on(
        self, earlier: dict[str, Any], sums: Callable[[Sequence[range]], Sequence[int]], *, all_or_none: bool = False
    ) -> None:
        """Adopt the blocks of a checkpoint `earlier`, if it is of this work and the file still holds them.

        `sums` returns the sums of the digests of stretches of blocks in the target. With `all_or_none`, a file that has lost some
        blocks counts as empty, since zeros between the blocks may be lost, too.
        """
        compare(self.place, earlier, self.facts, self.called)
        if earlier["blocks"] != self.blocks:
            _refuse(self.place, [f"the number of blocks differs: {self.blocks} instead of {earlier['blocks']}"])
        for what, numbers in self.values.items():
            if not close(numbers, earlier["values"][what]):
                why = "it depends on something else, for example random numbers or a file"
                by = "its key is" if "the key" in self.facts else "inputs and code are"
                _refuse(self.place, [f"the {what} of the function differs, although {by} the same: {why}"])
        lost = 0
        stretches = [range(one["from"], one["to"]) for one in earlier["done"]]
        for (start, stop), one, digest in zip(
            ((s.start, s.stop) for s in stretches), earlier["done"], sums(stretches), strict=True
        ):
            if f"{digest % MODULUS:032x}" == one["digest"]:
                self._join(start, stop, digest)
            else:
                lost += stop - start
        if lost and all_or_none:
            lost, self.stretches = lost + len(self.finished_blocks), []
        if lost:
            warn_at_the_caller(
                f"{lost} of the {self.blocks} blocks listed in {self.place} have changed in {self.what} since they were written, "
                "and are computed again. (Opening the file with mode='w+' empties it; mode='r+' does not.)"
            )


def compare(
    place: Place, earlier: dict[str, Any], facts: Mapping[str, FingerprintPart], called: Mapping[str, str], *, all_of: bool = True
) -> None:
    """Raise an error that names all differences from a checkpoint `earlier`; with `all_of`, also facts that only it has.

    Raises
    ------
    ValueError
    """
    before, differences = earlier["facts"], []
    for what, part in facts.items():
        then, name = before.get(what), called.get(what, what)
        if then is None:
            differences.append(f"{name} is new ({part.said})")
        elif then[0] != part.digest:
            same = then[1] == part.said
            differences.append(f"{name} differs" + (f" ({part.said})" if same else f": {part.said} instead of {then[1]}"))
    if all_of:
        differences += [f"{what} is gone ({then[1]})" for what, then in before.items() if what not in facts]
    if differences:
        _refuse(place, differences)


def _refuse(place: Place, differences: list[str]) -> NoReturn:
    more = len(differences) - NAMED
    raise ValueError(
        f"resume=True cannot continue from {place}: {'; '.join(differences[:NAMED])}"
        + (f"; and {more} more" if more > 0 else "")
        + f". {_to_start_anew(place)}"
    )


def read(place: Place) -> dict[str, Any] | None:
    """Read and validate a checkpoint; None if there is none.

    Raises
    ------
    ValueError
        If the file is not a checkpoint, or is damaged.
    """
    try:
        content = place.read()
        if content is None:
            return None
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise _foreign(place, "it is not text") from None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _foreign(place, f"it is not JSON ({error})" if text.strip() else "it is empty") from None
    if not isinstance(data, dict) or data.get("what") != WHAT:
        raise _foreign(place, f'it is JSON without "what": "{WHAT}"')
    if data.get("version") != VERSION:
        raise _foreign(place, f"it has version {data.get('version')!r}, and this gradlab reads version {VERSION}")
    try:
        _check(data)
    except (AttributeError, KeyError, IndexError, TypeError, AssertionError) as error:
        raise _foreign(place, f"it is damaged{f' ({error})' if str(error) else ''}") from None
    return data


def theirs(place: Place) -> bool:
    """Return whether there is a checkpoint, possibly damaged."""
    return f'"{WHAT}"'.encode() in (place.read() or b"")[:200]


def _check(data: dict[str, Any]) -> None:
    assert all(len(part) == 2 and all(type(one) is str for one in part) for part in data["facts"].values()), "facts"
    assert data["values"].keys() == {"output", "derivative"}, "values"
    assert all(type(one) in (int, float) for part in data["values"].values() for one in part), "values"
    assert all(len(part) >= 3 and len(part) % 3 == 0 for part in data["values"].values()), "values"
    assert type(data["blocks"]) is int, "blocks"
    assert data["facts"]["the chunk size"][1].isdecimal(), "facts"
    assert data["facts"]["the method"], "facts"
    last = 0
    for one in sorted(data["done"], key=lambda one: one["from"]):
        assert [type(one[name]) for name in ("from", "to", "digest")] == [int, int, str], "done"
        assert last <= one["from"] < one["to"] <= data["blocks"], "done"
        last = one["to"]


def _foreign(place: Place, why: str) -> ValueError:
    return ValueError(
        f"{place} is not a record from which a Jacobian can be resumed: {why}. Nothing was overwritten. {_to_start_anew(place)}"
    )


def _to_start_anew(place: Place) -> str:
    return f"Give out= another file, or move {place.name} away to compute everything again."


def summary(array: np.ndarray) -> list[float]:
    """Return a few numbers that distinguish outputs up to rounding: size, precision and largest magnitude; and for each stretch,
    the number of finite elements, the sum of magnitudes, and a weighted sum."""
    eps = float(np.finfo(array.dtype).eps) if array.dtype.kind == "f" else 0.0
    flat = np.asarray(array, np.float64).reshape(-1)
    finite = np.isfinite(flat)
    flat = np.where(finite, flat, 0.0)
    wave = np.cos(np.arange(flat.size) * 0.7390851332151607) * flat
    starts = np.unique(np.linspace(0, flat.size, STRETCHES, endpoint=False).astype(int)) if flat.size else np.zeros(0, int)
    parts = [np.add.reduceat(one, starts) if flat.size else one for one in (finite.astype(float), np.abs(flat), wave)]
    return [float(flat.size), eps, float(np.abs(flat).max(initial=0)), *np.concatenate(parts).tolist()]


def close(new: list[float], old: list[float]) -> bool:
    """Return whether two summaries agree to 1e-5 of a stretch's magnitudes plus 1e-7 of the largest one for each element, which
    may cancel. Threads may sum in another order, in single precision, too. Half precision gets more tolerance."""
    if len(new) != len(old) or new[:2] != old[:2]:
        return False
    eps, most = new[1], max(new[2], old[2])
    (finite, sizes, waves), (finite_then, sizes_then, waves_then) = (np.reshape(one[3:], (3, -1)) for one in (new, old))
    near = max(1e-5, 16 * eps) * np.maximum(sizes, sizes_then) + max(1e-7, eps) * most * finite
    return bool(
        (finite == finite_then).all()
        and (np.abs(sizes - sizes_then) <= near).all()
        and (np.abs(waves - waves_then) <= near).all()
    )


def _bytes(values: np.ndarray) -> Any:
    flat = np.ascontiguousarray(values).reshape(-1)
    return flat.view(np.uint8).data if flat.size else b""
