"""Base classes of optimizers: groups of parameters, their state, and the loop over them in `step`.

An optimizer with an elementwise formula derives from `Elementwise` and defines only the formula. The loop passes it flat pieces
that fit in the cache together (`BLOCK`), and scratch arrays of the same shape, so that a step reads memory once and allocates
nothing. Writes change the versions of parameters (`mark_written`). Nothing is recorded.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.modes import enable_grad, no_grad
from gradlab.core.observers import OBSERVERS, notify_before_optimizer_step, notify_before_write, notify_optimizer_step
from gradlab.core.storage import mark_written
from gradlab.core.tensor import Tensor, constant

__all__ = ["Optimizer"]

Closure = Callable[[], Any]
Group = dict[str, Any]
BLOCK = 1 << 17  # elements: six pieces of float32 are 3 MB. With smaller pieces, the calls take more time


def with_step_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `step` of a class to run the hooks, and to record that it was called, for the warning of schedulers."""

    @functools.wraps(step)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        for hook in tuple(self._before.values()):
            changed = hook(self, args, kwargs)
            if changed is not None:
                args, kwargs = changed
        self._stepped = True
        if OBSERVERS:
            notify_before_optimizer_step(self)
        result = step(self, *args, **kwargs)
        for hook in tuple(self._after.values()):
            hook(self, args, kwargs)
        if OBSERVERS:
            notify_optimizer_step(self)
        return result

    return wrapper


class Handle:
    """Handle of a registered hook."""

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self.hooks, self.key = hooks, id(self)
        hooks[self.key] = hook

    def remove(self) -> None:
        """Remove the hook."""
        self.hooks.pop(self.key, None)


