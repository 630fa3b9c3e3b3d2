"""State of a module: saving it as a dictionary from dotted names to tensors, and loading it."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from gradlab.core.errors import advice
from gradlab.core.modes import no_grad
from gradlab.core.node import RemovableHandle
from gradlab.core.tensor import Tensor
from gradlab.nn.parameter import Parameter

EXTRA = "_extra_state"


class _IncompatibleKeys(NamedTuple):
    """Names in the module that `load_state_dict` found no tensor for, and names that the module does not have."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def type_name(value: Any) -> str:
    """Return the name of a type as in PyTorch's errors: `gradlab.FloatTensor` for a tensor, otherwise with its module."""
    if isinstance(value, Tensor):
        return value.type()
    kind = value if hasattr(value, "__qualname__") else type(value)
    module = getattr(kind, "__module__", "")
    return kind.__qualname__ if module in ("", "builtins") else f"{module}.{kind.__qualname__}"


def named_members(module: Any, held: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
    """Yield (dotted name, tensor) for the members in one dictionary of the modules."""
    seen: set[int] = set()
    named = module.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, module)]
    for path, part in named:
        for name, value in getattr(part, held).items():
            if value is None or id(value) in seen:
                continue
            if remove_duplicate:
                seen.add(id(value))
            yield f"{path}.{name}" if path else name, value


