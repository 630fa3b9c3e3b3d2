"""Modules as functions of their parameters and buffers: `functional_call`, `stack_module_state` and related functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.nn.modules.module import Module
from gradlab.nn.modules.normalization import BatchNorm
from gradlab.ops.joins import stack

__all__ = ["debug_unwrap", "functional_call", "functionalize", "replace_all_batch_norm_modules_", "stack_module_state"]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with its parameters and buffers replaced by other tensors. The module is restored afterwards.

    Parameters
    ----------
    module : Module
        Module to call.
    parameter_and_buffer_dicts : dict or sequence of dict
        Tensors by name, as in `named_parameters()`. If the call assigns a new tensor to a buffer, it is written to the dict.
    args : tuple or Any, optional
        Arguments of the module. A value that is not a tuple is the only argument.
    kwargs : dict, optional
        Keyword arguments of the module.
    tie_weights : bool, default: True
        Use a tensor that is given for one name of a shared parameter for all its names.
    strict : bool, default: False
        Raise an error if a name is missing or is not a parameter or buffer of the module.

    Returns
    -------
    object
        Result of the module.

    Raises
    ------
    RuntimeError
        If `strict` and the names do not match.

    Examples
    --------
    >>> import gradlab as gl
    >>> layer = gl.nn.Linear(2, 1)
    >>> weights = {"weight": gl.ones(1, 2), "bias": gl.zeros(1)}
    >>> gl.func.functional_call(layer, weights, gl.tensor([3.0, 4.0]))
    tensor([7.])
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        replacements = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, Sequence):
        if not all(isinstance(one, dict) for one in parameter_and_buffer_dicts):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        count = Counter(name for one in parameter_and_buffer_dicts for name in one)
        if repeated := [name for name, n in count.items() if n > 1]:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        replacements = {name: x for one in parameter_and_buffer_dicts for name, x in one.items()}
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    with _reparametrize(module, replacements, tie_weights, strict):
        return module(*(() if args is None else args if isinstance(args, tuple) else (args,)), **(kwargs or {}))


@contextmanager
def _reparametrize(module: Module, replacements: dict[str, Any], tie_weights: bool, strict: bool) -> Iterator[None]:
    """Replace tensors of the module inside the block."""
    wanted = _expand_tied_names(module, replacements) if tie_weights else replacements
    own = _names(module)
    if strict and set(wanted) != set(own):
        unexpected, missing = [n for n in wanted if n not in own], [n for n in own if n not in wanted]
        raise RuntimeError(
            f"Error(s) in reparametrizing for {module._get_name()}:\n\t"
            + "\n\t".join(
                f"{what} key(s): {', '.join(map(repr, names))}."
                for what, names in (("Unexpected", unexpected), ("Missing", missing))
                if names
            )
        )
    places = {name: _place(module, name) for name in wanted}
    for x in wanted.values():
        if not isinstance(x, Tensor) and x is not None:
            raise TypeError(f"{x} is not an instance of gradlab.Tensor")
    before = {name: container.get(key, ABSENT) for name, (container, key) in places.items()}
    try:
        for name, (container, key) in places.items():
            container[key] = wanted[name]
        yield
    finally:
        for name, (container, key) in places.items():
            if name in replacements:
                replacements[name] = container[key]
            if before[name] is ABSENT:
                del container[key]
            else:
                container[key] = before[name]


ABSENT = object()  # marks a name that the module did not have before the call


def _named_tensors(module: Module) -> list[tuple[str, Any]]:
    """Return (name, tensor) of all parameters and buffers. A shared one appears with each of its names."""
    return [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]


def _names(module: Module) -> list[str]:
    return [name for name, _ in _named_tensors(module)]


def _place(module: Module, name: str) -> tuple[dict[str, Any], str]:
    """Return the dictionary that contains the tensor `name` of the module, and its key in the dictionary."""
    path, _, key = name.rpartition(".")
    for part in filter(None, path.split(".")):
        inner = module._modules.get(part)
        if inner is None:
            raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
        module = inner
    for tensors in (module._parameters, module._buffers, module.__dict__):
        if key in tensors:
            if tensors[key] is not None and not isinstance(tensors[key], Tensor):
                raise TypeError(f"attribute `{key}`: {tensors[key]} is not an instance of gradlab.Tensor")
            return tensors, key
    return module.__dict__, key  # as in PyTorch, a name that the module does not have is accepted


def _expand_tied_names(module: Module, replacements: Mapping[str, Any]) -> dict[str, Any]:
    """Return `replacements` with entries for all names of shared parameters."""
    names: dict[int, list[str]] = {}
    for name, x in _named_tensors(module):
        names.setdefault(id(x), []).append(name)
    untied = dict(replacements)
    for tied in names.values():
        values = [replacements[name] for name in tied if name in replacements]
        if len(tied) > 1 and values:
            if any(x is not values[0] for x in values):
                raise ValueError(
                    f"functional_call got multiple values for keys {sorted(tied)}, which are tied. Consider using "
                    "tie_weights=False"
                )
            untied |= dict.fromkeys(tied, values[0])
    return untied


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Stack the parameters and buffers of several models of the same class, for use with `vmap`.

    Parameters
    ----------
    models : sequence of Module
        Models in the same mode (training or evaluation), whose tensors have the same shapes.

    Returns
    -------
    tuple of dict
        Pair (params, buffers) of dictionaries, with a tensor of shape (number of models, ...) for each name.

    Raises
    ------
    RuntimeError
        If `models` is empty, or the models differ in class, mode or shapes.
    TypeError
        If an element of `models` is not a Module.

    Examples
    --------
    >>> import gradlab as gl
    >>> params, buffers = gl.func.stack_module_state([gl.nn.Linear(2, 1) for _ in range(3)])
    >>> params["weight"].shape
    gradlab.Size([3, 1, 2])
    """
    models = list(models)
    for model in models:
        if not isinstance(model, Module):
            raise TypeError(f"stack_module_state(): expected modules, got {type(model).__name__}.")
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    stacked = []
    for kind in ("named_parameters", "named_buffers"):
        tensors = [dict(getattr(m, kind)()) for m in models]
        stacked.append({name: _stack_tensors([one[name] for one in tensors], name) for name in tensors[0]})
    return stacked[0], stacked[1]


