"""Containers of modules: `Sequential`, `ModuleList` and `ModuleDict`; and `Identity`."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from gradlab.nn.modules.module import Module

__all__ = ["DataParallel", "Identity", "ModuleDict", "ModuleList", "Sequential"]


def resolve_index(index: Any, length: int) -> int:
    """Convert an index that may be negative. Raise if it is out of range."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length


class Identity(Module):
    """Return the input unchanged: a placeholder for another layer.

    Parameters
    ----------
    *args, **kwargs : Any
        Arguments of the other layer, which are ignored.

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
        """Return the input."""
        return input


class DataParallel(Module):
    """Wrapper for programs that distribute batches over several GPUs. Here the module runs on one device.

    Parameters
    ----------
    module : Module
        The module to call. Names in the `state_dict` begin with `module.`.
    device_ids, output_device, dim : optional
        Devices of PyTorch's version, which are ignored.

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


class IndexedContainer(Module):
    """Base of containers whose modules have the names "0", "1", …"""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def _key(self, index: Any) -> str:
        return list(self._modules)[resolve_index(index, len(self))]

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
        """Append a module.

        Parameters
        ----------
        module : Module
            The module.

        Returns
        -------
        Module
            This container.

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.ModuleList([nn.ReLU(), nn.Tanh()])
        >>> len(net.append(nn.ELU()))
        3
        """
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Any) -> Any:
        """Insert a module before an index.

        Parameters
        ----------
        index : int
            Index, which may be negative.
        module : Module
            The module.

        Returns
        -------
        Module
            This container.

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.ModuleList([nn.ReLU(), nn.Tanh()])
        >>> net.insert(0, nn.ELU())[0]
        ELU(alpha=1.0)
        """
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: Any) -> Any:
        """Remove and return a module.

        Parameters
        ----------
        key : int or slice
            Index of the module.

        Returns
        -------
        Module
            The module.

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.ModuleList([nn.ReLU(), nn.Tanh()])
        >>> net.pop(0), len(net)
        (ReLU(), 1)
        """
        module = self[key]
        del self[key]
        return module


class Sequential(IndexedContainer):
    """Call modules one after the other: `Sequential(a, b)(x)` is `b(a(x))`.

    Parameters
    ----------
    *args : Module, or one OrderedDict
        The modules in order. An OrderedDict gives their names; otherwise they are "0", "1", …

    Notes
    -----
    Input: that of the first module. Output: that of the last module. Indices, slices, `+` and `*` work as for lists.

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
        """Call each module with the output of the previous one."""
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
        """Insert a module before an index.

        Parameters
        ----------
        index : int
            Index, which may be negative.
        module : Module
            The module.

        Returns
        -------
        Sequential
            This container.

        Raises
        ------
        TypeError
            If `module` is not a Module.
        IndexError
            If `index` is out of range.

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.Sequential(nn.ReLU(), nn.Tanh())
        >>> net.insert(1, nn.ELU())[1]
        ELU(alpha=1.0)
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        return super().insert(index, module)

    def extend(self, sequential: Iterable[Module]) -> Sequential:
        """Append modules.

        Parameters
        ----------
        sequential : iterable of Module
            The modules.

        Returns
        -------
        Sequential
            This container.

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.Sequential(nn.ReLU(), nn.Tanh())
        >>> len(net.extend([nn.ELU()]))
        3
        """
        for module in list(sequential):
            self.append(module)
        return self


class ModuleList(IndexedContainer):
    """A list of modules whose parameters belong to the module that contains the list.

    Parameters
    ----------
    modules : iterable of modules, optional
        Initial content.

    Notes
    -----
    It has no `forward`: index it or iterate over it.

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
        """Append modules.

        Parameters
        ----------
        modules : iterable of Module
            The modules.

        Returns
        -------
        ModuleList
            This list.

        Raises
        ------
        TypeError
            If `modules` is not iterable.

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.ModuleList([nn.ReLU(), nn.Tanh()])
        >>> len(net.extend([nn.ELU(), nn.GELU()]))
        4
        """
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def __repr__(self) -> str:
        runs: list[tuple[int, int, str]] = []  # first, last, text: equal neighbours share a line
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
    """A dictionary of modules in insertion order, whose parameters belong to the module that contains it.

    Parameters
    ----------
    modules : mapping or iterable of (name, module), optional
        Initial content.

    Notes
    -----
    It has no `forward`: call `modules["name"]`.

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
        """Remove all modules.

        Returns
        -------
        None

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        >>> net.clear()
        >>> len(net)
        0
        """
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove and return a module.

        Parameters
        ----------
        key : str
            Its name.

        Returns
        -------
        Module
            The module.

        Raises
        ------
        KeyError
            If there is no module with that name.

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        >>> net.pop("a")
        ReLU()
        """
        return self._modules.pop(key)

    def keys(self) -> Any:
        """Return the names, in insertion order.

        Returns
        -------
        view of str

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        >>> list(net.keys())
        ['a', 'b']
        """
        return self._modules.keys()

    def items(self) -> Any:
        """Return the names and modules.

        Returns
        -------
        view of (str, Module)

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        >>> dict(net.items())
        {'a': ReLU(), 'b': Tanh()}
        """
        return self._modules.items()

    def values(self) -> Any:
        """Return the modules.

        Returns
        -------
        view of Module

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        >>> list(net.values())
        [ReLU(), Tanh()]
        """
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules, replacing modules of the same names.

        Parameters
        ----------
        modules : mapping or iterable of (str, Module)
            The modules with their names.

        Returns
        -------
        None

        Raises
        ------
        TypeError, ValueError
            If `modules` is neither a mapping nor an iterable.

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        >>> net.update({"b": nn.ELU()})
        >>> net["b"]
        ELU(alpha=1.0)
        """
        for key, module in key_value_pairs("ModuleDict", modules):
            self[key] = module


def key_value_pairs(name: str, iterable: Any) -> list[tuple[Any, Any]]:
    """Return the (key, value) pairs of a mapping or of an iterable of pairs."""
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
