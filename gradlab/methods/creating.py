"""The constructor of `Tensor`, and methods that create tensors with the dtype and device of an existing one."""

from __future__ import annotations

from typing import Any

from gradlab.core.errors import wrong_type
from gradlab.core.tensor import Tensor
from gradlab.ops import creation, from_data, legacy_tensors
from gradlab.ops.creation_arguments import parse_size


def like_self(self: Tensor, options: dict[str, Any]) -> dict[str, Any]:
    """Set missing options to this tensor's dtype and device, and return the options."""
    if options.get("dtype") is None:
        options["dtype"] = self.dtype
    if options.get("device") is None:
        options["device"] = self.device
    return options


class Creating:
    """Factory methods. Shapes are given as integers or as one sequence."""

    array: Any

    __init__, new = legacy_tensors.construct, legacy_tensors.new  # type: ignore[assignment]

    def new_tensor(self, data: Any, **options: Any) -> Tensor:
        """Return a tensor with a copy of `data`, by default with this tensor's dtype and device.

        Parameters
        ----------
        data : number, sequence or array
            The data to copy.
        **options : optional
            `dtype` and `device`, by default those of this tensor, and `requires_grad`, by default False.

        Returns
        -------
        Tensor

        Raises
        ------
        TypeError, ValueError
            If `data` is not numeric.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).new_tensor([1, 2])
        tensor([1., 2.])
        """
        if isinstance(data, Tensor):
            from_data.warn_of_copy("tensor.new_tensor")
            data = data.array
        return from_data.tensor(data, **like_self(self, options))

    def new_zeros(self, *size: Any, **options: Any) -> Tensor:
        """Return a tensor filled with zeros, by default with this tensor's dtype and device.

        Parameters
        ----------
        *size : ints, or a sequence of ints
            The shape.
        **options : optional
            `dtype` and `device`, by default those of this tensor, and `requires_grad`, by default False.

        Returns
        -------
        Tensor

        Raises
        ------
        TypeError
            If `size` is not a shape.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).new_zeros(2, 2)
        tensor([[0., 0.],
                [0., 0.]])
        """
        return creation.zeros(parse_size("new_zeros", size, options.pop("size", None)), **like_self(self, options))

    def new_ones(self, *size: Any, **options: Any) -> Tensor:
        """Return a tensor filled with ones, by default with this tensor's dtype and device.

        Parameters
        ----------
        *size : ints, or a sequence of ints
            The shape.
        **options : optional
            `dtype` and `device`, by default those of this tensor, and `requires_grad`, by default False.

        Returns
        -------
        Tensor

        Raises
        ------
        TypeError
            If `size` is not a shape.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.zeros(2).new_ones(3)
        tensor([1., 1., 1.])
        """
        return creation.ones(parse_size("new_ones", size, options.pop("size", None)), **like_self(self, options))

    def new_empty(self, *size: Any, **options: Any) -> Tensor:
        """Return a tensor with uninitialized values, by default with this tensor's dtype and device.

        Parameters
        ----------
        *size : ints, or a sequence of ints
            The shape.
        **options : optional
            `dtype` and `device`, by default those of this tensor, and `requires_grad`, by default False.

        Returns
        -------
        Tensor

        Raises
        ------
        TypeError
            If `size` is not a shape.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).new_empty(2, 3).shape
        gradlab.Size([2, 3])
        """
        return creation.empty(parse_size("new_empty", size, options.pop("size", None)), **like_self(self, options))

    def new_full(self, size: Any, fill_value: Any, **options: Any) -> Tensor:
        """Return a tensor filled with `fill_value`, by default with this tensor's dtype and device.

        Parameters
        ----------
        size : sequence of ints
            The shape.
        fill_value : number
            The value.
        **options : optional
            `dtype` and `device`, by default those of this tensor, and `requires_grad`, by default False.

        Returns
        -------
        Tensor

        Raises
        ------
        TypeError
            If `size` is not a shape.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).new_full((2,), 7)
        tensor([7., 7.])
        """
        if not isinstance(size, (tuple, list)):
            raise wrong_type("new_full", "size", 1, "tuple of ints", size)
        return creation.full(size, fill_value, **like_self(self, options))

    def new_empty_strided(self, size: Any, stride: Any, **options: Any) -> Tensor:
        """Return a tensor with uninitialized values and the given strides, by default with this tensor's dtype and device.

        Parameters
        ----------
        size : sequence of ints
            The shape.
        stride : sequence of ints
            The distance in memory, in elements, between neighbours along each axis.
        **options : optional
            `dtype` and `device`, by default those of this tensor, and `requires_grad`, by default False.

        Returns
        -------
        Tensor

        Raises
        ------
        TypeError, RuntimeError
            If `size` and `stride` do not match.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).new_empty_strided((2, 3), (1, 2)).stride()
        (1, 2)
        """
        return creation.empty_strided(size, stride, **like_self(self, options))
