"""Test sharing of memory with other libraries, and running programs for torch with gradlab."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest

import gradlab as gl


def run(source: str) -> str:
    """Run code in a new process and return what it prints."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(source)], capture_output=True, text=True, check=True
    ).stdout


# --------------------------------------------------------------------------------------------------------------- DLPack
def test_numpy_imports_a_tensor_and_shares_its_memory() -> None:
    x = gl.arange(6.0).reshape(2, 3)
    array = np.from_dlpack(x.t())
    assert array.shape == (3, 2) and array.strides == (4, 12)
    x[0, 1] = 10
    assert array[1, 0] == 10
    assert x.__dlpack_device__() == (1, 0)


def test_a_tensor_from_an_array_shares_its_memory() -> None:
    array = np.arange(4, dtype=np.int32)
    for source in (array, gl.from_numpy(array), array.__dlpack__()):
        x = gl.from_dlpack(source)
        array[0] += 1
        assert x.tolist() == array.tolist() and x.dtype is gl.int32
    assert gl.from_dlpack(array, copy=True).add_(1).tolist() != array.tolist()


def test_errors_of_dlpack() -> None:
    with pytest.raises(BufferError, match=r"Can't export tensors that require gradient, use tensor\.detach\(\)"):
        np.from_dlpack(gl.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match="from_dlpack received an invalid capsule"):
        gl.from_dlpack([1.0])
    with pytest.raises(TypeError, match=r"can't convert np\.ndarray of type numpy\.uint16"):
        gl.from_dlpack(np.ones(2, np.uint16))


@pytest.mark.torch
def test_torch_shares_memory_both_ways() -> None:
    torch = pytest.importorskip("torch")
    for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"):
        ours = gl.ones(2, 3, dtype=getattr(gl, name))
        theirs = torch.from_dlpack(ours.t())
        assert theirs.shape == (3, 2) and theirs.stride() == (1, 3) and str(theirs.dtype) == f"torch.{name}"
        theirs[0, 1] = 0
        assert not ours[1, 0]
        theirs = torch.ones(2, 3, dtype=getattr(torch, name))
        ours = gl.from_dlpack(theirs)
        ours[0, 0] = 0
        assert not theirs[0, 0] and ours.dtype.name == name
    assert gl.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(torch.arange(3))).tolist() == [0, 1, 2]
    assert torch.utils.dlpack.from_dlpack(gl.to_dlpack(gl.arange(3))).tolist() == [0, 1, 2]


def test_numpy_shares_memory_both_ways() -> None:
    array = np.ones((2, 3))
    x = gl.from_numpy(array)
    x[0, 0] = 5
    array[1, 1] = 6
    assert array[0, 0] == 5 and x[1, 1] == 6
    assert x.numpy() is array and np.asarray(x) is array
    assert np.array(x) is not array and np.asarray(x, dtype=np.float32).dtype == np.float32


def test_a_read_only_array_is_shared_and_cannot_be_written() -> None:
    array = np.ones(3)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="The given NumPy array is not writable"):
        x = gl.from_numpy(array)
    with pytest.raises(RuntimeError, match="read-only"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="read-only"):
        x.normal_()
    assert (x + 1).tolist() == [2, 2, 2]


def test_numpy_ufuncs_return_tensors() -> None:
    x = gl.tensor([1.0, 4.0])
    assert isinstance(np.sqrt(x), gl.Tensor) and np.sqrt(x).tolist() == [1, 2]
    assert np.isnan(x).dtype is gl.uint8
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        np.sqrt(gl.ones(2, requires_grad=True))


# ----------------------------------------------------------------------------------------------- gradlab under torch's name
@pytest.mark.e2e
def test_a_program_for_torch_runs() -> None:
    printed = run("""
        import gradlab
        gradlab.as_torch()
        import torch
        import torch.nn as nn
        import torch.nn.functional as F
        import torch.backends.cudnn as cudnn
        from torch import tensor, nn as same
        from torch.autograd import Variable

        torch.manual_seed(0)
        x = Variable(torch.FloatTensor([[1, 2]]), requires_grad=True)
        y = F.relu(2 * x).sum()
        y.backward()
        print(x.grad, torch.randn(2), isinstance(x, torch.Tensor), isinstance(x, torch.FloatTensor))
        print(torch is gradlab, nn is gradlab.nn is same, F is gradlab.nn.functional, cudnn is gradlab.backends.cudnn)
        print(gradlab.nn.functional.__spec__.name, gradlab.__spec__.name)
    """)
    assert printed.splitlines() == [
        "tensor([[2., 2.]]) tensor([ 1.5410, -0.2934]) True True",
        "True True True True",
        "gradlab.nn.functional gradlab",
    ]


