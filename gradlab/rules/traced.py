"""NumPy's names on Tensors: the namespace that rules run in when a sweep is itself recorded (`create_graph=True`)."""
from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.tensor import Tensor, constant
from gradlab.rules import elementwise, reductions, shapes


def broadcast_to(x, shape):
    return shapes.expand.record(x, shape=tuple(shape), skip=0)


def expand_dims(x, axis):
    return shapes.reshape.record(x, shape=np.expand_dims(np.broadcast_to(0, x.array.shape), axis).shape)


def axes_of(x, axis):
    return reductions.negative(axis, x.array.ndim)


def where(condition, a, b):
    return elementwise.where.record(condition if isinstance(condition, Tensor) else constant(condition), a, b)


namespace_of[Tensor] = SimpleNamespace(
    exp=elementwise.exp.record, log=elementwise.log.record, sin=elementwise.sin.record, cos=elementwise.cos.record,
    sign=lambda x: constant(namespace_of[type(x.array)].sign(x.array)),                    # its derivative is 0 or undefined
    where=where, broadcast_to=broadcast_to, expand_dims=expand_dims, asarray=lambda x: x,
    zeros_like=lambda x: constant(namespace_of[type(x.array)].zeros_like(x.array)),
    zeros=lambda shape, dtype: constant(np.zeros(shape, dtype)),
    sum=lambda x, axis=None, keepdims=False: reductions.sum_.record(x, axis=axes_of(x, axis), keepdims=keepdims),
    mean=lambda x, axis=None, keepdims=False: reductions.mean.record(x, axis=axes_of(x, axis), keepdims=keepdims),
    astype=lambda x, dtype: shapes.astype.record(x, dtype=getattr(dtype, "numpy", dtype)))
