"""The `ctx` object of a call of a `Function`: shared by forward and backward, and the node of the call as users see it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from gradlab.autograd import graph
from gradlab.autograd.user_rules import FunctionNode
from gradlab.core.node import RemovableHandle
from gradlab.core.ports import UserSaved
from gradlab.core.saved import items_of, restore, saved_tensor
from gradlab.core.tensor import Tensor


class FunctionCtx:
    """The `ctx` argument of the static methods of a Function: stores values for backward and the options of the call."""

    __module__ = "gradlab.autograd.function"
    to_save: tuple[Any, ...] | None = None
    saved_for_forward: tuple[Any, ...] | None = None
    dirty_tensors: tuple[Any, ...] | None = None
    non_differentiable: tuple[Any, ...] | None = None
    materialize_grads: bool = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save tensors for `backward`, which reads them from `ctx.saved_tensors`.

        Parameters
        ----------
        *tensors : Tensor or None
            Inputs, outputs or other tensors. If one is modified in place later, `saved_tensors` raises an error.

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
        """Save tensors for `jvp`, which reads them from `ctx.saved_tensors`.

        Parameters
        ----------
        *tensors : Tensor or None
            Inputs, outputs or other tensors.

        Returns
        -------
        None

        Raises
        ------
        AssertionError
            If an argument is neither a Tensor nor None.

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
        """Mark inputs as modified in place by `forward`.

        Parameters
        ----------
        *args : Tensor
            Modified inputs. Each of them must be returned by `forward`.

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
        """Mark outputs as non-differentiable. `backward` still receives a gradient of zeros for each.

        Parameters
        ----------
        *args : Tensor
            Outputs without a gradient.

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
        """Set whether `backward` and `jvp` receive zeros or None for missing gradients and tangents.

        Parameters
        ----------
        value : bool
            Pass zeros if True, which is the default, and None if False.

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
    """Node of a call of a Function as users see it. It is also the `ctx` of that call."""

    __slots__ = ("_node",)
    __module__ = "gradlab.autograd.function"
    _forward_cls: Any  # the Function
    _node: FunctionNode
    needs_input_grad: tuple[bool, ...]

    def __repr__(self) -> str:
        return f"<gradlab.autograd.function.{self.name()} object at {id(self):#x}>"

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """Saved tensors with their history. It is an error if one was modified in place or if they have been freed."""
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
        if self._forward_cls.clear_saved_tensors_on_access and not node.has_more_slices:
            node.saved, node.cleared = UserSaved(), True
        return tensors

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """Deprecated name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        return tuple(saved_tensor(self._node, at) for at in range(len(items_of(self._node))))

    def name(self) -> str:
        """Return the name of the node: the name of the class, followed by "Backward"."""
        return self._node.name()

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """Pair (node, output number) for each tensor argument; (None, 0) if it does not require a gradient."""
        return self._node.next_functions

    @property
    def metadata(self) -> dict[Any, Any]:
        """Dictionary for arbitrary data of the user."""
        return self._node.metadata

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after the node has run. A returned tuple replaces `grad_inputs`."""
        return self._node.register_hook(hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_outputs)` before the node runs. A returned tuple replaces `grad_outputs`."""
        return self._node.register_prehook(hook)

    def _sequence_nr(self) -> int:
        return self._node._sequence_nr()

    @property
    def _input_metadata(self) -> tuple[Any, ...]:
        return self._node._input_metadata

    def __call__(self, *cotangents: Any) -> Any:
        """Run only this node. See `Node`."""
        return self._node(*cotangents)


graph.Node.register(BackwardCFunction)
