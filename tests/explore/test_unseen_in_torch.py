"""Recording does not change a PyTorch program: its modes, hooks, compiler and profiler see no operation of gradlab. Tensors of
every kind are described correctly."""

import gc
import threading
import warnings
import weakref
from contextlib import nullcontext

import pytest

import gradlab as gl
from gradlab.diagnose.faults import FaultWarning
from gradlab.explore.trace.recorder import Recorder

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from leftovers import find_torch_leftovers  # noqa: E402
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from waiting import TIMEOUT_SECONDS  # noqa: E402


def same_warnings(program):
    """Return the results and warnings of a recorded program, after checking that they are the same without recording."""
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program()  # triggers warnings that torch gives once in a process
    for recorded in (False, True):
        torch.manual_seed(0)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            if recorded:
                with gl.tracing() as traced:
                    result = program()
            else:
                result, traced = program(), None
        results.append((result, [str(one.message)[:80] for one in warned]))
    (plain, before), (seen, after) = results
    assert before == after
    assert [one.tolist() for one in plain] == [one.tolist() for one in seen]
    return traced


# ------------------------------------------------------------------------------------------------------- kinds of tensors
def sparse():
    a, b = torch.eye(50).to_sparse().requires_grad_(), torch.randn(50, 50, requires_grad=True)
    torch.sparse.mm(a, b).sum().backward()
    return a.grad.to_dense(), b.grad


def sparse_csr():
    a, b = torch.eye(50).to_sparse_csr().requires_grad_(), torch.randn(50, 50, requires_grad=True)
    (a @ b).sum().backward()
    return a.grad.to_dense(), b.grad


def nested_tensor():
    n = torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)], requires_grad=True)
    (n * 2).to_padded_tensor(0.0).sum().backward()
    return (n.grad.to_padded_tensor(0.0),)


def jagged_tensor():
    parts = [torch.randn(2, 3), torch.randn(4, 3)]
    n = torch.nested.nested_tensor(parts, requires_grad=True, layout=torch.jagged)
    (n * 2).to_padded_tensor(0.0).sum().backward()
    return (n.grad.to_padded_tensor(0.0),)


def mkldnn():
    w = torch.randn(30, 4, requires_grad=True)
    (w.to_mkldnn().to_dense() * 2).sum().backward()
    return (w.grad,)


def meta():
    w = torch.randn(4, 4, requires_grad=True, device="meta")
    (w * 2).sum().backward()
    return ()


def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        w = torch.randn(4, 4, requires_grad=True)
        (w * 2).sum().backward()
    return ()


def fake_and_real():
    from torch._subclasses.fake_tensor import FakeTensorMode

    real = torch.randn(4, 4, requires_grad=True)
    with FakeTensorMode(allow_non_fake_inputs=True):
        (torch.randn(4, 4) * real).sum().backward()
    return ()


def inference():
    w = torch.randn(4, 5, requires_grad=True)
    with torch.inference_mode():
        shift = torch.randn(4, 5)
    (w + shift).sum().backward()
    return (w.grad,)


def inference_that_requires_grad():
    with torch.inference_mode():
        w = torch.randn(4, 5, requires_grad=True)
    v = torch.randn(4, 5, requires_grad=True)
    (w + v).sum().backward()
    return (v.grad,)


def float8():
    w = torch.randn(4, 30, requires_grad=True)
    (w.to(torch.float8_e4m3fn).float() * w).sum().backward()
    return (w.grad,)


def quantized_tensor():
    w = torch.randn(4, 5, requires_grad=True)
    q = torch.quantize_per_tensor(torch.randn(4, 5), 0.1, 0, torch.qint8)
    (w * q.dequantize()).sum().backward()
    return (w.grad,)


def vmap():
    w = torch.randn(4, requires_grad=True)
    torch.vmap(lambda x: (x * w).sum())(torch.randn(3, 4)).sum().backward()
    return (w.grad,)


def func_grad():
    w = torch.randn(4, requires_grad=True)
    torch.func.grad(lambda x: (x * w).sum())(torch.randn(4)).sum().backward()
    return (w.grad,)


class Mixed(torch.autograd.Function):
    """A function that returns an integer among tensors."""

    @staticmethod
    def forward(ctx, a, b):
        return None, a * 2, "text", b * 3

    @staticmethod
    def backward(ctx, *g):
        return g[1] * 2, g[3] * 3


def mixed_outputs():
    a, b = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    _, y, _, z = Mixed.apply(a, b)
    torch.autograd.backward([(y * y).sum(), (y * z).sum()])
    return a.grad, b.grad


def tensor_with_mask():
    from torch.masked import masked_tensor

    m = masked_tensor(torch.randn(3), torch.tensor([True, False, True]), requires_grad=True)
    (m * 2).sum().backward()
    return (m.grad.get_data(),)


