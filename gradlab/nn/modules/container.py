"""Modules that hold others in order or by name: Sequential, ModuleList, ModuleDict, and lists and dicts of parameters; and
`Identity`, which holds a place."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.nn.modules.module import Module
from gradlab.nn.modules.state import type_named
from gradlab.nn.parameter import Parameter

__all__ = ["DataParallel", "Identity", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def position(index: Any, length: int) -> int:
    """The index from 0 of one that may count from the end."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length


class Identity(Module):
    """Hands its input on: it stands where another layer stood.

    Parameters
    ----------
    *args, **kwargs : Any
        Whatever the other layer took. They change nothing.

    Notes
    -----
    Input: anything. Output: the same object.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x = gradlab.ones(2)
    >>> nn.Identity(54, bias=False)(x) is x
    True
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """The input."""
        return input


class DataParallel(Module):
    """A module for programs that would spread its batches over several GPUs: here it is called on one device.

    Parameters
    ----------
    module : Module
        What is called. It stays under the name `module`, as its parameters do in a state_dict.
    device_ids, output_device, dim : optional
        Where torch would spread the batches. They change nothing.

    Examples
    --------
    >>> from gradlab import nn
    >>> parallel = nn.DataParallel(nn.Linear(2, 1))
    >>> [name for name, _ in parallel.named_parameters()]
    ['module.weight', 'module.bias']
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.dim, self.module, self.output_device = dim, module, output_device
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **options: Any) -> Any:
        return self.module(*inputs, **options)


class Numbered(Module):
    """Modules under the names "0", "1", …"""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def _key(self, index: Any) -> str:
        return list(self._modules)[position(index, len(self))]

    def _renumber(self, modules: Iterable[Any]) -> None:
        self._modules = {str(n): module for n, module in enumerate(modules)}

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))  # type: ignore[call-arg]
        return self._modules[self._key(index)]

    def __setitem__(self, index: int, module: Any) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: Any) -> None:
        for key in list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]:
            del self._modules[key]
        self._renumber(self._modules.values())

    def append(self, module: Any) -> Any:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Any) -> Any:
        """Put a module before the one at `index`."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: Any) -> Any:
        """Take a module out, and return it."""
        module = self[key]
        del self[key]
        return module


class Sequential(Numbered):
    """Modules that are called one after the other: `Sequential(a, b)(x)` is `b(a(x))`.

    Parameters
    ----------
    *args : Module, or one OrderedDict
        The modules in order. An OrderedDict gives them names; else they are "0", "1", ….

    Notes
    -----
    Input: what the first module takes. Output: what the last returns. Indices, slices, `+` and `*` work as on a list.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> model
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
      (2): Linear(in_features=3, out_features=1, bias=True)
    )
    >>> model(gradlab.ones(5, 2)).shape == (5, 1)
    True
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for n, module in enumerate(args):
                self.add_module(str(n), module)

    def forward(self, input: Any) -> Any:
        """What the last module makes of what those before it made."""
        for module in self._modules.values():
            input = module(input)
        return input

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return self.extend(other)

    def __mul__(self, other: int) -> Sequential:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return Sequential(*(module for _ in range(other) for module in self))

    __rmul__ = __mul__

    def insert(self, index: int, module: Module) -> Sequential:
        """Put a module before the one at `index`."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        return super().insert(index, module)

    def extend(self, sequential: Iterable[Module]) -> Sequential:
        """Add modules at the end."""
        for module in list(sequential):
            self.append(module)
        return self


class ModuleList(Numbered):
    """A list of modules, whose parameters belong to the module that holds it.

    Parameters
    ----------
    modules : iterable of modules, optional
        What it holds at the start.

    Notes
    -----
    It has no forward of its own: index it, or run through it.

    Examples
    --------
    >>> from gradlab import nn
    >>> layers = nn.ModuleList([nn.Linear(2, 2, bias=False) for _ in range(3)])
    >>> len(list(layers.parameters()))
    3
    """

    def __init__(self, modules: Iterable[Any] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules.values() if isinstance(modules, Mapping) else modules)

    def __add__(self, other: Iterable[Any]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __iadd__(self, modules: Iterable[Any]) -> ModuleList:
        return self.extend(modules)

    def extend(self, modules: Iterable[Any]) -> ModuleList:
        """Add modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def __repr__(self) -> str:
        runs: list[tuple[int, int, str]] = []  # first, last, text: equal neighbours stand on one line
        for n, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], n, text)
            else:
                runs.append((n, n, text))
        if not runs:
            return f"{self._get_name()}()"
        lines = (
            f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}"
            for first, last, text in runs
        )
        return f"{self._get_name()}(\n" + "".join("  " + line.replace("\n", "\n  ") + "\n" for line in lines) + ")"


