"""Expressions whose nodes must have the same saved attributes as in torch, and the names of the required attributes."""

from __future__ import annotations

import numpy as np

# fmt: off
MUST = {
    "x * w": "self other", "x / w": "self other", "x * 2": "other", "x ** 2": "self exponent", "x ** w": "self exponent result",
    "2 ** x": "exponent result self", "x.exp()": "result", "x.log()": "self", "x.sqrt()": "result", "x.rsqrt()": "result",
    "x.sin()": "self", "x.cos()": "self", "x.tan()": "result", "x.tanh()": "result", "x.sigmoid()": "result",
    "x.relu()": "result",
    "x.abs()": "self", "x.expm1()": "result", "x.log1p()": "self", "x.erf()": "self", "x.asin()": "self",
    "x.reciprocal()": "result",
    "x + w": "alpha", "x - w": "alpha", "1 - x": "alpha", "x.sum()": "self_sym_sizes", "x.sum(0)": "dim keepdim self_sym_sizes",
    "x.sum(1, keepdim=True)": "dim keepdim self_sym_sizes", "x.mean()": "self_sym_numel self_sym_sizes",
    "x.mean(0)": "dim keepdim self_sym_numel self_sym_sizes", "x.max()": "self result",
    "x.max(0).values": "dim indices keepdim self_sym_sizes", "x.min(0, keepdim=True).values": "dim indices keepdim",
    "x.amax(0)": "self result dim keepdim", "x.prod()": "self", "x.var(0)": "self dim keepdim correction",
    "x.std(0)": "self result dim keepdim correction", "x.softmax(1)": "result dim", "x.log_softmax(1)": "result dim",
    "x.logsumexp(0)": "self result dim keepdim", "lib.linalg.vector_norm(x, 2, 0)": "self result dim keepdim ord",
    "x @ w.T": "self mat2 self_sym_sizes mat2_sym_sizes", "x @ v": "self vec", "v @ v": "self tensor",
    "lib.addmm(b2, x, w.T)": "mat1 mat2", "lib.nn.functional.linear(x, w, b)": "mat1 mat2", "lib.bmm(B, B)": "self mat2",
    "lib.baddbmm(B, B, B)": "batch1 batch2 alpha beta", "x.T": "dims", "x.transpose(0, 1)": "dim0 dim1",
    "B.transpose(0, 2)": "dim0 dim1", "B.permute(2, 0, 1)": "dims", "x.reshape(-1)": "self_sym_sizes", "x.unsqueeze(1)": "dim",
    "x[0]": "dim index self_sym_sizes", "x[:, 1]": "dim index self_sym_sizes", "x[1:]": "dim start end step self_sym_sizes",
    "x[:, 0:2]": "dim start end step self_sym_sizes", "x[[0, 1]]": "indices self_sym_sizes",
    "x.expand(4, 2, 3)": "self_sym_sizes",
    "x.select(0, 1)": "dim index", "x.narrow(0, 0, 1)": "dim start end step", "x.index_select(0, j)": "dim index self_sym_sizes",
    "lib.cat([x, w], 0)": "dim", "lib.stack([x, w], 1)": "dim", "x.clamp(0, 1)": "self min max", "x.clamp(min=0)": "self min max",
    "lib.where(c, x, w)": "condition", "lib.maximum(x, w)": "self other", "x.masked_fill(c, 0.)": "mask",
    "x.gather(1, i)": "dim index", "x.cumsum(0)": "dim", "x.cumprod(1)": "self result dim", "x.sort(0).values": "dim indices",
    "x.topk(1, 0).values": "dim indices", "x.flip(0)": "dims", "x.roll(1, 0)": "dims shifts", "x.repeat(2, 1)": "repeats",
    "x.diagonal()": "dim1 dim2 offset", "x.tril()": "diagonal", "x.triu(1)": "diagonal", "x.unbind(0)[0]": "dim",
    "x.split(1, 0)[0]": "dim self_sym_sizes", "lib.atan2(x, w)": "self other", "lib.lerp(x, w, 0.5)": "weight",
    "lib.addcmul(x, w, w)": "tensor1 tensor2 value", "x.logaddexp(w)": "self other", "x.hypot(w)": "self other result",
    "lib.nn.functional.mse_loss(x, w)": "self target", "lib.nn.functional.smooth_l1_loss(x, w)": "self target",
    "lib.nn.functional.binary_cross_entropy_with_logits(x, w)": "self target", "lib.nn.functional.nll_loss(x, t)": "self",
    "lib.nn.functional.gelu(x)": "self", "lib.nn.functional.silu(x)": "self", "lib.nn.functional.softplus(x)": "self",
    "lib.nn.functional.elu(x)": "self alpha scale", "lib.nn.functional.hardtanh(x)": "self min_val max_val",
    "lib.nn.functional.embedding(j, x)": "indices", "lib.nn.functional.layer_norm(x, (3,))": "input",
    "lib.nn.functional.conv2d(B[None], B[None])": "input weight stride padding dilation groups", "lib.linalg.inv(M)": "inverse",
    "lib.linalg.det(M)": "A result", "lib.cdist(x, w)": "x1 x2 result", "x.clone()": "", "-x": "", "x.t()": "",
}
# fmt: on
ROUNDED = {"lib.linalg.inv(M)", "lib.linalg.det(M)", "lib.cdist(x, w)"}  # other algorithms, so the last digits differ


def tensors(lib):
    """Return the tensors of the expressions for a library."""
    rng = np.random.default_rng(5)

    def leaf(*shape):
        return lib.tensor((rng.random(shape) * 0.8 + 0.1).tolist(), dtype=lib.float64).requires_grad_()

    return {
        "lib": lib,
        "x": leaf(2, 3),
        "w": leaf(2, 3),
        "v": leaf(3),
        "b": leaf(2),
        "b2": leaf(2, 2),
        "B": leaf(3, 3, 3),
        "M": leaf(3, 3),
        "c": lib.tensor([[True, False, True], [False, True, False]]),
        "i": lib.tensor([[0, 1, 0], [1, 0, 1]]),
        "j": lib.tensor([0, 1]),
        "t": lib.tensor([0, 2]),
    }