class Optimizer:
    """Base class of all optimizers, with groups of parameters, their settings and their state.

    Parameters
    ----------
    params : iterable
        Parameters, (name, parameter) pairs, or dicts with the key "params" and their own settings.
    defaults : dict
        Default settings of the groups.

    Attributes
    ----------
    param_groups : list of dicts
        The groups: "params" and the settings. A changed setting applies from the next step.
    state : dict
        State of each parameter.

    Raises
    ------
    TypeError
        If `params` is a single tensor, or contains an object other than tensors.
    ValueError
        If `params` is empty, or a parameter is in two groups or is not a leaf.

    Notes
    -----
    Subclasses define `step`.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import optim
    >>> class Descent(optim.Optimizer):
    ...     @gradlab.no_grad()
    ...     def step(self):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p -= group["lr"] * p.grad
    >>> x = gradlab.tensor([1.0, -2.0], requires_grad=True)
    >>> (x ** 2).sum().backward()
    >>> Descent([x], {"lr": 0.25}).step()
    >>> x.detach()
    tensor([ 0.5000, -1.0000])
    """

    _stepped = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):
            cls.step = with_step_hooks(vars(cls)["step"])  # type: ignore[method-assign]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"{params.type()}. Put it in a list: [w]."
            )
        self.defaults = defaults
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[Group] = []
        self._before: dict[int, Any] = OrderedDict()
        self._after: dict[int, Any] = OrderedDict()
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list. A generator yields its items only once: was it used before?")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__.setdefault("_before", OrderedDict())
        self.__dict__.setdefault("_after", OrderedDict())

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n" + "".join(f"    {k}: {group[k]}\n" for k in sorted(group) if k != "params")
        return text + ")"

    def add_param_group(self, param_group: Group) -> None:
        """Add a group of parameters with its own settings.

        Parameters
        ----------
        param_group : dict
            "params" (one or several tensors) and settings. Missing settings are taken from the defaults.

        Returns
        -------
        None

        Raises
        ------
        TypeError
            If it is not a dict, or "params" is a set or contains an object other than tensors.
        ValueError
            If a parameter is not a leaf or is already in a group, or a required setting is missing.

        Examples
        --------
        >>> import gradlab as gl
        >>> w = gl.ones(2, requires_grad=True)
        >>> optimizer = gl.optim.SGD([w], lr=0.5, momentum=0.9)
        >>> optimizer.add_param_group({"params": gl.zeros(3, requires_grad=True), "lr": 0.1})
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.5, 0.1]
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in "
                "sets will change between runs. Please use a list instead."
            )
        params = [params] if isinstance(params, Tensor) else list(params)
        named = [isinstance(p, tuple) for p in params]
        if any(named):
            if not all(named):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            param_group["param_names"] = [name for name, _ in params]
            params = [p for _, p in params]
        param_group["params"] = params
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {_type_name(p)}")
            if not (p.is_leaf or p.retains_grad or self.defaults.get("differentiable")):
                raise ValueError(
                    "can't optimize a non-leaf Tensor. It is computed from other tensors: pass those to the "
                    "optimizer, or p.detach().requires_grad_()."
                )
        for name, value in self.defaults.items():
            param_group.setdefault(name, value)
        if len(set(map(id, params))) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if not known.isdisjoint(map(id, params)):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in param_group) != ("param_names" in self.param_groups[0]):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group with"
                f"{'' if 'param_names' in param_group else 'out'} names to the optimizer"
            )
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters.

        Parameters
        ----------
        set_to_none : bool, default: True
            Set `.grad` to None instead of zeros.

        Returns
        -------
        None

        Examples
        --------
        >>> import gradlab as gl
        >>> w = gl.ones(2, requires_grad=True)
        >>> optimizer = gl.optim.SGD([w], lr=0.5, momentum=0.9)
        >>> w.sum().backward()
        >>> optimizer.zero_grad()
        >>> w.grad is None
        True
        """
        for group in self.param_groups:
            for p in group["params"]:
                grad = p.grad_slot
                if set_to_none:
                    p.grad_slot = None
                elif grad is not None:
                    p.grad_slot = grad = grad.detach()
                    grad.zero_()

    def step(self, closure: Closure | None = None) -> Any:
        """Update the parameters from their gradients.

        Parameters
        ----------
        closure : callable, optional
            Function that computes the loss, calls `backward()` and returns the loss.

        Returns
        -------
        Tensor or None
            Result of the closure.

        Raises
        ------
        NotImplementedError
            If the class does not define this method.

        Examples
        --------
        >>> import gradlab as gl
        >>> w = gl.ones(2, requires_grad=True)
        >>> optimizer = gl.optim.SGD([w], lr=0.5, momentum=0.9)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([0.5000, 0.5000], requires_grad=True)
        """
        raise NotImplementedError(f"{type(self).__name__} defines no step.")

    # -------------------------------------------------------------------------------------------------- saving and loading
    def state_dict(self) -> dict[str, Any]:
        """Return the state and the settings.

        Returns
        -------
        dict
            "state", by the number of each parameter in the order of the groups, and "param_groups". Tensors are not copied.

        Examples
        --------
        >>> import gradlab as gl
        >>> w = gl.ones(2, requires_grad=True)
        >>> optimizer = gl.optim.SGD([w], lr=0.5, momentum=0.9)
        >>> optimizer.state_dict()["param_groups"][0]["momentum"]
        0.9
        """
        number: dict[int, int] = {}
        for p in chain.from_iterable(group["params"] for group in self.param_groups):
            number.setdefault(id(p), len(number))
        groups = [
            {**{k: v for k, v in group.items() if k != "params"}, "params": [number[id(p)] for p in group["params"]]}
            for group in self.param_groups
        ]
        return {
            "state": {number[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()},
            "param_groups": groups,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict`.

        Parameters
        ----------
        state_dict : dict
            State of an optimizer with the same numbers of groups and of parameters in each group.

        Returns
        -------
        None

        Raises
        ------
        ValueError
            If these numbers differ.

        Examples
        --------
        >>> import gradlab as gl
        >>> w = gl.ones(2, requires_grad=True)
        >>> optimizer = gl.optim.SGD([w], lr=0.5, momentum=0.9)
        >>> other = gl.optim.SGD([gl.zeros(2, requires_grad=True)], lr=0.1)
        >>> other.load_state_dict(optimizer.state_dict())
        >>> other.param_groups[0]["lr"]
        0.5
        """
        saved = deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise ValueError(
                "loaded state dict has a different number of parameter groups. It has "
                f"{len(saved)}, this optimizer has {len(self.param_groups)}."
            )
        if any(len(new["params"]) != len(old["params"]) for new, old in zip(saved, self.param_groups, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group. "
                f"It has groups of {[len(g['params']) for g in saved]} parameters, this optimizer has groups of "
                f"{[len(g['params']) for g in self.param_groups]}."
            )
        params: dict[int, Tensor] = {}
        for new, old in zip(saved, self.param_groups, strict=True):
            params.update(zip(new["params"], old["params"], strict=True))
            new["params"] = old["params"]
            for name, value in self.defaults.items():
                new.setdefault(name, value)
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            state[params.get(key, key)] = _cast_state(value, params[key]) if key in params else value
        self.state, self.param_groups = state, saved

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Register a hook to run before each step.

        Parameters
        ----------
        hook : callable
            `hook(optimizer, args, kwargs)`. It may return other (args, kwargs).

        Returns
        -------
        RemovableHandle
            Handle with `remove()`, which removes the hook.

        Examples
        --------
        >>> import gradlab as gl
        >>> w = gl.ones(2, requires_grad=True)
        >>> optimizer = gl.optim.SGD([w], lr=0.5, momentum=0.9)
        >>> steps = []
        >>> handle = optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: steps.append(args))
        >>> optimizer.step()
        >>> steps
        [()]
        """
        return Handle(self._before, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Register a hook to run after each step.

        Parameters
        ----------
        hook : callable
            `hook(optimizer, args, kwargs)`.

        Returns
        -------
        RemovableHandle
            Handle with `remove()`, which removes the hook.

        Examples
        --------
        >>> import gradlab as gl
        >>> w = gl.ones(2, requires_grad=True)
        >>> optimizer = gl.optim.SGD([w], lr=0.5, momentum=0.9)
        >>> steps = []
        >>> handle = optimizer.register_step_post_hook(lambda optimizer, args, kwargs: steps.append(args))
        >>> optimizer.step()
        >>> steps
        [()]
        """
        return Handle(self._after, hook)


def _type_name(p: Any) -> str:
    kind = type(p)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _cast_state(value: Any, p: Tensor, key: Any = None) -> Any:
    """Convert saved state to the dtype and device of the parameter, except the step count."""
    if isinstance(value, Tensor):
        return value if key == "step" or not p.is_floating_point() else value.to(dtype=p.dtype, device=p.device)
    if isinstance(value, dict):
        return {k: _cast_state(v, p, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast_state(v, p) for v in value)
    return value


# ------------------------------------------------------------------------------------------------------------- settings
def check_not_negative(**settings: Any) -> None:
    """Raise PyTorch's error for a negative setting."""
    words = {"lr": "learning rate", "eps": "epsilon value"}
    for name, value in settings.items():
        if isinstance(value, Tensor) and value.numel() != 1:
            raise ValueError(f"Tensor {name} must be 1-element")
        if not value >= 0.0:
            raise ValueError(f"Invalid {words.get(name, f'{name} value')}: {value}. It must not be negative.")


def check_betas(betas: tuple[float, float]) -> None:
    """Raise PyTorch's error for a decay rate outside [0, 1)."""
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}. It must be at least 0 and less than 1.")


def check_implementation(settings: dict[str, Any]) -> dict[str, Any]:
    """Raise for options that are not supported. `foreach`, `fused` and `capturable` do not change results and are ignored."""
    if settings.get("differentiable"):
        raise NotImplementedError(
            "differentiable=True is not supported: steps are not recorded. For a gradient through a step, "
            "write the step as an expression: w = w - lr * g."
        )
    if settings.get("fused") and settings.get("foreach"):
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    return settings


# ---------------------------------------------------------------------------------------------------------------- steps
def evaluate_closure(closure: Closure | None) -> Any:
    """Call the closure with recording enabled. Return its result, or None without a closure."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


@functools.lru_cache(8)
def _scratch(dtype: np.dtype, count: int, size: int) -> tuple[np.ndarray, ...]:
    return tuple(np.empty(size, dtype) for _ in range(count))


class Elementwise(Optimizer):
    """An optimizer with a formula for each element. Subclasses define

    - `slots(group)`: the names of the state arrays of a parameter, which are initialised to zeros (`start`);
    - `numbers(group, state)`: coefficients that depend only on the step, computed once for each parameter;
    - `move(xp, numbers, s, p, g, *kept)`: the formula, in place on p and the state arrays `kept`. `s` are scratch arrays; g must
      not be changed. (Scratch `s[-1]` holds the gradient if `maximize` or weight decay changed it.)
    """

    scratch = 3
    counts = True  # the state contains the number of steps, as in torch: a float32 tensor

    def slots(self, group: Group) -> tuple[str, ...]:
        raise NotImplementedError

    def numbers(self, group: Group, state: dict[str, Any]) -> Any:
        raise NotImplementedError

    def move(self, xp: Any, numbers: Any, s: Any, p: Any, g: Any, *kept: Any) -> None:
        raise NotImplementedError

    def start(self, p: Tensor, group: Group, state: dict[str, Any]) -> None:
        """Initialise the state of a parameter before its first step."""
        xp = namespace_of[type(p.array)]
        if self.counts:
            state["step"] = constant(np.zeros((), np.float32))
        for name in self.slots(group):
            state[name] = constant(xp.zeros_like(p.array))

    def decay(self, group: Group) -> tuple[float, float]:
        """Return the factor of the parameter (decoupled decay), and the multiple of the parameter to add to its gradient."""
        return 1.0, float(group["weight_decay"])

    def step(self, closure: Closure | None = None) -> Any:
        loss = evaluate_closure(closure)
        with no_grad():
            for group in self.param_groups:
                slots, shrink, weight = self.slots(group), *self.decay(group)
                sign = -1.0 if group["maximize"] else 1.0
                for p in group["params"]:
                    if p.grad_slot is not None:
                        self._step(p, p.grad_slot.array, group, slots, shrink, weight, sign)
        return loss

    def _step(self, p: Tensor, g: Any, group: Group, slots: Iterable[str], shrink: float, weight: float, sign: float) -> None:
        state = self.state[p] if self.counts or slots else {}
        if not state and (self.counts or slots):
            self.start(p, group, state)
        if self.counts:
            state["step"].array += 1
        numbers = self.numbers(group, state)
        if OBSERVERS:
            notify_before_write(p)
        xp, changed = namespace_of[type(p.array)], weight != 0.0 or sign < 0.0
        for s, x, gradient, *kept in pieces(xp, self.scratch, (p.array, g, *[state[name].array for name in slots])):
            if changed:
                own = s[-1]
                if weight:
                    xp.multiply(x, weight * sign, out=own)
                    own += gradient
                    if sign < 0:
                        xp.negative(own, out=own)
                else:
                    xp.negative(gradient, out=own)
                gradient = own
            if shrink != 1.0:
                x *= shrink
            self.move(xp, numbers, s, x, gradient, *kept)
        mark_written(p)


def add_scaled(xp: Any, y: Any, x: Any, a: float, t: Any) -> None:
    """Add in place: y ← y + a·x, with `t` as scratch, which may be x.

    (BLAS does this in one loop, but SciPy's BLAS has its own threads, which compete with NumPy's for the cores.)
    """
    y += xp.multiply(x, a, out=t)


def pieces(xp: Any, count: int, arrays: tuple[Any, ...]) -> Iterable[tuple[Any, ...]]:
    """Split arrays of one shape into pieces of at most BLOCK elements, if possible. Yield (`count` scratch arrays, *pieces)."""
    first = arrays[0]
    size = first.size
    if xp is not np:
        yield (tuple(xp.empty_like(first) for _ in range(count)), *arrays)
        return
    if not all(a.flags.c_contiguous for a in arrays) and size:
        order = sorted(range(first.ndim), key=lambda axis: -abs(first.strides[axis]))
        arrays = tuple(a.transpose(order) for a in arrays)  # in the memory order of the parameter
    if all(a.flags.c_contiguous for a in arrays):
        arrays = tuple(a.reshape(-1) for a in arrays)
        rows, per_row = size, 1
    elif size <= BLOCK:
        rows, per_row = arrays[0].shape[0], size
    else:
        rows, per_row = arrays[0].shape[0], size // arrays[0].shape[0]
        if per_row > BLOCK:
            for parts in zip(*arrays, strict=True):
                yield from pieces(xp, count, parts)
            return
    scratch, take = _scratch(first.dtype, count, BLOCK), max(1, BLOCK // max(per_row, 1))
    if per_row == size:
        take = rows
    for at in range(0, rows, take):
        parts = arrays if take >= rows else tuple(a[at : at + take] for a in arrays)
        shape, n = parts[0].shape, parts[0].size
        s = scratch if n == BLOCK and len(shape) == 1 else tuple(space[:n].reshape(shape) for space in scratch)
        yield (s, *parts)
