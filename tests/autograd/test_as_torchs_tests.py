"""Behaviours that are checked by torch's own autograd tests, and by no other test here. Run on both libraries."""

from __future__ import annotations

import pytest


def leaf(t, *values):
    return t.tensor(values, dtype=t.float64, requires_grad=True)


def values(x):
    return None if x is None else x.detach().numpy().tolist()


# ---------------------------------------------------------------------------------------------------------- forward mode
@pytest.mark.parametrize("recorded", [False, True])
def test_the_tangent_that_was_packed_is_unpacked(t, recorded):
    fw = t.autograd.forward_ad
    with fw.dual_level():
        x, u = t.ones(2), t.ones(2, requires_grad=recorded)
        dual = fw.make_dual(x, u)
        primal, tangent = fw.unpack_dual(dual)
        assert tangent is u and dual._is_view() and dual._base is x and primal._is_view() and primal._base is x
        assert fw.unpack_dual(dual[0]).tangent._base is u
        if recorded:
            with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
                dual.mul_(2)
        else:
            dual.mul_(2)
            assert values(u) == values(x) == [2, 2]


# -------------------------------------------------------------------------------------------------------- inference mode
def test_a_view_of_a_normal_tensor_keeps_requires_grad(t):
    x = leaf(t, 1.0, 2.0)
    a = x.clone()
    with t.inference_mode():
        v, w, n = a.view(2, 1), x[0], t.ones(2)
        assert v.requires_grad and w.requires_grad and v[0].requires_grad and not (a * 2).requires_grad
        assert not v.is_inference() and v._is_view() and v.is_leaf and v.grad_fn is None
        assert not n.view(2, 1)._is_view() and n.view(2, 1)._base is None
    assert v.requires_grad and n.view(2, 1).is_inference() and not n.view(2, 1)._is_view()
    (v * 2).sum().backward()
    assert x.grad is None
    with pytest.raises(RuntimeError, match="A view was created in inference mode and is being modified inplace in normal mode"):
        v.mul_(2)


@pytest.mark.parametrize("change", [lambda a: a.add_(1), lambda a: a.transpose_(0, 1), lambda a: a.squeeze_(), lambda a: a.t_()])
@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_an_unrecorded_view_is_invalid_after_a_write_to_its_base(t, change, mode):
    a = leaf(t, [1.0, 2.0], [3.0, 4.0]).clone()
    with getattr(t, mode)():
        v = a.view(4)
    change(a)
    with pytest.raises(
        RuntimeError,
        match=rf"A view was created in {mode.removesuffix('_mode')}.* and its base or another "
        r"view of its base has been modified inplace",
    ):
        _ = v.grad_fn
    assert "grad_fn=<Invalid>" in repr(v)


def test_the_version_of_an_inference_tensor(t):
    with t.inference_mode():
        x = t.ones(2)
        t.autograd.graph.increment_version(x)
    t.autograd.graph.increment_version(x)
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        _ = x._version


# ----------------------------------------------------------------------------------------------------------------- hooks
def test_hooks_of_tensors_without_gradients_are_never_called(t):
    x, y, seen = t.ones(2), leaf(t, 1.0, 2.0), []
    x._backward_hooks = {0: seen.append}
    (y * x).sum().backward()
    assert not seen and values(y.grad) == [1, 1]


def two_outputs(t, *, materialize=True):
    class Two(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, g, h):
            return 2 * h if g is None else g + 2 * h

    return Two.apply


@pytest.mark.parametrize("materialize", [True, False])
def test_a_hook_receives_none_if_only_another_output_has_a_gradient(t, materialize):
    x, seen = leaf(t, 1.0, 2.0), []
    a, b = two_outputs(t, materialize=materialize)(x)
    handle = a.register_hook(lambda g: seen.append(("a", values(g))))
    b.register_hook(lambda g: seen.append(("b", values(g))))
    b.sum().backward(retain_graph=True)
    assert sorted(seen) == [("a", None), ("b", [1, 1])] and values(x.grad) == [2, 2]
    handle.remove()
    a.register_hook(lambda g: t.ones(2, dtype=t.float64))
    with pytest.raises(RuntimeError, match="can't replace a None gradient with a non-None value"):
        b.sum().backward()