def _stack_tensors(tensors: list[Tensor], name: str) -> Tensor:
    if len({x.requires_grad for x in tensors}) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    whole = stack(tensors).detach()
    return whole.requires_grad_() if tensors[0].requires_grad else whole


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Make all batch normalization layers use only the statistics of the batch, so that no buffer is modified. In place.

    Parameters
    ----------
    root : Module
        Model to modify.

    Returns
    -------
    Module
        `root`.

    Examples
    --------
    >>> import gradlab as gl
    >>> model = gl.func.replace_all_batch_norm_modules_(gl.nn.Sequential(gl.nn.BatchNorm1d(2)))
    >>> model[0].running_mean is None
    True
    """
    if not isinstance(root, Module):
        raise TypeError(f"replace_all_batch_norm_modules_(): expected a module, got {type(root).__name__}.")
    for module in root.modules():
        if isinstance(module, BatchNorm):
            module.track_running_stats = False
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                module._buffers[name] = None
    return root


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Return a function that calls `func`.

    It exists for compatibility with PyTorch. In-place operations are not replaced, because gradlab does not compile programs.

    Parameters
    ----------
    func : callable
        Any function.
    remove : {"mutations", "mutations_and_views"}, default: "mutations"
        Ignored.

    Returns
    -------
    callable

    Raises
    ------
    RuntimeError
        If `remove` has another value.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.func.functionalize(lambda x: x.clone().add_(1))(gl.zeros(2))
    tensor([1., 1.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options "
            "are:\n     remove='mutations': all inplace and out= operators will be removed from the program, and "
            "replaced with their out-of-place equivalents.\n     remove='mutations_and_views': In addition to the "
            "above, all aliasing operators {view} will be replaced with their non-aliasing counterparts, "
            "{view}_copy.\n"
        )

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapper


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """Return the tensor itself, because tensors are not wrapped inside a transform.

    Parameters
    ----------
    tensor : Tensor
        Any tensor.
    recurse : bool, default: True
        Ignored.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.func.debug_unwrap(gl.tensor([1.0]))
    tensor([1.])
    """
    return tensor
