"""Modules as functions of their parameters and buffers: `functional_call`, `stack_module_state`."""

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
    """Call a module with other tensors in place of its parameters and buffers, which it gets back afterwards.

    Parameters
    ----------
    module : Module
        What is called.
    parameter_and_buffer_dicts : dict or sequence of dicts
        Tensors by name, as in `named_parameters()`. A buffer that the call assigns anew is written back to the dict.
    args : tuple or any
        The arguments; what is no tuple is the only one.
    kwargs : dict, optional
        Keyword arguments.
    tie_weights : bool
        A tensor given for one of the names of a shared parameter stands for all of them.
    strict : bool
        Refuse names that the module does not have, and names left out.

    Returns
    -------
    object
        What the module returns.

    Raises
    ------
    RuntimeError
        What `strict` refuses.

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
    with _reparametrized(module, replacements, tie_weights, strict):
        return module(*(() if args is None else args if isinstance(args, tuple) else (args,)), **(kwargs or {}))


@contextmanager
def _reparametrized(module: Module, replacements: dict[str, Any], tie_weights: bool, strict: bool) -> Iterator[None]:
    """The module with other tensors in it, for the extent of the block."""
    wanted = _untied(module, replacements) if tie_weights else replacements
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
    before = {name: held.get(last, ABSENT) for name, (held, last) in places.items()}
    try:
        for name, (held, last) in places.items():
            held[last] = wanted[name]
        yield
    finally:
        for name, (held, last) in places.items():
            if name in replacements:
                replacements[name] = held[last]
            if before[name] is ABSENT:
                del held[last]
            else:
                held[last] = before[name]


ABSENT = object()  # what a module had under a name that it does not have


def _named(module: Module) -> list[tuple[str, Any]]:
    """Parameters and buffers by name; a shared one under each of its names."""
    return [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]


def _names(module: Module) -> list[str]:
    return [name for name, _ in _named(module)]


def _place(module: Module, name: str) -> tuple[dict[str, Any], str]:
    """The dictionary that holds a tensor of the module, and its key there."""
    path, _, last = name.rpartition(".")
    for part in filter(None, path.split(".")):
        inner = module._modules.get(part)
        if inner is None:
            raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
        module = inner
    for held in (module._parameters, module._buffers, module.__dict__):
        if last in held:
            if held[last] is not None and not isinstance(held[last], Tensor):
                raise TypeError(f"attribute `{last}`: {held[last]} is not an instance of gradlab.Tensor")
            return held, last
    return module.__dict__, last  # as torch, which takes a name that the module does not have


def _untied(module: Module, replacements: Mapping[str, Any]) -> dict[str, Any]:
    """`replacements` with every other name of a shared parameter, too."""
    names: dict[int, list[str]] = {}
    for name, x in _named(module):
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
    """The parameters and the buffers of several models of one class, stacked by name, for `vmap`.

    Parameters
    ----------
    models : sequence of Module
        All in the same mode, with tensors of the same shapes.

    Returns
    -------
    tuple of dict
        (params, buffers): a tensor of shape (models, ...) for each name.

    Raises
    ------
    RuntimeError
        If there is no model, or they differ in class, mode or shapes.

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
            raise TypeError(f"stack_module_state(models) takes modules, and got {type(model).__name__}.")
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    stacked = []
    for kind in ("named_parameters", "named_buffers"):
        held = [dict(getattr(m, kind)()) for m in models]
        stacked.append({name: _stacked([one[name] for one in held], name) for name in held[0]})
    return stacked[0], stacked[1]


def _stacked(tensors: list[Tensor], name: str) -> Tensor:
    if len({x.requires_grad for x in tensors}) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    whole = stack(tensors).detach()
    return whole.requires_grad_() if tensors[0].requires_grad else whole


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let every batch normalisation use the statistics of its batch alone, in place: no buffer is then written.

    Parameters
    ----------
    root : Module
        The model.

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
        raise TypeError(f"replace_all_batch_norm_modules_(root) takes a module, and got {type(root).__name__}.")
    for module in root.modules():
        if isinstance(module, BatchNorm):
            module.track_running_stats = False
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                module._buffers[name] = None
    return root


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """The function itself: it computes the same with its in-place operations, and there is no program here to rewrite.

    Parameters
    ----------
    func : callable
        Of any arguments.
    remove : {"mutations", "mutations_and_views"}
        Accepted, without effect.

    Returns
    -------
    callable

    Raises
    ------
    RuntimeError
        If `remove` is something else.

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
    def same(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return same


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor itself: inside a transform it is a plain tensor already.

    Parameters
    ----------
    tensor : Tensor
        Of any shape.
    recurse : bool, default True
        Accepted, without effect.

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
