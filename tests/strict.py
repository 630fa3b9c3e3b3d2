"""Strict mock of a device array, which detects mixing of host and device arrays and needless waits without a GPU.

It supports everything a rule may use and mimics the relevant behaviour of CuPy's arrays, as defined by CuPy's source. Python
numbers can be mixed with it, host arrays cannot. `np.asarray` raises an error. An index out of bounds wraps around.
`__array_ufunc__` supports only plain calls. `ufunc.at` supports only the dtypes of CUDA's atomic addition. Each operation for
which the host waits for the device is recorded in `HOST_WAITS`.
"""

from __future__ import annotations

import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np

from gradlab.backend import namespaces
from gradlab.backend.namespaces import CPU, cuda, device, register

HOST_WAITS: list[str] = []  # operations that made the host wait; tests clear the list
COPIED_BYTES: list[int] = []  # size of each array that was copied to the host
# Functions of CuPy that read values, to determine the shape of their result or to check their arguments.
WAITING_FUNCTIONS = {
    "nonzero",
    "flatnonzero",
    "argwhere",
    "unique",
    "unravel_index",
    "ravel_multi_index",
    "bincount",
    "allclose",
    "array_equal",
}
ATOMIC_ADD_DTYPES = "efdiIL"  # dtypes of CUDA's atomic addition: no int64, no small integers, no bool


class GPUs:
    """Mock of `cupy.cuda`, with the index of the current mock GPU."""

    current, stream = 0, 0

    @staticmethod
    def get_current_stream() -> Any:
        return SimpleNamespace(ptr=GPUs.stream)

    class Device:
        """Mock of `cupy.cuda.Device`."""

        def __init__(self, id: int | None = None) -> None:
            self.id, self.before = GPUs.current if id is None else id, []

        def __enter__(self) -> None:
            self.before.append(GPUs.current)
            self.use()

        def __exit__(self, *raised: object) -> None:
            GPUs.current = self.before.pop()

        def use(self) -> None:
            GPUs.current = self.id

        def synchronize(self) -> None:
            HOST_WAITS.append("synchronize")


class StrictArray:
    """Wrapper that hides a NumPy array."""

    __slots__ = ("__weakref__", "_host", "gpu")
    __hash__ = None

    def __init__(self, host: np.ndarray) -> None:
        self._host, self.gpu = np.asarray(host), GPUs.current
        ARRAYS_BY_HOST_ID[id(self._host)] = self

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly."
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or set(kwargs) - {"out", "dtype", "casting"}:
            return NotImplemented
        return wrap(getattr(ufunc, method)(*unwrap(inputs), **{k: unwrap(v) for k, v in kwargs.items()}))

    def diagonal(self, *args: int) -> StrictArray:
        part = self._host.diagonal(*args)
        part.flags.writeable = self._host.flags.writeable  # only NumPy makes diagonals read-only
        return StrictArray(part)

    def take(self, indices: Any, axis: int | None = None) -> StrictArray:
        return StrictArray(self._host.take(unwrap(indices), axis, mode="wrap" if self._host.size else "raise"))

    def __len__(self) -> int:
        return len(self._host)

    def __getitem__(self, index: Any) -> Any:
        return wrap(self._host[unwrap_index(index, self._host.shape)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self._host[unwrap_index(index, self._host.shape)] = unwrap(value)

    def __deepcopy__(self, memo: Any) -> StrictArray:
        with self.device:
            return self.copy()

    @property
    def device(self) -> Any:
        return GPUs.Device(self.gpu)

    @property
    def data(self) -> Any:
        """Memory pointer, with the interface of CuPy."""
        return SimpleNamespace(ptr=self._host.__array_interface__["data"][0])

    @property
    def base(self) -> Any:
        """Base array, as a strict array if one wraps it."""
        owner = self._host.base
        return owner if owner is None else ARRAYS_BY_HOST_ID.get(id(owner), owner)

    mT = property(lambda self: StrictArray(self._host.mT))  # noqa: N815  (the array API's name)


ARRAYS_BY_HOST_ID: weakref.WeakValueDictionary[int, StrictArray] = weakref.WeakValueDictionary()
for _name in ("shape", "ndim", "dtype", "size", "itemsize", "strides", "flags", "nbytes"):
    setattr(StrictArray, _name, property(lambda self, name=_name: getattr(self._host, name)))
for _name, _call in {
    "get": "copy",
    "item": "item",
    "tolist": "tolist",
    "__bool__": "__bool__",
    "__int__": "__int__",
    "__float__": "__float__",
    "__index__": "__index__",
    "nonzero": "nonzero",
}.items():

    def _read(self, name=_name, call=_call):
        HOST_WAITS.append(name)
        if name == "get":
            COPIED_BYTES.append(self.nbytes)
        return wrap(getattr(self._host, call)()) if name == "nonzero" else getattr(self._host, call)()

    setattr(StrictArray, _name, _read)
for _name in (
    "reshape",
    "sum",
    "prod",
    "mean",
    "max",
    "min",
    "argmax",
    "argmin",
    "all",
    "any",
    "astype",
    "copy",
    "squeeze",
    "ravel",
    "transpose",
    "view",
    "fill",
):

    def _method(self, *args, name=_name, **kwargs):
        return wrap(getattr(self._host, name)(*unwrap(args), **{k: unwrap(v) for k, v in kwargs.items()}))

    setattr(StrictArray, _name, _method)
for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "radd",
    "rsub",
    "rmul",
    "rtruediv",
    "rpow",
    "rmatmul",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "and",
    "or",
    "xor",
):

    def _operator(self, other, name=f"__{_name}__"):
        return wrap(getattr(self._host, name)(*unwrap((other,))))

    setattr(StrictArray, f"__{_name}__", _operator)
for _name in ("neg", "abs", "invert"):
    setattr(StrictArray, f"__{_name}__", lambda self, name=f"__{_name}__": wrap(getattr(self._host, name)()))
for _name in ("iadd", "isub", "imul", "itruediv", "iand", "ior", "ixor"):

    def _in_place(self, other, name=f"__{_name}__"):
        getattr(self._host, name)(*unwrap((other,)))
        return self

    setattr(StrictArray, f"__{_name}__", _in_place)


def unwrap(value: Any) -> Any:
    """Return the host array of a strict array. Raise if an operand is a host array, which would fail on a GPU."""
    if isinstance(value, StrictArray):
        if value.gpu != GPUs.current:
            raise ValueError(
                f"Array device must be same as the current device: array device = {value.gpu} while current = {GPUs.current}"
            )
        return value._host
    if isinstance(value, (tuple, list)):
        return type(value)(unwrap(v) for v in value)
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}: a host array of shape {value.shape} was mixed with a device array.")
    return value


