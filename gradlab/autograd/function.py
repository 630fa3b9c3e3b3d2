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

from gradlab.autograd import graph
from gradlab.autograd.outputs import Results
from gradlab.autograd.user_rules import FunctionNode, UserRules, grad_mode
from gradlab.core.modes import mode
from gradlab.core.node import PUBLIC_MODULE, AccumulateGrad, Error, Node, RemovableHandle
from gradlab.core.ports import Own, Several
from gradlab.core.saved import items_of, restore, saved_tensor
from gradlab.core.storage import FRESH, tick
from gradlab.core.tensor import Tensor

TWICE = "trying to differentiate twice a function that was marked with @once_differentiable"

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]


class FunctionCtx:
    """What the static methods of a Function are given as `ctx`: a place to keep things, and what is said of the call."""

    to_save: tuple[Any, ...] | None = None
    saved_for_forward: tuple[Any, ...] | None = None
    dirty_tensors: tuple[Any, ...] | None = None
    non_differentiable: tuple[Any, ...] | None = None
    materialize_grads: bool = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors (or None) for `backward`, where `ctx.saved_tensors` has them. Inputs, outputs or others."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors (or None) for `jvp`, where `ctx.saved_tensors` has them."""
        for t in tensors:
            if not (isinstance(t, Tensor) or t is None):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Say that the forward wrote to these inputs; each must be returned."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Say that these outputs have no gradient. `backward` still gets an argument for each: zeros."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` (and `jvp`) get zeros for what has no gradient (the default), or None."""
        self.materialize_grads = value


class BackwardCFunction(FunctionCtx):
    """The node of a call of a Function as users see it, and the `ctx` of that call."""

    __slots__ = ("_node",)
    __module__ = "gradlab.autograd.function"
    _forward_cls: type[Function]
    _node: FunctionNode
    needs_input_grad: tuple[bool, ...]

    def __repr__(self) -> str:
        return f"<gradlab.autograd.function.{self.name()} object at {id(self):#x}>"

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors saved, with their history; an error if one was written to, or if they are freed."""
        node = self._node
        if node.in_jvp and node.for_jvp:
            return restore(node, node.for_jvp)
        if node.cleared:
            raise RuntimeError(
                "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the "
                "autograd.Function. Either access saved_tensors only once, or set "
                "clear_saved_tensors_on_access=False."
            )
        tensors = restore(node, items_of(node))
        if self._forward_cls.clear_saved_tensors_on_access and not node.again:
            node.saved, node.cleared = Own(), True
        return tensors

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """The old name of saved_tensors."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        return tuple(saved_tensor(self._node, at) for at in range(len(items_of(self._node))))

    def name(self) -> str:
        """The node's name: the class's, followed by Backward."""
        return self._node.name()

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """(node, output number) of each tensor among the arguments, (None, 0) where no gradient is wanted."""
        return self._node.next_functions

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary to attach one's own things to."""
        return self._node.metadata

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(grad_inputs, grad_outputs)` runs after the node; a tuple it returns replaces `grad_inputs`."""
        return self._node.register_hook(hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(grad_outputs)` runs before the node; a tuple it returns replaces `grad_outputs`."""
        return self._node.register_prehook(hook)

    def _sequence_nr(self) -> int:
        return self._node._sequence_nr()

    @property
    def _input_metadata(self) -> tuple[Any, ...]:
        return self._node._input_metadata

    def __call__(self, *cotangents: Any) -> Any:
        """Run the node alone: see Node."""
        return self._node(*cotangents)


graph.Node.register(BackwardCFunction)


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
        """What to keep on `ctx`, where forward is not given it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the arguments from those of the outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use "
            "it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the outputs from those of the arguments."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Not called: vmap runs a Function on one slice after the other."""
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
        """Call the function: what `forward` returns, with this call as its history."""
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