def two():
    """Run a program with a subclass that implements `__torch_dispatch__`, including the loss."""
    from torch.testing._internal.two_tensor import TwoTensor

    t = TwoTensor(torch.randn(3), torch.randn(3)).requires_grad_()
    with gl.watch({"t": t}):
        (t * 2).sum().backward()
    return t.grad.a, t.grad.b


def forbidden_view():
    """Return a view whose `grad_fn` raises an error when it is read."""
    w = torch.randn(4, requires_grad=True)
    base = torch.zeros(4)
    with torch.no_grad():
        view = base.view(4)
    base.add_(w)
    text = str(view.shape)
    (w * len(text)).sum().backward()
    return (w.grad,)


KINDS = [
    (sparse, "a", "sparse, 50 of 2\N{NARROW NO-BREAK SPACE}500 stored"),
    (sparse_csr, "a", "sparse CSR, 50 of 2\N{NARROW NO-BREAK SPACE}500 stored"),
    (nested_tensor, "n", "nested, 2 tensors"),
    (jagged_tensor, "n", "a NestedTensor"),
    (mkldnn, "w", ""),
    (meta, "w", "meta, no numbers"),
    (fake, "w", "fake, no numbers"),
    (fake_and_real, "real", ""),
    (inference, "w", ""),
    (inference_that_requires_grad, "v", ""),
    (float8, "w", ""),
    (quantized_tensor, "w", ""),
    (vmap, "w", ""),
    (func_grad, "w", ""),
    (mixed_outputs, "a", ""),
    (tensor_with_mask, "m", "a MaskedTensor"),
    (two, "t", "a TwoTensor"),
    (forbidden_view, "w", ""),
]


@pytest.mark.parametrize(("program", "name", "form"), [pytest.param(*row, id=row[0].__name__) for row in KINDS])
def test_kinds_of_tensors_are_recorded(program, name, form):
    traced = same_warnings(program)
    assert traced is not None
    leaf = next(leaf for leaf in traced.trace.leaves if leaf.name == name)
    assert leaf.form == form
    drawn = next(node for node in traced.trace.nodes if node.name == name)
    assert drawn.detail == form
    assert (leaf.value is None) == ("no numbers" in form or form[:2] in ("a ", "ne"))


def test_the_graph_names_the_kind_of_a_result():
    with gl.tracing() as traced:
        mkldnn()
    assert "mkldnn" in [node.detail for node in traced.trace.nodes if node.label == "to_mkldnn"]


def test_a_sparse_gradient_has_the_norm_and_the_histogram_of_its_values():
    rows = torch.nn.Embedding(1000, 9, sparse=True)
    with gl.tracing() as traced:
        (rows(torch.tensor([1, 2, 3])) ** 2).sum().backward()
    leaf = traced.trace.leaves[0]
    values = rows.weight.grad.coalesce().values()
    assert leaf.gradient.norm == pytest.approx(float(torch.linalg.vector_norm(values)), rel=1e-6)
    assert leaf.gradient.zeros == 9000 - 27 + int((values == 0).sum())
    assert sum(leaf.gradient.summary.bins) == 27
    assert leaf.gradient_form == "sparse, 27 of 9\N{NARROW NO-BREAK SPACE}000 stored"


def test_a_report_names_the_kind_of_a_gradient():
    rows = torch.nn.Embedding(1000, 9, sparse=True)
    report = gl.explain((rows(torch.tensor([1, 2, 3])) ** 2).sum())
    assert "the gradient is sparse, 27 of 9\N{NARROW NO-BREAK SPACE}000 stored" in report.text()


def test_outputs_of_one_operation_have_their_own_shares():
    """The shares of two uses of one output refer to the cotangent of that output, not of the others."""
    x = torch.randn(2, 3, requires_grad=True)
    with gl.tracing() as traced:
        a, b = x.unbind(0)
        (a.sum() * 2 + (b * b).sum() + b.sum()).backward()
    edges = [edge for edge in traced.trace.edges if traced.trace.nodes[edge.source].operation.startswith("Unbind")]
    g = 2 * x[1].detach() + 1
    shares = sorted(float((part @ g) / (g @ g)) for part in (x[1].detach(), x[1].detach(), torch.ones(3)))
    assert sorted(edge.share for edge in edges) == pytest.approx(sorted([1.0, *shares]), rel=1e-5)


# ------------------------------------------------------------------------------------------- modes, hooks and profilers
class Functions(TorchFunctionMode):
    def __init__(self, log):
        super().__init__()
        self.log = log

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.log.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


class Operations(TorchDispatchMode):
    def __init__(self, log):
        super().__init__()
        self.log = log

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.log.append(str(func))
        return func(*args, **(kwargs or {}))