@pytest.mark.e2e
def test_missing_names_and_modules_raise_an_error() -> None:
    printed = run("""
        import gradlab
        gradlab.as_torch()
        import torch
        for line in ("import torch.jit", "import torch.nn.nothing", "torch.hub", "torch.ones(1).nothing",
                     "from torch import jit"):
            try:
                exec(line)
            except Exception as error:
                print(type(error).__name__, error)
    """).splitlines()
    assert printed[0] == "ModuleNotFoundError No module named 'torch.jit': gradlab does not have this module of torch yet."
    assert printed[1].startswith("ModuleNotFoundError No module named 'torch.nn.nothing': gradlab does not have")
    assert printed[2].startswith("AttributeError module 'gradlab' has no attribute 'hub'")
    assert printed[3].startswith("AttributeError 'Tensor' object has no attribute 'nothing'")
    assert printed[4].startswith("ImportError cannot import name 'jit' from 'gradlab'")


@pytest.mark.e2e
def test_as_torch_can_be_undone() -> None:
    printed = run("""
        import sys
        import gradlab
        before = list(sys.meta_path), set(sys.modules)
        with gradlab.as_torch():
            import torch.nn.functional as F
            with gradlab.as_torch() as inner:
                import torch
            inner.undo()
            print("torch" in sys.modules, torch is gradlab)
        print([n for n in sys.modules if n.startswith("torch")], before[0] == sys.meta_path)
        handle = gradlab.as_torch()
        import torch
        handle.undo()
        handle.undo()
        print("torch" in sys.modules, before[0] == sys.meta_path, F is gradlab.nn.functional)
    """)
    assert printed.splitlines() == ["True True", "[] True", "False True True"]


@pytest.mark.e2e
def test_torch_itself_is_not_replaced() -> None:
    printed = run("""
        import sys, types
        sys.modules["torch"] = types.ModuleType("torch")
        import gradlab
        try:
            gradlab.as_torch()
        except RuntimeError as error:
            print(error)
    """)
    assert printed.startswith("torch is already imported, so gradlab cannot replace it")


@pytest.mark.parametrize("flag", ["cudnn.deterministic", "cudnn.benchmark", "cudnn.enabled", "cuda.matmul.allow_tf32"])
def test_flags_can_be_set(flag: str) -> None:
    owner: Any = gl.backends
    *path, name = flag.split(".")
    for part in path:
        owner = getattr(owner, part)
    before = getattr(owner, name)
    setattr(owner, name, not before)
    assert getattr(owner, name) is not before
    setattr(owner, name, before)


def test_settings_are_kept() -> None:
    threads = gl.get_num_threads()
    gl.set_num_threads(3)
    assert gl.get_num_threads() == 3
    gl.set_num_threads(threads)
    with pytest.raises(RuntimeError, match="set_num_threads expects a positive integer"):
        gl.set_num_threads(0)
    gl.use_deterministic_algorithms(True)
    assert gl.are_deterministic_algorithms_enabled()
    gl.use_deterministic_algorithms(False)
    gl.set_float32_matmul_precision("high")
    assert gl.get_float32_matmul_precision() == "high"
    gl.set_float32_matmul_precision("highest")
    with pytest.raises(RuntimeError, match="low is not one of 'highest', 'high', or 'medium'"):
        gl.set_float32_matmul_precision("low")
    assert gl.compile(len) is len and gl.compile()(len) is len
    assert not gl.backends.mps.is_available()


@pytest.mark.oracle
@pytest.mark.parametrize("level", [0, 1, 2, "default", "warn", "error", 3, -1, "loud", 1.5, None])
def test_the_deterministic_debug_mode_agrees_with_torch(level: Any) -> None:
    torch = pytest.importorskip("torch")
    try:
        for library in (torch, gl):
            refusal = None
            try:
                library.set_deterministic_debug_mode(level)
            except (TypeError, RuntimeError) as error:
                refusal = type(error)
            modes = library.are_deterministic_algorithms_enabled(), library.is_deterministic_algorithms_warn_only_enabled()
            if library is torch:
                expected = refusal, modes
        assert (refusal, modes) == expected
    finally:
        torch.use_deterministic_algorithms(False)
        gl.use_deterministic_algorithms(False)
