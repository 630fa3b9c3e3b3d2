"""Check the facts that primitives declare (`core.properties`) against their forwards and rules, on grids of numbers."""

from __future__ import annotations

from itertools import product
from math import inf, pi

import numpy as np
import pytest
from grouped import check_each

import gradlab as gl
from gradlab.core.errors import RuleError
from gradlab.core.primitive import elementwise
from gradlab.core.properties import Properties
from gradlab.core.registry import PRIMITIVES
from gradlab.nn import functional

ELEMENTWISE = [op for op in PRIMITIVES.values() if op.kind == "elementwise"]
OF_ONE_NUMBER = [op for op in ELEMENTWISE if op.args == ["x"]]
SETTINGS = {
    "add_scaled": {"alpha": 1.0},
    "rsub": {"other": 1.0},
    "addcmul": {"value": 1},
    "addcdiv": {"value": 1},
    "lerp_scalar": {"weight": 0.5},
    "pow_scalar": {"exponent": 2},
    "rpow_scalar": {"base": 2.0},
    "clamp": {"min": -1.0, "max": 1.0},
    "fill": {"value": 3.0},
    "round_decimals": {"decimals": 0},
    "logit": {"eps": None},
    "nan_to_num": {"nan": 0.0, "posinf": 1e300, "neginf": -1e300},
    "polygamma": {"n": 1},
    "mvlgamma": {"p": 2},
    "leaky_relu": {"slope": 0.01},
    "hardtanh": {"low": -1.0, "high": 1.0},
    "softshrink": {"limit": 0.5},
    "hardshrink": {"limit": 0.5},
    "threshold": {"threshold": 0.0, "value": 0.0},
    "elu": {"alpha": 1.0, "scale": 1.0, "rate": 1.0},
    "elu_slope": {"alpha": 1.0, "scale": 1.0, "rate": 1.0},
    "softplus": {"beta": 1.0, "threshold": 20.0},
    "softplus_slope": {"beta": 1.0, "threshold": 20.0},
}
NEAR_ONE = 1 - 1e-15
ORDINARY = np.array([0.0, *(s * x for s in (1, -1) for x in (1e-12, 0.3, 0.5, 1.0, 1.7, 3.0, 10.0, 30.0))])
EXTREME = np.array([*ORDINARY, NEAR_ONE, -NEAR_ONE, pi / 2, 700.0, -700.0, inf, -inf])
DENSE = np.concatenate([np.linspace(-10, 10, 20_001), [-20, 20, np.nextafter(3, 0)]])


def settings_for(op, x):
    """Return the metadata of a call of a primitive with the default settings of its operation."""
    if op.name == "frexp":
        return {"exponent": np.frexp(x)[1]}
    if op.name in ("replace", "draw"):
        return {"value" if op.name == "replace" else "values": np.full_like(x, 3)}
    if op.name == "masked_fill":
        return {"mask": x > 0, "value": 0.0}
    return SETTINGS.get(op.name, {})


def grid(op, points):
    """Return all combinations of points as one array for each argument."""
    arguments = [[False, True] if name == "condition" else points for name in op.args]
    return [np.array(column) for column in zip(*product(*arguments), strict=True)]


def compute(op, points, **settings):
    """Return the arguments, the values and the derivative by each argument that has a rule."""
    xs = grid(op, points)
    meta = settings_for(op, xs[0]) | settings
    with np.errstate(all="ignore"):
        out = op(*xs, **meta)
        known = dict(zip(op.args, xs, strict=True)) | meta | {"out": out, "xp": np, "g": np.ones_like(xs[-1])}
        known |= {f"{name}_shape": x.shape for name, x in zip(op.args, xs, strict=True)}
        derivatives = {}
        for name in op.rules:
            try:
                derivatives[name] = np.broadcast_to(op.cotangent(name, **known), out.shape)
            except NotImplementedError:  # igamma by its first argument
                continue
    return xs, out, derivatives


def ids(ops):
    return [op.name for op in ops]


def test_unbounded_derivatives_are_marked():
    def check(op):
        _, _, derivatives = compute(op, ORDINARY)
        largest = max(np.nanmax(np.abs(d)) for d in derivatives.values())
        assert largest < 1e3, f"{op.name}: the derivative is {largest}"

    check_each([op for op in ELEMENTWISE if not op.properties.poles], check)


def test_marked_derivatives_are_unbounded():
    def check(op):
        exponents = {"pow_scalar": -1.0}
        settings = {"exponent": exponents[op.name]} if op.name in exponents else {}
        _, out, derivatives = compute(op, EXTREME, **settings)
        known = [np.abs(d[~np.isnan(out) | np.isinf(out)]) for d in derivatives.values()]
        assert any((~(d < 1e6)).any() for d in known), op.name

    check_each([op for op in ELEMENTWISE if op.properties.poles], check)


