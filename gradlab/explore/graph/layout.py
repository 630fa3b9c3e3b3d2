"""A lay_out drawing of a directed acyclic graph: boxes in rows, every edge downwards, few crossings, straight spines.

Autograd graphs are long and thin, so the classical steps (K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual
understanding of hierarchical system structures", IEEE Trans. SMC 11(2), 1981) suffice, each in its simplest form:

1. layers    By longest path. Then a box with no more inputs than uses moves down to just above its nearest use, and so does a
             subgraph attached only by a long edge: a parameter, or a whole branch of weight normalisation.
2. lanes     An edge over several layers gets a place in each. All long edges from one box carry the same tensor, so they share
             a lane.
3. order     Depth-first search from the results along their arguments, so that left and right agree with the source. Then
             barycentre sweeps; the order with the fewest crossings is kept.
4. x         Sweeps of isotonic regression (pool adjacent violators): each row gets the positions nearest to those its
             neighbours ask for, without overlap. A box is pulled towards its deepest argument more than towards a parameter, so
             the spine of a deep network stays straight. A weak pull to the middle prevents drift. Finally, each lane gets one x
             where there is room, and a box without arguments moves to its lane or above its use.
5. y         Row by row, with more space where an edge has far to go sideways. A box without arguments is at the lower end of
             its row, near its use.

No step recurses. Each is linear in the number of boxes and lane places, up to logarithms.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

Point = tuple[float, float]

GAP_X, GAP_Y = 18.0, 20.0  # minimum space between neighbours in a row, and between rows
STEEPEST = 0.09  # extra space between rows per pixel that an edge goes sideways
MOST_GAP_Y = 64.0
LANE = 10.0  # width of a lane
SWEEPS = 12  # ordering sweeps, alternately down and up
SETTLED = 4  # sweeps without improvement after which ordering stops
PLACEMENTS = 10  # placement sweeps
MIDDLE = 0.02  # pull of the middle; an edge from a parameter pulls with 1
STRAIGHT, DEEP = 512.0, 7  # the pull within a lane; the depth from which on pulls are equal
NEARLY = 8.0  # boxes off by less are straightened (pixels)
LOWERED = 400  # maximum size of a branch that moves down as a whole


@dataclass(frozen=True)
class Layout:
    """Positions of boxes and edges.

    Attributes
    ----------
    boxes : list of (x, y)
        Middle of each box's upper side.
    routes : list of list of (x, y)
        Points of each edge: the middle of the lower side of its source, then the upper and the lower end of its lane in each row
        between, then the middle of the upper side of its target. Edges from one source share points.
    layers : list of int
        Row of each box.
    crossings : int
        Number of pairs of edges that cross.
    width, height : float
        Size of the drawing. Its upper left corner is (0, 0).
    """

    boxes: list[Point]
    routes: list[list[Point]]
    layers: list[int]
    crossings: int
    width: float
    height: float


def lay_out(
    sizes: Sequence[tuple[float, float]],
    edges: Sequence[tuple[int, int]],
    beside: Sequence[tuple[float, float]] | None = None,
) -> Layout:
    """Lay out boxes and edges.

    Parameters
    ----------
    sizes : sequence of (width, height)
        One for each box.
    edges : sequence of (source, target)
        Indices into `sizes`, for each target in the order of its arguments. Edges may repeat.
    beside : sequence of (left, right), optional
        Space to keep free at the sides of each box, for text.

    Raises
    ------
    ValueError
        If the edges make a cycle.
    """
    if not sizes:
        return Layout([], [], [], 0, 0.0, 0.0)
    # steps 1 and 2, and the first order
    rows = _Rows(sizes, edges, beside or [(0.0, 0.0)] * len(sizes))
    rows.order()
    # step 4: the leftmost side is at 0
    x = rows.place()
    left = min(x[item] - rows.left[item] for item in range(len(x)))
    x = [position - left for position in x]
    # step 5
    tops, bottoms = _row_ends(rows, sizes, x)
    # a box without arguments is at the lower end of its row
    boxes = [
        (x[box], tops[layer] if rows.above[box] else bottoms[layer] - height)
        for box, (layer, (_, height)) in enumerate(zip(rows.layer, sizes, strict=False))
    ]
    # routes: from a source along its lane to the target
    routes = []
    for edge, lane in enumerate(rows.lanes):
        source, target = edges[edge]
        points = [(x[source], boxes[source][1] + sizes[source][1])]
        for place in lane:
            points += [(x[place], tops[rows.layer[place]]), (x[place], bottoms[rows.layer[place]])]
        routes.append([*points, (x[target], tops[rows.layer[target]])])
    width = max(x[item] + rows.right[item] for item in range(len(x)))
    return Layout(boxes, routes, rows.layer[: len(sizes)], rows.crossings(), width, bottoms[-1])


# --------------------------------------------------------------------------------------------------------------- layers
def assign_layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Assign a layer to each box: every edge goes to a higher number, by 1 where possible."""
    sources, targets = _neighbours(count, edges)
    topological = _topological(sources, targets)
    layer = [0] * count
    # longest path from a box without inputs
    for box in topological:
        layer[box] = max((layer[source] + 1 for source in sources[box]), default=0)
    # move boxes down to their nearest use if that does not lengthen edges in total
    for box in reversed(topological):
        if 0 < len(targets[box]) >= len(sources[box]):  # shortens at least as many edges as it lengthens
            layer[box] = min(layer[target] for target in targets[box]) - 1
    # move whole subgraphs down to shorten the edges that are still long
    for box in topological:
        for source in sources[box]:
            if layer[box] - layer[source] > 1:
                _lower(source, layer, sources, targets)
    lowest = min(layer)
    return [number - lowest for number in layer]