class State:
    """Methods of Module that save and load its state."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _version: int = 1
    _state_hooks: dict[str, dict[int, Callable[..., Any]]] | None = None

    def get_extra_state(self) -> Any:
        """Return additional state to save. Subclasses define it together with `set_extra_state`.

        Returns
        -------
        object
            Picklable data.

        Raises
        ------
        RuntimeError
            If the class does not define this method.

        Examples
        --------
        >>> from gradlab import nn
        >>> class Counting(nn.Module):
        ...     count = 3
        ...     def get_extra_state(self):
        ...         return self.count
        ...     def set_extra_state(self, state):
        ...         self.count = state
        >>> Counting().state_dict()["_extra_state"]
        3
        """
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Restore the state returned by `get_extra_state`. Subclasses define both.

        Parameters
        ----------
        state : object
            The saved state.

        Returns
        -------
        None

        Raises
        ------
        RuntimeError
            If the class does not define this method.

        Examples
        --------
        >>> from gradlab import nn
        >>> class Counting(nn.Module):
        ...     count = 3
        ...     def get_extra_state(self):
        ...         return self.count
        ...     def set_extra_state(self, state):
        ...         self.count = state
        >>> net = Counting()
        >>> _ = net.load_state_dict({"_extra_state": 7})
        >>> net.count
        7
        """
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def _has_own(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(State, method)

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Return the parameters and persistent buffers by their dotted names.

        Parameters
        ----------
        *args : optional
            `destination`, `prefix` and `keep_vars` as positional arguments: deprecated, with a warning as in PyTorch.
        destination : dict, optional
            Dictionary to fill (default: a new OrderedDict).
        prefix : str, default: ""
            Prefix of the names.
        keep_vars : bool, default: False
            Return the parameters themselves instead of detached tensors.

        Returns
        -------
        OrderedDict
            The tensors share the memory of the parameters.

        Raises
        ------
        RuntimeError
            If a hook of `register_state_dict_post_hook` returns something.

        Examples
        --------
        >>> from gradlab import nn
        >>> list(nn.Linear(2, 3).state_dict(prefix="head."))
        ['head.weight', 'head.bias']
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to https://pytorch.org/docs/main/"
                "generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            options: list[Any] = [*args, *(destination, prefix, keep_vars)[len(args) :]]
            destination, prefix, keep_vars = options
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._hooks_of_state("before_saving"):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._hooks_of_state("after_saving"):
            if hook(self, destination, prefix, metadata) is not None:
                raise RuntimeError("state_dict post-hook must return None")
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Write the module's own tensors, without those of its submodules."""
        for name, value in (*self._parameters.items(), *self._buffers.items()):
            if value is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = value if keep_vars else value.detach()
        if self._has_own("get_extra_state"):
            destination[prefix + EXTRA] = self.get_extra_state()

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> _IncompatibleKeys:
        """Copy the tensors of a `state_dict` into the parameters and buffers of the same names.

        Parameters
        ----------
        state_dict : mapping of str to Tensor
            Result of `state_dict()`, of this or another model.
        strict : bool, default: True
            Require the same names in both.
        assign : bool, default: False
            Use the given tensors in place of the module's own, instead of copying them.

        Returns
        -------
        tuple of missing_keys and unexpected_keys
            Two lists of str.

        Raises
        ------
        RuntimeError
            If shapes differ, or if `strict` and names are missing or unexpected.
        TypeError
            If `state_dict` is not a mapping.

        Examples
        --------
        >>> from gradlab import nn
        >>> one, other = nn.Linear(2, 3), nn.Linear(2, 3)
        >>> one.load_state_dict(other.state_dict())
        <All keys matched successfully>
        >>> bool((one.weight == other.weight).all())
        True
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(
                f"Expected state_dict to be dict-like, got {type(state_dict)}. "
                + advice("Pass the result of model.state_dict() or gradlab.load().")
            )
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        entries: Any = OrderedDict(state_dict)
        if metadata is not None:
            entries._metadata = metadata

        def load(module: Any, of_module: Any, prefix: str) -> None:
            local = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local = {**local, "assign_to_params_buffers": True}
            module._load_from_state_dict(of_module, prefix, local, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    below = f"{prefix}{name}."
                    load(child, {k: v for k, v in of_module.items() if k.startswith(below)}, below)
            for hook in module._hooks_of_state("after_loading"):
                if hook(module, _IncompatibleKeys(missing, unexpected)) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to "
                        "return new values, if incompatible_keys need to be modified, it should be done "
                        "inplace."
                    )

        load(self, entries, "")
        if strict:
            for what, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    errors.insert(0, f"{what} key(s) in state_dict: {', '.join(map(quote_key, keys))}. ")
        if errors:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors))
        return _IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load the module's own tensors. Append missing and unexpected names, and errors, to the lists."""
        for hook in self._hooks_of_state("before_loading"):
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        own = {
            name: value
            for name, value in (*self._parameters.items(), *self._buffers.items())
            if value is not None and name not in self._non_persistent_buffers_set
        }
        for name, value in own.items():
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            new = state_dict[key]
            if not isinstance(new, Tensor):
                error_msgs.append(
                    f'While copying the parameter named "{key}", expected gradlab.Tensor or Tensor-like object '
                    f"from checkpoint but received {type(new)}"
                )
            elif new.shape != value.shape and not (new.shape == (1,) and value.shape == ()):
                error_msgs.append(
                    f"size mismatch for {key}: copying a param with shape {new.shape} from checkpoint, the shape "
                    f"in current model is {value.shape}."
                )
            else:
                self._load_one(
                    name,
                    value,
                    new if new.shape == value.shape else new[0],
                    key,
                    local_metadata.get("assign_to_params_buffers", False),
                    error_msgs,
                )
        extra = prefix + EXTRA
        if self._has_own("set_extra_state"):
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    first, *below = key[len(prefix) :].split(".", 1)
                    if first not in (self._modules if below else own):
                        unexpected_keys.append(key)

    def _load_one(self, name: str, value: Tensor, new: Tensor, key: str, assign: bool, errors: list[str]) -> None:
        try:
            if not assign:
                with no_grad():
                    value.copy_(new)
            elif isinstance(value, Parameter):
                setattr(
                    self,
                    name,
                    new.requires_grad_(value.requires_grad)
                    if isinstance(new, Parameter)
                    else Parameter(new, requires_grad=value.requires_grad),
                )
            else:
                setattr(self, name, new)
        except Exception as error:  # noqa: BLE001  (reported with the others)
            errors.append(
                f'While copying the parameter named "{key}", whose dimensions in the model are {value.shape} and whose '
                f"dimensions in the checkpoint are {new.shape}, an exception occurred : {error.args}."
            )

    # -------------------------------------------------------------------------------------------------------------- hooks
    def _hooks_of_state(self, kind: str) -> list[Callable[..., Any]]:
        return [] if self._state_hooks is None else list(self._state_hooks.get(kind, {}).values())

    def _add_state_hook(self, kind: str, hook: Callable[..., Any]) -> RemovableHandle:
        if self._state_hooks is None:
            object.__setattr__(self, "_state_hooks", {})
        assert self._state_hooks is not None
        return RemovableHandle(self._state_hooks.setdefault(kind, {}), hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register a hook to run before `state_dict`.

        Parameters
        ----------
        hook : callable
            `hook(module, prefix, keep_vars)`.

        Returns
        -------
        RemovableHandle
            Handle with `remove()`, which removes the hook.

        Examples
        --------
        >>> from gradlab import nn
        >>> net, seen = nn.Linear(2, 3), []
        >>> handle = net.register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen.append(keep_vars))
        >>> state = net.state_dict()
        >>> seen
        [False]
        """
        return self._add_state_hook("before_saving", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register a hook to run after `state_dict`. It may change the dictionary in place.

        Parameters
        ----------
        hook : callable
            `hook(module, state_dict, prefix, local_metadata)`.

        Returns
        -------
        RemovableHandle
            Handle with `remove()`, which removes the hook.

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.Linear(2, 3)
        >>> def without_bias(module, state_dict, prefix, local_metadata):
        ...     del state_dict[prefix + "bias"]
        >>> handle = net.register_state_dict_post_hook(without_bias)
        >>> list(net.state_dict())
        ['weight']
        """
        return self._add_state_hook("after_saving", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register a hook to run before tensors are loaded. It may change the dictionary in place.

        Parameters
        ----------
        hook : callable
            `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`.

        Returns
        -------
        RemovableHandle
            Handle with `remove()`, which removes the hook.

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.Linear(2, 3)
        >>> def renamed(module, state_dict, prefix, *more):
        ...     state_dict[prefix + "weight"] = state_dict.pop(prefix + "w")
        >>> handle = net.register_load_state_dict_pre_hook(renamed)
        >>> net.load_state_dict({"w": net.weight.detach(), "bias": net.bias.detach()})
        <All keys matched successfully>
        """
        return self._add_state_hook("before_loading", hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register a hook to run after loading. It may change the lists in place.

        Parameters
        ----------
        hook : callable
            `hook(module, incompatible_keys)`.

        Returns
        -------
        RemovableHandle
            Handle with `remove()`, which removes the hook.

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.Linear(2, 3)
        >>> handle = net.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
        >>> net.load_state_dict({"weight": net.weight.detach()})
        <All keys matched successfully>
        """
        return self._add_state_hook("after_loading", hook)


def quote_key(key: str) -> str:
    return f'"{key}"'