def test_linear_functions_have_no_poles():
    assert not [op for op in PRIMITIVES.values() if op.kind in ("linear", "bilinear") and op.properties.poles]


@pytest.mark.parametrize("op", [op for op in ELEMENTWISE if op.properties.flat], ids=lambda op: op.name)
def test_flat_functions_have_the_derivative_0(op):
    for derivative in compute(op, ORDINARY)[2].values():
        assert not derivative.any()


def test_functions_with_the_derivative_0_are_flat():
    constant = [op for op in ELEMENTWISE if not any(d.any() for d in compute(op, ORDINARY)[2].values())]
    assert {op.name for op in constant if not op.properties.flat} == {"angle"}  # not of complex numbers


def test_the_derivative_is_0_at_0():
    def check(op):
        for derivative in compute(op, np.zeros(1))[2].values():
            assert derivative == 0, op.name

    check_each([op for op in OF_ONE_NUMBER if op.properties.still], check)
    others = [op for op in OF_ONE_NUMBER if not (op.properties.still or op.properties.flat)]
    # `angle` has complex arguments, the threshold is any number, and slopes of functions are not counted.
    assert {op.name for op in others if compute(op, np.zeros(1))[2]["x"] == 0} == {"angle", "threshold", "elu_slope"}


def test_values_are_in_the_range():
    def check(op):
        values = compute(op, np.array([*EXTREME, 1e6, -1e6]))[1]
        values = values[~np.isnan(values)]
        low, high = op.properties.low, op.properties.high
        assert (values >= low - 1e-14).all(), (op.name, values.min())
        assert (values <= high + 1e-14).all(), (op.name, values.max())

    check_each(ELEMENTWISE, check)


def test_narrow_ranges_are_reached():
    """A bound is not far from the values, so that no range is too wide."""

    def check(op):
        values = compute(op, np.concatenate([DENSE, [1e300, -1e300]]))[1]
        for bound, reached in ((op.properties.low, np.nanmin(values)), (op.properties.high, np.nanmax(values))):
            assert bound in (-inf, inf) or abs(bound - reached) < 1e-4, (op.name, bound, reached)

    bounded = [op for op in OF_ONE_NUMBER if op.properties.low > -inf or op.properties.high < inf]
    check_each([op for op in bounded if op.name != "frac"], check)


def test_signs_are_kept():
    def check(op):
        for sign in (1, -1):
            values = compute(op, sign * np.abs(ORDINARY))[1]
            assert not (values * sign < 0).any(), op.name

    check_each([op for op in ELEMENTWISE if op.properties.keeps_sign and op.name != "masked_fill"], check)


def test_the_steepest_slope():
    def check(op):
        derivative = compute(op, DENSE)[2]["x"]
        assert np.nanmax(np.abs(derivative)) == pytest.approx(op.properties.steepest, abs=1e-6), op.name

    check_each([op for op in OF_ONE_NUMBER if op.properties.steepest is not None], check)


def test_saturated_ends():
    def check(op):
        below, above = (np.abs(compute(op, np.array([x]))[2]["x"][0]) < 1e-3 for x in (-1e4, 1e4))
        ends = op.properties.saturates
        assert below or ends not in ("below", "both"), op.name
        assert above or ends not in ("above", "both"), op.name

    check_each([op for op in OF_ONE_NUMBER if op.properties.saturates], check)


def test_activations():
    for op in ELEMENTWISE:
        properties = op.properties
        assert not (properties.rectifier or properties.sigmoidal) or (properties.saturates and properties.steepest), op.name
        assert not properties.sigmoidal or properties.saturates == "both", op.name
        assert not (properties.leaky and properties.saturates), op.name


def test_derived_properties():
    for op in PRIMITIVES.values():
        assert op.properties.elementwise == (op.kind == "elementwise"), op.name
        assert not op.view or op.properties.moves, op.name
        assert op.kind != "bilinear" or op.properties.product, op.name
        assert (op.kind == "linear") == (op.properties.reduces in ("sum", "mean")) or not op.properties.reduces, op.name
        assert not op.properties.moves or op.kind in ("linear", "elementwise"), op.name
        assert not op.properties.transposes or op.properties.moves == "layout", op.name
        assert not op.properties.inserts_axis or op.properties.moves in ("layout", "part"), op.name


def test_the_argument_that_is_added_to_a_product():
    found = {op.name: op.args[op.properties.addend] for op in PRIMITIVES.values() if op.properties.addend is not None}
    assert found == {"addmm": "bias", "baddbmm": "bias", "conv_bias": "bias", "addcmul": "x", "addcdiv": "x"}


