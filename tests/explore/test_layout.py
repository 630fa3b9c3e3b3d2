"""The layout of graphs: invariants for every graph, and graphs whose best drawing is known."""

from __future__ import annotations

import random
import sys
from itertools import pairwise, permutations

import numpy as np
import pytest

from gradlab.explore.graph.layout import GAP_X, assign_layers, isotonic, lay_out

BOX = (60.0, 34.0)


def random_graph(seed, count=60, thin=True):
    """Return a graph like those of autograd, with a spine, parameters, long skips, several ends and boxes of all sizes."""
    rng = random.Random(seed)
    edges = []
    for target in range(1, count):
        if rng.random() < 0.8:
            edges.append((target - 1, target))
        edges += [(rng.randrange(max(0, target - 8) if thin else 0, target), target) for _ in range(rng.choice((0, 0, 1, 2)))]
    sizes = [(rng.choice((58.0, 80.0, 131.0)), rng.choice((34.0, 45.0))) for _ in range(count)]
    return sizes, edges


KINDS = (7, False), (60, True), (60, False)
GRAPHS = [random_graph(seed, count, thin) for seed in range(12) for count, thin in KINDS]


@pytest.mark.parametrize("graph", GRAPHS, ids=range(len(GRAPHS)))
def test_invariants_of_every_graph(graph):
    sizes, edges = graph
    layout = lay_out(sizes, edges)
    assert len(layout.boxes) == len(sizes) and len(layout.routes) == len(edges)
    rows = {}
    used = {target for _, target in edges}
    for box, ((x, y), (width, height), layer) in enumerate(zip(layout.boxes, sizes, layout.layers, strict=True)):
        assert x - width / 2 >= -1e-6 and x + width / 2 <= layout.width + 1e-6
        assert y >= 0 and y + height <= layout.height + 1e-6
        rows.setdefault(layer, []).append((x - width / 2, x + width / 2, y, y + height, box in used))
    for row in rows.values():  # boxes in a row are aligned at the top, those without a source at the bottom
        high, low = min(top for _, _, top, _, _ in row), max(bottom for _, _, _, bottom, _ in row)
        assert all((top if used else bottom) == pytest.approx(high if used else low) for _, _, top, bottom, used in row)
        for left, right in pairwise(sorted(row)):
            assert right[0] - left[1] >= GAP_X - 1e-6
    for upper, lower in pairwise(sorted(rows)):
        assert max(row[3] for row in rows[upper]) < min(row[2] for row in rows[lower])
    for (source, target), route in zip(edges, layout.routes, strict=True):  # routes go down between boxes
        assert layout.layers[source] < layout.layers[target]
        assert route[0] == pytest.approx((layout.boxes[source][0], layout.boxes[source][1] + sizes[source][1]))
        assert route[-1] == pytest.approx(layout.boxes[target])
        assert len(route) == 2 * (layout.layers[target] - layout.layers[source])
        assert all(a[1] <= b[1] for a, b in pairwise(route))
        lane = zip(route[1:-1:2], route[2:-1:2], strict=True)
        for layer, (upper, lower) in enumerate(lane, start=layout.layers[source] + 1):
            assert upper[0] == lower[0]
            assert not [box for box in rows.get(layer, ()) if box[0] < upper[0] < box[1]]


def test_a_leaf_is_in_line_with_its_long_edge_and_low_in_its_row():
    sizes = [(60.0, 34.0), (60.0, 34.0), (60.0, 90.0), (60.0, 34.0), (60.0, 34.0)]
    edges = [(0, 2), (1, 2), (2, 3), (3, 4), (0, 4)]  # 0 is used in the next layer and at the end
    layout = lay_out(sizes, edges)
    lane = layout.routes[4]
    assert len({x for x, _ in lane[:-1]}) == 1 and lane[0][0] == layout.boxes[0][0] != lane[-1][0]
    tall = lay_out([(60.0, 34.0), (60.0, 90.0), (60.0, 34.0), (60.0, 34.0)], [(0, 1), (1, 2), (3, 2)])
    assert tall.boxes[3][1] + 34 == tall.boxes[1][1] + 90


