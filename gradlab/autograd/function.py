"""Functions whose derivative the user writes: `Function`, and the `ctx` that its forward and backward share.

A call is one node of the graph, a `FunctionNode` (see autograd.user_rules). What its forward returned in a tuple of several
leaves through ports (see core.ports). To users the node *is* `ctx`: `y.grad_fn.saved_tensors`. But what users put on `ctx` may be
called as the engine's own slots are (`ctx.shape`), so `ctx` is another object. It holds the node and shares its attributes with
it by sharing a `__dict__`; the node refers to it weakly and makes another when it is gone. So there is no cycle, and whoever
holds `ctx` holds the graph.
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
from gradlab.core.ports import Own, Several
from gradlab.core.storage import FRESH, tick
from gradlab.core.tensor import Tensor

TWICE = "trying to differentiate twice a function that was marked with @once_differentiable"

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]


class FunctionMeta(type):
    """Gives each Function the classes of its nodes."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        super().__init__(name, bases, attrs)
        cls._backward_cls = type(
            f"{name}Backward",
            (BackwardCFunction,),
            {"__slots__": (), "_forward_cls": cls, "__module__": "gradlab.autograd.function"},
        )
        cls._node_class = type(f"{name}Backward", (FunctionNode,), {"__slots__": (), "op": UserRules(cls)})  # type: ignore[arg-type]