def unwrap_index(index: Any, shape: tuple[int, ...]) -> Any:
    """Return the index for the host array. Integers in arrays wrap around, and masks make the host wait."""
    parts = index if isinstance(index, tuple) else (index,)
    used = sum(0 if p is None or p is Ellipsis else p.ndim if is_mask(p) else 1 for p in parts)
    axis, host = 0, []
    for part in parts:
        if is_mask(part):
            HOST_WAITS.append("mask")
            host.append(part._host)
            axis += part.ndim
        elif part is None or isinstance(part, (bool, np.bool_)):
            host.append(part)
        elif part is Ellipsis:
            host.append(part)
            axis += len(shape) - used
        else:
            part = unwrap(part)
            host.append(part % shape[axis] if isinstance(part, np.ndarray) and shape[axis] else part)
            axis += 1
    return tuple(host) if isinstance(index, tuple) else host[0]


def is_mask(part: Any) -> bool:
    return isinstance(part, StrictArray) and part.dtype == bool


def wrap(result: Any) -> Any:
    """Wrap arrays in a result. 0-d results stay arrays, as on a device."""
    if isinstance(result, (np.ndarray, np.generic)):
        return StrictArray(result)
    if isinstance(result, (tuple, list)):
        return (tuple if hasattr(result, "_fields") else type(result))(wrap(r) for r in result)
    return result


class Namespace:
    """Functions of NumPy, or of another module, that take and return strict arrays."""

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

    def asarray(self, data: Any, dtype: Any = None) -> StrictArray:
        if isinstance(data, StrictArray):
            return data if dtype in (None, data.dtype) else data.astype(dtype)
        return StrictArray(np.array(data, dtype))

    def array(self, data: Any, dtype: Any = None) -> StrictArray:
        return StrictArray(np.array(data._host if isinstance(data, StrictArray) else data, dtype))

    def take(self, array: StrictArray, indices: Any, axis: int | None = None) -> StrictArray:
        return array.take(indices, axis)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.module, name)
        if isinstance(value, np.ufunc):
            return Ufunc(value)
        if not callable(value) or isinstance(value, type):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            if name in WAITING_FUNCTIONS or (name == "repeat" and isinstance(args[1], StrictArray)):
                HOST_WAITS.append(name)
            return wrap(value(*unwrap(args), **{k: unwrap(v) for k, v in kwargs.items()}))

        return call


class Ufunc:
    def __init__(self, ufunc: np.ufunc) -> None:
        self.ufunc = ufunc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return wrap(self.ufunc(*unwrap(args), **{k: unwrap(v) for k, v in kwargs.items()}))

    def at(self, target: StrictArray, index: Any, *rest: Any) -> None:
        # uint64 is compared as a dtype, since the type code of 64 bits depends on the platform.
        if target.dtype.char not in ATOMIC_ADD_DTYPES and target.dtype != np.uint64:
            raise TypeError(f"{target.dtype} is not supported")
        self.ufunc.at(target._host, unwrap_index(index, target.shape), *unwrap(rest))


def install() -> None:
    """Register strict arrays as arrays of the CPU."""
    register(StrictArray, Namespace(), lambda array: CPU)


def install_as_gpus(monkeypatch: Any, count: int = 2) -> None:
    """Use strict arrays in place of CuPy's arrays, for `device="cuda"`.

    They check that gradlab never mixes devices. They do not test CuPy or a GPU.
    """
    module = Namespace()
    module.cuda, module.ndarray = GPUs, StrictArray
    for name, value in {"asked": True, "cupy": module, "reason": "", "count": count}.items():
        monkeypatch.setattr(cuda, name, value)
    monkeypatch.setattr(GPUs, "current", 0)
    for table in (namespaces.namespace_of, namespaces._device_of):
        monkeypatch.setitem(
            table, StrictArray, module if table is namespaces.namespace_of else lambda array: device("cuda", array.gpu)
        )
