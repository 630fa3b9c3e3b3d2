"""A strict stand-in for a device array: everything a rule may use, and no silent way to a NumPy array.

It behaves as CuPy's arrays do where it matters: Python numbers mix freely, host arrays with axes do not, `np.asarray`
refuses. So a host/device mix-up fails here, without a GPU.
"""
from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from gradlab.backend.namespaces import device, register


class StrictArray:
    """A NumPy array behind a door."""

    __slots__ = ("__weakref__", "_host")
    __hash__ = None

    def __init__(self, host: np.ndarray) -> None:
        self._host = np.asarray(host)
        OWNERS[id(self._host)] = self

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array "
                        "explicitly.")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method not in ("__call__", "at", "reduce"):
            return NotImplemented
        return behind(getattr(ufunc, method)(*opened(inputs), **{k: opened(v) for k, v in kwargs.items()}))

    def diagonal(self, *args: int) -> StrictArray:
        part = self._host.diagonal(*args)
        part.flags.writeable = self._host.flags.writeable                    # read-only is a peculiarity of NumPy's
        return StrictArray(part)

    def get(self) -> np.ndarray:
        return self._host.copy()

    def item(self) -> Any:
        return self._host.item()

    def tolist(self) -> Any:
        return self._host.tolist()

    def __bool__(self) -> bool:
        return bool(self._host)

    def __int__(self) -> int:
        return int(self._host)

    def __len__(self) -> int:
        return len(self._host)

    def __getitem__(self, index: Any) -> Any:
        return behind(self._host[index_opened(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self._host[index_opened(index)] = opened(value)

    @property
    def base(self) -> Any:
        """The array whose memory this one views, as a strict array wherever one stands for it."""
        owner = self._host.base
        return owner if owner is None else OWNERS.get(id(owner), owner)

    mT = property(lambda self: StrictArray(self._host.mT))  # noqa: N815  (the array API's name)


OWNERS: weakref.WeakValueDictionary[int, StrictArray] = weakref.WeakValueDictionary()
for _name in ("shape", "ndim", "dtype", "size", "itemsize", "strides", "flags", "nbytes"):
    setattr(StrictArray, _name, property(lambda self, name=_name: getattr(self._host, name)))
for _name in ("reshape", "sum", "prod", "mean", "max", "min", "argmax", "argmin", "all", "any", "astype", "copy",
              "squeeze", "nonzero", "ravel", "transpose", "take", "view"):
    def _method(self, *args, name=_name, **kwargs):
        return behind(getattr(self._host, name)(*opened(args), **{k: opened(v) for k, v in kwargs.items()}))
    setattr(StrictArray, _name, _method)
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "radd", "rsub", "rmul", "rtruediv", "rpow",
              "rmatmul", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor"):
    def _operator(self, other, name=f"__{_name}__"):
        return behind(getattr(self._host, name)(*opened((other,))))
    setattr(StrictArray, f"__{_name}__", _operator)
for _name in ("neg", "abs", "invert"):
    setattr(StrictArray, f"__{_name}__", lambda self, name=f"__{_name}__": behind(getattr(self._host, name)()))
for _name in ("iadd", "isub", "imul", "itruediv"):
    def _in_place(self, other, name=f"__{_name}__"):
        getattr(self._host, name)(*opened((other,)))
        return self
    setattr(StrictArray, f"__{_name}__", _in_place)


def opened(value: Any) -> Any:
    """What the host computes with; a host array with axes among the operands is the mix-up we are here to find."""
    if isinstance(value, StrictArray):
        return value._host
    if isinstance(value, (tuple, list)):
        return type(value)(opened(v) for v in value)
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}: a host array of shape {value.shape} was mixed with a device array.")
    return value


def index_opened(index: Any) -> Any:
    return tuple(opened(i) for i in index) if isinstance(index, tuple) else opened(index)


def behind(result: Any) -> Any:
    """Results of array type go behind the door again; 0-d results stay arrays, as on a device."""
    if isinstance(result, (np.ndarray, np.generic)):
        return StrictArray(result)
    if isinstance(result, (tuple, list)):
        return (tuple if hasattr(result, "_fields") else type(result))(behind(r) for r in result)
    return result


class Namespace:
    """NumPy's functions on strict arrays (or another module's of such functions)."""

    def __init__(self, module: Any = np) -> None:
        self.module = module

    @property
    def special(self) -> Namespace:
        from scipy import special

        return Namespace(special)

    @property
    def linalg(self) -> Namespace:
        return Namespace(np.linalg)

    @property
    def scipy_linalg(self) -> Namespace:
        from scipy import linalg

        return Namespace(linalg)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.module, name)
        if name in ("asarray", "array"):
            def make(data: Any, dtype: Any = None) -> StrictArray:
                return data if isinstance(data, StrictArray) and dtype in (None, data.dtype) else StrictArray(
                    np.array(data._host if isinstance(data, StrictArray) else data, dtype))
            return make
        if isinstance(value, np.ufunc):
            return Ufunc(value)
        if not callable(value) or isinstance(value, type):
            return value
        return lambda *args, **kwargs: behind(value(*opened(args), **{k: opened(v) for k, v in kwargs.items()}))


class Ufunc:
    def __init__(self, ufunc: np.ufunc) -> None:
        self.ufunc = ufunc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return behind(self.ufunc(*opened(args), **{k: opened(v) for k, v in kwargs.items()}))

    def at(self, target: StrictArray, *rest: Any) -> None:
        self.ufunc.at(*opened((target, *rest)))


def install() -> None:
    """Make strict arrays known to gradlab. They say that they lie on the CPU."""
    register(StrictArray, Namespace(), lambda array: device("cpu"))