def net_and_data():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(8, 1))
    return net, torch.randn(20, 6)


def train(net, x, steps=2):
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        h = net(x)
        loss = (h**2).mean() + h.detach().abs().mean() + h.mean().item()
        loss.backward()
        optimizer.step()


@pytest.mark.parametrize("kind", [Functions, Operations])
@pytest.mark.parametrize("inside", [lambda net: gl.tracing(), gl.watch], ids=["tracing", "watch"])
def test_modes_of_the_program_see_no_operation_of_gradlab(kind, inside):
    logs = []
    for recorded in (False, True):
        net, x = net_and_data()
        log = []
        with inside(net) if recorded else nullcontext(), kind(log):
            train(net, x)
        logs.append(log)
    assert logs[0] == logs[1]
    assert len(logs[0]) > 50


def test_flops_are_counted_once():
    from torch.utils.flop_counter import FlopCounterMode

    counts = []
    for recorded in (False, True):
        net, x = net_and_data()
        counter = FlopCounterMode(display=False)
        if recorded:
            with gl.tracing(), counter:
                train(net, x)
        else:
            with counter:
                train(net, x)
        counts.append(counter.get_total_flops())
    assert counts[0] == counts[1] > 0


def test_the_profiler_sees_only_the_programs_operations():
    seen = []
    for recorded in (False, True):
        net, x = net_and_data()
        if recorded:
            with gl.tracing(), torch.autograd.profiler.profile() as profiled:
                train(net, x, steps=1)
        else:
            with torch.autograd.profiler.profile() as profiled:
                train(net, x, steps=1)
        seen.append(sorted(event.name for event in profiled.function_events if event.name.startswith("aten::")))
    assert seen[0] == seen[1]


def test_autocast_does_not_affect_gradlabs_computations():
    """A share is a dot product, which autocast would compute in half precision."""
    w = torch.randn(40, requires_grad=True)
    with gl.tracing() as traced, torch.autocast("cpu", torch.bfloat16):
        h = w * 1
        ((h * 3).sum() + (h * h).sum()).backward()
    g = 3 + 2 * w.detach()
    shares = [float((part @ g) / (g @ g)) for part in (torch.full((40,), 3.0), w.detach(), w.detach())]
    seen = [edge.share for edge in traced.trace.edges if traced.trace.nodes[edge.source].name == "h"]
    assert sorted(seen) == pytest.approx(sorted(shares), rel=1e-5)


def in_inference_mode():
    with torch.inference_mode():
        return torch.ones(2)


def without_memory():
    x = torch.ones(2)
    x.untyped_storage().resize_(0)
    return x


FORMS = {
    "": lambda: torch.ones(2),
    "quantized, qint8": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
    "inference": in_inference_mode,
    "meta, no numbers": lambda: torch.ones(2, device="meta"),
    "mkldnn": lambda: torch.ones(2, 2).to_mkldnn(),
    "sparse CSR, 2 of 4 stored": lambda: torch.eye(2).to_sparse_csr(),
    "sparse, 2 of 4 stored": lambda: torch.eye(2).to_sparse(),
    "no memory": without_memory,
    "not yet initialized": lambda: torch.nn.LazyLinear(2).weight,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", FORMS)
def test_descriptions_of_tensors(text):
    from gradlab.explore.libraries.forms_torch import form

    assert form(FORMS[text]()) == text


def test_a_training_is_bitwise_equal():
    weights = []
    for recorded in (False, True):
        net, x = net_and_data()
        if recorded:
            with gl.tracing():
                train(net, x, steps=5)
        else:
            train(net, x, steps=5)
        weights.append([p.detach().clone() for p in net.parameters()] + [torch.rand(3)])
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))


def test_a_hook_added_while_a_node_runs_gets_the_same_arguments():
    """PyTorch passes it nothing, since it released the cotangent: the node had no hook when it began."""

    def gradient():
        a = torch.randn(3, 3, requires_grad=True)
        arrived = []

        def unpack(tensor):
            def hook(handed, cotangents):
                arrived.append([None if g is None else g.tolist() for g in cotangents])
                return tuple(None if g is None else g / 2 for g in handed)

            torch._C._current_autograd_node().register_hook(hook)
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
            variance, mean = torch.var_mean(a, dim=0)
            (variance + mean).sum().backward()
        return a.grad, arrived

    torch.manual_seed(0)
    plain = gradient()
    torch.manual_seed(0)
    with gl.tracing():
        seen = gradient()
    assert torch.equal(plain[0], seen[0])
    assert plain[1] == seen[1]


