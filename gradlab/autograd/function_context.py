"""The `ctx` that forward and backward of a `Function` share: where they keep things, and the node of the call as users see it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from gradlab.autograd import graph
from gradlab.autograd.user_rules import FunctionNode
from gradlab.core.node import RemovableHandle
from gradlab.core.ports import Own
from gradlab.core.saved import items_of, restore, saved_tensor
from gradlab.core.tensor import Tensor


class FunctionCtx:
    """What the static methods of a Function are given as `ctx`: a place to keep things, and what is said of the call."""

    __module__ = "gradlab.autograd.function"
    to_save: tuple[Any, ...] | None = None
    saved_for_forward: tuple[Any, ...] | None = None
    dirty_tensors: tuple[Any, ...] | None = None
    non_differentiable: tuple[Any, ...] | None = None
    materialize_grads: bool = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`, where `ctx.saved_tensors` has them.

        Parameters
        ----------
        *tensors : Tensor or None
            Inputs, outputs or others. A later write into one of them is noticed.

        Returns
        -------
        None

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
        >>> Cube.apply(x).grad_fn.saved_tensors
        (tensor([2.], requires_grad=True),)
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`, where `ctx.saved_tensors` has them.

        Parameters
        ----------
        *tensors : Tensor or None
            Inputs, outputs or others.

        Returns
        -------
        None

        Raises
        ------
        AssertionError
            If one of them is neither a tensor nor None.

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
        >>> gl.func.jvp(Cube.apply, (x.detach(),), (gl.ones(1),))
        (tensor([8.]), tensor([12.]))
        """
        for t in tensors:
            if not (isinstance(t, Tensor) or t is None):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Say that `forward` wrote into these inputs.

        Parameters
        ----------
        *args : Tensor
            The inputs, each of which must be returned.

        Returns
        -------
        None

        Examples
        --------
        >>> import gradlab as gl
        >>> class Doubled(gl.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.mark_dirty(x)
        ...         return x.mul_(2)
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         return 2 * g
        >>> x = gl.ones(2, requires_grad=True)
        >>> Doubled.apply(x.clone()).sum().backward()
        >>> x.grad
        tensor([2., 2.])
        """
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Say that these outputs have no gradient. `backward` still gets an argument for each: zeros.

        Parameters
        ----------
        *args : Tensor
            The outputs.

        Returns
        -------
        None

        Examples
        --------
        >>> import gradlab as gl
        >>> class Largest(gl.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         place = x.argmax()
        ...         ctx.mark_non_differentiable(place)
        ...         ctx.place, ctx.count = place, len(x)
        ...         return x[place], place
        ...     @staticmethod
        ...     def backward(ctx, g, _):
        ...         return gl.zeros(ctx.count).index_fill(0, ctx.place.reshape(1), 1.0) * g
        >>> x = gl.tensor([1.0, 5.0], requires_grad=True)
        >>> Largest.apply(x)[0].backward()
        >>> x.grad
        tensor([0., 1.])
        """
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether `backward` and `jvp` get zeros for what has no gradient, or None.

        Parameters
        ----------
        value : bool
            True, the default, means zeros.

        Returns
        -------
        None

        Examples
        --------
        >>> import gradlab as gl
        >>> class Both(gl.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.set_materialize_grads(False)
        ...         return 2 * x, 3 * x
        ...     @staticmethod
        ...     def backward(ctx, g, h):
        ...         return 2 * g if h is None else 2 * g + 3 * h
        >>> x = gl.ones(2, requires_grad=True)
        >>> Both.apply(x)[0].sum().backward()
        >>> x.grad
        tensor([2., 2.])
        """
        self.materialize_grads = value


class BackwardCFunction(FunctionCtx):
    """The node of a call of a Function as users see it, and the `ctx` of that call."""

    __slots__ = ("_node",)
    __module__ = "gradlab.autograd.function"
    _forward_cls: Any  # the Function
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
