"""Check the hints in errors for common mistakes of beginners: they say what was given and what to do."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import gradlab as gl

MISTAKES = r"""
x.detach().sum().backward()
    element 0 of tensors does not require grad.*set requires_grad=True on the input
n.sum().backward()
    element 0 of tensors.*dtype gradlab\.int64.*write data as 1\. instead of 1
(x > 0).sum().backward()
    element 0 of tensors.*differentiate what comes before a comparison
(x * 2).backward()
    grad can be implicitly created only for scalar outputs.*shape \[2, 3\].*gradient=.*\.sum\(\) or \.mean\(\)
(x * 2).backward(gl.ones(3))
    Mismatch in shape.*Size\(\[3\]\).*Size\(\[2, 3\]\).*one weight for each element of the output
gl.tensor([1, 2], requires_grad=True)
    Only Tensors of floating point.*dtype gradlab\.int64: write 1\. instead of 1, or pass dtype=gl\.float32
n.requires_grad_()
    only Tensors of floating point dtype.*write 1\. instead of 1, or call \.float\(\) first
(lambda y: (y.backward(), y.backward()))((x * x).sum())
    Trying to backward through the graph a second time.*MulBackward0.*retain_graph=True to the earlier
x.add_(1)
    a leaf Variable that requires grad.*with gl\.no_grad\(\):.*make a new tensor
x[0].zero_()
    a view of a leaf Variable.*with gl\.no_grad\(\):
(lambda y: (y.add_(1), y.sum().backward()))(x.exp())
    modified by an inplace operation.*ExpBackward0 saved it.*Write to a copy
x.numpy()
    Can't call numpy\(\) on Tensor that requires grad\. Use tensor\.detach\(\)\.numpy\(\) instead
x.item()
    a Tensor with 6 elements cannot be converted to Scalar.*shape \[2, 3\].*\.tolist\(\)
float(n)
    only one element tensors.*shape \[2, 3\].*index.*\.sum\(\)
bool(x > 0)
    Boolean value of Tensor with more than one value is ambiguous.*\.any\(\) or \.all\(\).*gl\.where
len(x.sum())
    len\(\) of a 0-d tensor.*\.item\(\)
x + gl.ones(4)
    size of tensor a \(3\).*shapes are \[2, 3\] and \[4\]\. Starting from the last axis.*unsqueeze
x @ x
    mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\).*columns of the first.*rows of the second
x.mm(gl.ones(3))
    mat2 must be a matrix.*matmul
x @ n.T
    same dtype, but got: float != long int.*x\.float\(\)
gl.from_numpy(np.array([[1], [2, 3]], object))
    can't convert np\.ndarray of type numpy\.object_.*rows of one length, or call array\.astype\(float\)
gl.tensor([[1, 2], [3]])
    expected sequence of length 2 at dim 1 \(got 1\).*must have the same length
gl.tensor([n, n])
    only integer tensors.*gl\.stack or gl\.cat
gl.tensor(np.array(["1"]))
    can't convert np\.ndarray of type numpy\.str_.*holds text
gl.from_numpy([1.0])
    expected np\.ndarray \(got list\).*gl\.tensor takes
gl.zeros(2, dtype="float32")
    argument 'dtype' must be gradlab\.dtype, not str.*Use a dtype such as gl\.float32
gl.zeros((2,), (3,))
    takes 1 positional argument but 2 were given.*one tuple of integers
x.to("float64")
    Invalid device string: 'float64'.*a dtype is not a string
gl.multinomial(gl.ones(3), 4)
    cannot sample n_sample.*replacement=True
x.bfloat16()
    bfloat16 is a dtype that NumPy does not have.*\.half\(\).*\.float\(\)
gl.bfloat16
    'bfloat16'.*NumPy does not have
gl.complex64
    'complex64'.*complex
gl.sparse_coo
    'sparse_coo'.*dense
gl.quantize_per_tensor
    'quantize_per_tensor'.*quantized
gl.hub
    module 'gradlab' has no attribute 'hub'.*dir\(gradlab\)
gl.tensor(1 + 2j)
    complex numbers are not supported
"""
LINES = [line.strip() for line in MISTAKES.strip().splitlines()]  # alternating: a mistake, and a pattern of its error
TABLE = list(zip(LINES[0::2], LINES[1::2], strict=True))


@pytest.mark.parametrize(("mistake", "words"), TABLE, ids=[mistake for mistake, _ in TABLE])
def test_hint(mistake: str, words: str) -> None:
    x, n = gl.ones(2, 3).requires_grad_(), gl.ones(2, 3, dtype=gl.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as raised:  # noqa: PT011  (the pattern is checked below)
            eval(mistake, {"gl": gl, "np": np, "x": x, "n": n})
    assert re.search(words, str(raised.value), re.DOTALL), str(raised.value)


def test_the_mismatched_dimension_is_named() -> None:
    with pytest.raises(RuntimeError, match="at non-singleton dimension 1"):
        gl.ones(2, 3) + gl.ones(2, 4)


def test_warnings_of_beginners() -> None:
    x = gl.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match=r"The \.grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        assert (x * 2).grad is None
    with pytest.warns(UserWarning, match=r"To copy construct from a tensor.*rather than gradlab\.tensor\(sourceTensor\)"):
        gl.tensor(gl.ones(2))
    with pytest.warns(UserWarning, match=r"Using a target size \(gradlab\.Size\(\[2, 1\]\)\) that is different to"):
        gl.nn.functional.mse_loss(gl.ones(2), gl.ones(2, 1))
    with pytest.warns(UserWarning, match=r"The use of `x\.T` on tensors of dimension other than 2"):
        assert gl.ones(3).T.shape == (3,)