def _lower(box: int, layer: list[int], sources: list[list[int]], targets: list[list[int]]) -> None:
    """Move a box down, with everything it depends on, until one of the edges that leave this set has length 1.

    No edge enters the set, so this makes edges shorter and none longer.
    """
    moved, waiting = {box}, [box]
    while waiting:
        for source in sources[waiting.pop()]:
            if source not in moved:
                moved.add(source)
                waiting.append(source)
        if len(moved) > LOWERED:
            return
    leaving = [(member, target) for member in moved for target in targets[member] if target not in moved]
    slack = min(layer[target] - layer[member] - 1 for member, target in leaving)
    for member in moved:
        layer[member] += slack


def _neighbours(count: int, edges: Sequence[tuple[int, int]]) -> tuple[list[list[int]], list[list[int]]]:
    """Return the distinct sources and targets of each box, in the order of the edges."""
    sources: list[list[int]] = [[] for _ in range(count)]
    targets: list[list[int]] = [[] for _ in range(count)]
    for source, target in dict.fromkeys(edges):
        sources[target].append(source)
        targets[source].append(target)
    return sources, targets


def _topological(sources: list[list[int]], targets: list[list[int]]) -> list[int]:
    missing = [len(each) for each in sources]
    ordered = [box for box, count in enumerate(missing) if not count]
    for box in ordered:  # grows while it is read
        for target in targets[box]:
            missing[target] -= 1
            if not missing[target]:
                ordered.append(target)
    if len(ordered) < len(sources):
        raise ValueError("the edges make a cycle; only an acyclic graph can be laid out in layers")
    return ordered


