"""Lists and dictionaries of parameters. Other values are stored as they are."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.nn.modules.container import key_value_pairs, resolve_index
from gradlab.nn.modules.module import Module
from gradlab.nn.modules.state import type_name
from gradlab.nn.parameter import Parameter

__all__ = ["ParameterDict", "ParameterList"]


def as_parameter(value: Any) -> Any:
    """Convert a tensor to a Parameter. Return anything else unchanged."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def describe_item(key: Any, value: Any, typed: Callable[[Tensor], Any]) -> str:
    """Return a line of `repr` for an item of a list or dictionary of parameters."""
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    place = f" ({value.device})" if value.is_cuda else ""
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"  ({key}): {kind} containing: [{typed(value)} of size {'x'.join(map(str, value.shape))}{place}]"


class ParameterList(Module):
    """A list of parameters, which belong to the module that contains the list.

    Parameters
    ----------
    values : iterable, optional
        Initial content. Tensors become parameters; other values are stored unchanged.

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
        return getattr(self, str(resolve_index(index, len(self))))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(resolve_index(index, len(self))), as_parameter(value))

    def append(self, value: Any) -> ParameterList:
        """Append a value.

        Parameters
        ----------
        value : Tensor or Any
            A tensor becomes a Parameter; other values are stored unchanged.

        Returns
        -------
        ParameterList
            This list.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> len(nn.ParameterList([gl.ones(2)]).append(gl.zeros(3)))
        2
        """
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Append values.

        Parameters
        ----------
        values : iterable
            Tensors become Parameters; other values are stored unchanged.

        Returns
        -------
        ParameterList
            This list.

        Raises
        ------
        TypeError
            If `values` is not iterable.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> len(nn.ParameterList().extend([gl.ones(2), gl.zeros(3)]))
        2
        """
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    __iadd__ = extend

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def extra_repr(self) -> str:
        return "\n".join(describe_item(n, value, lambda x: x.dtype) for n, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters in insertion order, which belong to the module that contains it.

    Parameters
    ----------
    parameters : mapping or iterable of (name, value), optional
        Initial content. Tensors become parameters; other values are stored unchanged.

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
        """Return the names, in insertion order.

        Returns
        -------
        view of str

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> weights = nn.ParameterDict({"a": gl.ones(1)})
        >>> list(weights.keys())
        ['a']
        """
        return self._keys.keys()

    def items(self) -> Any:
        """Return the names and parameters.

        Returns
        -------
        iterable of (str, Parameter)

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> weights = nn.ParameterDict({"a": gl.ones(1)})
        >>> [(name, weight.item()) for name, weight in weights.items()]
        [('a', 1.0)]
        """
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Any:
        """Return the parameters.

        Returns
        -------
        iterable of Parameter

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> weights = nn.ParameterDict({"a": gl.ones(1)})
        >>> [weight.item() for weight in weights.values()]
        [1.0]
        """
        return (self[key] for key in self._keys)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the parameter with a name, or a default.

        Parameters
        ----------
        key : str
            The name.
        default : Any, optional
            Value to return if there is none (default: None).

        Returns
        -------
        Parameter or Any
            The value.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> weights = nn.ParameterDict({"a": gl.ones(1)})
        >>> weights.get("b", 7)
        7
        """
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the parameter with a name. If there is none, add the default.

        Parameters
        ----------
        key : str
            The name.
        default : Tensor or Any, optional
            Value to add.

        Returns
        -------
        Parameter or Any
            The value.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> weights = nn.ParameterDict({"a": gl.ones(1)})
        >>> weights.setdefault("b", gl.zeros(1)).requires_grad
        True
        """
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Remove and return a parameter.

        Parameters
        ----------
        key : str
            The name.

        Returns
        -------
        Parameter or Any
            The value.

        Raises
        ------
        KeyError
            If there is no parameter with that name.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> weights = nn.ParameterDict({"a": gl.ones(1)})
        >>> weights.pop("a").item(), len(weights)
        (1.0, 0)
        """
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the last parameter, with its name.

        Returns
        -------
        (str, Parameter)
            The name and the parameter.

        Raises
        ------
        KeyError
            If the dictionary is empty.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> weights = nn.ParameterDict({"a": gl.ones(1)})
        >>> weights.popitem()[0]
        'a'
        """
        key = next(reversed(self))
        return key, self.pop(key)

    def clear(self) -> None:
        """Remove all parameters.

        Returns
        -------
        None

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> weights = nn.ParameterDict({"a": gl.ones(1)})
        >>> weights.clear()
        >>> len(weights)
        0
        """
        for key in list(self._keys):
            del self[key]

    def copy(self) -> ParameterDict:
        """Return a new dictionary with the same parameters.

        Returns
        -------
        ParameterDict

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> weights = nn.ParameterDict({"a": gl.ones(1)})
        >>> weights.copy()["a"] is weights["a"]
        True
        """
        return ParameterDict(OrderedDict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a new dictionary with the same default for each name.

        Parameters
        ----------
        keys : iterable of str
            The names.
        default : Tensor or Any, optional
            Value of each name.

        Returns
        -------
        ParameterDict

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> weights = nn.ParameterDict({"a": gl.ones(1)})
        >>> list(weights.fromkeys(["x", "y"], gl.zeros(1)).keys())
        ['x', 'y']
        """
        return ParameterDict((key, default) for key in keys)

    def update(self, parameters: Any) -> None:
        """Add parameters, replacing parameters of the same names.

        Parameters
        ----------
        parameters : mapping or iterable of (str, Tensor)
            The parameters with their names.

        Returns
        -------
        None

        Raises
        ------
        TypeError, ValueError
            If `parameters` is neither a mapping nor an iterable.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> weights = nn.ParameterDict({"a": gl.ones(1)})
        >>> weights.update({"b": gl.zeros(2)})
        >>> len(weights)
        2
        """
        for key, value in key_value_pairs("ParameterDict", parameters):
            self[key] = value

    def __or__(self, other: ParameterDict) -> ParameterDict:
        union = self.copy()
        union.update(other)
        return union

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        return "\n".join(describe_item(key, value, type_name) for key, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")