class ModuleDict(Module):
    """Modules by name, in the order of insertion.

    Parameters
    ----------
    modules : mapping or iterable of (name, module), optional
        What it holds at the start.

    Notes
    -----
    It has no forward of its own: `modules["name"]` is called.

    Examples
    --------
    >>> from gradlab import nn
    >>> choices = nn.ModuleDict({"relu": nn.ReLU(), "tanh": nn.Tanh()})
    >>> choices["relu"]
    ReLU()
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Any) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Take a module out, and return it."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """(name, module) pairs."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add those of a mapping, or of an iterable of (name, module)."""
        for key, module in pairs("ModuleDict", modules):
            self[key] = module


def pairs(name: str, iterable: Any) -> list[tuple[Any, Any]]:
    """The (key, value) pairs of a mapping or of an iterable of pairs."""
    if not isinstance(iterable, Iterable):
        raise TypeError(f"{name}.update should be called with an iterable of key/value pairs, but got {type(iterable).__name__}")
    if hasattr(iterable, "items"):
        return list(iterable.items())
    items = []
    for n, pair in enumerate(iterable):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{name} update sequence element #{n} should be Iterable; is {type(pair).__name__}")
        item = tuple(pair)
        if len(item) != 2:
            raise ValueError(f"{name} update sequence element #{n} has length {len(item)}; 2 is required")
        items.append(item)
    return items


def as_parameter(value: Any) -> Any:
    """A tensor as a Parameter; anything else as it is."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def described(key: Any, value: Any, typed: Callable[[Tensor], Any]) -> str:
    """A line of the text of a list or dict of parameters."""
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    place = f" ({value.device})" if value.is_cuda else ""
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"  ({key}): {kind} containing: [{typed(value)} of size {'x'.join(map(str, value.shape))}{place}]"


class ParameterList(Module):
    """A list of parameters, which belong to the module that holds it.

    Parameters
    ----------
    values : iterable, optional
        What it holds at the start. Tensors become parameters; anything else stays as it is.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> weights = nn.ParameterList([gradlab.zeros(2, 3), gradlab.zeros(3)])
    >>> weights[0].requires_grad
    True
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[n] for n in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            part = type(self)()
            return part.extend(self[n] for n in range(*index.indices(len(self))))
        return getattr(self, str(position(index, len(self))))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(position(index, len(self))), as_parameter(value))

    def append(self, value: Any) -> ParameterList:
        """Add one at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add some at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    __iadd__ = extend

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def extra_repr(self) -> str:
        """A line for each."""
        return "\n".join(described(n, value, lambda x: x.dtype) for n, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """Parameters by name, in the order of insertion.

    Parameters
    ----------
    parameters : mapping or iterable of (name, value), optional
        What it holds at the start. Tensors become parameters; anything else stays as it is.

    Raises
    ------
    TypeError
        If a name is not a string.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> weights = nn.ParameterDict({"w": gradlab.zeros(2)})
    >>> weights["w"].requires_grad
    True
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._attribute(key))

    def _attribute(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                f"Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[self._attribute(key)] = None
        setattr(self, key, as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def keys(self) -> Any:
        """The names."""
        return self._keys.keys()

    def items(self) -> Any:
        """(name, parameter) pairs."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Any:
        """The parameters."""
        return (self[key] for key in self._keys)

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter of that name, or the default."""
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter of that name; the default is put in if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Take a parameter out, and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take the last out, and return it with its name."""
        key = next(reversed(self))
        return key, self.pop(key)

    def clear(self) -> None:
        """Remove all."""
        for key in list(self._keys):
            del self[key]

    def copy(self) -> ParameterDict:
        """Another with the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Another, with the default under each name."""
        return ParameterDict((key, default) for key in keys)

    def update(self, parameters: Any) -> None:
        """Add those of a mapping, or of an iterable of (name, parameter)."""
        for key, value in pairs("ParameterDict", parameters):
            self[key] = value

    def __or__(self, other: ParameterDict) -> ParameterDict:
        union = self.copy()
        union.update(other)
        return union

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        """A line for each."""
        return "\n".join(described(key, value, type_named) for key, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")