# --------------------------------------------------------------------------------------------------- order and position
class _Rows:
    """Boxes and lane places in rows. An item is a box (below `count`) or a lane place (from `count` on)."""

    def __init__(
        self,
        sizes: Sequence[tuple[float, float]],
        edges: Sequence[tuple[int, int]],
        beside: Sequence[tuple[float, float]],
    ) -> None:
        self.count = len(sizes)
        self.layer = assign_layers(self.count, edges)
        # distances from an item's middle to its sides
        self.left = [width / 2 + room for (width, _), (room, _) in zip(sizes, beside, strict=True)]
        self.right = [width / 2 + room for (width, _), (_, room) in zip(sizes, beside, strict=True)]
        self.above: list[list[int]] = [[] for _ in sizes]  # in the row above, in argument order
        self.below: list[list[int]] = [[] for _ in sizes]
        self.lanes: list[list[int]] = []  # places of each edge's lane, from source to target
        self.depth = [0] * self.count  # number of operations behind an item
        self._lay_lanes(edges)
        self.rows: list[list[int]] = [[] for _ in range(max(self.layer) + 1)]
        for item in sorted(range(len(self.layer)), key=self.layer.__getitem__):
            self.depth[item] = max((self.depth[source] + (item < self.count) for source in self.above[item]), default=0)
        for item in self._depth_first():
            self.rows[self.layer[item]].append(item)

    def _lay_lanes(self, edges: Sequence[tuple[int, int]]) -> None:
        lane_of: list[list[int]] = [[] for _ in range(self.count)]  # the lane of each source, from its row down
        linked: set[tuple[int, int]] = set()
        for source, target in edges:
            lane = lane_of[source]
            length = self.layer[target] - self.layer[source] - 1
            while len(lane) < length:
                place = len(self.layer)
                self.layer.append(self.layer[source] + len(lane) + 1)
                self.left.append(LANE / 2)
                self.right.append(LANE / 2)
                self.depth.append(0)
                self.above.append([])
                self.below.append([])
                self._link(lane[-1] if lane else source, place)
                lane.append(place)
            last = lane[length - 1] if length else source
            if (last, target) not in linked:
                linked.add((last, target))
                self._link(last, target)
            self.lanes.append(lane[:length])

    def _link(self, upper: int, lower: int) -> None:
        self.below[upper].append(lower)
        self.above[lower].append(upper)

    def _depth_first(self) -> list[int]:
        """Return all items: results first, each before its arguments, arguments from left to right."""
        ordered, seen = [], [False] * len(self.layer)
        for end in range(len(self.layer)):
            waiting = [] if self.below[end] else [end]
            while waiting:
                item = waiting.pop()
                if not seen[item]:
                    seen[item] = True
                    ordered.append(item)
                    waiting += reversed(self.above[item])
        return ordered

    def crossings(self) -> int:
        """Count the pairs of edges between neighbouring rows that cross."""
        # Count inversions: edges in the order of their upper ends, against the sorted lower ends of those before them.
        total = 0
        for upper, lower in pairwise(self.rows):
            position = {item: i for i, item in enumerate(lower)}
            passed: list[int] = []
            for item in upper:
                ends = sorted(position[end] for end in self.below[item])
                total += sum(len(passed) - bisect_right(passed, end) for end in ends)
                for end in ends:
                    insort(passed, end)
        return total

    def order(self) -> None:
        """Order each row so that few edges cross: barycentre sweeps from the search order, starting downwards and starting
        upwards."""
        start = best = [list(row) for row in self.rows]
        fewest = self.crossings()
        for first in (0, 1):
            self.rows, idle = [list(row) for row in start], 0
            for sweep in range(first, first + SWEEPS):
                if not fewest or idle == SETTLED:
                    break
                down = sweep % 2 == 0
                for row in range(1, len(self.rows)) if down else range(len(self.rows) - 2, -1, -1):
                    if idle:
                        self.rows[row].reverse()  # break ties the other way round
                    self._by_barycentre(row, self.above if down else self.below)
                self._swap_neighbours()
                crossings, idle = self.crossings(), idle + 1
                if crossings < fewest:
                    best, fewest, idle = [list(row) for row in self.rows], crossings, 0
        self.rows = best

    def _by_barycentre(self, row: int, neighbours: list[list[int]]) -> None:
        other = self.rows[row - 1] if neighbours is self.above else self.rows[row + 1]
        position = {item: i for i, item in enumerate(other)}
        key = {}
        for i, item in enumerate(self.rows[row]):
            near = neighbours[item]
            key[item] = sum(position[end] for end in near) / len(near) if near else float(i)
        self.rows[row].sort(key=key.__getitem__)

    def _swap_neighbours(self) -> None:
        """Swap two neighbours in a row wherever this removes crossings, until no swap does."""
        for _ in range(SETTLED):
            improved = False
            for number, row in enumerate(self.rows):
                around = [
                    {item: i for i, item in enumerate(self.rows[n])} if 0 <= n < len(self.rows) else {}
                    for n in (number - 1, number + 1)
                ]
                ends = {
                    item: ([around[0][end] for end in self.above[item]], [around[1][end] for end in self.below[item]])
                    for item in row
                }
                for i in range(len(row) - 1):
                    a, b = ends[row[i]], ends[row[i + 1]]
                    if sum(_inversions(a[side], b[side]) - _inversions(b[side], a[side]) for side in (0, 1)) > 0:
                        row[i], row[i + 1] = row[i + 1], row[i]
                        improved = True
            if not improved:
                return

    # --------------------------------------------------------------------------------------------------------- position
    def place(self) -> list[float]:
        """Compute the x of the middle of each item."""
        # each row packed and centred
        x = [0.0] * len(self.layer)
        for row in self.rows:
            at = 0.0
            for item in row:
                x[item] = at + self.left[item]
                at += self.left[item] + self.right[item] + GAP_X
            for item in row:
                x[item] -= (at - GAP_X) / 2
        # down and up in turn, pulled from one side; in the last two sweeps from both
        for sweep in range(PLACEMENTS):
            down = sweep % 2 == 0
            sides = (self.above, self.below) if sweep >= PLACEMENTS - 2 else (self.above,) if down else (self.below,)
            for row in self.rows if down else reversed(self.rows):
                self._place_row(row, sides, x)
        # local corrections
        self._straighten_lanes(x)
        self._straighten_spines(x)
        self._move_to_edges(x)
        return x

    def _straighten_spines(self, x: list[float]) -> None:
        """Put a box right below its only source if it is nearly there and there is room."""
        for row in self.rows:
            around = zip(row, [None, *row[:-1]], [*row[1:], None], strict=True)
            for item, left, right in around:
                if item < self.count and len(self.above[item]) == 1:
                    wanted = x[self.above[item][0]]
                    low, high = self._room(item, left, right, x)
                    if abs(wanted - x[item]) <= NEARLY and low <= wanted <= high:
                        x[item] = wanted

    def _move_to_edges(self, x: list[float]) -> None:
        """Move each box without a source to its lane or to the middle of its uses, as far as there is room."""
        for row in self.rows:
            around = zip(row, [None, *row[:-1]], [*row[1:], None], strict=True)
            for item, left, right in around:
                if item < self.count and not self.above[item] and self.below[item]:
                    ends = [end for end in self.below[item] if end >= self.count] or self.below[item]
                    low, high = self._room(item, left, right, x)
                    x[item] = min(max(sum(x[end] for end in ends) / len(ends), low), high)

    def _straighten_lanes(self, x: list[float]) -> None:
        """Straighten each lane as far as its neighbours leave room: keep one x down as many rows as possible."""
        beside: dict[int, tuple[int | None, int | None]] = {}
        for row in self.rows:
            around = zip(row, [None, *row[:-1]], [*row[1:], None], strict=True)
            beside |= {item: (left, right) for item, left, right in around if item >= self.count}
        # edges from one source share their lane, so the longest one contains the others
        longest: dict[int, list[int]] = {}
        for lane in self.lanes:
            if lane and len(lane) > len(longest.get(lane[0], ())):
                longest[lane[0]] = lane
        # greedily: the longest stretch whose free intervals intersect gets one x
        for lane in longest.values():
            rooms = [self._room(place, *beside[place], x) for place in lane]
            start = 0
            while start < len(lane):
                end, (low, high) = start + 1, rooms[start]
                while end < len(lane) and max(low, rooms[end][0]) <= min(high, rooms[end][1]):
                    low, high = max(low, rooms[end][0]), min(high, rooms[end][1])
                    end += 1
                wanted = sum(x[place] for place in lane[start:end]) / (end - start)
                for place in lane[start:end]:
                    x[place] = min(max(wanted, low), high)
                start = end

    def _room(self, item: int, left: int | None, right: int | None, x: Sequence[float]) -> tuple[float, float]:
        """Return the interval of x within which an item can move."""
        return (
            -inf if left is None else x[left] + self.right[left] + self.left[item] + GAP_X,
            inf if right is None else x[right] - self.left[right] - self.right[item] - GAP_X,
        )

    def _place_row(self, row: list[int], sides: Sequence[list[list[int]]], x: list[float]) -> None:
        # Each item asks for the weighted mean of its neighbours' x.
        wanted, weights = [], []
        for item in row:
            total = weight = 0.0
            for side in sides:
                for end in side[item]:
                    pull = self._pull(item, end)
                    total += pull * x[end]
                    weight += pull
            if not weight:  # no neighbours on this side: stay, unless pushed
                total, weight = MIDDLE * x[item], MIDDLE
            weight += MIDDLE  # the middle is at 0
            wanted.append(total / weight)
            weights.append(weight)
        # Isotonic regression keeps the order and the gaps.
        gaps = [self.right[a] + self.left[b] + GAP_X for a, b in pairwise(row)]
        for item, position in zip(row, isotonic(wanted, weights, gaps), strict=True):
            x[item] = position

    def _pull(self, a: int, b: int) -> float:
        """Return how strongly two linked items are pulled into line: lanes most, parameters least."""
        if a >= self.count and b >= self.count:
            return STRAIGHT
        return float(1 + min(self.depth[a if self.layer[a] < self.layer[b] else b], DEEP)) ** 3