def test_hooks_from_before_a_write_belong_to_the_old_value(t):
    seen = []
    base = leaf(t, 1.0).clone()
    view, other = base[:], base[:]
    view.register_hook(lambda g: seen.append("view"))
    other.register_hook(lambda g: seen.append("other"))
    read = view * 5
    view.mul_(2)
    assert other.grad_fn is not None
    other.register_hook(lambda g: seen.append("other, now"))
    (view + other).sum().backward(retain_graph=True)
    assert seen == ["other, now"]
    read.sum().backward()
    assert seen == ["other, now", "view"]  # the graph recorded before the write still has the hook


def test_hooks_of_a_node_run_where_its_tensor_is_an_input(t):
    x, seen = leaf(t, 1.0), []
    y = x * 2
    y.register_hook(lambda g: seen.append("tensor") or g * 3)
    y.grad_fn.register_prehook(lambda g: seen.append("before") or (g[0] * 7,))
    y.grad_fn.register_hook(lambda into, out: seen.append(("after", into, values(out[0]))))
    z = y.clone()
    z.backward(inputs=(y,), retain_graph=True)
    assert seen == ["tensor", "before", ("after", (None, None), [21])] and values(y.grad) == [3] and x.grad is None
    seen.clear()
    assert values(t.autograd.grad(z, y, retain_graph=True)[0]) == [3] and seen == ["tensor"]


# ---------------------------------------------------------------------------------------------------------- freed tensors
INDEXED = {
    "list": lambda t, b: b[[1, 1]],
    "tensor": lambda t, b: b[t.tensor([1, 1])],
    "mask": lambda t, b: b[b.detach() > 0],
    "gather": lambda t, b: b.gather(0, t.tensor([1])),
    "index_select": lambda t, b: b.index_select(0, t.tensor([1])),
    "take": lambda t, b: b.take(t.tensor([1])),
    "masked_fill": lambda t, b: b.masked_fill(b.detach() > 1, 0),
    "scatter": lambda t, b: b.scatter(0, t.tensor([0]), b[1:2]),
    "sort": lambda t, b: b.sort()[0],
    "max": lambda t, b: b.max(0)[0],
    "topk": lambda t, b: b.topk(1)[0],
    "index_add": lambda t, b: b.index_add(0, t.tensor([0]), b[1:2]),
    "embedding": lambda t, b: t.nn.functional.embedding(t.tensor([0]), b.view(3, 1)),
}
KEPT = {
    "slice": lambda t, b: b[1:],
    "select": lambda t, b: b[1],
    "flip": lambda t, b: b.flip(0),
    "cat": lambda t, b: t.cat([b, b]),
    "unbind": lambda t, b: b.unbind()[1],
    "tril": lambda t, b: b.view(1, 3).tril(),
    "roll": lambda t, b: b.roll(1),
    "repeat": lambda t, b: b.repeat(2),
    "copy_": lambda t, b: t.zeros(3, dtype=t.float64).copy_(b),
}


def copy_elements(t, b, index):
    c = t.zeros(3, dtype=t.float64)
    c[index] = b[index]
    return c


INDEXED |= {
    "written by a list": lambda t, b: copy_elements(t, b, [1, 2]),
    "written by a slice": lambda t, b: copy_elements(t, b, slice(1, None)),
}


@pytest.mark.parametrize("of", INDEXED.values(), ids=INDEXED)
def test_a_second_backward_through_indices_is_refused(t, of):
    b = leaf(t, 1.0, 2.0, 3.0)
    y = of(t, b)
    y.backward(t.ones_like(y), retain_graph=True)
    y.backward(t.ones_like(y))
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward(t.ones_like(y))


@pytest.mark.parametrize("of", KEPT.values(), ids=KEPT)
def test_a_second_backward_works_if_nothing_is_saved(t, of):
    b = leaf(t, 1.0, 2.0, 3.0)
    y = of(t, b)
    for _ in range(2):
        y.backward(t.ones_like(y))
    assert b.grad is not None


