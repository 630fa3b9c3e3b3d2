"""Colourings: which columns (or rows) of a sparse matrix can share a sweep.

Columns with an entry in the same row get different colours (a distance-2 colouring of the pattern). The sum of the columns of one
colour then shows each of their entries separately, and one forward sweep computes this sum. Rows and backward sweeps work
likewise. The number of colours is at least the number of entries in the fullest row. (T. F. Coleman and J. J. Moré, SIAM J.
Numer. Anal. 20, 1983; A. H. Gebremedhin, F. Manne and A. Pothen, SIAM Review 47, 2005.)

`distance_2` first tries the colours j mod c for this lower bound c. That is optimal for bands and periodic bands, and takes a few
array operations. Otherwise it visits the columns in some order and gives each the first colour that its rows do not have yet. The
colours of a row are the bits of one Python integer, so a column costs as many integer operations as it has entries.

A symmetric matrix requires fewer colours, since one of the entries (i, j) and (j, i) suffices. In a star colouring, neighbours
differ, and every path over four vertices has three colours. So for each edge, one end is the only neighbour of its colour that
the other end has (`one_of_two`). (T. F. Coleman and J. J. Moré, Math. Programming 28, 1984.)
"""

from __future__ import annotations

import heapq

import numpy as np

ORDERINGS = ("natural", "largest_first", "smallest_last")
THOROUGH = 100_000  # entries up to which a second ordering is tried

Ints = np.ndarray


def distance_2(items: Ints, groups: Ints, shape: tuple[int, int], ordering: str | None = None) -> Ints:
    """Colour `shape[0]` items such that no two items of a group share a colour.

    Parameters
    ----------
    items, groups : ndarray of int
        Pairs (item, group): the columns and rows of a pattern's entries, or the rows and columns.
    shape : tuple of int
        Number of items and groups.
    ordering : {"natural", "largest_first", "smallest_last"}, optional
        Order in which items are coloured. By default the regular colouring if it is optimal, else largest first and, for small
        patterns, the better of that and smallest last.
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
    """Return whether no group has a colour twice, given each pair's colour."""
    keys = groups * count + colours  # equal for two pairs of one group and colour
    # Count the keys if the table is not much larger than the list of pairs, else sort them.
    if (int(groups.max(initial=0)) + 1) * count <= 16 * len(keys):
        return bool(np.bincount(keys).max(initial=0) <= 1)
    keys.sort()
    return not bool((keys[1:] == keys[:-1]).any())


def group_lists(items: Ints, groups: Ints, count: int) -> tuple[list[int], list[int]]:
    """Return the start of each item's groups, and the groups."""
    order = np.argsort(items, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(items, minlength=count))])
    return starts.tolist(), groups[order].tolist()


def greedy(items: Ints, groups: Ints, shape: tuple[int, int], ordering: str) -> Ints:
    """Give each item in turn the first colour that none of its groups has."""
    starts, flat = group_lists(items, groups, shape[0])
    taken = [0] * shape[1]  # colours of a group as the bits of an integer
    colours = [0] * shape[0]
    for item in colouring_order(items, groups, shape, ordering):
        own = flat[starts[item] : starts[item + 1]]
        mask = 0
        for group in own:
            mask |= taken[group]
        bit = ~mask & (mask + 1)  # the lowest bit that is not set
        for group in own:
            taken[group] |= bit
        colours[item] = bit.bit_length() - 1
    return np.array(colours, int)


def colouring_order(items: Ints, groups: Ints, shape: tuple[int, int], ordering: str) -> list[int]:
    """Return the items in the order in which they are coloured."""
    if ordering not in ORDERINGS:
        raise ValueError(f"ordering={ordering!r} must be one of {', '.join(map(repr, ORDERINGS))}")
    if ordering == "natural":
        return list(range(shape[0]))
    # For each item, the number of other items in its groups; an item in two of them counts twice.
    meets = np.bincount(items, np.bincount(groups, minlength=shape[1])[groups] - 1, shape[0]).astype(int)
    if ordering == "largest_first":
        return [int(i) for i in np.argsort(-meets, kind="stable")]
    return _smallest_last(items, groups, shape, meets)


def _smallest_last(items: Ints, groups: Ints, shape: tuple[int, int], meets: Ints) -> list[int]:
    """Repeatedly remove the item that shares groups with the fewest remaining ones; the last one removed is coloured first."""
    starts, flat = group_lists(items, groups, shape[0])
    group_starts, members = group_lists(groups, items, shape[1])
    left, gone, backwards = meets.tolist(), bytearray(shape[0]), []
    # `left` is the number of remaining items that each item meets. It changes while the item is in the heap: each change adds a
    # new entry, and an entry whose number is out of date is ignored when it is popped.
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
    """Star-colour the graph of a symmetric pattern, largest first.

    Each vertex takes the first colour that its neighbours do not have, and that leaves no path over four vertices with two
    colours. (Gebremedhin, Manne and Pothen, 2005, algorithm 4.1.)
    """
    off = rows != columns
    starts, flat = group_lists(rows[off], columns[off], n)
    degree = np.diff(starts)
    colours = [-1] * n
    for v in np.argsort(-degree, kind="stable").tolist():
        # v may not have
        # 1. the colour of a neighbour w;
        # 2. the colour of x on a path v–w–x if w has no colour yet: v–w–x–y would have two colours once w gets the colour of y;
        # 3. the colour of x on a path v–w–x–y if w and y have the same colour.
        taken = 0
        for w in flat[starts[v] : starts[v + 1]]:
            c = colours[w]
            around = flat[starts[w] : starts[w + 1]]
            if c < 0:
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
    """Colour the columns of a symmetric pattern such that each entry or its mirror image can be read (`one_of_two`)."""
    least = int(np.bincount(rows, minlength=1).max())
    regular = np.arange(n) % max(least, 1)
    if least <= 3 and (least <= 1 or separates(regular[columns], rows, least)):
        return regular
    return star(rows, columns, n)


def one_of_two(rows: Ints, columns: Ints, colours: Ints) -> Ints | None:
    """Return for each entry of a symmetric pattern, row-major, whether it is read at its own place in the compressed columns
    rather than at its mirror image. None if some entry can be read at neither."""
    count = int(colours.max(initial=0)) + 1
    keys = rows * count + colours[columns]  # entries of one row and colour are summed
    _, inverse, times = np.unique(keys, return_inverse=True, return_counts=True)
    own = times[inverse] == 1
    mirror = np.lexsort((rows, columns))  # the mirror image of entry k is entry mirror[k]
    return own if bool((own | own[mirror]).all()) else None