def isotonic(wanted: Sequence[float], weights: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """Return the positions p that minimise sum(weights * (p - wanted)**2) subject to p[i + 1] - p[i] >= gaps[i].

    Subtracting the gaps leaves an isotonic regression, solved by pooling adjacent violators.
    """
    offsets = [0.0]
    for gap in gaps:
        offsets.append(offsets[-1] + gap)
    pools: list[tuple[float, float, int]] = []  # mean, weight, size
    for position, weight, offset in zip(wanted, weights, offsets, strict=True):
        mean, many = position - offset, 1
        while pools and pools[-1][0] > mean:
            other, its_weight, its_many = pools.pop()
            mean = (mean * weight + other * its_weight) / (weight + its_weight)
            weight, many = weight + its_weight, many + its_many
        pools.append((mean, weight, many))
    means = [mean for mean, _, many in pools for _ in range(many)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _inversions(left: Sequence[int], right: Sequence[int]) -> int:
    """Count the crossings of the edges of an item and its right neighbour, given where they end."""
    return sum(a > b for a in left for b in right)


# ------------------------------------------------------------------------------------------------------------------- y
def _row_ends(rows: _Rows, sizes: Sequence[tuple[float, float]], x: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the y of the upper and the lower side of each row."""
    tops, bottoms, y = [], [], 0.0
    for row in rows.rows:
        height = max((sizes[item][1] for item in row if item < rows.count), default=0.0)
        tops.append(y)
        bottoms.append(y + height)
        sideways = max((abs(x[end] - x[item]) for item in row for end in rows.below[item]), default=0.0)
        y += height + min(MOST_GAP_Y, GAP_Y + STEEPEST * sideways)
    return tops, bottoms
