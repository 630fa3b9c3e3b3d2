"""Recording does not change the values and gradients of the operators in PyTorch's database, to the last bit."""

import itertools
import warnings

import pytest

import gradlab as gl
from gradlab.diagnose.faults import FaultWarning

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # needed by torch's samples
pytestmark = [pytest.mark.torch, pytest.mark.exhaustive]

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

SAMPLES, PARTS = 4, 8
AGAIN = 8  # runs that show whether a result depends on memory addresses


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from itertools.chain.from_iterable(map(tensors_in, value.values()))
    elif isinstance(value, (tuple, list)):
        yield from itertools.chain.from_iterable(map(tensors_in, value))


def run(operator, sample):
    """Return the results of a sample and the gradients of their sum."""
    torch.manual_seed(0)
    results = list(tensors_in(operator(sample.input, *sample.args, **sample.kwargs)))
    inputs = [x for x in tensors_in((sample.input, sample.args, sample.kwargs)) if x.requires_grad and x.is_leaf]
    graded = [one for one in results if one.requires_grad]
    if graded and inputs:
        sum(one.abs().sum() if one.is_complex() else one.sum() for one in graded).backward()
    gradients = [x.grad for x in inputs]
    for x in inputs:
        x.grad = None
    return [one if one is None else one.detach() for one in (*results, *gradients)]


def bits(tensor):
    dense = tensor if tensor.layout == torch.strided else tensor.to_dense()
    return torch.cat([dense.resolve_conj().resolve_neg().reshape(-1)]).view(torch.uint8)


def same(one, other):
    def equal(a, b):
        return a is b if a is None or b is None else a.dtype == b.dtype and torch.equal(bits(a), bits(b))

    return len(one) == len(other) and all(itertools.starmap(equal, zip(one, other, strict=True)))


def depends_on_memory(operator, sample, plain):
    """Return whether the result depends on memory addresses, as that of LAPACK does for some problems."""
    held = []
    for n in range(AGAIN):
        held.append(bytearray(40 * n + 8))
        if not same(run(operator, sample), plain):
            return True
    return False


@pytest.mark.parametrize("part", range(PARTS))
def test_recording_an_operator_does_not_change_its_results(part):
    looked_at, wrong = 0, []
    for operator in op_db[part::PARTS]:
        name = f"{operator.name}.{operator.variant_test_name}".rstrip(".")
        dtype = torch.float32 if torch.float32 in operator.dtypes else next(iter(operator.dtypes), torch.float32)
        graded = operator.supports_autograd and dtype.is_floating_point
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", FaultWarning)
            try:
                samples = list(itertools.islice(operator.sample_inputs("cpu", dtype, requires_grad=graded), SAMPLES))
            except Exception:  # noqa: BLE001  (for another device or a missing package)
                continue
            for sample in samples:
                try:
                    plain = run(operator.op, sample)
                except Exception:  # noqa: BLE001  (a sample without a backward pass of this form)
                    continue
                looked_at += 1
                try:
                    with gl.tracing():
                        seen = run(operator.op, sample)
                except Exception as error:  # noqa: BLE001
                    wrong.append(f"{name}: {type(error).__name__}: {error}")
                    continue
                if not same(plain, seen) and not depends_on_memory(operator.op, sample, plain):
                    wrong.append(f"{name}: differs")
    print(f"{looked_at} samples, {len(wrong)} wrong")  # noqa: T201
    assert wrong == []
    assert looked_at > 200
