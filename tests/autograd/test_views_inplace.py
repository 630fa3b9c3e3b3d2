"""In-place writes, version counters and views, on gradlab and on torch."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
import weakref

import numpy as np
import pytest

import gradlab

LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
VIEW_OF_LEAF = "a view of a leaf Variable that requires grad is being used in an in-place operation."
MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation"
SEVERAL = "modified inplace.* This view is the output of a function that returns multiple views."
UNRECORDED = "A view was created in no_grad mode and is being modified inplace with grad mode enabled"


def leaf(t, *values):
    return t.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


# ---------------------------------------------------------------------------------------------------------------- views
VIEWS = """x[:1].expand(3, 4) | x.diagonal() | x.unfold(0, 2, 1) | x.narrow(0, 1, 2) | x.as_strided((2, 2), (1, 2))
x.movedim(0, 1) | x.moveaxis(0, 1) | x.T | x.mT | x.H | x.mH | x[:1].squeeze(0) | x.squeeze() | x.unsqueeze(0) | x.view(-1)
x.view_as(x) | x.reshape(-1) | x.reshape_as(x) | x.flatten() | x.ravel() | x.unflatten(1, (2, 2)) | x.permute(1, 0)
x.transpose(0, 1) | x.t() | x.swapaxes(0, 1) | x.swapdims(0, 1) | x.adjoint() | x.select(0, 1) | x[1] | x[1:] | x[None] | x[...]
x[:, 0] | x.expand_as(x) | x.hsplit(2)[0] | x.vsplit(3)[0] | x.tensor_split(2)[1] | t.atleast_3d(x) | x.T.unfold(1, 2, 1)
t.einsum('ij->ji', x) | t.movedim(x, (0, 1), (1, 0)) | x[0, 0] | x[1:][0].view(2, 2) | x.broadcast_to((2, 3, 4))"""
SEVERAL_VIEWS = "x.unbind(0)[1] | x.split(2)[0] | x.chunk(2)[0] | x.split_with_sizes([1, 2])[1] | x.unbind(1)[0][1:]"
ITSELF = "x.real | x.contiguous() | x.to(x.dtype) | +x | x.conj() | t.atleast_2d(x) | x.type(x.dtype) | x.float() | x.cpu()"
COPIES = """x.clone() | x.T.contiguous() | x.T.reshape(-1) | x[[0, 1]] | x[x > 1] | x * 1 | x.flip(0) | x.double() | t.cat([x])
t.column_stack([x]) | x.repeat(1, 1) | x[:3, :3].diag() | x.tril()"""


def texts(table):
    return table.replace("\n", " | ").split(" | ")


def evaluate(t, text, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(text, {"t": t, "x": x})


def bases(t):
    """Return a tensor without gradients, a leaf and a result."""
    x = t.ones(3, 4, requires_grad=True)
    return t.ones(3, 4), x, x * 1


@pytest.mark.parametrize("text", texts(VIEWS) + texts(SEVERAL_VIEWS))
def test_views(t, text):
    for x in bases(t):
        view = evaluate(t, text, x)
        assert view._is_view() and view._base is x and view.requires_grad == x.requires_grad
        with t.no_grad():
            if "expand(" in text or "broadcast" in text:
                with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single"):
                    view.add_(1)
                continue
            before = x._version
            if "unfold" in text and "T" not in text:
                view = view[::2]  # the windows overlap
            if "as_strided" not in text:
                view.add_(1)
                assert x._version == view._version == before + 1
                x.add_(1)
                assert x._version == view._version == before + 2


@pytest.mark.parametrize("text", texts(ITSELF))
def test_operations_that_return_the_tensor_itself(t, text):
    for x in bases(t):
        assert evaluate(t, text, x) is x


@pytest.mark.parametrize("text", texts(COPIES))
def test_copies(t, text):
    for x in bases(t):
        copied = evaluate(t, text, x)
        assert not copied._is_view() and copied._base is None
        with t.no_grad():
            copied.add_(1)
            assert x._version == 0 and (x == 1).all()


@pytest.mark.parametrize(
    "text", [text for text in texts(VIEWS) if not any(word in text for word in ("expand(", "broadcast", "unfold", "as_strided"))]
)  # their elements share memory
def test_a_write_to_a_view_gives_the_base_new_history(t, text):
    x = bases(t)[1]
    base = x * 1
    other, view = base[:, 1:], evaluate(t, text, base)
    view.mul_(2)
    assert base.grad_fn.name().endswith("CopySlices") and view.grad_fn is not None and base._version == 1
    (base.sum() + 10 * other.sum()).backward()
    expected = t.ones(3, 4)
    evaluate(t, text, expected).mul_(2)
    assert x.grad.tolist() == (expected * t.tensor([1.0, 11.0, 11.0, 11.0])).tolist()
    with pytest.raises(RuntimeError, match=VIEW_OF_LEAF):
        evaluate(t, text, x).mul_(2)


@pytest.mark.parametrize("text", texts(SEVERAL_VIEWS))
def test_views_of_operations_with_several_outputs_cannot_be_modified(t, text):
    for x in bases(t)[1:]:
        with pytest.raises(RuntimeError, match=SEVERAL):
            evaluate(t, text, x).mul_(2)
    plain = bases(t)[0]
    evaluate(t, text, plain).mul_(2)
    with pytest.raises(RuntimeError, match=SEVERAL):
        evaluate(t, text, plain).mul_(leaf(t, 2.0))


def test_views_of_another_dtype_share_the_memory(t):
    x = t.ones(2)
    bits = x.view(t.int32)
    bits.zero_()
    assert x.tolist() == [0, 0] and x._version == bits._version == 1


# ------------------------------------------------------------------------------------------------------ version counters
def test_every_write_increments_the_version(t):
    x, y = t.ones(3), t.ones(3)
    writes = [
        lambda: x.add_(1),
        lambda: x.mul_(y),
        x.zero_,
        lambda: x.fill_(1),
        lambda: x.copy_(y),
        x.exp_,
        lambda: x.__setitem__(0, 1.0),
        lambda: x.__setitem__([0, 1], 1.0),
        lambda: x.__setitem__(x > 0, 1.0),
        lambda: t.add(x, 1, out=x),
        x.normal_,
        x.uniform_,
        lambda: x.clamp_(0, 1),
        lambda: x.scatter_(0, t.tensor([0]), 1.0),
        lambda: x.index_add_(0, t.tensor([0]), t.ones(1)),
        lambda: x.masked_fill_(x > 0, 0.0),
        lambda: x.unsqueeze_(0),
        lambda: x.squeeze_(0),
        lambda: x.resize_(4),
        lambda: x.set_(y),
        lambda: x.random_(3),
        lambda: x.addcmul_(y, y),
        lambda: x.lerp_(y, 0.5),
    ]
    for i, write in enumerate(writes):
        write()
        assert x._version == i + 1, f"write {i}"
    assert y._version == 0
    x.resize_(x.shape)
    assert x._version == len(writes)


def test_tensors_that_share_a_version_counter(t):
    x = leaf(t).detach()
    detached, data, part = x.detach(), x.data, x[1:]
    x.add_(1)
    assert (x._version, detached._version, data._version, part._version) == (1, 1, 0, 1)
    detached.add_(1)
    assert (x._version, detached._version, data._version, part._version) == (2, 2, 0, 2)
    data.add_(1)
    assert (x._version, data._version) == (2, 1) and x.tolist() == [4, 5, 6]
    assert x.clone()._version == 0


def test_increment_version(t):
    increment = t.autograd.graph.increment_version
    x, y = t.ones(3), t.ones(3)
    increment(x)
    increment([x, y])
    assert (x._version, y._version, x[1:]._version) == (2, 1, 2)
    z = leaf(t)
    w = z * z
    increment(z)
    with pytest.raises(RuntimeError, match=MODIFIED):
        w.sum().backward()


SAVES_IT = ["x * x", "x.sin()", "x ** 3", "w / x", "x.log()", "x @ x", "t.where(x > 0, x, x * x)", "x * w", "x.norm()"]
# fmt: off
SAVES_IT_NOT = ["x * 2", "x + w", "x.sum()", "x.reshape(-1)", "x[1:]", "x[[0, 1]]", "t.cat([x, x])", "-x", "x - w", "x / 2",
                "x.mean()", "x.exp()", "x.sigmoid()", "x.tanh()", "x.sqrt()", "x.clone()", "x.expand(2, 3)", "x.flip(0)",
                "t.stack([x])",
                "x.softmax(0)", "x.cumsum(0)", "1 / x", "x.relu()", "x.index_select(0, t.tensor([0]))"]
# fmt: on


@pytest.mark.parametrize("text", SAVES_IT)
def test_a_saved_tensor_is_checked_when_it_is_used(t, text):
    a, w = leaf(t), leaf(t)
    x = a * 1
    y = eval(text, {"t": t, "x": x, "w": w})
    x.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


@pytest.mark.parametrize("text", SAVES_IT_NOT)
def test_only_what_the_formula_needs_is_saved(t, text):
    a, w = leaf(t), leaf(t)
    x = a * 1
    y = eval(text, {"t": t, "x": x, "w": w})
    x.add_(1)
    y.sum().backward()


@pytest.mark.parametrize("text", ["x.exp()", "x.sigmoid()", "x.tanh()", "x.sqrt()", "x.softmax(0)", "x.relu()"])
def test_a_saved_result_is_checked(t, text):
    y = eval(text, {"x": leaf(t)})
    with t.no_grad():
        y[0] = 1
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_a_write_to_data_is_not_detected(t):
    x = leaf(t)
    y = (x * x).sum()
    x.data.mul_(5)
    y.backward()
    assert x.grad.tolist() == [10, 20, 30]


def test_a_write_through_detach_is_detected(t):
    x = leaf(t)
    y = (x * x).sum()
    x.detach().mul_(5)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.backward()


# ---------------------------------------------------------------------------------------------------------------- leaves
LEAF_WRITES = ["x.add_(1)", "x.mul_(x)", "x.zero_()", "x.fill_(1)", "x.copy_(w)", "x.exp_()", "x.normal_()", "x.clamp_(0, 1)"]
PART_WRITES = ["x[0] = 1", "x[1:].add_(1)", "x[None].mul_(2)", "x.view(-1).zero_()", "x[0:1] = w[0]", "x.squeeze().exp_()"]


@pytest.mark.parametrize("text", LEAF_WRITES + PART_WRITES)
def test_leaves_cannot_be_modified(t, text):
    x, w = leaf(t), t.ones(3)
    with pytest.raises(RuntimeError, match=LEAF if text in LEAF_WRITES else VIEW_OF_LEAF):
        exec(text, {"x": x, "w": w})
    assert x.tolist() == [1, 2, 3]
    with t.no_grad():
        exec(text, {"x": x, "w": w})
    assert x.is_leaf and x.requires_grad and x._version == 1


def test_a_write_makes_a_tensor_part_of_the_graph(t):
    x, y = leaf(t), t.zeros(3)
    y[1:] = x[:2] * 2
    y.mul_(3)
    assert y.requires_grad and not y.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [6, 6, 0]


def test_requires_grad_of_views_and_results(t):
    x = t.ones(3)
    part = x[1:].requires_grad_()
    assert part.is_leaf and not x.requires_grad
    with pytest.raises(RuntimeError, match=VIEW_OF_LEAF):
        part.add_(1)
    (part * part).sum().backward()
    assert part.grad.tolist() == [2, 2]
    y = leaf(t) * 1
    y.requires_grad_()
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        y.requires_grad_(False)
    with pytest.raises(RuntimeError, match="only Tensors of floating point"):
        t.ones(2).long().requires_grad_()


def test_detach_in_place(t):
    x = leaf(t)
    y = x * 1
    part = y[1:]
    y.retain_grad()
    y.detach_()
    assert y.is_leaf and not y.requires_grad and part.requires_grad
    with pytest.raises(RuntimeError, match=r"Can't detach views in-place. Use detach\(\) instead"):
        part.detach_()
    part.sum().backward()
    assert x.grad.tolist() == [0, 1, 1]


def test_assigning_data(t):
    x = leaf(t)
    y = x.exp().sum()
    before = id(x)
    x.data = t.zeros(3)
    assert id(x) == before and x.is_leaf and x.requires_grad and x.tolist() == [0, 0, 0]
    y.backward()
    assert x.grad[0].item() == pytest.approx(np.e)
    if t is gradlab:  # torch still expects gradients of the old shape
        x.grad = None
        x.data = t.ones(5)
        (x * x).sum().backward()
        assert x.grad.shape == (5,)
    with pytest.raises(RuntimeError, match="data set to a tensor that requires gradients must be floating point or complex"):
        x.data = t.ones(3).long()
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got int"):
        x.data = 3


def test_copies_keep_requires_grad(t):
    x = leaf(t)
    for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), copy.deepcopy([x, x])[0]):
        assert twin is not x and twin.requires_grad and twin.is_leaf and twin.tolist() == [1, 2, 3]
        twin.detach().add_(1)
    assert x.tolist() == [1, 2, 3] and x._version == 0
    with pytest.raises(RuntimeError, match=r"nly Tensors created explicitly by the user \(graph leaves\) support the deepcopy"):
        copy.deepcopy(x * 2)


# ------------------------------------------------------------------------------------------------------- views and modes
def test_views_made_without_recording(t):
    x = leaf(t)
    y = x * 1
    with t.no_grad():
        part, of_leaf, several = y[1:], x[1:], y.unbind()[0]
    for view in (part, of_leaf, several):
        with pytest.raises(RuntimeError, match=UNRECORDED):
            view.mul_(2)
    with t.no_grad():
        part.mul_(2)
        of_leaf.mul_(2)
    assert x.tolist() == [1, 4, 6] and y.tolist() == [1, 4, 6]
    plain = t.ones(3)
    with t.no_grad():
        part = plain[1:]
    part.mul_(2)
    with pytest.raises(RuntimeError, match=UNRECORDED):
        part.mul_(x[1:])


def test_views_and_writes_under_no_grad(t):
    x = leaf(t)
    y = x * 1
    with t.no_grad():
        y[1:].mul_(2)
    y.sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


# -------------------------------------------------------------------------------------------------------------- gradients
def test_barlow_twins(t):
    """The Barlow Twins loss with in-place operations, as its authors write it, compared with one formula."""
    rng = np.random.default_rng(0)
    a, b = (t.tensor(rng.standard_normal((4, 3)), requires_grad=True) for _ in range(2))
    c = a.T @ b
    c.div_(4)
    on = t.diagonal(c).add_(-1).pow_(2).sum()
    off = c.flatten()[:-1].view(2, 4)[:, 1:].flatten().pow_(2).sum()
    (on + 0.1 * off).backward()
    found = a.grad.clone(), b.grad.clone()
    a.grad = b.grad = None
    plain = a.T @ b / 4
    eye = t.eye(3, dtype=t.float64)
    (((plain - eye) ** 2) * (eye + 0.1 * (1 - eye))).sum().backward()
    for f, x in zip(found, (a, b), strict=True):
        np.testing.assert_allclose(f.numpy(), x.grad.numpy(), atol=1e-12)


def test_views_of_views_are_refreshed(t):
    x = leaf(t)
    base = x * 1
    first = base[:2]
    second = first[1:]
    base.mul_(2)
    assert first.grad_fn is not None and first.tolist() == [2, 4]
    (first.sum() + 10 * second.sum()).backward()
    assert x.grad.tolist() == [2, 22, 0]


def test_a_base_requires_gradients_after_a_write_to_its_view(t):
    x, base = leaf(t), t.zeros(2, 3)
    other = base.T
    base[0].add_(x)
    assert base.requires_grad and other.requires_grad
    (other * other).sum().backward()
    assert x.grad.tolist() == [2, 4, 6]


def test_retain_grad_is_of_the_last_version(t):
    x = leaf(t)
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    assert y.grad.tolist() == [1, 1, 1] and x.grad.tolist() == [6, 6, 6] and y.retains_grad
    x.retain_grad()
    assert not x.retains_grad


def test_setitem(t):
    """For every kind of index, the assigned values and the rest of the tensor receive their gradients."""
    for index in (
        0,
        slice(1, 3),
        [2, 0],
        (slice(None), 1),
        (0, [1, 2]),
        None,
        Ellipsis,
        (Ellipsis, 0),
        [True, False, True],
        ([0, 1], [1, 2]),
        (slice(0, 3, 2), slice(1, None)),
    ):
        x, v = t.ones(3, 4, dtype=t.float64, requires_grad=True), t.tensor(3.0, dtype=t.float64, requires_grad=True)
        y = x * 2
        place = t.tensor(index) if index == [True, False, True] else index
        y[place] = v
        (y * y).sum().backward()
        expected = np.full((3, 4), 8.0)
        expected[index] = 0
        assert x.grad.tolist() == expected.tolist() and v.grad.item() == 6 * (expected == 0).sum()


def test_a_modified_view_makes_no_cycle():
    gc.disable()
    try:
        x = leaf(gradlab)
        y = x * 1
        part = y[1:]
        part.mul_(2)
        seen = [weakref.ref(z) for z in (y, part)]
        del y, part
        assert [ref() for ref in seen] == [None, None]
    finally:
        gc.enable()


# ---------------------------------------------------------------------------------------- views that lose their history
def views_of_functions(t, several):
    class Part(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return (x[:2], x[1:]) if several else x[:2]

        @staticmethod
        def backward(ctx, g, h=None):
            return t.cat([g * 100, t.zeros(1)])

    return Part


@pytest.mark.parametrize("several", [False, True])
def test_a_view_of_a_custom_function_has_no_history_after_a_write_to_its_base(t, several):
    x = leaf(t)
    base = x * 1
    made = views_of_functions(t, several).apply(base)
    part = made[0] if several else made
    later = part[:1]
    base.mul_(2)
    text = "is a view and its base or another view of its base has been modified inplace. This view "
    for view in (part, later):
        assert view.requires_grad and "grad_fn=<Invalid>" in repr(view)
        with pytest.raises(RuntimeError, match=text):
            view.grad_fn  # noqa: B018
        with pytest.raises(RuntimeError, match=text):
            view.sum().backward()
        assert not view.detach().requires_grad
    assert part.tolist() == [2, 4]
    with t.no_grad():
        assert (part * 2).tolist() == [4, 8]
    base.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_a_view_without_history_is_invalid_after_its_base_gets_history(t):
    for mode, name in ((t.no_grad, "no_grad mode"), (t.inference_mode, "inference mode")):
        x, base = leaf(t), t.ones(3)
        with mode():
            part = base[:2]
        base.add_(1)
        assert (part * x[:2]).requires_grad  # a write without history does not invalidate it
        base.mul_(x)
        with pytest.raises(RuntimeError, match=f"^A view was created in {name} and its base or another view of it"):
            (part * x[:2]).sum().backward()
        assert part.tolist() == [2, 4] and not part.detach().requires_grad


def test_a_view_can_be_the_leaf(t):
    base = t.ones(3)
    part = base[:2]
    part.requires_grad_()
    shown = part.view(2, 1)
    for write in (lambda: shown.add_(1), lambda: shown[0].mul_(2), lambda: shown.__setitem__(0, 5.0), lambda: part.add_(1)):
        with pytest.raises(RuntimeError, match=f"^{VIEW_OF_LEAF}"):
            write()
    with t.no_grad():
        shown.add_(1)
    (part * part).sum().backward()
    assert part.is_leaf and part.grad.tolist() == [4, 4] and base.tolist() == [2, 2, 1] and not base.requires_grad


OVERLAPPING = {  # an in-place write, and its result if the operands are copies
    "its row": (lambda t: t.mul_(t[0]), lambda t: t * t[0]),
    "its data": (lambda t: t.mul_(t.data), lambda t: t * t.data.clone()),
    "two rows": (lambda t: t.addcmul_(t[1], t[2]), lambda t: t.addcmul(t[1], t[2])),
    "lerp": (lambda t: t.lerp_(t[2], t[1]), lambda t: t.lerp(t[2], t[1])),
    "div": (lambda t: t.div_(t[0]), lambda t: t / t[0]),
    "reversed": (lambda t: t.mul_(t.T.T), lambda t: t * t.clone()),
    "clamp": (lambda t: t.clamp_(max=t[1]), lambda t: t.clamp(max=t[1])),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_operands_that_share_the_memory_being_modified(name):
    """Derivatives of any order are the same as with copies. Torch refuses some of these, and is silently wrong in others."""
    write, plain = OVERLAPPING[name]
    found = []
    for in_place in (True, False):
        x = gradlab.tensor(np.random.default_rng(0).uniform(0.5, 1.5, (3, 4)), requires_grad=True)
        t = x * 1
        if in_place:
            write(t)
        else:
            t = plain(t)
        (g,) = gradlab.autograd.grad((t * t).sum(), x, create_graph=True)
        (h,) = gradlab.autograd.grad((g * g).sum(), x)
        found.append([t.tolist(), g.tolist(), h.tolist()])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
