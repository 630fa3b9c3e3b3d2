"""Custom differentiable operations: the base class `Function` and its decorator `once_differentiable`.

A call is one node of the graph, a `FunctionNode` (see `autograd.user_rules`). If its forward returns several outputs, each one
leaves the node through a port (see `core.ports`).

To users the node *is* `ctx`: `y.grad_fn.saved_tensors`. Internally `ctx` is a separate object, because the attributes that users
set on it may have the same names as slots of the engine's node (`ctx.shape`). `ctx` holds a strong reference to the node, and its
`__dict__` is the dictionary in the node's slot `attributes`. The node refers to `ctx` weakly and makes a new one when the old one
is gone. So there is no reference cycle, and a reference to `ctx` keeps the graph alive.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

from gradlab.autograd.function_context import BackwardCFunction, FunctionCtx
from gradlab.autograd.outputs import Results
from gradlab.autograd.user_rules import FunctionNode, UserRules, grad_mode
from gradlab.core.modes import mode
from gradlab.core.node import PUBLIC_MODULE, AccumulateGrad, Error, Node
from gradlab.core.ports import MultiOutputNode, UserSaved
from gradlab.core.storage import FRESH, tick
from gradlab.core.tensor import Tensor

ONCE_DIFFERENTIABLE_MESSAGE = "trying to differentiate twice a function that was marked with @once_differentiable"

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]


class FunctionMeta(type):
    """Metaclass that creates the node classes of each Function."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        super().__init__(name, bases, attrs)
        cls._backward_cls = type(
            f"{name}Backward",
            (BackwardCFunction,),
            {"__slots__": (), "_forward_cls": cls, "__module__": "gradlab.autograd.function"},
        )
        cls._node_class = type(f"{name}Backward", (FunctionNode,), {"__slots__": (), "op": UserRules(cls)})  # type: ignore[arg-type]