@pytest.mark.parametrize("graph", GRAPHS[:6], ids=range(6))
def test_equal_graphs_are_laid_out_equally(graph):
    assert lay_out(*graph) == lay_out(*graph)


@pytest.mark.parametrize("graph", GRAPHS[:9], ids=range(9))
def test_the_number_of_crossings_matches_the_routes(graph):
    layout = lay_out(*graph)
    segments = {}
    for route, (source, _) in zip(layout.routes, graph[1], strict=True):
        for step, (upper, lower) in enumerate(zip(route[::2], route[1::2], strict=True)):
            segments.setdefault(layout.layers[source] + step, set()).add((round(upper[0], 6), round(lower[0], 6)))
    crossed = sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for each in segments.values() for a in each for b in each) // 2
    assert layout.crossings == crossed


# --------------------------------------------------------------------------------------------------------------- layers
def test_layers_are_lengths_of_longest_paths():
    assert assign_layers(5, [(0, 1), (1, 2), (0, 2), (2, 3), (4, 3)]) == [0, 1, 2, 3, 2]


def test_a_parameter_is_just_above_its_first_use():
    chain = [(i, i + 1) for i in range(5)]
    assert assign_layers(7, [*chain, (6, 4)])[6] == 3
    assert assign_layers(7, [*chain, (6, 4), (6, 2)])[6] == 1


def test_a_whole_branch_is_lowered_to_its_use():
    """Weight normalisation, w -> norm -> w / norm, beside a chain of ten operations."""
    chain = [(i, i + 1) for i in range(9)]
    w, norm, divided = 10, 11, 12
    layers = assign_layers(13, [*chain, (w, norm), (w, divided), (norm, divided), (divided, 9)])
    assert (layers[w], layers[norm], layers[divided]) == (6, 7, 8)


def test_transposes_of_a_weight_that_is_used_twice_are_at_their_uses():
    chain = [(i, i + 1) for i in range(9)]
    weight, first, second = 10, 11, 12
    layers = assign_layers(13, [*chain, (weight, first), (first, 4), (weight, second), (second, 8)])
    assert (layers[weight], layers[first], layers[second]) == (2, 3, 7)


def test_a_cycle_is_an_error():
    with pytest.raises(ValueError, match="cycle"):
        lay_out([BOX] * 3, [(0, 1), (1, 2), (2, 1)])


# ------------------------------------------------------------------------------------------------------------ crossings
def least_crossings(upper, lower, edges):
    """Return the smallest number of crossings, by trying all orders of both rows."""

    def count_crossings(order, other):
        a, b = ({node: i for i, node in enumerate(row)} for row in (order, other))
        return sum((a[p] - a[q]) * (b[r] - b[s]) < 0 for p, r in edges for q, s in edges) // 2

    return min(count_crossings(order, other) for order in permutations(upper) for other in permutations(lower))


@pytest.mark.slow
def test_the_order_of_two_rows_is_nearly_optimal():
    more = []
    for seed in range(15):
        rng = random.Random(seed)
        upper, lower = range(5), range(5, 10)
        edges = sorted({(rng.choice(upper), rng.choice(lower)) for _ in range(11)} | {(i, i + 5) for i in range(5)})
        more.append(lay_out([BOX] * 10, edges).crossings - least_crossings(upper, lower, edges))
    assert min(more) >= 0 and more.count(0) >= 13 and max(more) <= 2


def test_every_pair_crosses_once_between_two_triples():
    assert lay_out([BOX] * 6, [(i, j) for i in range(3) for j in range(3, 6)]).crossings == 9


