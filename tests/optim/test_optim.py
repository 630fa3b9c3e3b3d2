"""Compare optimizers and schedules with recordings of PyTorch: losses over 100 steps, rates over 30 epochs, states, texts.

The cases are in `optim_cases.py` and `schedule_cases.py`, PyTorch's results in `expected/`.
"""

from __future__ import annotations

import copy
import json
import math
import pickle
from typing import Any

import numpy as np
import optim_cases
import pytest
import schedule_cases
from recorded import rows, titles_recorded_by

import gradlab

TOPICS = optim_cases.TOPICS | schedule_cases.TOPICS
CASES = [(topic, name) for topic, cases in TOPICS.items() for name in cases]
RECORDED = {topic: rows(f"optim/{topic}") for topic in TOPICS}


def assert_agrees(found: Any, expected: Any, library: str = "gradlab") -> None:
    """Check that structure and texts agree, floats to 1e-5, and the first sentence of an error or a warning."""
    if isinstance(expected, dict) and "raised" in expected:
        (kind, text), (wanted_kind, wanted) = found["raised"], expected["raised"]
        assert kind == wanted_kind
        assert text.startswith(wanted.partition(". ")[0].removesuffix(".").replace("torch.", f"{library}."))
    elif isinstance(expected, dict) and "warned" in expected:
        assert len(found["warned"]) == len(expected["warned"])
        for (kind, text), (wanted_kind, wanted) in zip(found["warned"], expected["warned"], strict=True):
            assert kind == wanted_kind and wanted.startswith(text.removesuffix("."))
    elif isinstance(expected, dict):
        assert sorted(found) == sorted(expected)
        for key in expected:
            assert_agrees(found[key], expected[key], library)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_agrees(one, other, library)
    elif isinstance(expected, float):
        assert math.isclose(found, expected, rel_tol=1e-5, abs_tol=1e-6)
    else:
        assert found == (expected.replace("torch.", f"{library}.") if isinstance(expected, str) else expected)


def as_plain(data: Any) -> Any:
    return json.loads(json.dumps(data))


@pytest.mark.parametrize(("topic", "name"), CASES)
def test_as_recorded(topic: str, name: str) -> None:
    assert_agrees(as_plain(TOPICS[topic][name](gradlab)), RECORDED[topic][name])


@pytest.mark.oracle
@pytest.mark.parametrize("topic", TOPICS)
def test_recorded_is_what_torch_does(topic: str) -> None:
    torch = pytest.importorskip("torch")
    for name in titles_recorded_by(f"optim/{topic}", torch):
        assert_agrees(as_plain(TOPICS[topic][name](torch)), RECORDED[topic][name], "torch")


SHAPES = [(), (0,), (3,), (40_000,), (16_384,), (300, 200), (3, 20_000), (7, 11, 500)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("order", ["C", "F", "gradient F", "strided"])
def test_cut_into_pieces_is_the_whole(shape: tuple[int, ...], order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adam on arrays with all memory layouts agrees with the formula on whole arrays in double precision."""
    monkeypatch.setattr(gradlab.optim.optimizer, "BLOCK", 16_384)
    rng = np.random.default_rng(0)
    start, gradient = rng.standard_normal(shape), rng.standard_normal(shape)
    array = np.array(start, np.float32, order="F" if order == "F" else "C")
    g = np.array(gradient, np.float32, order="F" if order == "gradient F" else "C")
    if order == "strided" and shape:
        array = np.repeat(array, 2, axis=-1)[..., ::2]
    p = gradlab.from_numpy(np.empty(1, np.float32))
    p.data = gradlab.core.tensor.constant(array)
    p.requires_grad_()
    p.grad = gradlab.core.tensor.constant(g)
    optimizer = gradlab.optim.Adam([p], lr=0.1, weight_decay=0.5)
    x, m, v = start, 0.0, 0.0
    for t in (1, 2, 3):
        optimizer.step()
        g = gradient + 0.5 * x
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        x = x - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    assert p.array is array
    np.testing.assert_allclose(p.array, x, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", [name for name in optim_cases.SETTINGS if name != "LBFGS"])
def test_gradients_stay_as_they_are(name: str) -> None:
    w = gradlab.linspace(-1, 1, 8).requires_grad_()
    (w**3).sum().backward()
    before = w.grad.tolist()
    for settings in optim_cases.SETTINGS[name]:
        getattr(gradlab.optim, name)([w], **settings).step()
    assert w.grad.tolist() == before


@pytest.mark.parametrize("name", optim_cases.SETTINGS)
def test_on_every_backend(name: str, backend: Any) -> None:
    """Three steps on a parabola agree with those on NumPy."""

    def run_steps(asarray: Any, settings: dict[str, Any]) -> Any:
        w = gradlab.core.tensor.constant(asarray(np.array([[1.0, -2.0], [0.5, 3.0]]))).requires_grad_()
        optimizer = getattr(gradlab.optim, name)([w], **settings)

        def closure() -> Any:
            optimizer.zero_grad()
            loss = ((w - 1) ** 2).sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        return w.tolist()

    for settings in optim_cases.SETTINGS[name]:
        np.testing.assert_allclose(run_steps(backend, settings), run_steps(np.asarray, settings), rtol=1e-9, atol=1e-12)


def test_copies_and_pickles() -> None:
    w = gradlab.ones(2, requires_grad=True)
    optimizer = gradlab.optim.Adam([w], lr=0.5)
    w.sum().backward()
    optimizer.step()
    for twin in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert repr(twin) == repr(optimizer)
        assert twin.state_dict()["state"][0]["exp_avg"].tolist() == optimizer.state_dict()["state"][0]["exp_avg"].tolist()
        twin.step()
        assert w.tolist() == [0.5, 0.5]


def test_recorded_steps_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="differentiable=True is not supported"):
        gradlab.optim.SGD([gradlab.ones(1, requires_grad=True)], differentiable=True)


def test_a_group_that_comes_later_has_a_least_rate_too() -> None:
    w, v = gradlab.ones(1, requires_grad=True), gradlab.ones(1, requires_grad=True)
    for least, rates in ((0.0, [0.025, 0.05]), (0.04, [0.04, 0.05])):
        optimizer = gradlab.optim.SGD([w], lr=0.1)
        schedule = gradlab.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0, min_lr=least)
        schedule.step(1.0)
        schedule.step(1.0)
        optimizer.add_param_group({"params": [v], "lr": 0.1})
        schedule.step(1.0)
        assert [group["lr"] for group in optimizer.param_groups] == rates
    schedule = gradlab.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.0, 0.0])
    optimizer.add_param_group({"params": [gradlab.ones(1, requires_grad=True)]})
    schedule.step(1.0)
    with pytest.raises(RuntimeError, match=r"The number of param groups in the `optimizer` \(3\) differs from when"):
        schedule.step(1.0)
