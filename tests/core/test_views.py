"""Views, writes through views, and indexing: behaviour that the tables of operators do not cover."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import gradlab as gl


def leaf(*shape):
    return gl.from_numpy(np.random.default_rng(3).standard_normal(shape)).requires_grad_()


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.reshape(4, 3),
        lambda x: x.view(-1),
        lambda x: x.T,
        lambda x: x[1:],
        lambda x: x[:, 0],
        lambda x: x[None],
        lambda x: x.unsqueeze(0),
        lambda x: x.squeeze(),
        lambda x: x.expand(2, 3, 4)[0],
        lambda x: x.diagonal(),
        lambda x: x.split(2)[0],
        lambda x: x.unfold(1, 2, 1),
        lambda x: x.as_strided((2, 2), (4, 1)),
        lambda x: x.T.unfold(0, 2, 2),
        lambda x: x.flatten(),
        lambda x: x.permute(1, 0).reshape(4, 3),
        lambda x: x.narrow(0, 1, 1),
        lambda x: x.unbind(1)[2],
        lambda x: x.swapaxes(0, 1),
    ],
)
def test_views_share_memory_and_know_their_base(make):
    x = gl.zeros(3, 4)
    part = make(x)
    assert part._is_view() and part._base is x
    part[...] = 1
    assert float(x.sum()) >= 1 and x._version == part._version == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.flip(0),
        lambda x: x.roll(1),
        lambda x: x.repeat(1, 1),
        lambda x: x.tile(1),
        lambda x: x.tril(9),
        lambda x: x.diag(),
        lambda x: x[[0]],
        lambda x: x[gl.ones(3, 4) > 0],
        lambda x: x.T.reshape(12),
        lambda x: x.T.contiguous(),
        lambda x: x.rot90(4),
        lambda x: gl.cat([x]),
        lambda x: gl.stack([x]),
        lambda x: x.index_select(0, gl.tensor([0])),
        lambda x: x.repeat_interleave(1, 0),
    ],
)
def test_copies_do_not_share_memory(make):
    x = gl.zeros(3, 4)
    part = make(x)
    assert not np.shares_memory(part.numpy(), x.numpy())
    part[...] = 1
    assert float(x.sum()) == 0 and x._version == 0


def test_a_write_through_any_view_reaches_the_gradient_of_the_base():
    """The gradient of a sum of squares after writes, compared with finite differences."""

    def write_through_views(x, y):
        z = x * 1
        z.T[1:, :2].unsqueeze(0).squeeze().mul_(y)
        z.unfold(1, 2, 2)[0, 1] = y[0]
        z.flatten()[5:7].add_(y[1])
        z.diagonal().mul_(y[:, 1])
        z.as_strided((2,), (5,), 1).sub_(y[2])
        return (z * z).sum()

    x, y = leaf(3, 4), leaf(3, 2)
    write_through_views(x, y).backward()
    for t in (x, y):
        for i in np.ndindex(t.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [u.detach().clone() for u in (x, y)]
                moved[0 if t is x else 1][i] += step
                ends.append(write_through_views(*moved).item())
            assert t.grad[i].item() == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-4)


@pytest.mark.parametrize("view", [lambda s: None, lambda s: s[...], lambda s: s.expand(2, 3), lambda s: s[1:]])
def test_a_second_write_to_a_saved_result_is_detected(view):
    """The second write overwrites the saved result of tanh. Recording the views again does not hide this."""
    s = leaf(3).sin()
    kept = view(s)
    s.tanh_()
    s.sin_()
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.* output 0 of Tanh"):
        (s if kept is None else kept).sum().backward()


def test_in_place_with_the_tensor_as_its_own_factor():
    """The derivative of v + v² is 1 + 2v."""
    x = leaf(3)
    y = x * 1
    y.addcmul_(y, y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 1 + 2 * x.detach().numpy())


def test_repeated_indices_add_up_their_gradients():
    rng = np.random.default_rng(5)
    for shape, index in [
        ((6, 3), rng.integers(-6, 6, 200)),
        ((4, 5), (rng.integers(0, 4, 300), rng.integers(-5, 5, 300))),
        ((3, 4, 5), (slice(None), rng.integers(0, 4, 7))),
        ((5,), rng.integers(0, 5, (4, 50))),
        ((4, 3, 2), (rng.integers(0, 4, (9, 1)), rng.integers(0, 3, 8))),
    ]:
        x = leaf(*shape)
        parts = index if isinstance(index, tuple) else (index,)
        picks = tuple(gl.from_numpy(i) if isinstance(i, np.ndarray) else i for i in parts)
        y = x[picks]
        w = rng.standard_normal(y.shape)
        (y * gl.from_numpy(w)).sum().backward()
        expected = np.zeros(shape)
        np.add.at(expected, index, w)
        np.testing.assert_allclose(x.grad.numpy(), expected, atol=1e-12)


def test_deprecated_spellings_warn():
    x = gl.ones(2, 3, 4)
    for use, text in [
        (lambda: x.T, "The use of `x.T` on tensors of dimension other than 2"),
        (lambda: x[0, 0, 0].T, "Tensor.T is deprecated on 0-D tensors"),
        (x[0, 0, 0].adjoint, "adjoint\\(\\) is deprecated on 0-D tensors"),
        (lambda: gl.meshgrid(x[0, 0], x[0, 0]), "gradlab.meshgrid: in an upcoming release"),
        (lambda: x[gl.tensor([1, 0], dtype=gl.uint8)], "indexing with dtype gradlab.uint8 is now deprecated"),
        (lambda: x[[[0, 1], [1, 2]]], "Using a non-tuple sequence for multidimensional indexing is deprecated"),
    ]:
        with pytest.warns(UserWarning, match=text) as caught:
            use()
        assert caught[0].filename == __file__


def test_views_are_freed_with_their_last_reference():
    x = leaf(3, 4)
    gc.disable()
    try:
        part = x[1:].T
        seen = weakref.ref(part)
        del part
        assert seen() is None
        for _ in range(100):
            x[0]
        assert len(x.storage.views) < 40
    finally:
        gc.enable()


def test_a_long_chain_of_views():
    y = x = gl.zeros(1)
    for _ in range(20_000):
        y = y.unsqueeze(0).squeeze(0)
    y.add_(1)
    assert x.item() == 1 and len(gl.core.storage.view_of(y).steps) == 40_000
    del y


def test_a_view_created_under_no_grad_cannot_be_written_to_outside():
    x = leaf(3) * 1
    with gl.no_grad():
        part = x[1:]
        part.add_(1)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being modified inplace"):
        part.add_(1)


def test_one_of_several_views_cannot_be_written_to():
    for split, name in [
        (lambda x: x.unbind(), "Unbind"),
        (lambda x: x.chunk(2), "Split"),
        (list, "Unbind"),
        (lambda x: x.split([1, 2]), "SplitWithSizes"),
    ]:
        parts = split(leaf(3, 2) * 1)
        with pytest.raises(RuntimeError, match=f"Output 1 of {name} is a view and is being modified inplace"):
            parts[1].add_(1)
        with gl.no_grad():
            parts[1].add_(1)


def test_an_expanded_tensor_cannot_be_written_to():
    x = gl.zeros(3).expand(2, 3)
    for write in (lambda: x.add_(1), lambda: x.__setitem__(slice(None), 1), x.zero_):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
            write()
    x[0] = 1  # one row refers to each element once
    assert x.tolist() == [[1, 1, 1]] * 2


def test_a_leaf_transposed_under_no_grad_stays_a_leaf():
    x = leaf(2, 3)
    with gl.no_grad():
        x.t_()
    (x * gl.ones(3, 2, dtype=gl.float64)).sum().backward()
    assert x.is_leaf and x.grad.shape == (3, 2)


def test_errors_of_as_strided():
    x = gl.zeros(3, 4)
    with pytest.raises(NotImplementedError, match="only supported for contiguous tensors"):
        x.T.as_strided((2,), (1,))
    with pytest.raises(RuntimeError, match="are out of bounds for storage of size"):
        x[1:].as_strided((2,), (1,), 0)
