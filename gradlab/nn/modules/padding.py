"""Layers that pad the last one, two or three axes with a constant, by reflection, with edge elements, or periodically."""

from __future__ import annotations

from typing import Any, ClassVar

from gradlab.core.tensor import Tensor
from gradlab.nn import functional
from gradlab.nn.modules.bases import ReprModule, sizes

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class Padding(ReprModule):
    """Base of the padding layers. `padding` is one number, or the numbers before and after each axis, the last axis first."""

    n: ClassVar[int]
    mode: ClassVar[str]
    repr_format = "{padding}"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = sizes(padding, 2 * self.n)

    def forward(self, input: Tensor) -> Tensor:
        return functional.pad(input, self.padding, self.mode)


class ConstantPad(Padding):
    """Padding with a constant."""

    mode = "constant"
    repr_format = "padding={padding}, value={value}"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return functional.pad(input, self.padding, "constant", self.value)


class ConstantPad1d(ConstantPad):
    """Padding with a constant in the last dimension.

    Parameters
    ----------
    {padding}
    value : float
        The constant.

    Notes
    -----
    {padding_1d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.ConstantPad1d(1, 9.0)(gradlab.tensor([[1.0, 2.0, 3.0]]))
    tensor([[9., 1., 2., 3., 9.]])
    """

    n = 1


class ConstantPad2d(ConstantPad):
    """Padding with a constant in the last two dimensions.

    Parameters
    ----------
    {padding}
    value : float
        The constant.

    Notes
    -----
    {padding_2d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.ConstantPad2d((1, 0, 1, 0), 9.0)(gradlab.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[9., 9., 9.],
             [9., 1., 2.],
             [9., 3., 4.]]])
    """

    n = 2


class ConstantPad3d(ConstantPad):
    """Padding with a constant in the last three dimensions.

    Parameters
    ----------
    {padding}
    value : float
        The constant.

    Notes
    -----
    {padding_3d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.ConstantPad3d((1, 0, 0, 0, 0, 0), 9.0)(gradlab.tensor([[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]]))
    tensor([[[[9., 1., 2.],
              [9., 3., 4.]],
    <BLANKLINE>
             [[9., 5., 6.],
              [9., 7., 8.]]]])
    """

    n = 3


class ZeroPad1d(ConstantPad1d):
    """Padding with zeros in the last dimension.

    Parameters
    ----------
    {padding}

    Notes
    -----
    {padding_1d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.ZeroPad1d(1)(gradlab.tensor([[1.0, 2.0, 3.0]]))
    tensor([[0., 1., 2., 3., 0.]])
    """

    repr_format = "{padding}"

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)


class ZeroPad2d(ConstantPad2d):
    """Padding with zeros in the last two dimensions.

    Parameters
    ----------
    {padding}

    Notes
    -----
    {padding_2d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.ZeroPad2d((1, 0, 1, 0))(gradlab.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[0., 0., 0.],
             [0., 1., 2.],
             [0., 3., 4.]]])
    """

    repr_format = "{padding}"

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)


class ZeroPad3d(ConstantPad3d):
    """Padding with zeros in the last three dimensions.

    Parameters
    ----------
    {padding}

    Notes
    -----
    {padding_3d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.ZeroPad3d((1, 0, 0, 0, 0, 0))(gradlab.tensor([[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]]))
    tensor([[[[0., 1., 2.],
              [0., 3., 4.]],
    <BLANKLINE>
             [[0., 5., 6.],
              [0., 7., 8.]]]])
    """

    repr_format = "{padding}"

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)


class ReflectionPad1d(Padding):
    """Sequences padded by reflection, without repeating the edge, in the last dimension.

    Parameters
    ----------
    {padding}

    Notes
    -----
    The padding must be smaller than the dimension.

    {padding_1d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.ReflectionPad1d(1)(gradlab.tensor([[1.0, 2.0, 3.0]]))
    tensor([[2., 1., 2., 3., 2.]])
    """

    n, mode = 1, "reflect"


