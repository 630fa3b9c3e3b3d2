"""Which columns (or rows) of a sparse matrix can share a sweep: a colouring at distance 2 of its pattern.

Columns that have an entry in the same row get different colours; the sum of the columns of one colour then holds each of
their entries by itself, and one forward sweep gives that sum. Rows and backward sweeps likewise. No fewer colours will do than
the fullest row has entries. (T. F. Coleman and J. J. Moré, SIAM J. Numer. Anal. 20, 1983; A. H. Gebremedhin, F. Manne and
A. Pothen, SIAM Review 47, 2005.)

`distance_2` first tries the colours j mod c for that least number c, which is what bands and periodic bands need and takes a
few array operations; then it goes through the columns in an order and gives each the first colour that its rows have not. A
row's colours are the bits of one Python integer, so a column costs as many integer operations as it has entries.

A symmetric matrix needs fewer: of the entries (i, j) and (j, i) one is enough. In a star colouring neighbours differ and every
path over four vertices has three colours; then of each edge one end is the only neighbour of its colour that the other end has
(`one_of_two`). (T. F. Coleman and J. J. Moré, Math. Programming 28, 1984.)
"""

from __future__ import annotations

import heapq

import numpy as np

ORDERINGS = ("natural", "largest_first", "smallest_last")
THOROUGH = 100_000  # entries up to which a second ordering is tried

Ints = np.ndarray


def distance_2(items: Ints, groups: Ints, shape: tuple[int, int], ordering: str | None = None) -> Ints:
    """Colours for `shape[0]` items such that no two that meet in a group share one.

    Parameters
    ----------
    items, groups : ndarray of int
        The pairs (item, group): the columns and rows of a pattern's entries, or the rows and columns.
    shape : tuple of int
        How many items and groups there are.
    ordering : {"natural", "largest_first", "smallest_last"}, optional
        In which order the items choose. By default the regular colouring where it is optimal, else largest first and, for
        small patterns, the better of that and smallest last.
    """
    least = int(np.bincount(groups, minlength=1).max())
    if ordering is not None:
        return greedy(items, groups, shape, ordering)
    regular = np.arange(shape[0]) % max(least, 1)
    if least <= 1 or separates(regular[items], groups, least):
        return regular
    best = greedy(items, groups, shape, "largest_first")
    if len(items) <= THOROUGH and best.max() >= least:
        other = greedy(items, groups, shape, "smallest_last")
        best = other if other.max() < best.max() else best
    return best


def separates(colours: Ints, groups: Ints, count: int) -> bool:
    """Whether no group has a colour twice, given each pair's colour."""
    keys = groups * count + colours
    if (int(groups.max(initial=0)) + 1) * count <= 16 * len(keys):
        return bool(np.bincount(keys).max(initial=0) <= 1)
    keys.sort()
    return not bool((keys[1:] == keys[:-1]).any())


def listed(items: Ints, groups: Ints, count: int) -> tuple[list[int], list[int]]:
    """Where each item's groups begin, and the groups."""
    order = np.argsort(items, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(items, minlength=count))])
    return starts.tolist(), groups[order].tolist()


def greedy(items: Ints, groups: Ints, shape: tuple[int, int], ordering: str) -> Ints:
    """Each item in turn gets the first colour that none of its groups has."""
    starts, flat = listed(items, groups, shape[0])
    taken = [0] * shape[1]  # a group's colours as the bits of an integer
    colours = [0] * shape[0]
    for item in ordered(items, groups, shape, ordering):
        own = flat[starts[item] : starts[item + 1]]
        mask = 0
        for group in own:
            mask |= taken[group]
        bit = ~mask & (mask + 1)
        for group in own:
            taken[group] |= bit
        colours[item] = bit.bit_length() - 1
    return np.array(colours, int)