class Function(FunctionCtx, metaclass=FunctionMeta):
    """Base class of custom operations. Call `YourFunction.apply(…)`, never `forward`.

    A subclass defines the static methods

    - `forward(ctx, *args)`, or `forward(*args)` and `setup_context(ctx, inputs, output)`;
    - `backward(ctx, *grad_outputs)`, also called `vjp`, which returns one gradient, or None, for each argument of `forward`;
    - `jvp(ctx, *tangents)`, for forward mode, which returns one tangent for each output. `jvp_of_graph` does not need it if
      `backward` is differentiable.

    Operations inside `forward` are not recorded. A tensor receives a gradient only if it is an argument itself, not if it is
    inside a list. With `is_grads_batched=True`, `backward` is called once for each gradient of the batch.

    Parameters
    ----------
    *args, **kwargs : optional
        Ignored. Functions should not be instantiated: `apply` is called on the class.

    Examples
    --------
    >>> import gradlab as gl
    >>> class Cube(gl.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x ** 3
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return g * 3 * x ** 2
    >>> x = gl.tensor([2.0], requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor([12.])
    """

    clear_saved_tensors_on_access = False
    boxed_grads_call = False
    generate_vmap_rule = False
    _backward_cls: type[BackwardCFunction]
    _node_class: type[FunctionNode]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs. Must be defined by the subclass."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save values for `backward` if `forward` does not take `ctx`.

        Parameters
        ----------
        ctx : FunctionCtx
            Context of the call.
        inputs : tuple
            Arguments of `forward`.
        output : Any
            Result of `forward`.

        Returns
        -------
        None

        Raises
        ------
        NotImplementedError
            If the subclass does not define it and it is needed.

        Examples
        --------
        >>> import gradlab as gl
        >>> class Cube(gl.autograd.Function):
        ...     @staticmethod
        ...     def forward(x):
        ...         return x ** 3
        ...     @staticmethod
        ...     def setup_context(ctx, inputs, output):
        ...         ctx.save_for_backward(*inputs)
        ...         ctx.save_for_forward(*inputs)
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (x,) = ctx.saved_tensors
        ...         return g * 3 * x ** 2
        ...     @staticmethod
        ...     def jvp(ctx, t):
        ...         (x,) = ctx.saved_tensors
        ...         return t * 3 * x ** 2
        >>> x = gl.tensor([2.0], requires_grad=True)
        >>> Cube.apply(x)
        tensor([8.], grad_fn=<CubeBackward>)
        """
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute the gradients of the arguments from the gradients of the outputs. Defined by the subclass.

        Parameters
        ----------
        ctx : FunctionCtx
            Context of the call.
        *grad_outputs : Tensor
            One gradient for each output.

        Returns
        -------
        Tensor, tuple of Tensor, or None
            One gradient for each argument of `forward`, None for an argument without a gradient.

        Raises
        ------
        NotImplementedError
            If the subclass does not define it.

        Examples
        --------
        >>> import gradlab as gl
        >>> class Cube(gl.autograd.Function):
        ...     @staticmethod
        ...     def forward(x):
        ...         return x ** 3
        ...     @staticmethod
        ...     def setup_context(ctx, inputs, output):
        ...         ctx.save_for_backward(*inputs)
        ...         ctx.save_for_forward(*inputs)
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (x,) = ctx.saved_tensors
        ...         return g * 3 * x ** 2
        ...     @staticmethod
        ...     def jvp(ctx, t):
        ...         (x,) = ctx.saved_tensors
        ...         return t * 3 * x ** 2
        >>> x = gl.tensor([2.0], requires_grad=True)
        >>> Cube.apply(x).backward()
        >>> x.grad
        tensor([12.])
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use "
            "it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Compute the tangents of the outputs from the tangents of the arguments, for forward mode. Defined by the subclass.

        Parameters
        ----------
        ctx : FunctionCtx
            Context of the call.
        *grad_inputs : Tensor or None
            One tangent for each argument of `forward`.

        Returns
        -------
        Tensor or tuple of Tensor
            One tangent for each output.

        Raises
        ------
        NotImplementedError
            If the subclass does not define it.

        Examples
        --------
        >>> import gradlab as gl
        >>> class Cube(gl.autograd.Function):
        ...     @staticmethod
        ...     def forward(x):
        ...         return x ** 3
        ...     @staticmethod
        ...     def setup_context(ctx, inputs, output):
        ...         ctx.save_for_backward(*inputs)
        ...         ctx.save_for_forward(*inputs)
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (x,) = ctx.saved_tensors
        ...         return g * 3 * x ** 2
        ...     @staticmethod
        ...     def jvp(ctx, t):
        ...         (x,) = ctx.saved_tensors
        ...         return t * 3 * x ** 2
        >>> x = gl.tensor([2.0], requires_grad=True)
        >>> gl.func.jvp(Cube.apply, (x,), (gl.ones(1),))[1]
        tensor([12.], grad_fn=<MulBackward0>)
        """
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Always raise an error. `gradlab.func.vmap` runs a Function once for each slice and never calls this method.

        Parameters
        ----------
        info, in_dims : Any
            As in PyTorch.
        *args : Any
            Batched arguments.

        Returns
        -------
        tuple
            Never returned, because the method always raises.

        Raises
        ------
        NotImplementedError
            Always.

        Examples
        --------
        >>> import gradlab as gl
        >>> class Cube(gl.autograd.Function):
        ...     @staticmethod
        ...     def forward(x):
        ...         return x ** 3
        ...     @staticmethod
        ...     def setup_context(ctx, inputs, output):
        ...         ctx.save_for_backward(*inputs)
        ...         ctx.save_for_forward(*inputs)
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (x,) = ctx.saved_tensors
        ...         return g * 3 * x ** 2
        ...     @staticmethod
        ...     def jvp(ctx, t):
        ...         (x,) = ctx.saved_tensors
        ...         return t * 3 * x ** 2
        >>> x = gl.tensor([2.0], requires_grad=True)
        >>> gl.func.vmap(Cube.apply)(gl.tensor([[1.0], [2.0]]))
        tensor([[1.],
                [8.]])
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set generate_vmap_rule=True."
        )

    @classmethod
    def _has_setup_context(cls) -> bool:
        """Return True if the class defines `setup_context`, so that `forward` does not take `ctx`."""
        return cls.setup_context is not Function.setup_context

    @classmethod
    def _has_jvp(cls) -> bool:
        """Return True if the class defines `jvp`."""
        return cls.jvp is not Function.jvp

    @classmethod
    def _backward_rule(cls) -> Callable[..., Any]:
        """Return the method `backward` or `vjp`, whichever the class defines."""
        if cls.vjp is Function.vjp:
            return cls.backward
        if cls.backward is not Function.backward:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        return cls.vjp

    @classmethod
    def _bind_arguments(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the positional arguments in the order of forward's parameters, and the keyword-only arguments."""
        signature, splits = inspect.signature(cls.forward), cls._has_setup_context()
        try:
            bound = signature.bind(*args, **kwargs) if splits else signature.bind_partial(None, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{error}, in {cls.__name__}.apply" if splits else f"{cls.__name__}.forward() {error}") from None
        if splits:
            bound.apply_defaults()
        else:  # fill in defaults only up to the last argument given, since backward returns one gradient for each
            arguments, names = bound.arguments, list(signature.parameters)
            for name in names[: max(map(names.index, arguments))]:
                if (default := signature.parameters[name].default) is not inspect.Parameter.empty:
                    arguments.setdefault(name, default)
        for name, x in bound.kwargs.items():
            if isinstance(x, Tensor) and x.node is not None and mode.grad:
                raise TypeError(
                    f"{cls.__name__}.forward() got {name!r}, a tensor that requires gradients, as a keyword-only argument, "
                    "which cannot receive a gradient. Make it a positional parameter."
                )
        return bound.args if splits else bound.args[1:], bound.kwargs

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call `forward` and record the call as one node of the graph.

        Parameters
        ----------
        *args : Any
            Arguments of `forward`, without `ctx`.
        **kwargs : Any
            Keyword arguments of `forward`.

        Returns
        -------
        Tensor or tuple
            Result of `forward`, with this call as its history.

        Raises
        ------
        TypeError
            If the arguments do not match the signature of `forward`, or if a keyword-only argument is a tensor that requires
            gradients.

        Examples
        --------
        >>> import gradlab as gl
        >>> class Cube(gl.autograd.Function):
        ...     @staticmethod
        ...     def forward(x):
        ...         return x ** 3
        ...     @staticmethod
        ...     def setup_context(ctx, inputs, output):
        ...         ctx.save_for_backward(*inputs)
        ...         ctx.save_for_forward(*inputs)
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (x,) = ctx.saved_tensors
        ...         return g * 3 * x ** 2
        ...     @staticmethod
        ...     def jvp(ctx, t):
        ...         (x,) = ctx.saved_tensors
        ...         return t * 3 * x ** 2
        >>> x = gl.tensor([2.0], requires_grad=True)
        >>> Cube.apply(x).grad_fn.name()
        'CubeBackward'
        """
        if kwargs or cls._has_setup_context():
            args, kwargs = cls._bind_arguments(args, kwargs)
        node = cls._node_class()
        tensors = [x for x in args if isinstance(x, Tensor)]
        numbers = iter(range(len(tensors)))
        node.edge_numbers = tuple(next(numbers) if isinstance(x, Tensor) else None for x in args)
        node.input_kinds = [(x.array.shape, x.array.dtype) for x in tensors]
        node.edges = tuple(x.node for x in tensors) if mode.grad else (None,) * len(tensors)
        node.saved, node.meta, node.hooks, node.storage, node.for_jvp = UserSaved(), (), None, FRESH, ()
        node.ctx_ref, node.has_more_slices, node.cleared, node.in_jvp = None, False, False, False
        node.attributes = {"needs_input_grad": tuple(isinstance(x, Tensor) and x.node is not None for x in args)}
        ctx, recorded = node.ctx(), any(edge is not None for edge in node.edges)
        with grad_mode(on=False):
            if cls._has_setup_context():
                raw = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, raw)
            else:
                raw = cls.forward(ctx, *args, **kwargs)
        outputs = list(raw) if isinstance(raw, tuple) else [raw]
        node.kinds = [(y.array.shape, y.array.dtype) if isinstance(y, Tensor) else None for y in outputs]
        if len(outputs) == 1 and node.kinds[0] is not None:
            node.outputs, (node.shape, node.dtype) = 1, node.kinds[0]
        else:
            node.set_outputs(node.kinds)
        node.order = tick()
        results = Results(cls, node, ctx, tensors, outputs, recorded).finish()
        return tuple(results) if isinstance(raw, tuple) else results[0]


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a `backward` that is not differentiable.

    `backward` runs without being recorded. Differentiating its result raises an error.
    """

    @functools.wraps(backward)
    def wrapper(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with grad_mode(on=False):
            outputs = backward(ctx, *args, **kwargs)
        sources = tuple(x.node for x in args if isinstance(x, Tensor) and x.node is not None)
        if not mode.grad or not sources:
            return outputs
        results = attach_delayed_error(outputs if isinstance(outputs, tuple) else (outputs,), sources, ctx)
        return results if isinstance(outputs, tuple) else results[0]

    return wrapper


class DelayedError(MultiOutputNode):
    """Node of results that cannot be differentiated.

    Its `next_functions`, which users see, lead to one separate leaf for each result, as in PyTorch. Its edges lead to the actual
    sources, so that a sweep towards them reaches this node and raises the error instead of returning a partial gradient.
    """

    __slots__ = ("leaves",)
    op: ClassVar[Any] = Error.op
    leaves: tuple[Node | None, ...]

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        return tuple((leaf, 0) for leaf in self.leaves)


DelayedError.__name__, DelayedError.__qualname__, DelayedError.__module__ = "Error", "Error", PUBLIC_MODULE


def attach_delayed_error(outputs: tuple[Any, ...], sources: tuple[Node, ...], ctx: Any) -> tuple[Any, ...]:
    """Return the outputs, detached, with a `DelayedError` as their node."""
    results = tuple(y.detach() if isinstance(y, Tensor) else y for y in outputs)
    node = object.__new__(DelayedError)
    message = f"{ONCE_DIFFERENTIABLE_MESSAGE}: the backward of {ctx._forward_cls.__name__}."
    node.edges, node.saved, node.meta, node.hooks = sources, (), (message,), None
    node.storage, node.order = FRESH, tick()
    node.set_outputs([(y.array.shape, y.array.dtype) if isinstance(y, Tensor) else None for y in results])
    node.leaves = tuple(AccumulateGrad(y.detach()) if isinstance(y, Tensor) else None for y in results)
    for number, y in enumerate(results):
        if isinstance(y, Tensor):
            y.node = node.output_node(number)
    return results


class InplaceFunction(Function):
    """Older name of `Function`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
