"""What is done to a module and all below it: another mode, device or dtype, gradients forgotten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gradlab.core.dtypes import dtype, float16, float32, float64
from gradlab.core.tensor import Tensor, constant
from gradlab.nn.modules.parts import Parts
from gradlab.ops.creation_arguments import Device

M = TypeVar("M", bound="Conversion")


class Conversion(Parts):
    """The part of Module that changes the whole of it."""

    training: bool
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]

    def apply(self: M, fn: Callable[[Any], None]) -> M:
        """Call a function on every module below, then on itself.

        Parameters
        ----------
        fn : callable
            `fn(module)`, for instance one that draws the weights anew.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> def halve(module):
        ...     if isinstance(module, nn.Linear):
        ...         nn.init.constant_(module.weight, 0.5)
        >>> net.apply(halve)[0].weight[0]
        tensor([0.5000, 0.5000], grad_fn=<SelectBackward0>)
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self: M, mode: bool = True) -> M:
        """Set training mode, which dropout and batch norm heed, of itself and of all below.

        Parameters
        ----------
        mode : bool, default: True
            Whether it is to train; False is evaluation mode.

        Returns
        -------
        Module
            The module itself.

        Raises
        ------
        ValueError
            If `mode` is no bool.

        Examples
        --------
        >>> from gradlab import nn
        >>> nn.Dropout().train(False).training
        False
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: M) -> M:
        """Set evaluation mode: `train(False)`.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> nn.Dropout(0.9).eval()(gl.ones(3))
        tensor([1., 1., 1.])
        """
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Set whether gradients are wanted for its parameters.

        Parameters
        ----------
        requires_grad : bool, default: True
            Whether they are.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> from gradlab import nn
        >>> any(p.requires_grad for p in nn.Linear(2, 3).requires_grad_(False).parameters())
        False
        """
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of its parameters.

        Parameters
        ----------
        set_to_none : bool, default: True
            Whether `.grad` becomes None; if not, its elements become 0.

        Returns
        -------
        None

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> net = nn.Linear(2, 1)
        >>> net(gl.ones(2)).sum().backward()
        >>> net.zero_grad()
        >>> net.weight.grad is None
        True
        """
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad_slot = None
            elif parameter.grad_slot is not None:
                parameter.grad_slot.detach_().zero_()

    def _apply(self: M, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> M:
        """Put `fn` of each parameter, gradient and buffer in its place."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is not None:
                gradient = parameter.grad_slot
                parameter.data = fn(constant(parameter.array))
                if gradient is not None:
                    gradient.data = fn(constant(gradient.array))
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self: M, *args: Any, **kwargs: Any) -> M:
        """Move its parameters and buffers to another device, or convert them to another dtype.

        Parameters
        ----------
        *args : device, dtype or Tensor
            `to(device)`, `to(dtype)`, `to(device, dtype)`, or `to(tensor)` for those of a tensor.
        **kwargs : optional
            The same as `device=` and `dtype=`; `non_blocking=` has no effect.

        Returns
        -------
        Module
            The module itself.

        Raises
        ------
        TypeError
            If the dtype is not floating point.

        Notes
        -----
        Integer buffers keep their dtype. The parameters stay the same objects, so that an optimizer finds them still.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> nn.Linear(2, 3).to(gl.float64).weight.dtype
        gradlab.float64
        """
        like = args[0] if args and isinstance(args[0], Tensor) else None
        wanted = like.dtype if like is not None else kwargs.get("dtype", next((x for x in args if isinstance(x, dtype)), None))
        if wanted is not None and not wanted.is_floating_point:
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={wanted}")
        rest = tuple(x for x in args if not isinstance(x, (dtype, Tensor)))
        place = {"device": like.device} if like is not None else {}
        options: dict[str, Any] = {**place, **{k: v for k, v in kwargs.items() if k != "dtype"}}
        return self._apply(lambda x: x.to(*rest, **options, dtype=wanted if x.is_floating_point() else None))

    def type(self: M, dst_type: Any) -> M:
        """Convert all its parameters and buffers to a dtype.

        Parameters
        ----------
        dst_type : dtype or str
            The dtype, or the name of a type of tensor.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> nn.Linear(2, 3).type(gl.float64).bias.dtype
        gradlab.float64
        """
        return self._apply(lambda x: x.type(dst_type))

    def _floating(self: M, wanted: dtype) -> M:
        return self._apply(lambda x: x.to(wanted) if x.is_floating_point() else x)

    def float(self: M) -> M:
        """Convert its floating point parameters and buffers to float32.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> from gradlab import nn
        >>> nn.Linear(2, 3).double().float().bias.dtype
        gradlab.float32
        """
        return self._floating(float32)

    def double(self: M) -> M:
        """Convert its floating point parameters and buffers to float64.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> from gradlab import nn
        >>> nn.Linear(2, 3).double().bias.dtype
        gradlab.float64
        """
        return self._floating(float64)

    def half(self: M) -> M:
        """Convert its floating point parameters and buffers to float16.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> from gradlab import nn
        >>> nn.Linear(2, 3).half().bias.dtype
        gradlab.float16
        """
        return self._floating(float16)

    def bfloat16(self: M) -> M:
        """Refused: there is no bfloat16 in NumPy.

        Returns
        -------
        Module
            Never: it raises.

        Raises
        ------
        TypeError
            With what to use in its place.

        Examples
        --------
        >>> from gradlab import nn
        >>> try:
        ...     nn.Linear(2, 3).bfloat16()
        ... except TypeError:
        ...     print("refused")
        refused
        """
        return self._apply(lambda x: x.bfloat16())

    def cpu(self: M) -> M:
        """Move its parameters and buffers to the host's memory.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> from gradlab import nn
        >>> nn.Linear(2, 3).cpu().bias.is_cuda
        False
        """
        return self._apply(lambda x: x.cpu())

    def cuda(self: M, device: Device = None) -> M:
        """Move its parameters and buffers to a GPU.

        Parameters
        ----------
        device : int, str or device, optional
            Which one; the current one unless given.

        Returns
        -------
        Module
            The module itself.

        Raises
        ------
        RuntimeError
            If there is no GPU, or no CuPy.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> net = nn.Linear(2, 3)
        >>> if gl.cuda.is_available():
        ...     net = net.cuda()
        """
        return self._apply(lambda x: x.cuda(device))

    def share_memory(self: M) -> M:
        """Call `Tensor.share_memory_` of each parameter and buffer.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.Linear(2, 3)
        >>> net.share_memory() is net
        True
        """
        return self._apply(lambda x: x.share_memory_())