class Function(FunctionCtx, metaclass=FunctionMeta):
    """Base class of operations whose derivative is written by hand. Call `YourFunction.apply(…)`, never `forward`.

    Define the static methods

    - `forward(ctx, *args)`, or `forward(*args)` and `setup_context(ctx, inputs, output)`;
    - `backward(ctx, *grad_outputs)`, also called `vjp`: one gradient for each argument of forward, None where there is none;
    - `jvp(ctx, *tangents)` for forward mode: one tangent for each output. Sweeps over a recorded graph (`jvp_of_graph`) do
      without it where `backward` can be differentiated.

    Operations inside `forward` are not recorded. Only tensors that are arguments themselves have gradients, not those in lists.
    Batched cotangents (`is_grads_batched`) run `backward` once for each.

    Parameters
    ----------
    *args, **kwargs : optional
        It is never made: `apply` is called on the class.

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
        """The operation."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Keep what `backward` needs, where `forward` is not given `ctx`.

        Parameters
        ----------
        ctx : FunctionCtx
            The call.
        inputs : tuple
            The arguments of `forward`.
        output : Any
            What it returned.

        Returns
        -------
        None

        Raises
        ------
        NotImplementedError
            If the class does not define it, and it is needed.

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
        """The gradients of the arguments from those of the outputs: defined by the class.

        Parameters
        ----------
        ctx : FunctionCtx
            The call.
        *grad_outputs : Tensor
            One for each output.

        Returns
        -------
        Tensor, tuple of Tensor, or None
            One for each argument of `forward`, None where there is none.

        Raises
        ------
        NotImplementedError
            If the class does not define it.

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
        """The tangents of the outputs from those of the arguments: defined by the class, for forward mode.

        Parameters
        ----------
        ctx : FunctionCtx
            The call.
        *grad_inputs : Tensor or None
            One for each argument of `forward`.

        Returns
        -------
        Tensor or tuple of Tensor
            One for each output.

        Raises
        ------
        NotImplementedError
            If the class does not define it.

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
        """Not called: `vmap` runs a Function on one slice after the other.

        Parameters
        ----------
        info, in_dims : Any
            As torch has them.
        *args : Any
            The batched arguments.

        Returns
        -------
        tuple
            Never: it raises.

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
    def _splits(cls) -> bool:
        """Whether forward and setup_context are two."""
        return cls.setup_context is not Function.setup_context

    @classmethod
    def _has_jvp(cls) -> bool:
        """Whether jvp is defined."""
        return cls.jvp is not Function.jvp

    @classmethod
    def _rule(cls) -> Callable[..., Any]:
        """backward, under whichever name."""
        if cls.vjp is Function.vjp:
            return cls.backward
        if cls.backward is not Function.backward:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        return cls.vjp

    @classmethod
    def _placed(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments in the order of forward's parameters, and those that forward takes by keyword alone."""
        signature, splits = inspect.signature(cls.forward), cls._splits()
        try:
            bound = signature.bind(*args, **kwargs) if splits else signature.bind_partial(None, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{error}, in {cls.__name__}.apply" if splits else f"{cls.__name__}.forward() {error}") from None
        if splits:
            bound.apply_defaults()
        else:  # up to the last one given: backward answers for so many
            arguments, names = bound.arguments, list(signature.parameters)
            for name in names[: max(map(names.index, arguments))]:
                if (default := signature.parameters[name].default) is not inspect.Parameter.empty:
                    arguments.setdefault(name, default)
        for name, x in bound.kwargs.items():
            if isinstance(x, Tensor) and x.node is not None and mode.grad:
                raise TypeError(
                    f"{cls.__name__}.forward() got {name!r}, a tensor that requires gradients, by keyword alone: it "
                    "can have none. Make it a parameter that has a position."
                )
        return bound.args if splits else bound.args[1:], bound.kwargs

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the function.

        Parameters
        ----------
        *args : Any
            The arguments of `forward`, after `ctx` where it takes that.
        **kwargs : Any
            The same by their names.

        Returns
        -------
        Tensor or tuple
            What `forward` returns, with this call as its history.

        Raises
        ------
        TypeError
            If the arguments do not fit, or a tensor that requires a gradient is given to a parameter that has no
            position.

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
        if kwargs or cls._splits():
            args, kwargs = cls._placed(args, kwargs)
        node = cls._node_class()
        tensors = [x for x in args if isinstance(x, Tensor)]
        numbers = iter(range(len(tensors)))
        node.places = tuple(next(numbers) if isinstance(x, Tensor) else None for x in args)
        node.given = [(x.array.shape, x.array.dtype) for x in tensors]
        node.edges = tuple(x.node for x in tensors) if mode.grad else (None,) * len(tensors)
        node.saved, node.meta, node.hooks, node.storage, node.for_jvp = Own(), (), None, FRESH, ()
        node.seen, node.again, node.cleared, node.in_jvp = None, False, False, False
        node.attributes = {"needs_input_grad": tuple(isinstance(x, Tensor) and x.node is not None for x in args)}
        ctx, wanted = node.ctx(), any(edge is not None for edge in node.edges)
        with grad_mode(on=False):
            if cls._splits():
                raw = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, raw)
            else:
                raw = cls.forward(ctx, *args, **kwargs)
        outputs = list(raw) if isinstance(raw, tuple) else [raw]
        node.kinds = [(y.array.shape, y.array.dtype) if isinstance(y, Tensor) else None for y in outputs]
        if len(outputs) == 1 and node.kinds[0] is not None:
            node.outputs, (node.shape, node.dtype) = 1, node.kinds[0]
        else:
            node.of_outputs(node.kinds)
        node.order = tick()
        results = Results(cls, node, ctx, tensors, outputs, wanted).finished()
        return tuple(results) if isinstance(raw, tuple) else results[0]


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a `backward` that is not made of differentiable operations: it runs unrecorded, and differentiating its
    result is an error."""

    @functools.wraps(backward)
    def wrapper(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with grad_mode(on=False):
            outputs = backward(ctx, *args, **kwargs)
        sources = tuple(x.node for x in args if isinstance(x, Tensor) and x.node is not None)
        if not mode.grad or not sources:
            return outputs
        results = failing(outputs if isinstance(outputs, tuple) else (outputs,), sources, ctx)
        return results if isinstance(outputs, tuple) else results[0]

    return wrapper


class DelayedError(Several):
    """The node of results that cannot be differentiated. Users see it as torch makes it, where each result comes of a leaf of its
    own; a sweep finds what they truly come of behind it, so that it ends in the error and never in half a gradient."""

    __slots__ = ("leaves",)
    op: ClassVar[Any] = Error.op
    leaves: tuple[Node | None, ...]

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        return tuple((leaf, 0) for leaf in self.leaves)


DelayedError.__name__, DelayedError.__qualname__, DelayedError.__module__ = "Error", "Error", PUBLIC_MODULE


def failing(outputs: tuple[Any, ...], sources: tuple[Node, ...], ctx: Any) -> tuple[Any, ...]:
    """The tensors with the history that they cannot be differentiated."""
    results = tuple(y.detach() if isinstance(y, Tensor) else y for y in outputs)
    node = object.__new__(DelayedError)
    node.edges, node.saved, node.meta, node.hooks = sources, (), (f"{TWICE}: the backward of {ctx._forward_cls.__name__}.",), None
    node.storage, node.order = FRESH, tick()
    node.of_outputs([(y.array.shape, y.array.dtype) if isinstance(y, Tensor) else None for y in results])
    node.leaves = tuple(AccumulateGrad(y.detach()) if isinstance(y, Tensor) else None for y in results)
    for number, y in enumerate(results):
        if isinstance(y, Tensor):
            y.node = node.output_node(number)
    return results


class InplaceFunction(Function):
    """An old name of Function."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
