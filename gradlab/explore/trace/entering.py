"""Enter a sweep into the journal, when it is over: what it brought to each leaf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.explore.trace.journal import Entry, Journal, Swept
from gradlab.explore.trace.sweep import LeafSeen, RecordedSweep


def enter_sweep(journal: Journal, sweep: RecordedSweep, leaves: Sequence[LeafSeen], held: Sequence[Any]) -> None:
    """Enter a sweep into the journal.

    Parameters
    ----------
    leaves : sequence of LeafSeen
        The leaves that it has reached, with their tensors.
    held : sequence of Tensor or None
        Their `.grad`.
    """
    library, root = sweep.library, sweep.roots[0]
    numbers = root.value.numbers if root.value is not None and root.value.size == 1 else None
    loss = None if not numbers else float(numbers[0].real)
    swept = Swept(sweep.number, sweep.events, root.name, loss, library.name_of(library.whole(root.node)))
    after = iter(library.values([g for g in held if g is not None]))
    for leaf, g in zip(leaves, held, strict=True):
        left = next(after) if g is not None else None
        norm = None if left is None else left.norm
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
        journal.entered(swept, entry, leaf.tensor, library.weakly(leaf.tensor), weights, leaf.sample, version)
        leaf.sample = None
    journal.sweeps.append(swept)
