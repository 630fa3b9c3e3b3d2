"""Changes of a module and all its submodules: mode, device, dtype and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gradlab.core.dtypes import dtype, float16, float32, float64
from gradlab.core.tensor import Tensor, constant
from gradlab.nn.modules.parts import Parts
from gradlab.ops.creation_arguments import Device

M = TypeVar("M", bound="Conversion")


class Conversion(Parts):
    """Methods of Module that change the module and all its submodules."""

    training: bool
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]

    def apply(self: M, fn: Callable[[Any], None]) -> M:
        """Call a function with every submodule, then with this module.

        Parameters
        ----------
        fn : callable
            `fn(module)`, for instance to initialise the weights.

        Returns
        -------
        Module
            This module.

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
        """Set training or evaluation mode, which affects dropout and batch normalization, recursively.

        Parameters
        ----------
        mode : bool, default: True
            True for training, False for evaluation.

        Returns
        -------
        Module
            This module.

        Raises
        ------
        ValueError
            If `mode` is not a bool.

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
            This module.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> nn.Dropout(0.9).eval()(gl.ones(3))
        tensor([1., 1., 1.])
        """
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Set whether the parameters require gradients.

        Parameters
        ----------
        requires_grad : bool, default: True
            Whether they require gradients.

        Returns
        -------
        Module
            This module.

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
        """Reset the gradients of all parameters.

        Parameters
        ----------
        set_to_none : bool, default: True
            Set `.grad` to None instead of zeros.

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
        """Replace each parameter, gradient and buffer by `fn` of it."""
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
        """Move the parameters and buffers to a device, or convert them to a dtype.

        Parameters
        ----------
        *args : device, dtype or Tensor
            `to(device)`, `to(dtype)`, `to(device, dtype)`, or `to(tensor)` for the device and dtype of a tensor.
        **kwargs : optional
            The same as `device=` and `dtype=`; `non_blocking=` has no effect.

        Returns
        -------
        Module
            This module.

        Raises
        ------
        TypeError
            If the dtype is not floating point.

        Notes
        -----
        Integer buffers keep their dtype. The parameters remain the same objects, so optimizers stay valid.

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
        """Convert all parameters and buffers to a dtype.

        Parameters
        ----------
        dst_type : dtype or str
            The dtype, or the name of a tensor type.

        Returns
        -------
        Module
            This module.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> nn.Linear(2, 3).type(gl.float64).bias.dtype
        gradlab.float64
        """
        return self._apply(lambda x: x.type(dst_type))

    def _convert_floating(self: M, wanted: dtype) -> M:
        return self._apply(lambda x: x.to(wanted) if x.is_floating_point() else x)

    def float(self: M) -> M:
        """Convert floating-point parameters and buffers to float32.

        Returns
        -------
        Module
            This module.

        Examples
        --------
        >>> from gradlab import nn
        >>> nn.Linear(2, 3).double().float().bias.dtype
        gradlab.float32
        """
        return self._convert_floating(float32)

    def double(self: M) -> M:
        """Convert floating-point parameters and buffers to float64.

        Returns
        -------
        Module
            This module.

        Examples
        --------
        >>> from gradlab import nn
        >>> nn.Linear(2, 3).double().bias.dtype
        gradlab.float64
        """
        return self._convert_floating(float64)

    def half(self: M) -> M:
        """Convert floating-point parameters and buffers to float16.

        Returns
        -------
        Module
            This module.

        Examples
        --------
        >>> from gradlab import nn
        >>> nn.Linear(2, 3).half().bias.dtype
        gradlab.float16
        """
        return self._convert_floating(float16)

    def bfloat16(self: M) -> M:
        """Raise an error: NumPy has no bfloat16.

        Returns
        -------
        Module
            Never returned.

        Raises
        ------
        TypeError
            Always. The message names alternatives.

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
        """Move the parameters and buffers to host memory.

        Returns
        -------
        Module
            This module.

        Examples
        --------
        >>> from gradlab import nn
        >>> nn.Linear(2, 3).cpu().bias.is_cuda
        False
        """
        return self._apply(lambda x: x.cpu())

    def cuda(self: M, device: Device = None) -> M:
        """Move the parameters and buffers to a GPU.

        Parameters
        ----------
        device : int, str or device, optional
            Which GPU (default: the current one).

        Returns
        -------
        Module
            This module.

        Raises
        ------
        RuntimeError
            If there is no GPU, or CuPy is not installed.

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
        """Call `Tensor.share_memory_` for each parameter and buffer.

        Returns
        -------
        Module
            This module.

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.Linear(2, 3)
        >>> net.share_memory() is net
        True
        """
        return self._apply(lambda x: x.share_memory_())