@pytest.mark.parametrize("seed", range(5))
def test_a_shuffled_tree_is_drawn_without_crossings(seed):
    """A balanced tree of sums over 32 leaves, numbered randomly."""
    label = list(range(63))
    random.Random(seed).shuffle(label)
    edges = [(label[child], label[(child - 1) // 2]) for child in range(1, 63)]
    assert lay_out([BOX] * 63, edges).crossings == 0


def test_a_residual_network_is_drawn_without_crossings():
    edges, stream = [], 0
    for block in range(8):
        weight, product, bent, joined = range(1 + 4 * block, 5 + 4 * block)
        edges += [(stream, product), (weight, product), (product, bent), (stream, joined), (bent, joined)]
        stream = joined
    assert lay_out([BOX] * 33, edges).crossings == 0


def test_arguments_are_in_their_order():
    layout = lay_out([BOX] * 4, [(2, 3), (0, 3), (1, 3)])
    assert layout.boxes[2][0] < layout.boxes[0][0] < layout.boxes[1][0]


# ------------------------------------------------------------------------------------------------------------- position
def test_isotonic_positions_are_least_squares_solutions():
    """Compare with scipy, which gets the positions without the gaps."""
    from scipy.optimize import isotonic_regression

    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 10, 40):
        wanted, weights, gaps = rng.normal(0, 50, size), rng.uniform(0.1, 9, size), rng.uniform(1, 30, size - 1)
        offsets = np.concatenate(([0.0], np.cumsum(gaps)))
        expected = isotonic_regression(wanted - offsets, weights=weights).x + offsets
        np.testing.assert_allclose(isotonic(wanted.tolist(), weights.tolist(), gaps.tolist()), expected, atol=1e-9)


def deep_network(depth):
    """Return addmm, relu, addmm, … with a wide weight on the right and a narrow bias on the left of each layer."""
    sizes, edges, above = [BOX], [], 0
    for _ in range(depth):
        bias, weight, product, bent = range(len(sizes), len(sizes) + 4)
        sizes += [(60, 34), (150, 34), BOX, BOX]
        edges += [(bias, product), (above, product), (weight, product), (product, bent)]
        above = bent
    return sizes, edges


def test_the_spine_of_a_deep_network_does_not_drift():
    sizes, edges = deep_network(60)
    layout = lay_out(sizes, edges)
    spine = [layout.boxes[i][0] for i in range(3, len(sizes), 4)]
    assert max(spine) - min(spine) < 30 and layout.width < 450


def test_a_chain_is_one_vertical_line():
    layout = lay_out([(40.0 + 13 * (i % 5), 34.0) for i in range(50)], [(i, i + 1) for i in range(49)])
    assert max(x for x, _ in layout.boxes) - min(x for x, _ in layout.boxes) < 1e-6


def test_a_long_edge_is_straight_if_there_is_room():
    """A skip beside a chain whose boxes differ in width."""
    layout = lay_out([(40.0 + 37 * (i % 4), 34.0) for i in range(20)], [*((i, i + 1) for i in range(19)), (0, 19)])
    assert len({round(x, 3) for x, _ in layout.routes[-1][1:-1]}) == 1


def test_edges_from_one_box_share_their_lane():
    chain = [(i, i + 1) for i in range(9)]
    layout = lay_out([BOX] * 10, [*chain, (0, 4), (0, 9)])
    short, long = layout.routes[-2:]
    assert short[:-1] == long[: len(short) - 1]


def test_small_graphs():
    assert lay_out([], []).boxes == []
    single = lay_out([BOX], [])
    assert single.boxes == [(30.0, 0.0)] and (single.width, single.height) == BOX
    twice = lay_out([BOX, BOX], [(0, 1), (0, 1)])
    assert twice.routes[0] == twice.routes[1] and twice.layers == [0, 1]


# ----------------------------------------------------------------------------------------------------------------- size
def test_work_grows_about_linearly():
    def steps(depth):
        """Return the number of executed Python lines, which does not depend on the load of the machine."""
        graph, count = deep_network(depth), 0

        def line(frame, event, argument):
            nonlocal count
            count += 1
            return line

        before = sys.gettrace()
        sys.settrace(line)
        try:
            lay_out(*graph)
        finally:
            sys.settrace(before)
        return count

    assert steps(400) < 4 * 1.5 * steps(100)  # four times the size; quadratic work would be 16 times as much


def test_a_very_deep_graph_does_not_recurse():
    layout = lay_out([BOX] * 5000, [(i, i + 1) for i in range(4999)])
    assert layout.layers == list(range(5000))