class ReflectionPad2d(Padding):
    """Images padded by reflection, without repeating the edge, in the last two dimensions.

    Parameters
    ----------
    {padding}

    Notes
    -----
    The padding must be smaller than the dimension.

    {padding_2d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.ReflectionPad2d((1, 0, 1, 0))(gradlab.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[4., 3., 4.],
             [2., 1., 2.],
             [4., 3., 4.]]])
    """

    n, mode = 2, "reflect"


class ReflectionPad3d(Padding):
    """Volumes padded by reflection, without repeating the edge, in the last three dimensions.

    Parameters
    ----------
    {padding}

    Notes
    -----
    The padding must be smaller than the dimension.

    {padding_3d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.ReflectionPad3d((1, 0, 0, 0, 0, 0))(gradlab.tensor([[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]]))
    tensor([[[[2., 1., 2.],
              [4., 3., 4.]],
    <BLANKLINE>
             [[6., 5., 6.],
              [8., 7., 8.]]]])
    """

    n, mode = 3, "reflect"


class ReplicationPad1d(Padding):
    """Sequences padded with their edge elements in the last dimension.

    Parameters
    ----------
    {padding}

    Notes
    -----
    {padding_1d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.ReplicationPad1d(1)(gradlab.tensor([[1.0, 2.0, 3.0]]))
    tensor([[1., 1., 2., 3., 3.]])
    """

    n, mode = 1, "replicate"


class ReplicationPad2d(Padding):
    """Images padded with their edge elements in the last two dimensions.

    Parameters
    ----------
    {padding}

    Notes
    -----
    {padding_2d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.ReplicationPad2d((1, 0, 1, 0))(gradlab.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[1., 1., 2.],
             [1., 1., 2.],
             [3., 3., 4.]]])
    """

    n, mode = 2, "replicate"


class ReplicationPad3d(Padding):
    """Volumes padded with their edge elements in the last three dimensions.

    Parameters
    ----------
    {padding}

    Notes
    -----
    {padding_3d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.ReplicationPad3d((1, 0, 0, 0, 0, 0))(gradlab.tensor([[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]]))
    tensor([[[[1., 1., 2.],
              [3., 3., 4.]],
    <BLANKLINE>
             [[5., 5., 6.],
              [7., 7., 8.]]]])
    """

    n, mode = 3, "replicate"


class CircularPad(Padding):
    """Padding with elements of the opposite end."""

    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        n, dims = self.n, input.dim()
        if dims not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {dims}D input)")
        return super().forward(input)


class CircularPad1d(CircularPad):
    """Sequences padded periodically, with elements of the opposite end, in the last dimension.

    Parameters
    ----------
    {padding}

    Notes
    -----
    The padding must not be larger than the dimension.

    {padding_1d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.CircularPad1d(1)(gradlab.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1., 2., 3., 1.]])
    """

    n = 1


class CircularPad2d(CircularPad):
    """Images padded periodically, with elements of the opposite end, in the last two dimensions.

    Parameters
    ----------
    {padding}

    Notes
    -----
    The padding must not be larger than the dimension.

    {padding_2d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.CircularPad2d((1, 0, 1, 0))(gradlab.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[4., 3., 4.],
             [2., 1., 2.],
             [4., 3., 4.]]])
    """

    n = 2


class CircularPad3d(CircularPad):
    """Volumes padded periodically, with elements of the opposite end, in the last three dimensions.

    Parameters
    ----------
    {padding}

    Notes
    -----
    The padding must not be larger than the dimension.

    {padding_3d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.CircularPad3d((1, 0, 0, 0, 0, 0))(gradlab.tensor([[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]]))
    tensor([[[[2., 1., 2.],
              [4., 3., 4.]],
    <BLANKLINE>
             [[6., 5., 6.],
              [8., 7., 8.]]]])
    """

    n = 3