# ------------------------------------------------------------------------------------- custom functions and checkpoints
def test_non_tensors_cannot_be_saved(t):
    class Saves(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, 3)
            return x * 1

    with pytest.raises(TypeError, match="save_for_backward can only save variables, but argument 1 is of type int"):
        Saves.apply(leaf(t, 1.0))
    assert values(Saves.apply(t.ones(1))) == [1]
    with t.no_grad():
        assert values(Saves.apply(leaf(t, 1.0))) == [1]


def test_a_checkpoint_returns_each_tensor_once_per_backward(t):
    seen = []

    class Keeps(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            seen.extend(ctx.saved_tensors)
            return g, None

    class Twice(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.extend(ctx.saved_tensors)
            if again:
                seen.extend(ctx.saved_tensors)
            return g * 2

    plain = t.ones(1)
    Keeps.apply(leaf(t, 1.0), plain).backward()
    t.utils.checkpoint.checkpoint(Keeps.apply, leaf(t, 1.0), plain, use_reentrant=False).backward()
    assert seen[0] is plain and seen[1] is plain  # a tensor without history is returned as the same object
    seen.clear()
    x, again = leaf(t, 1.0), False
    y = t.utils.checkpoint.checkpoint(Twice.apply, x, use_reentrant=False)
    for _ in range(2):
        y.sum().backward(retain_graph=True)
    assert values(x.grad) == [4] and all(s is not x for s in seen)
    again = True
    with pytest.raises(t.utils.checkpoint.CheckpointError, match="already unpacked once"):
        y.sum().backward()


# ---------------------------------------------------------------------------------------------------------------- names
def test_attributes_of_nodes_match_torch(t):
    x = leaf(t, 1.0)
    node = (x**2).grad_fn
    end = node.next_functions[0][0]
    assert repr(type(node)) == "<class 'PowBackward0'>" and repr(type(end)) == "<class 'AccumulateGrad'>"
    assert repr(node).startswith("<PowBackward0 object at 0x")
    shown = {name for name in dir(node) if not name.startswith("__")}
    assert shown - {"_register_hook_dict", "_set_sequence_nr", "requires_grad"} == {
        "_input_metadata",
        "_raw_saved_self",
        "_saved_exponent",
        "_saved_self",
        "_sequence_nr",
        "metadata",
        "name",
        "next_functions",
        "register_hook",
        "register_prehook",
    }


# ------------------------------------------------------------------------------------------------------- a second backward
SAVED_NOTHING = {
    "fmod of a number": lambda t, x, c: x.fmod(2.0),
    "remainder of a number": lambda t, x, c: x.remainder(2),
    "%": lambda t, x, c: x % 2.0,
    "fmod": lambda t, x, c: t.fmod(x, c),
    "remainder": lambda t, x, c: t.remainder(x, c),
    "addmm": lambda t, x, c: t.addmm(x, c, c),
    "baddbmm": lambda t, x, c: t.baddbmm(x, c[None], c[None]),
    "addcmul": lambda t, x, c: t.addcmul(x, c, c),
    "linear": lambda t, x, c: t.nn.functional.linear(c, c, x[0]),
}
SAVED_ANYWAY = {
    "fmod by x": lambda t, x, c: t.fmod(c, x),
    "remainder by x": lambda t, x, c: t.remainder(x, x),
    "*": lambda t, x, c: x * c,
    "addcdiv": lambda t, x, c: t.addcdiv(x, c, c),
    "copysign": lambda t, x, c: t.copysign(c, x),
    "conv1d": lambda t, x, c: t.nn.functional.conv1d(c[None], c[:, :, None], x[0]),
    "layer_norm": lambda t, x, c: t.nn.functional.layer_norm(c, (2,), c[0], x[0]),
    "group_norm": lambda t, x, c: t.nn.functional.group_norm(c[None], 2, c[0], x[0]),
}


@pytest.mark.parametrize("name", [*SAVED_NOTHING, *SAVED_ANYWAY])
def test_graphs_without_saved_tensors_can_be_differentiated_again(t, name):
    x, c = t.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True), t.tensor([[2.0, 1.5], [4.0, 3.0]])
    y = (SAVED_NOTHING | SAVED_ANYWAY)[name](t, x, c)
    y.sum().backward()
    once = x.grad.clone()
    if name in SAVED_ANYWAY:
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            y.sum().backward()
    else:
        y.sum().backward()
        assert values(x.grad) == values(2 * once)


# -------------------------------------------------------------------------------------------- one node with several outputs
JOINT_CALLS = [
    *((name, kw) for name in ("var_mean", "std_mean") for kw in ({}, {"dim": 1}, {"dim": 0, "keepdim": True, "correction": 0})),
    *(("aminmax", kw) for kw in ({}, {"dim": 1}, {"dim": 0, "keepdim": True})),
]


@pytest.mark.parametrize(("name", "kw"), JOINT_CALLS)
def test_two_results_have_one_node(t, name, kw):
    x = leaf(t, [1.0, 2.5, 4.0], [0.5, -1.0, 3.0])
    a, b = getattr(t, name)(x, **kw)
    node, calls = a.grad_fn, []
    assert node is b.grad_fn and (a.output_nr, b.output_nr) == (0, 1)
    assert node.name() == f"{name.title().replace('_', '')}Backward0"
    assert node.next_functions == ((x.sum().grad_fn.next_functions[0][0], 0),) and (a * 2).grad_fn.next_functions[0] == (node, 0)
    assert (b * 2).grad_fn.next_functions[0] == (node, 1) and not a._is_view() and len(node._input_metadata) == 2
    assert node._saved_self is x and node._saved_keepdim is kw.get("keepdim", False)
    if name == "std_mean":
        assert node._saved_result0.grad_fn is node and values(node._saved_result0) == values(a)
    if name == "aminmax":
        assert node._saved_min.output_nr == 0 and node._saved_max.output_nr == 1 and values(node._saved_max) == values(b)
    node.register_hook(lambda into, out: calls.append((len(into), [values(g) for g in out])))
    node.register_prehook(lambda out: calls.append([g is None for g in out]))
    a.sum().backward(retain_graph=True)
    ones = values(t.ones_like(a))
    assert calls == [[False, True], (1, [ones, None])]
    b.retain_grad()
    (a.sum() + 3 * b.sum()).backward(retain_graph=True)
    assert calls[2:] == [[False, False], (1, [ones, values(3 * t.ones_like(a))])] and values(b.grad) == values(3 * t.ones_like(b))
    b.sum().backward()
    for again in (a, b):  # a backward from either result frees the graph
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            again.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        _ = node._saved_self


def joined_gradients(t, name, kw, apart=False):
    """Return first, second and batched derivatives, and gradients with respect to the results."""
    x = leaf(t, [1.0, 2.5, 4.0], [0.5, -1.0, 3.0])
    if apart:  # the same results, computed by two functions
        dim = {k: v for k, v in kw.items() if k != "correction"}
        first, second = {"var_mean": (t.var, t.mean), "std_mean": (t.std, t.mean), "aminmax": (t.amin, t.amax)}[name]
        a, b = first(x, **kw), second(x, **dim)
    else:
        a, b = getattr(t, name)(x, **kw)
    y = (a * a * b.exp()).sum() + (a + b).sin().sum()
    (g,) = t.autograd.grad(y, x, create_graph=True)
    found = [g, *t.autograd.grad((g * g).sum(), (x, a, b), retain_graph=True)]
    found += t.autograd.grad(
        (a, b), x, (t.stack([a, -a, 2 * a]).detach(), t.stack([b, b, -b]).detach()), is_grads_batched=True, retain_graph=True
    )
    for one in (a, b):
        found += t.autograd.grad(one, x, t.ones_like(one) * 0.5, retain_graph=True)
    return [values(part) for part in found]


@pytest.mark.parametrize(("name", "kw"), JOINT_CALLS)
def test_the_gradients_of_two_results_with_one_node(t, name, kw):
    joint, apart = joined_gradients(t, name, kw), joined_gradients(t, name, kw, apart=True)
    assert len(joint) == len(apart) == 7
    for one, other in zip(joint, apart, strict=True):
        assert t.allclose(t.tensor(one, dtype=t.float64), t.tensor(other, dtype=t.float64), rtol=1e-12, atol=1e-12)
    x = leaf(t, [1.0, 2.5, 4.0], [0.5, -1.0, 3.0])
    assert t.autograd.gradcheck(lambda x: getattr(t, name)(x, **kw), x, check_forward_ad=True, check_batched_grad=True)
    assert t.autograd.gradgradcheck(lambda x: getattr(t, name)(x, **kw), x, check_batched_grad=True)


def test_the_tangents_of_two_results_with_one_node(t):
    fw = t.autograd.forward_ad
    x, u = leaf(t, [1.0, 2.5], [0.5, -1.0]), t.tensor([[1.0, -2.0], [0.0, 3.0]], dtype=t.float64)
    with fw.dual_level():
        dual = fw.make_dual(x, u)
        v, m = t.std_mean(dual, dim=1)
        _, dv = fw.unpack_dual(v)
        _, dm = fw.unpack_dual(m)
        (g,) = t.autograd.grad(v.sum(), x, create_graph=True)  # reads the saved result, which has a tangent
        dg = fw.unpack_dual(g).tangent
        (whole,) = t.autograd.grad(dv.sum() + dm.sum(), x, retain_graph=True)
    # for two numbers with the difference d, s = |d|/√2; here d is 1.5 and -1.5, with tangents -3 and 3
    assert values(dm) == [-0.5, 1.5] and values(dv) == pytest.approx([-3 / 2**0.5, -3 / 2**0.5], rel=1e-12)
    h = 1e-6
    z = (x + h * u).detach().requires_grad_()
    (ahead,) = t.autograd.grad(t.std(z, dim=1).sum(), z)
    assert t.allclose(dg, (ahead - t.autograd.grad(t.std(x, dim=1).sum(), x)[0]) / h, atol=1e-5)
    assert t.allclose(whole, dg, atol=1e-12)  # both are the Hessian times u; the mean's is 0


def test_a_write_to_one_of_two_results_is_detected(t):
    x = leaf(t, [1.0, 2.5], [0.5, -1.0])
    s, m = t.std_mean(x, dim=1)
    m.mul_(2)  # no node saved it
    assert m.grad_fn.name() == "MulBackward0" and m.grad_fn.next_functions[0] == (s.grad_fn, 1)
    m.sum().backward(retain_graph=True)
    assert values(x.grad) == [[1, 1], [1, 1]]
    s.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        s.sum().backward()


def test_hooks_unpack_the_saved_tensors_of_a_node_with_two_results(t):
    x, packed = leaf(t, [1.0, 2.5], [0.5, -1.0]), []

    def pack(saved):
        packed.append(saved.detach().clone())
        return len(packed) - 1

    with t.autograd.graph.saved_tensors_hooks(pack, lambda at: packed[at]):
        s, m = t.std_mean(x, dim=1)
    assert len(packed) == 2
    packed[0].fill_(0.0), packed[1].fill_(1.0)
    (s.sum() + m.sum()).backward()
    assert values(x.grad) == [[0.5, 0.5], [0.5, 0.5]]  # with the values from the hooks, the deviations are 0


# ---------------------------------------------------------------------------------------------------- once_differentiable
def describe_graph(fn):
    return "None" if fn is None else f"{type(fn).__name__}({', '.join(describe_graph(below) for below, _ in fn.next_functions)})"


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True:UserWarning")
def test_the_graph_of_once_differentiable_results(t):
    class Mixed(t.autograd.Function):
        @staticmethod
        def forward(ctx, a, p, b):
            ctx.p = p
            ctx.save_for_backward(a, b)
            return a + p * b + a * b

        @staticmethod
        @t.autograd.function.once_differentiable
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g + g * b, None, g * ctx.p + g * a

    x, y, w = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0), leaf(t, 5.0, 6.0)
    Mixed.apply(x, 2, y).backward(t.ones(2, dtype=t.float64), create_graph=True)
    assert x.grad.grad_fn is None and not x.grad.requires_grad and values(x.grad) == [4, 5]
    gx, gy = t.autograd.grad((Mixed.apply(x, 2, y) * w).sum(), (x, y), create_graph=True)
    assert gx.grad_fn is gy.grad_fn and (gx.output_nr, gy.output_nr) == (0, 2) and values(gy) == [15, 24]
    assert describe_graph(gx.grad_fn) == "Error(AccumulateGrad(), None, AccumulateGrad())"
    assert gx.grad_fn.name() == "torch::autograd::Error" and repr(type(gx.grad_fn)) == "<class 'Error'>"
    assert "grad_fn=<Error>" in repr(gx)
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked with @once_differentiable"):
        (gx * w).sum().backward()
    x.grad = None
    Mixed.apply(x, 2, y).backward(t.ones(2, dtype=t.float64, requires_grad=True), create_graph=True)
    assert describe_graph(x.grad.grad_fn) == "CopyBackwards(None, Error(AccumulateGrad(), None, AccumulateGrad()))"


