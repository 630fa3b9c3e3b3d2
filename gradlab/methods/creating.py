"""`Tensor(…)`, and new tensors of a tensor's dtype and device."""

from __future__ import annotations

from typing import Any

from gradlab.core.errors import expected
from gradlab.core.tensor import Tensor
from gradlab.ops import creation, from_data, legacy_tensors
from gradlab.ops.creation_arguments import sizes


def like_self(self: Tensor, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a factory, with this tensor's dtype and device where none is given."""
    if options.get("dtype") is None:
        options["dtype"] = self.dtype
    if options.get("device") is None:
        options["device"] = self.device
    return options


class Creating:
    """Shapes are given as integers or as one sequence; `dtype`, `device`, `requires_grad` may differ from this tensor's."""

    array: Any

    __init__, new = legacy_tensors.construct, legacy_tensors.new  # type: ignore[assignment]

    def new_tensor(self, data: Any, **options: Any) -> Tensor:
        """A tensor with a copy of data, of this tensor's dtype and on its device.

        Parameters
        ----------
        data : number, sequence or array
            What is copied.
        **options : optional
            `dtype`, `device`, `requires_grad`; what is left out is as of this tensor. Gradients are wanted if asked for.

        Returns
        -------
        Tensor

        Raises
        ------
        TypeError, ValueError
            If the data are no numbers.

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
        """Zeros, of this tensor's dtype and on its device.

        Parameters
        ----------
        *size : ints, or a sequence of ints
            The shape.
        **options : optional
            `dtype`, `device`, `requires_grad`; what is left out is as of this tensor. Gradients are wanted if asked for.

        Returns
        -------
        Tensor

        Raises
        ------
        TypeError
            If the shape is none.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).new_zeros(2, 2)
        tensor([[0., 0.],
                [0., 0.]])
        """
        return creation.zeros(sizes("new_zeros", size, options.pop("size", None)), **like_self(self, options))

    def new_ones(self, *size: Any, **options: Any) -> Tensor:
        """Ones, of this tensor's dtype and on its device.

        Parameters
        ----------
        *size : ints, or a sequence of ints
            The shape.
        **options : optional
            `dtype`, `device`, `requires_grad`; what is left out is as of this tensor. Gradients are wanted if asked for.

        Returns
        -------
        Tensor

        Raises
        ------
        TypeError
            If the shape is none.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.zeros(2).new_ones(3)
        tensor([1., 1., 1.])
        """
        return creation.ones(sizes("new_ones", size, options.pop("size", None)), **like_self(self, options))

    def new_empty(self, *size: Any, **options: Any) -> Tensor:
        """Unset values, of this tensor's dtype and on its device.

        Parameters
        ----------
        *size : ints, or a sequence of ints
            The shape.
        **options : optional
            `dtype`, `device`, `requires_grad`; what is left out is as of this tensor. Gradients are wanted if asked for.

        Returns
        -------
        Tensor

        Raises
        ------
        TypeError
            If the shape is none.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).new_empty(2, 3).shape
        gradlab.Size([2, 3])
        """
        return creation.empty(sizes("new_empty", size, options.pop("size", None)), **like_self(self, options))

    def new_full(self, size: Any, fill_value: Any, **options: Any) -> Tensor:
        """One value everywhere, of this tensor's dtype and on its device.

        Parameters
        ----------
        size : sequence of ints
            The shape.
        fill_value : number
            The value.
        **options : optional
            `dtype`, `device`, `requires_grad`; what is left out is as of this tensor. Gradients are wanted if asked for.

        Returns
        -------
        Tensor

        Raises
        ------
        TypeError
            If the shape is none.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).new_full((2,), 7)
        tensor([7., 7.])
        """
        if not isinstance(size, (tuple, list)):
            raise expected("new_full", "size", 1, "tuple of ints", size)
        return creation.full(size, fill_value, **like_self(self, options))

    def new_empty_strided(self, size: Any, stride: Any, **options: Any) -> Tensor:
        """Unset values that lie as the strides say, of this tensor's dtype and on its device.

        Parameters
        ----------
        size : sequence of ints
            The shape.
        stride : sequence of ints
            How many elements apart neighbours along each axis lie.
        **options : optional
            `dtype`, `device`, `requires_grad`; what is left out is as of this tensor. Gradients are wanted if asked for.

        Returns
        -------
        Tensor

        Raises
        ------
        TypeError, RuntimeError
            If they do not fit.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).new_empty_strided((2, 3), (1, 2)).stride()
        (1, 2)
        """
        return creation.empty_strided(size, stride, **like_self(self, options))
