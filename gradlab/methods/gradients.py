"""Methods of `Tensor` for gradients: backward, hooks and detaching."""

from __future__ import annotations

import warnings
from builtins import bool as _bool
from collections.abc import Callable
from typing import Any

from gradlab import autograd
from gradlab.core import engine
from gradlab.core.errors import wrong_type
from gradlab.core.node import AccumulateGrad, RemovableHandle
from gradlab.core.observers import OBSERVERS, notify_detach
from gradlab.core.storage import force_version_checks
from gradlab.core.tensor import Tensor


class Gradients:
    """Backward and hooks."""

    array: Any
    node: Any

    def backward(
        self, gradient: Any = None, retain_graph: _bool | None = None, create_graph: _bool = False, inputs: Any = None
    ) -> None:
        """Compute the gradient of this tensor and accumulate it into the `.grad` of the leaves of its graph.

        Parameters
        ----------
        gradient : Tensor, optional
            Weights of this tensor's elements, the v of vᵀJ, with the shape of the tensor. May be omitted if the tensor has one
            element; the weight is then 1.
        retain_graph : bool, optional
            Keep the saved tensors of the graph for another backward pass. Defaults to `create_graph`.
        create_graph : bool, default: False
            Record a graph of the gradients, for derivatives of higher order.
        inputs : Tensor or sequence of Tensor, optional
            Tensors to accumulate gradients for. Defaults to all leaves of the graph.

        Returns
        -------
        None

        Raises
        ------
        RuntimeError
            If the tensor has no history, `gradient` is missing although the tensor has several elements, `gradient` has another
            shape, or the graph was freed.
        TypeError
            If `gradient` is not a Tensor, array or number.

        Examples
        --------
        >>> import gradlab as gl
        >>> x = gl.tensor([1.0, 2.0], requires_grad=True)
        >>> (x**2).backward(gl.tensor([1.0, 0.0]))
        >>> x.grad
        tensor([2., 0.])
        """
        __tracebackhide__ = True
        autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    @property
    def volatile(self) -> _bool:
        """Deprecated. Always False; reading it warns. Use `no_grad` instead."""
        warnings.warn("volatile was removed (Variable.volatile is always False)", UserWarning, stacklevel=2)
        return False

    @volatile.setter
    def volatile(self, wanted: Any) -> None:
        warnings.warn(
            "volatile was removed and now has no effect. Use `with gradlab.no_grad():` instead.", UserWarning, stacklevel=2
        )

    def retain_grad(self) -> None:
        """Make the backward pass write the `.grad` of this tensor, which is not a leaf.

        Has no effect on a leaf.

        Returns
        -------
        None

        Raises
        ------
        RuntimeError
            If the tensor does not require a gradient.

        Examples
        --------
        >>> import gradlab as gl
        >>> x = gl.tensor([1.0, 2.0], requires_grad=True)
        >>> y = x * 3
        >>> y.retain_grad()
        >>> (y * y).sum().backward()
        >>> y.grad
        tensor([ 6., 12.])
        """
        if self.node is None:
            raise RuntimeError(
                "can't retain_grad on Tensor that has requires_grad=False. "
                "Set requires_grad=True on a tensor it is computed from."
            )
        if type(self.node) is not AccumulateGrad:
            engine.retain_grad(self)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Register a function to call whenever this tensor's gradient is computed.

        Parameters
        ----------
        hook : callable
            `hook(grad)`. If it returns a tensor, that tensor replaces the gradient. For an output of a custom Function, `grad` is
            None if only other outputs have a gradient.

        Returns
        -------
        RemovableHandle
            `handle.remove()` removes the hook.

        Raises
        ------
        RuntimeError
            If the tensor does not require a gradient.

        Examples
        --------
        >>> import gradlab as gl
        >>> x = gl.tensor([1.0, 2.0], requires_grad=True)
        >>> handle = x.register_hook(lambda g: g * 10)
        >>> (x * 3).sum().backward()
        >>> x.grad
        tensor([30., 30.])
        """
        if self.node is None:
            raise RuntimeError(
                "cannot register a hook on a tensor that doesn't require gradient. Set requires_grad=True on it, "
                "or on a tensor it is computed from."
            )
        return RemovableHandle(self.node.ensure_hooks().tensor, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Register a function to call after a gradient has been accumulated into this leaf's `.grad`.

        Parameters
        ----------
        hook : callable
            `hook(tensor)`. Its return value is ignored.

        Returns
        -------
        RemovableHandle
            `handle.remove()` removes the hook.

        Raises
        ------
        RuntimeError
            If the tensor is not a leaf or does not require a gradient.

        Examples
        --------
        >>> import gradlab as gl
        >>> x = gl.ones(2, requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
        >>> (x * 3).sum().backward()
        tensor([3., 3.])
        """
        if self.node is None:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient. Set requires_grad=True on it.")
        if type(self.node) is not AccumulateGrad:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        return RemovableHandle(self.node.ensure_hooks().accumulated, hook)

    @property
    def _backward_hooks(self) -> dict[int, Any] | None:
        """Hooks of `register_hook`, by the id of their handle."""
        hooks = self.node.real_node.hooks if self.node is not None else None
        return None if hooks is None else hooks.tensor or None

    @_backward_hooks.setter
    def _backward_hooks(self, hooks: dict[int, Any] | None) -> None:
        if self.node is not None:  # a tensor that requires no gradient never gets one
            self.node.ensure_hooks().tensor = {} if hooks is None else hooks

    @_backward_hooks.deleter
    def _backward_hooks(self) -> None:
        raise RuntimeError("Deletion of _backwards_hooks not allowed!")

    @property
    def _post_accumulate_grad_hooks(self) -> dict[int, Any] | None:
        """Hooks of `register_post_accumulate_grad_hook`, by the id of their handle."""
        hooks = self.node.real_node.hooks if self.node is not None else None
        return None if hooks is None else hooks.accumulated or None

    @_post_accumulate_grad_hooks.deleter
    def _post_accumulate_grad_hooks(self) -> None:
        raise RuntimeError("Deletion of _post_accumulate_grad_hooks not allowed!")

    def detach_(self) -> Tensor:
        """Detach this tensor from its graph, in place.

        Parameters
        ----------
        self : Tensor
            The tensor to detach.

        Returns
        -------
        Tensor
            This tensor, which is now a leaf.

        Raises
        ------
        RuntimeError
            If the tensor is a view.

        Examples
        --------
        >>> import gradlab as gl
        >>> x = gl.ones(2, requires_grad=True) * 2
        >>> x.detach_().is_leaf
        True
        """
        if not isinstance(self, Tensor):
            raise wrong_type("detach_", "input", 1, "Tensor", self)
        if self._is_view():
            raise RuntimeError("Can't detach views in-place. Use detach() instead.")
        self.node = None
        force_version_checks()  # nodes that saved this tensor must check it again
        if OBSERVERS:
            notify_detach(self, self, "detach_")
        return self
