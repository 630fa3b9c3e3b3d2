"""Memory of `.grad`, which is not shared with other gradients, and gradients of tensors whose shape was changed."""

from __future__ import annotations

import random
import warnings
from itertools import combinations

import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore:Using backward\\(\\) with create_graph", "ignore:The .grad attribute of a Tensor")


def ones(t, *shape, grad=True):
    return t.ones(*shape, dtype=t.float64, requires_grad=grad)


def values(x):
    return None if x is None else x.detach().numpy().tolist()


# --------------------------------------------------------------------------------------------------------- create_graph
def test_recorded_gradients_are_copies(t):
    x, y, v = ones(t, 2), ones(t, 2), ones(t, 2, grad=False)
    (x + y).backward(v, create_graph=True)
    x.grad.zero_()
    assert [values(x.grad), values(y.grad), values(v)] == [[0, 0], [1, 1], [1, 1]]
    x.grad = None
    x.backward(v, create_graph=True)
    x.grad.add_(5)
    assert values(v) == [1, 1]


def test_a_second_backward_does_not_change_another_gradient(t):
    x, y = ones(t, 2), ones(t, 2)
    (x + y).sum().backward(create_graph=True)
    (x * 1).sum().backward()
    assert [values(x.grad), values(y.grad)] == [[2, 2], [1, 1]]
    t.nn.utils.clip_grad_norm_([x, y], 0.5)
    assert values(x.grad)[0] / values(y.grad)[0] == pytest.approx(2)


def test_recorded_gradients_can_be_overwritten_before_the_second_backward(t):
    x = ones(t, 2)
    (x**3).sum().backward(create_graph=True)
    g = x.grad
    product = (g * x).sum()
    with t.no_grad():
        x.grad = t.zeros(2, dtype=t.float64)
    product.backward()
    assert values(x.grad) == [9, 9]  # (3 x²·x)' = 9 x²


def test_the_history_of_a_recorded_gradient(t):
    x = ones(t, 2)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward(create_graph=True)
    assert type(x.grad.grad_fn).__name__ == "CopyBackwards" and x.grad.grad_fn.next_functions[0] == (None, 0)
    assert type(y.grad.grad_fn).__name__ == "CloneBackward0"
    held = x.grad
    (y * y).sum().backward(create_graph=True)
    assert x.grad is not held and values(held) == [8, 8] and values(x.grad) == [16, 16]


def test_a_recorded_gradient_has_the_layout_of_its_tensor(t):
    x = t.ones(2, 3).t().requires_grad_()
    v = t.arange(6.0).reshape(3, 2)
    (x * 1).backward(v, create_graph=True)
    assert x.grad.stride() == (1, 3) and values(x.grad) == values(v)


def test_a_retained_gradient_is_another_tensor_each_time(t):
    x = ones(t, 2)
    y = x * 2
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    first, of_leaf = y.grad, x.grad
    y.sum().backward()
    assert values(first) == [1, 1] and values(y.grad) == [2, 2] and x.grad is of_leaf


# ---------------------------------------------------------------------------------- shapes changed in place under no_grad
def test_another_shape_under_no_grad(t):
    x = ones(t, 1, 2)
    y = x.clone()
    y.retain_grad()
    seen = []
    y.register_hook(lambda g: seen.append(tuple(g.shape)))
    with t.no_grad():
        y.unsqueeze_(0).unsqueeze_(0)
        y.squeeze_(0)
    assert y.shape == (1, 1, 2) and type(y.grad_fn).__name__ == "CloneBackward0" and y.retains_grad
    z = y.sum(2)
    assert z.grad_fn.next_functions[0][0] is y.grad_fn
    z.sum().backward(retain_graph=True)
    assert values(x.grad) == [[1, 1]] and values(y.grad) == [[1, 1]] and seen == [(1, 2)]
    assert values(t.autograd.grad((y * 3).sum(), y)[0]) == [[3, 3]]
    y.mul_(3)
    y.sum().backward()
    assert values(x.grad) == [[4, 4]]


def test_grad_of_a_tensor_whose_shape_changed(t):
    x = ones(t, 2)
    y = x.clone()
    z = (y * 3).sum()
    with t.no_grad():
        y.unsqueeze_(0)
    assert values(t.autograd.grad(z, y)[0]) == [3, 3]


@pytest.mark.parametrize("of", [lambda x: x.clone(), lambda x: x * 2, lambda x: x.sum()])
def test_a_leaf_whose_shape_changed(t, of):
    x = ones(t, 2)
    y = of(x)
    with t.no_grad():
        x.unsqueeze_(0)
    y.sum().backward()
    assert x.grad.shape == (1, 2) and (of(x).sum() == sum(values(x.grad)[0]))


@pytest.mark.parametrize("change", [lambda y: y.squeeze_(), lambda y: y.t_()])
def test_a_shape_that_does_not_match_the_gradient(t, change):
    y = ones(t, 1, 3).clone()
    with t.no_grad():
        change(y)
    with pytest.raises(
        RuntimeError,
        match=r"returned an invalid gradient at index 0 - got \[.*\] but expected shape compatible "
        r"with \[1, 3\]",
    ):
        (y * 2).sum().backward()