def test_minus_infinity_masks_an_element():
    functions = {name: getattr(gl, name) for name in ("exp", "exp2", "sigmoid")}
    functions |= {name: lambda x, name=name: getattr(gl, name)(x, gl.ones_like(x)) for name in ("logaddexp", "logaddexp2")}
    along = "softmax", "log_softmax", "logsumexp", "logcumsumexp", "amax"
    functions |= {name: lambda x, name=name: getattr(gl, name)(x, 0) for name in along} | {"max": gl.max}
    for name, function in functions.items():
        x = gl.tensor([1.0, 2.0, -inf], requires_grad=True)
        y, plain = function(x), function(x.detach()[:2])
        assert y.grad_fn.op.name == name
        assert (y if y.ndim == 0 else y[:2]).tolist() == pytest.approx(plain.tolist())
        (y if y.ndim == 0 else y[:2]).sum().backward()
        assert x.grad[2].item() == 0
        assert x.grad.isfinite().all().item(), name
    declared = {op.name for op in PRIMITIVES.values() if op.properties.ignores_minus_inf}
    assert declared == {*functions, "safe_softmax"}


def test_moved_data_are_the_data():
    x = gl.arange(12.0).reshape(3, 4).requires_grad_()
    i = gl.tensor([[2, 0], [1, 1]])
    results = {
        "layout": [x.view(4, 3), x.permute(1, 0), x.expand(2, 3, 4), x.clone(), x.T.contiguous(), x.unsqueeze(0).squeeze()],
        "order": [x.flip(0), x.roll(1, 0), x.unfold(0, 2, 1), x.repeat(2, 1)],
        "part": [x[1:, [0, 2]], x.gather(1, i), x.diagonal(), x.as_strided((2, 2), (1, 4))],
        "join": [gl.cat([x, x]), gl.stack([x, x])],
        "cast": [x.double()],
    }
    seen = set()
    for moves, tensors in results.items():
        for y in tensors:
            assert y.grad_fn.op.properties.moves == moves, y.grad_fn
            values, moved = sorted(x.ravel().tolist()), sorted(set(y.ravel().tolist()))
            assert set(moved) <= set(values)
            assert moves == "part" or moved == values
            seen.add(y.grad_fn.op.name)
    moving = {op.name for op in PRIMITIVES.values() if op.properties.moves}
    assert moving - seen == {"transfer"}  # between devices


LOSSES = {
    "mse_loss": functional.mse_loss,
    "smooth_l1_loss": functional.smooth_l1_loss,
    "huber_loss": functional.huber_loss,
    "binary_cross_entropy": functional.binary_cross_entropy,
    "binary_cross_entropy_with_logits": functional.binary_cross_entropy_with_logits,
    "soft_margin_loss": functional.soft_margin_loss,
    "nll_loss": functional.nll_loss,
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    properties = PRIMITIVES[name].properties
    facts = properties.loss
    x = gl.tensor(np.linspace(-4, 4, 9).repeat(5).reshape(9, 5), requires_grad=True)
    y = gl.tensor(np.tile(np.linspace(-4, 4, 5), (9, 1)))
    predictions = {"probabilities": x.sigmoid(), "log-probabilities": x.log_softmax(1)}.get(facts.takes, x).detach()
    predictions.requires_grad_()
    targets = {"scores": y.sign() + (y == 0), "logits": y.sigmoid(), "probabilities": y.sigmoid()}.get(facts.takes, y)
    targets = gl.arange(9) % 5 if name == "nll_loss" else targets
    terms = LOSSES[name](predictions, targets, reduction="none")
    assert terms.grad_fn.op.name == name
    assert (terms >= 0).all().item() or not facts.nonnegative
    assert properties.low == 0
    terms.sum().backward()
    steepest = predictions.grad.abs().max().item()
    assert (steepest <= 1) == facts.bounded_slope, steepest
    if properties.still:
        z = gl.zeros(2, requires_grad=True)
        LOSSES[name](z, gl.zeros(2)).backward()
        assert z.grad.tolist() == [0, 0]


def test_only_ufuncs_are_costly():
    assert all(isinstance(op.forward, np.ufunc) for op in PRIMITIVES.values() if op.properties.costly)
    with pytest.raises(RuleError, match="only a ufunc can be costly"):
        elementwise("slow_negative", lambda x: -x, x=lambda g: -g, properties=Properties(costly=True))
    assert "slow_negative" not in PRIMITIVES


def test_variants_have_the_properties_of_their_primitive():
    op = PRIMITIVES["sum"]
    assert op.with_node("TraceBackward0").properties is op.properties
    assert PRIMITIVES["exp"].half.properties.costly
