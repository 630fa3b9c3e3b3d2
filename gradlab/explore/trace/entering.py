"""Add a finished sweep to the journal, with the gradient of each leaf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.explore.trace.journal import Entry, Journal, SweepEntry
from gradlab.explore.trace.sweep import RecordedLeaf, RecordedSweep


def enter_sweep(journal: Journal, sweep: RecordedSweep, leaves: Sequence[RecordedLeaf], held: Sequence[Any]) -> None:
    """Add a sweep to the journal.

    Parameters
    ----------
    leaves : sequence of RecordedLeaf
        The leaves that the sweep reached, with their tensors.
    held : sequence of Tensor or None
        The `.grad` of these leaves.
    """
    library, root = sweep.library, sweep.roots[0]
    numbers = root.value.numbers if root.value is not None and root.value.size == 1 else None
    loss = None if not numbers else float(numbers[0].real)
    operation = library.name_of(library.whole(root.node))
    swept = SweepEntry(sweep.number, sweep.events, root.name, loss, operation, scale=sweep.scale)
    after = iter(library.values([g for g in held if g is not None]))
    for leaf, g in zip(leaves, held, strict=True):
        left = next(after) if g is not None else None
        norm = None if left is None else left.norm / sweep.scale
        weights = library.sample(leaf.tensor)
        if leaf.sample is None or weights is None or leaf.sample.shape != weights.shape:
            continue
        name = next(iter(sweep.names.by_node.get(leaf.node, ())), "")
        entry = Entry(
            name,
            leaf.key,
            library.is_parameter(leaf.tensor),
            int(leaf.tensor.numel()),
            float(np.linalg.norm(weights)),
            float(np.linalg.norm(leaf.sample)),
            None if leaf.before is None else leaf.before.norm,
            norm,
        )
        version = library.version(leaf.tensor)
        journal.add(swept, entry, leaf.tensor, library.weakly(leaf.tensor), weights, leaf.sample, version)
        leaf.sample = None
    journal.sweeps.append(swept)