def ordered(items: Ints, groups: Ints, shape: tuple[int, int], ordering: str) -> list[int]:
    """The items in the order in which they choose their colours."""
    if ordering not in ORDERINGS:
        raise ValueError(f"ordering={ordering!r} is none of {', '.join(map(repr, ORDERINGS))}")
    if ordering == "natural":
        return list(range(shape[0]))
    meets = np.bincount(items, np.bincount(groups, minlength=shape[1])[groups] - 1, shape[0]).astype(int)
    if ordering == "largest_first":
        return [int(i) for i in np.argsort(-meets, kind="stable")]
    return _smallest_last(items, groups, shape, meets)


def _smallest_last(items: Ints, groups: Ints, shape: tuple[int, int], meets: Ints) -> list[int]:
    """Take away, again and again, the item that meets the fewest of those left; the last taken is the first to choose."""
    starts, flat = listed(items, groups, shape[0])
    group_starts, members = listed(groups, items, shape[1])
    left, gone, backwards = meets.tolist(), bytearray(shape[0]), []
    heap = [(met, item) for item, met in enumerate(left)]
    heapq.heapify(heap)
    while heap:
        met, item = heapq.heappop(heap)
        if gone[item] or met != left[item]:
            continue
        gone[item] = 1
        backwards.append(item)
        lost: dict[int, int] = {}
        for group in flat[starts[item] : starts[item + 1]]:
            for other in members[group_starts[group] : group_starts[group + 1]]:
                if not gone[other]:
                    lost[other] = lost.get(other, 0) + 1
        for other, count in lost.items():
            left[other] -= count
            heapq.heappush(heap, (left[other], other))
    return backwards[::-1]


def star(rows: Ints, columns: Ints, n: int) -> Ints:
    """A star colouring of a symmetric pattern's graph, largest first.

    Each vertex takes the first colour that neither its neighbours have, nor a vertex two steps away where that would leave a
    path of four with two colours. (Gebremedhin, Manne and Pothen, 2005, algorithm 4.1.)
    """
    off = rows != columns
    starts, flat = listed(rows[off], columns[off], n)
    degree = np.diff(starts)
    colours = [-1] * n
    for v in np.argsort(-degree, kind="stable").tolist():
        taken = 0
        for w in flat[starts[v] : starts[v + 1]]:
            c = colours[w]
            around = flat[starts[w] : starts[w + 1]]
            if c < 0:  # v and x would be two ends of a path over w, whose colour is open
                for x in around:
                    if x != v and colours[x] >= 0:
                        taken |= 1 << colours[x]
                continue
            taken |= 1 << c
            for x in around:
                d = colours[x]
                if d < 0 or x == v:
                    continue
                for y in flat[starts[x] : starts[x + 1]]:
                    if y != w and colours[y] == c:
                        taken |= 1 << d
                        break
        colours[v] = (~taken & (taken + 1)).bit_length() - 1
    return np.array(colours, int)


def symmetric(rows: Ints, columns: Ints, n: int) -> Ints:
    """Colours for the columns of a symmetric pattern, such that each entry or its mirror image stands alone (`one_of_two`)."""
    least = int(np.bincount(rows, minlength=1).max())
    regular = np.arange(n) % max(least, 1)
    if least <= 3 and (least <= 1 or separates(regular[columns], rows, least)):
        return regular
    return star(rows, columns, n)


def one_of_two(rows: Ints, columns: Ints, colours: Ints) -> Ints | None:
    """For each entry of a symmetric pattern, row-major, whether it is read at its own place in the compressed columns; else its
    mirror image is. None if some entry can be read at neither."""
    count = int(colours.max(initial=0)) + 1
    keys = rows * count + colours[columns]  # a row's entries of one colour add up
    _, inverse, times = np.unique(keys, return_inverse=True, return_counts=True)
    own = times[inverse] == 1
    mirror = np.lexsort((rows, columns))  # entry k's mirror image is entry mirror[k]
    return own if bool((own | own[mirror]).all()) else None
