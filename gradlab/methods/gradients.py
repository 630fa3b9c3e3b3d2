"""What concerns the gradients of a tensor: backward, hooks, and forgetting where it came from."""

from __future__ import annotations

import warnings
from builtins import bool as _bool
from collections.abc import Callable
from typing import Any

from gradlab import autograd
from gradlab.core import engine
from gradlab.core.errors import expected
from gradlab.core.node import AccumulateGrad, RemovableHandle
from gradlab.core.observers import OBSERVERS, notify_detach
from gradlab.core.storage import look_again
from gradlab.core.tensor import Tensor


class Gradients:
    """Backward, and hooks."""

    array: Any
    node: Any

    def backward(
        self, gradient: Any = None, retain_graph: _bool | None = None, create_graph: _bool = False, inputs: Any = None
    ) -> None:
        """Accumulate vᵀJ into the `.grad` of the leaves that this tensor was made from, v being `gradient`.

        Parameters
        ----------
        gradient : Tensor, optional
            Weights of this tensor's elements, of its shape; 1 if left out, which needs a single element.
        retain_graph : bool, optional
            Keep what the graph saved, for another backward. Defaults to `create_graph`.
        create_graph : bool, default False
            Record the gradients themselves, for derivatives of higher order.
        inputs : Tensor or sequence of Tensor, optional
            Only these receive gradients.

        Returns
        -------
        None

        Raises
        ------
        RuntimeError
            If it has no history, has several elements and no `gradient`, `gradient` is of another shape, or the graph was freed.
        TypeError
            If `gradient` is no tensor, array or number.

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
        """Always False, with a warning: an old name for what `no_grad` does."""
        warnings.warn("volatile was removed (Variable.volatile is always False)", UserWarning, stacklevel=2)
        return False

    @volatile.setter
    def volatile(self, wanted: Any) -> None:
        warnings.warn(
            "volatile was removed and now has no effect. Use `with gradlab.no_grad():` instead.", UserWarning, stacklevel=2
        )

    def retain_grad(self) -> None:
        """Let backward write the `.grad` of this tensor too, which is no leaf.

        On a leaf it does nothing.

        Returns
        -------
        None

        Raises
        ------
        RuntimeError
            If it does not require a gradient.

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
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False. Set it on what the tensor is made of.")
        if type(self.node) is not AccumulateGrad:
            engine.retain_grad(self)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call a function whenever this tensor's gradient is computed; what it returns, if anything, replaces it.

        Parameters
        ----------
        hook : callable
            `hook(grad)`. Of a custom Function with several outputs, `grad` is None where only another output got a gradient.

        Returns
        -------
        RemovableHandle
            `handle.remove()` takes it away.

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
                "or on what it is made of."
            )
        return RemovableHandle(self.node.hooks_of_its_own().tensor, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call a function whenever this leaf's `.grad` was written.

        Parameters
        ----------
        hook : callable
            `hook(tensor)`; what it returns is ignored.

        Returns
        -------
        RemovableHandle
            `handle.remove()` takes it away.

        Raises
        ------
        RuntimeError
            If it is no leaf, or does not require a gradient.

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
        return RemovableHandle(self.node.hooks_of_its_own().accumulated, hook)

    @property
    def _backward_hooks(self) -> dict[int, Any] | None:
        """The hooks that register_hook made, by the number of their handle."""
        hooks = self.node.proper.hooks if self.node is not None else None
        return None if hooks is None else hooks.tensor or None

    @_backward_hooks.setter
    def _backward_hooks(self, hooks: dict[int, Any] | None) -> None:
        if self.node is not None:  # nothing comes to a tensor that wants no gradient
            self.node.hooks_of_its_own().tensor = {} if hooks is None else hooks

    @_backward_hooks.deleter
    def _backward_hooks(self) -> None:
        raise RuntimeError("Deletion of _backwards_hooks not allowed!")

    @property
    def _post_accumulate_grad_hooks(self) -> dict[int, Any] | None:
        """Those that register_post_accumulate_grad_hook made."""
        hooks = self.node.proper.hooks if self.node is not None else None
        return None if hooks is None else hooks.accumulated or None

    @_post_accumulate_grad_hooks.deleter
    def _post_accumulate_grad_hooks(self) -> None:
        raise RuntimeError("Deletion of _post_accumulate_grad_hooks not allowed!")

    def detach_(self) -> Tensor:
        """Forget the history of this tensor, in place.

        Parameters
        ----------
        self : Tensor
            The tensor: `x` in ``x.detach_()``.

        Returns
        -------
        Tensor
            This tensor, a leaf now.

        Raises
        ------
        RuntimeError
            If it is a view.

        Examples
        --------
        >>> import gradlab as gl
        >>> x = gl.ones(2, requires_grad=True) * 2
        >>> x.detach_().is_leaf
        True
        """
        if not isinstance(self, Tensor):
            raise expected("detach_", "input", 1, "Tensor", self)
        if self._is_view():
            raise RuntimeError("Can't detach views in-place. Use detach() instead.")
        self.node = None
        look_again()  # at what saved this tensor
        if OBSERVERS:
            notify_detach(self, self, "detach_")
        return self
