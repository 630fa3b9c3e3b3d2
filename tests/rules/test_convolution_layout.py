"""Compare the three convolution products with their definition, for layouts with gaps, phases, chunks and ranges.

The definition is a sum over output positions and kernel positions, in float64:
y[n, o, p] = Σ x[n, c, q] w[o, c, k] with q = p · stride - padding + k · dilation.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from gradlab.rules import convolution as rules

LAYOUTS = {  # size, kernel, stride, padding, dilation
    "zeros shared by rows": ((5, 6), (3, 3), (1, 1), (1, 1), (1, 1)),
    "more padding than the kernel reaches": ((3, 4), (2, 2), (1, 1), (3, 2), (1, 1)),
    "padding on one axis": ((4, 5), (1, 3), (1, 1), (0, 1), (1, 1)),
    "large kernel, so each image has its own run": ((8, 8), (7, 7), (1, 1), (0, 0), (1, 1)),
    "large kernel with padding": ((8, 9), (8, 8), (1, 1), (1, 2), (1, 1)),
    "dilation": ((7, 7), (2, 3), (1, 1), (2, 1), (3, 2)),
    "phases": ((7, 8), (3, 3), (2, 2), (1, 1), (1, 1)),
    "stride larger than the kernel": ((9, 9), (2, 2), (3, 4), (0, 0), (1, 1)),
    "stride on one axis": ((6, 6), (3, 3), (1, 2), (1, 1), (1, 1)),
    "pointwise": ((4, 4), (1, 1), (1, 1), (0, 0), (1, 1)),
    "pointwise with padding": ((4, 4), (1, 1), (1, 1), (1, 1), (1, 1)),
    "one axis": ((11,), (4,), (1,), (2,), (1,)),
    "three axes": ((3, 4, 5), (2, 2, 2), (1, 1, 1), (1, 0, 1), (1, 1, 1)),
    "three axes with a stride": ((4, 5, 4), (2, 3, 1), (2, 1, 3), (1, 1, 0), (1, 1, 1)),
}
EXTRA = {  # change of the number of outputs: with an output padding, the last window may read past the padding, or be left out
    "reads past the end": ((3, 4), (2, 2), (1, 1), (0, 0), (2, 1), (1, 1)),
    "reads past the padding": ((3, 4), (2, 3), (1, 1), (1, 1), (2, 1), (1, 2)),
    "the last outputs are left out": ((5, 6), (3, 3), (1, 1), (2, 1), (1, 1), (-1, -2)),
    "phases and more outputs": ((5, 6), (3, 3), (2, 3), (1, 1), (1, 1), (1, 1)),
}
LIMITS = {"one chunk": (1 << 30, 1 << 30), "two images at a time": (None, 1 << 30), "ranges of an image": (1, 900)}


def plan_of(name):
    size, kernel, stride, padding, dilation, extra = (
        EXTRA[name] if name in EXTRA else (*LAYOUTS[name], [0] * len(LAYOUTS[name][0]))
    )
    axes = zip(size, kernel, stride, padding, dilation, extra, strict=True)
    out = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 + e for n, k, s, p, d, e in axes)
    return rules.Plan(size, out, kernel, stride, padding, dilation)


def reads(plan):
    """Yield (output position, kernel position, input position) for each product of the definition."""
    for p in product(*map(range, plan.out)):
        for k in product(*map(range, plan.kernel)):
            q = tuple(a * s - pad + b * d for a, s, pad, b, d in zip(p, plan.stride, plan.padding, k, plan.dilation, strict=True))
            if all(0 <= a < n for a, n in zip(q, plan.size, strict=True)):
                yield p, k, q


def by_definition(plan, groups, x, w, y):
    """Return the three products: y from x and w, x from y and w, and w from x and y."""
    n, c, o = x.shape[0], x.shape[1] // groups, w.shape[0] // groups
    x, y = (z.reshape(n, groups, -1, *z.shape[2:]).astype(float) for z in (x, y))
    w = w.reshape(groups, o, c, *w.shape[2:]).astype(float)
    made = [np.zeros(z.shape) for z in (y, x, w)]
    every = slice(None)
    for p, k, q in reads(plan):
        at_p, at_k, at_q = ((every, every, every, *position) for position in (p, k, q))
        made[0][at_p] += np.einsum("ngc,goc->ngo", x[at_q], w[at_k])
        made[1][at_q] += np.einsum("ngo,goc->ngc", y[at_p], w[at_k])
        made[2][at_k] += np.einsum("ngc,ngo->goc", x[at_q], y[at_p])
    return made[0].reshape(n, -1, *plan.out), made[1].reshape(n, -1, *plan.size), made[2].reshape(groups * o, c, *plan.kernel)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("name", [*LAYOUTS, *EXTRA])
def test_the_products_follow_the_definition(name, groups, limits, monkeypatch):
    plan = plan_of(name)
    size, out, kernel = plan.size, plan.out, plan.kernel
    images, channels, filters = 5, 2 * groups, 3 * groups
    cache, column = LIMITS[limits]
    if cache is None:
        cache = 2 * channels * len(plan.taps) * plan.run * 4
    monkeypatch.setattr(rules, "CACHE_BYTES", cache)
    monkeypatch.setattr(rules, "MAX_COLUMN_BYTES", column)
    draw = np.random.default_rng(0)
    x = draw.standard_normal((images, channels, *size)).astype(np.float32)
    w = draw.standard_normal((filters, channels // groups, *kernel)).astype(np.float32)
    y = draw.standard_normal((images, filters, *out)).astype(np.float32)
    bias = draw.standard_normal(filters).astype(np.float32)
    forward, transposed, weight = by_definition(plan, groups, x, w, y)
    tolerance = {"rtol": 1e-4, "atol": 1e-4}  # float32 sums of up to 400 products
    np.testing.assert_allclose(rules.convolve(np, x, w, None, plan, groups), forward, **tolerance)
    shifted = forward + bias.reshape(-1, *(1,) * len(size))
    np.testing.assert_allclose(rules.convolve(np, x, w, bias, plan, groups), shifted, **tolerance)
    np.testing.assert_allclose(rules.convolve_transposed(np, y, w, plan, groups), transposed, **tolerance)
    np.testing.assert_allclose(rules.correlate(np, x, y, plan, groups), weight, **tolerance)


@pytest.mark.parametrize("name", [*LAYOUTS, *EXTRA])
def test_no_images_give_empty_results_and_a_weight_of_0(name):
    plan = plan_of(name)
    x, y, w = (np.ones(shape, np.float32) for shape in ((0, 2, *plan.size), (0, 3, *plan.out), (3, 2, *plan.kernel)))
    assert rules.convolve(np, x, w, np.ones(3, np.float32), plan, 1).shape == y.shape
    assert rules.convolve_transposed(np, y, w, plan, 1).shape == x.shape
    assert not rules.correlate(np, x, y, plan, 1).any()


@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("which", ["x", "w", "y"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("name", [*LAYOUTS, *EXTRA])
def test_infinities_and_nan_reach_only_the_sums_that_contain_them(name, groups, which, value):
    plan = plan_of(name)
    draw = np.random.default_rng(0)
    shapes = {"x": (3, 2 * groups, *plan.size), "w": (4 * groups, 2, *plan.kernel), "y": (3, 4 * groups, *plan.out)}
    given = {key: draw.standard_normal(shape).astype(np.float32) for key, shape in shapes.items()}
    flat = given[which].reshape(-1)
    flat[flat.size // 3 - 1] = value  # the last element of the first image, or one of the filters
    x, w, y = given.values()
    with np.errstate(invalid="ignore"):
        expected = by_definition(plan, groups, x, w, y)
        found = (
            rules.convolve(np, x, w, None, plan, groups),
            rules.convolve_transposed(np, y, w, plan, groups),
            rules.correlate(np, x, y, plan, groups),
        )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_the_layouts_differ_as_their_names_say():
    shared = plan_of("zeros shared by rows")
    assert shared.grid == (6, 7)
    assert shared.run == shared.area
    large = plan_of("large kernel, so each image has its own run")
    assert large.run < large.area
    assert plan_of("phases").phases == 4
    assert plan_of("pointwise").is_pointwise
    assert not plan_of("pointwise with padding").is_pointwise