def test_once_differentiable_results_have_no_partial_gradients():
    gl = pytest.importorskip("gradlab")

    class Double(gl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @gl.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * 2

    x, w = leaf(gl, 1.0), leaf(gl, 3.0)
    (g,) = gl.autograd.grad(Double.apply(x) * w, x, create_graph=True)  # g is 2w, so (g w)' is 4w; torch returns g
    with pytest.raises(RuntimeError, match=r"trying to differentiate twice .*the backward of Double"):
        gl.autograd.grad((g * w).sum(), w)


# -------------------------------------------------------------------------------------------------------------- names of nodes
def test_torchs_own_nodes_have_its_namespace(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 1
    y[0] = x[1]
    assert y.grad_fn.name() == "torch::autograd::CopySlices" and repr(type(y.grad_fn)) == "<class 'CopySlices'>"
    assert "grad_fn=<CopySlices>" in repr(y) and repr(y.grad_fn).startswith("<CopySlices object at 0x")
    end = y.grad_fn.next_functions[0][0].next_functions[0][0]
    assert end.name() == "torch::autograd::AccumulateGrad" and repr(end).startswith("<AccumulateGrad object at 0x")
    assert (x * x).grad_fn.name() == "MulBackward0"


def test_volatile_is_gone(t):
    x = leaf(t, 1.0)
    with pytest.warns(UserWarning, match=r"volatile was removed \(Variable\.volatile is always False\)"):
        assert x.volatile is False
    with pytest.warns(UserWarning, match=r"volatile was removed and now has no effect\. Use `with \w+\.no_grad\(\):` instead\."):
        x.volatile = True
    assert x.requires_grad and (x * 2).requires_grad and "volatile" not in dir(x) and "volatile" not in getattr(x, "__dict__", {})


@pytest.mark.parametrize("name", ["var_mean", "std_mean", "aminmax"])
def test_two_results_of_half_precision(t, name):
    x = t.tensor([[1.0, 2.5, 4.0], [0.5, -1.0, 3.0]], dtype=t.float16, requires_grad=True)
    a, b = getattr(t, name)(x, dim=1)
    assert a.grad_fn is b.grad_fn and a.dtype is b.dtype is t.float16
    (a.sum() + 3 * b.sum()).backward()
    exact = leaf(t, [1.0, 2.5, 4.0], [0.5, -1.0, 3.0])
    a, b = getattr(t, name)(exact, dim=1)
    (a.sum() + 3 * b.sum()).backward()
    assert x.grad.dtype is t.float16 and t.allclose(x.grad.double(), exact.grad, rtol=2e-3, atol=2e-3)


# -------------------------------------------------------------------------------------------------- out= of another shape
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_a_leaf_resized_by_out(t):
    o = t.ones(2, 3, requires_grad=True)
    with t.no_grad():
        t.add(t.arange(4.0), 0, out=o)
    (o * o).sum().backward()
    assert o.is_leaf and values(o.grad) == [0, 2, 4, 6]


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_a_result_resized_by_out(t):
    x = t.ones(2, 3, requires_grad=True)
    o = x * 2
    with t.no_grad():
        t.add(t.arange(4.0), 0, out=o)
    with pytest.raises(
        RuntimeError, match=r"returned an invalid gradient at index 0 - got \[4\] but expected shape compatible with"
    ):
        o.sum().backward()