def test_tangents_of_tensors_whose_shape_changed():
    import gradlab as t

    x = ones(t, 2)
    y = x.clone()
    with t.no_grad():
        y.unsqueeze_(0)
    u = t.tensor([1.0, 2.0], dtype=t.float64)
    assert values(t.autograd.jvp_of_graph((y * y).sum(1), x, u)[0]) == [6]


# ------------------------------------------------------------------------------------------------------- random programs
FUNCTIONS = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a * a * b,
    lambda a, b: b,
    lambda a, b: a.view(2, 2),
    lambda a, b: a.t() + b,
    lambda a, b: a.reshape(-1).reshape(2, 2) + b,
    lambda a, b: a.sum() + b,
    lambda a, b: a[0] + b,
    lambda a, b: a.clone() * 2 + b,
    lambda a, b: a.expand(2, 2, 2).sum(0) + b,
    lambda a, b: a.detach() + b,
]
CHANGES = [lambda x: x.zero_(), lambda x: x.add_(1), lambda x: x.mul_(3), lambda x: x[0].fill_(2)]


class Program:
    """Random program: builds a graph, runs backward and modifies gradients. Records whether the user's tensors share memory."""

    def __init__(self, t, seed):
        self.t, self.dice = t, random.Random(seed)
        self.leaves = [self.tensor(i).requires_grad_() for i in range(3)]
        self.held, self.log, self.most, self.shared = [], [], 0, False
        self.nodes = list(self.leaves)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(self.dice.randint(1, 4)):
                self.build()
            for _ in range(self.dice.randint(3, 7)):
                self.run_step(self.dice.choice([self.backward, self.backward, self.change, self.build, self.clip, self.second]))

    def tensor(self, start):
        made = self.t.arange(float(start), start + 4.0, dtype=self.t.float64).reshape(2, 2)
        return made.t().clone() if self.dice.random() < 0.2 else made

    def run_step(self, step):
        """Run a step and log its error, which must be the same in both libraries."""
        try:
            step()
        except RuntimeError as error:
            self.log.append(str(error)[:40])
        arrays = [x.detach().numpy() for x in {id(x): x for x in (*self.mine(), *self.leaves)}.values()]
        self.most = max(self.most, len(arrays))
        self.shared |= any(np.shares_memory(a, b) for a, b in combinations(arrays, 2))

    def build(self):
        made = self.dice.choice(FUNCTIONS)(self.dice.choice(self.nodes), self.dice.choice(self.nodes))
        if made.requires_grad:
            if self.dice.random() < 0.3:
                made.retain_grad()
            self.nodes.append(made)

    def backward(self):
        y, v = self.dice.choice(self.nodes), self.tensor(1)
        self.held.append(v)
        y.backward(
            v, create_graph=self.dice.random() < 0.7, retain_graph=True, inputs=self.dice.choice([None, None, self.leaves])
        )

    def second(self):
        grads = [x.grad for x in self.leaves if x.grad is not None and x.grad.requires_grad]
        if grads:
            sum(g.sum() for g in grads).backward(retain_graph=True)

    def change(self):
        there = [x.grad for x in self.nodes if x.grad is not None] + self.held
        if there:
            x, change = self.dice.choice(there), self.dice.choice(CHANGES)
            with self.t.no_grad():
                change(x)

    def clip(self):
        self.t.nn.utils.clip_grad_norm_(self.leaves, 0.5)

    def mine(self):
        """Return the tensors that the user holds, each of which must have its own memory."""
        return [*self.held, *(x.grad for x in self.nodes if x.grad is not None)]

    def outcome(self):
        return [values(x) for x in self.held], [values(x.grad) for x in self.nodes], self.log


SEEDS = range(300)


def test_no_gradient_shares_memory_with_another():
    import gradlab

    programs = [Program(gradlab, seed) for seed in SEEDS]
    assert not [seed for seed, program in zip(SEEDS, programs, strict=True) if program.shared]
    assert sum(program.most > 5 for program in programs) > len(SEEDS) / 2


@pytest.mark.oracle
def test_random_programs_as_torch():
    """Compare programs for which torch does not share memory. (It may use a view of the caller's `grad_tensors`.)"""
    torch, gradlab, compared = pytest.importorskip("torch"), pytest.importorskip("gradlab"), 0
    for seed in SEEDS:
        program = Program(torch, seed)
        if program.shared:
            continue
        compared += 1
        ours, theirs = Program(gradlab, seed).outcome(), program.outcome()
        assert ours[2] == theirs[2], f"seed {seed}"
        for have, want in zip(ours[0] + ours[1], theirs[0] + theirs[1], strict=True):
            assert (have is None) == (want is None), f"seed {seed}"
            if have is not None:
                np.testing.assert_allclose(have, want, rtol=1e-10, atol=1e-10, err_msg=f"seed {seed}")
    assert compared > len(SEEDS) * 0.7
