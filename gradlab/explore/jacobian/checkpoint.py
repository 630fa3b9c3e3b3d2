"""The checkpoint beside a file that a Jacobian is written into: what is done, and what the work was.

`<file>.json` (`gradlab.json` among zarr's files) says which blocks the file holds, what these hold (a digest for each run of
neighbouring blocks), and by digests what they are the derivatives of: the inputs' bytes, the function (see `fingerprint`), the
plan. A process that goes on compares all of it; what differs is named, and nothing is overwritten. The output and one weighted
backward are compared too, as numbers to rounding: that finds what digests cannot see, a function that draws random numbers or
reads a file.

The order makes it safe to be killed anywhere: a block's values are written and flushed; then the checkpoint that has the block
is written beside the old one, flushed, and put in its place by one rename. So the checkpoint never promises what the
file does not hold, and a block that it does not have is computed again. Values that are not those that were written, as after
opening the file with mode "w+", are found by their digest, and computed again too.
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
NAMED = 4  # differences that a message names
CELL, CELLS = 16, 256  # a stretch does not go beyond so many blocks, or this part of all: what of it is lost, is lost with it
STRETCHES = 64  # of an output, each of which is compared by itself


MODULUS = 1 << 128


def digest_of(number: int, arrays: Sequence[np.ndarray]) -> int:
    """The digest of block `number`, whose numbers are `arrays`. A stretch of blocks has the sum of theirs (modulo 2¹²⁸), so
    blocks may come in any order."""
    hasher = hashlib.blake2b(number.to_bytes(8, "little"), digest_size=16)
    for array in arrays:
        hasher.update(array.nbytes.to_bytes(8, "little"))
        hasher.update(_bytes(array))
    return int.from_bytes(hasher.digest(), "little")


class Checkpoint:
    """What is done of one target. Made by `begin`.

    Attributes
    ----------
    stretches : list of [start, stop, digest]
        Neighbouring blocks that the target holds, in order. Two that meet do so at the end of a cell, a fixed number of blocks.
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
    def done(self) -> set[int]:
        """The numbers of the blocks that the target holds."""
        return {i for start, stop, _ in self.stretches for i in range(start, stop)}

    def mark(self, blocks: Mapping[int, int]) -> None:
        """Say that blocks are done, now that they are safely in the target: their numbers and digests."""
        for number, digest in blocks.items():
            self._join(number, number + 1, digest)
        self.write()

    def _join(self, start: int, stop: int, digest: int) -> None:
        """Add a stretch, one with those that it meets."""
        low = high = bisect.bisect_right(self.stretches, start, key=lambda stretch: stretch[0])
        if low and self.stretches[low - 1][1] > start:
            return  # noted already
        if low and self.stretches[low - 1][1] == start and start % self.cell:
            low -= 1
            start, digest = self.stretches[low][0], digest + self.stretches[low][2]
        if high < len(self.stretches) and self.stretches[high][0] == stop and stop % self.cell:
            stop, digest = self.stretches[high][1], digest + self.stretches[high][2]
            high += 1
        self.stretches[low:high] = [[start, stop, digest % MODULUS]]  # at once: an interrupt leaves all or none of it

    def write(self) -> None:
        """Put the checkpoint in its place, whole or not at all."""
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
        """Take over the blocks of a checkpoint `earlier`, if it is of this work and the file still holds them.

        `sums` says of stretches of blocks the sums of the digests of what the target holds. `all_or_none`: a file that has lost
        some blocks counts as empty, since zeros between the blocks may be lost too.
        """
        compare(self.place, earlier, self.facts, self.called)
        if earlier["blocks"] != self.blocks:
            _refuse(self.place, [f"the number of blocks differs: {self.blocks}, and it was {earlier['blocks']}"])
        for what, numbers in self.values.items():
            if not close(numbers, earlier["values"][what]):
                why = "it depends on something else, random numbers or a file, say"
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
            lost, self.stretches = lost + len(self.done), []
        if lost:
            warn_at_the_caller(
                f"{lost} of the {self.blocks} blocks that {self.place} has are not in {self.what} as they were written, "
                "and are computed again. (Opening the file with mode='w+' empties it; mode='r+' does not.)"
            )


def compare(
    place: Place, earlier: dict[str, Any], facts: Mapping[str, FingerprintPart], called: Mapping[str, str], *, all_of: bool = True
) -> None:
    """Refuse, by name, what differs from a checkpoint `earlier`; `all_of`: or is in the checkpoint alone.

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
            differences.append(f"{name} differs" + (f" ({part.said})" if same else f": {part.said}, and it was {then[1]}"))
    if all_of:
        differences += [f"{what} is gone ({then[1]})" for what, then in before.items() if what not in facts]
    if differences:
        _refuse(place, differences)


def _refuse(place: Place, differences: list[str]) -> NoReturn:
    more = len(differences) - NAMED
    raise ValueError(
        f"resume=True cannot go on with what {place} records: {'; '.join(differences[:NAMED])}"
        + (f"; and {more} more" if more > 0 else "")
        + f". {_to_start_anew(place)}"
    )


def read(place: Place) -> dict[str, Any] | None:
    """What a checkpoint says, its form checked; None if there is none.

    Raises
    ------
    ValueError
        If the file is there and is no checkpoint, or is damaged.
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
    """Whether there is a checkpoint, be it a damaged one."""
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
        f"{place} is no record of a Jacobian that can be gone on with: {why}. Nothing was overwritten. {_to_start_anew(place)}"
    )


def _to_start_anew(place: Place) -> str:
    return f"Give out= another file, or move {place.name} away: then everything is computed anew."


def summary(array: np.ndarray) -> list[float]:
    """A few numbers that tell one output from another, to be compared to rounding: its size, precision and greatest magnitude,
    and of each stretch how many are finite, the sum of the magnitudes, and a sum with changing weights."""
    eps = float(np.finfo(array.dtype).eps) if array.dtype.kind == "f" else 0.0
    flat = np.asarray(array, np.float64).reshape(-1)
    finite = np.isfinite(flat)
    flat = np.where(finite, flat, 0.0)
    wave = np.cos(np.arange(flat.size) * 0.7390851332151607) * flat
    starts = np.unique(np.linspace(0, flat.size, STRETCHES, endpoint=False).astype(int)) if flat.size else np.zeros(0, int)
    parts = [np.add.reduceat(one, starts) if flat.size else one for one in (finite.astype(float), np.abs(flat), wave)]
    return [float(flat.size), eps, float(np.abs(flat).max(initial=0)), *np.concatenate(parts).tolist()]


def close(new: list[float], old: list[float]) -> bool:
    """Within 1e-5 of a stretch's magnitudes, and 1e-7 of the greatest for each element, which may cancel: threads may sum in
    another order, single precision too; more of half precision."""
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