def test_modes_of_the_program_keep_their_place_while_recording_pauses_and_resumes():
    with Recorder(dict) as recorder:
        ours = recorder._recordings["torch"]
        ours.pause()
        mode = Functions([])
        with mode:
            ours.resume()
            assert _get_current_function_mode_stack() == [ours, mode]
            torch.ones(2) + 1
        assert _get_current_function_mode_stack() == [ours]
        with torch.device("cpu") as device:
            ours.pause()
            ours.resume()
            assert _get_current_function_mode_stack()[0] is ours
        assert _get_current_function_mode_stack() == [ours], device
        torch.set_default_device("cpu")
        ours.pause()
        ours.resume()
        assert _get_current_function_mode_stack()[1] is ours
        torch.set_default_device(None)
        assert _get_current_function_mode_stack() == [ours]
    assert find_torch_leftovers() == []


def test_an_optimizer_that_steps_in_a_hook_does_not_move_the_mode():
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    w.register_post_accumulate_grad_hook(lambda _: optimizer.step())
    with gl.tracing():
        before = _get_current_function_mode_stack()
        (w * w).sum().backward()
        assert _get_current_function_mode_stack() == before
    assert w.tolist() == pytest.approx([0.8, 0.8])


# ------------------------------------------------------------------------------------------------------------- compiled
def test_code_is_compiled_as_without_recording():
    """The number of graphs and of compilations is the same, without graph breaks. Code after it is recorded again."""
    counters = torch._dynamo.utils.counters

    def program():
        torch._dynamo.reset()
        counters.clear()
        net, x = net_and_data()
        net.eval()
        compiled, alone = torch.compile(net, backend="eager"), torch.compile(lambda t: (t * 2).sin(), backend="eager")
        for _ in range(3):
            compiled(x).sum().backward()
        y = torch.ones(3, requires_grad=True)
        (alone(y) * 3).sum().backward()
        return [y.grad, *(p.grad for p in net.parameters())], dict(counters["stats"]), dict(counters["graph_break"])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = program()
        with gl.tracing() as traced:
            seen = program()
    assert plain[1:] == seen[1:] and seen[1]["unique_graphs"] == 2 and seen[2] == {}
    assert all(torch.equal(a, b) for a, b in zip(plain[0], seen[0], strict=True))
    assert traced.sweeps == 4
    assert [node.label for node in traced.trace.nodes if node.kind == "operation"] == ["×", "sin", "×", "sum"]
    assert find_torch_leftovers() == []


# ------------------------------------------------------------------------------------------------------ releases
class Kept(torch.autograd.Function):
    contexts: list = []  # noqa: RUF012

    @staticmethod
    def forward(ctx, x):
        Kept.contexts.append(weakref.ref(ctx))
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_everything_is_freed_after_the_block():
    def live():
        gc.collect()
        return {id(one) for one in gc.get_objects() if issubclass(type(one), torch.Tensor)}

    def program():
        net, x = net_and_data()
        train(net, x)
        loss = Kept.apply(net(x)).sum()
        loss.backward()
        return [weakref.ref(net), weakref.ref(loss), *(weakref.ref(p) for p in net.parameters())]

    program()
    Kept.contexts.clear()
    before = live()
    with gl.tracing() as traced:
        refs = program()
    assert traced.trace.leaves
    gc.collect()
    assert [ref() for ref in (*refs, *Kept.contexts)] == [None] * (len(refs) + 1)
    assert live() <= before


def test_recordings_in_two_threads_restore_torch():
    """The recordings overlap: the first one to open is the first to close."""
    opened, closed, done = threading.Event(), threading.Event(), []

    def other():
        assert opened.wait(TIMEOUT_SECONDS)
        with gl.tracing() as traced:
            closed_by_now.set()
            assert closed.wait(TIMEOUT_SECONDS)
            (torch.ones(2, requires_grad=True) * 2).sum().backward()
        done.append(traced.sweeps)

    closed_by_now = threading.Event()
    thread = threading.Thread(target=other)
    thread.start()
    with gl.tracing() as first:
        first_recording = first._recorder._recordings["torch"]
        first_recording.pause()  # functions of torch are replaced at this time
        opened.set()
        assert closed_by_now.wait(TIMEOUT_SECONDS)
    closed.set()
    thread.join(TIMEOUT_SECONDS)
    assert done == [1]
    assert find_torch_leftovers() == []


def test_a_fault_is_not_an_error_even_if_warnings_are(monkeypatch, capsys):
    from gradlab.explore.libraries.recording_torch import TorchRecording

    monkeypatch.setattr(TorchRecording, "_record_call", lambda *_: 1 / 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with gl.tracing():
            (torch.ones(2, requires_grad=True) * 2).sum().backward()
    assert capsys.readouterr().err.count("FaultWarning: gradlab failed while it recorded the program: ZeroDivisionError") == 1
    assert issubclass(FaultWarning, RuntimeWarning)
