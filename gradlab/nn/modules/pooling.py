"""Pooling over one to three axes: maximum, mean and p-norm of windows, and adaptive pooling to an output size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from gradlab.core.tensor import Tensor
from gradlab.nn import functional
from gradlab.nn.modules.bases import ReprModule, sizes

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "LPPool1d",
    "LPPool2d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
]


class Pooling(ReprModule):
    """A layer that calls one function of `functional`."""

    function: ClassVar[Callable[..., Any]]


# -------------------------------------------------------------------------------------------------------------------- maxima
class MaxPool(Pooling):
    """The maximum of each window, and with `return_indices` its index."""

    repr_format = "kernel_size={kernel_size}, stride={stride}, padding={padding}, dilation={dilation}, ceil_mode={ceil_mode}"

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation, self.return_indices, self.ceil_mode = padding, dilation, return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:
        return type(self).function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class MaxPool1d(MaxPool):
    """The maximum of each window of sequences.

    Parameters
    ----------
    {windows}
    {window_padding}
    {dilation}
    {return_indices}
    {ceil_mode}

    Notes
    -----
    The padding is -∞. The maximum receives the gradient.

    {pooled_1d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x = gradlab.tensor([[1.0, 3.0, 2.0, 5.0]])
    >>> nn.MaxPool1d(2)(x)
    tensor([[3., 5.]])
    """

    function = staticmethod(functional.max_pool1d)


class MaxPool2d(MaxPool):
    """The maximum of each window of images.

    Parameters
    ----------
    {windows}
    {window_padding}
    {dilation}
    {return_indices}
    {ceil_mode}

    Notes
    -----
    The padding is -∞. The maximum receives the gradient.

    {pooled_2d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x = gradlab.arange(16.0).reshape(1, 4, 4)
    >>> nn.MaxPool2d(2)(x)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """

    function = staticmethod(functional.max_pool2d)


class MaxPool3d(MaxPool):
    """The maximum of each window of volumes.

    Parameters
    ----------
    {windows}
    {window_padding}
    {dilation}
    {return_indices}
    {ceil_mode}

    Notes
    -----
    The padding is -∞. The maximum receives the gradient.

    {pooled_3d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x = gradlab.arange(8.0).reshape(1, 2, 2, 2)
    >>> nn.MaxPool3d(2)(x)
    tensor([[[[7.]]]])
    """

    function = staticmethod(functional.max_pool3d)


class MaxUnpool(Pooling):
    """The partial inverse of `MaxPool`: elements at their original positions, zeros elsewhere."""

    n: ClassVar[int]
    repr_format = "kernel_size={kernel_size}, stride={stride}, padding={padding}"

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = sizes(kernel_size, self.n)
        self.stride, self.padding = sizes(kernel_size if stride is None else stride, self.n), sizes(padding, self.n)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return type(self).function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(MaxUnpool):
    """The partial inverse of `MaxPool1d`: elements at their original positions, zeros elsewhere.

    Parameters
    ----------
    {windows}
    {window_padding}

    Notes
    -----
    Call it with the pooled input, the indices returned by `MaxPool1d(…, return_indices=True)` and, optionally, `output_size`.

    Input, indices: (N, C, L) or (C, L). Output: each size n becomes (n - 1) stride - 2 padding + kernel_size, or
    `output_size`.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x = gradlab.tensor([[1.0, 3.0, 2.0, 5.0]])
    >>> largest, places = nn.MaxPool1d(2, return_indices=True)(x)
    >>> nn.MaxUnpool1d(2)(largest, places)
    tensor([[0., 3., 0., 5.]])
    """

    n, function = 1, staticmethod(functional.max_unpool1d)


class MaxUnpool2d(MaxUnpool):
    """The partial inverse of `MaxPool2d`: elements at their original positions, zeros elsewhere.

    Parameters
    ----------
    {windows}
    {window_padding}

    Notes
    -----
    Call it with the pooled input, the indices returned by `MaxPool2d(…, return_indices=True)` and, optionally, `output_size`.

    Input, indices: (N, C, H, W) or (C, H, W). Output: each size n becomes (n - 1) stride - 2 padding + kernel_size, or
    `output_size`.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x = gradlab.arange(16.0).reshape(1, 4, 4)
    >>> largest, places = nn.MaxPool2d(2, return_indices=True)(x)
    >>> nn.MaxUnpool2d(2)(largest, places)
    tensor([[[ 0.,  0.,  0.,  0.],
             [ 0.,  5.,  0.,  7.],
             [ 0.,  0.,  0.,  0.],
             [ 0., 13.,  0., 15.]]])
    """

    n, function = 2, staticmethod(functional.max_unpool2d)


# --------------------------------------------------------------------------------------------------------------------- means
class AvgPool1d(ReprModule):
    """The mean of each window of sequences.

    Parameters
    ----------
    {windows}
    {window_padding}
    {ceil_mode}
    count_include_pad : bool, optional
        Include the zeros of the padding in the mean (default: True).

    Notes
    -----
    {pooled_1d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x = gradlab.tensor([[1.0, 3.0, 2.0, 5.0]])
    >>> nn.AvgPool1d(2)(x)
    tensor([[2.0000, 3.5000]])
    """

    repr_format = MaxUnpool.repr_format

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = sizes(kernel_size, 1), sizes(kernel_size if stride is None else stride, 1)
        self.padding, self.ceil_mode, self.count_include_pad = sizes(padding, 1), ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return functional.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPool(Pooling):
    """The mean of each window. `divisor_override` replaces the window size as divisor of the sums."""

    repr_format = MaxUnpool.repr_format

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, kernel_size if stride is None else stride, padding
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override
        )


class AvgPool2d(AvgPool):
    """The mean of each window of images.

    Parameters
    ----------
    {windows}
    {window_padding}
    {ceil_mode}
    count_include_pad : bool, optional
        Include the zeros of the padding in the mean (default: True).
    divisor_override : int, optional
        Divisor of the sums, in place of the number of elements.

    Notes
    -----
    {pooled_2d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x = gradlab.arange(16.0).reshape(1, 4, 4)
    >>> nn.AvgPool2d(2)(x)
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """

    function = staticmethod(functional.avg_pool2d)


class AvgPool3d(AvgPool):
    """The mean of each window of volumes.

    Parameters
    ----------
    {windows}
    {window_padding}
    {ceil_mode}
    count_include_pad : bool, optional
        Include the zeros of the padding in the mean (default: True).
    divisor_override : int, optional
        Divisor of the sums, in place of the number of elements.

    Notes
    -----
    {pooled_3d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x = gradlab.arange(8.0).reshape(1, 2, 2, 2)
    >>> nn.AvgPool3d(2)(x)
    tensor([[[[3.5000]]]])
    """

    function = staticmethod(functional.avg_pool3d)


class LPPool(Pooling):
    """The p-norm of each window."""

    repr_format = "norm_type={norm_type}, kernel_size={kernel_size}, stride={stride}, ceil_mode={ceil_mode}"

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(LPPool):
    """The p-norm of each window of sequences: (Σ x^p)^(1/p).

    Parameters
    ----------
    norm_type : float
        Order p of the norm; 1 gives the sum.
    {windows}
    {ceil_mode}

    Notes
    -----
    {pooled_1d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x = gradlab.tensor([[1.0, 3.0, 2.0, 5.0]])
    >>> nn.LPPool1d(2, 2)(x)
    tensor([[3.1623, 5.3852]])
    """

    function = staticmethod(functional.lp_pool1d)


class LPPool2d(LPPool):
    """The p-norm of each window of images: (Σ x^p)^(1/p).

    Parameters
    ----------
    norm_type : float
        Order p of the norm; 1 gives the sum.
    {windows}
    {ceil_mode}

    Notes
    -----
    {pooled_2d}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x = gradlab.arange(16.0).reshape(1, 4, 4)
    >>> nn.LPPool2d(2, 2)(x)
    tensor([[[ 6.4807,  9.8995],
             [21.4009, 25.3377]]])
    """

    function = staticmethod(functional.lp_pool2d)


# ------------------------------------------------------------------------------------------------------------------ adaptive
class AdaptiveAvgPool(Pooling):
    """The means of windows that divide the input evenly."""

    repr_format = "output_size={output_size}"

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.output_size)


class AdaptiveAvgPool1d(AdaptiveAvgPool):
    """The means of windows that divide sequences evenly, for a given output size.

    Parameters
    ----------
    {output_size}

    Notes
    -----
    Along a dimension of size n, window i of m covers the elements ⌊i n / m⌋ to ⌈(i + 1) n / m⌉ - 1.

    Input: (N, C, L) or (C, L). Output: (N, C, *output_size) or (C, *output_size).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x = gradlab.tensor([[1.0, 3.0, 2.0, 5.0]])
    >>> nn.AdaptiveAvgPool1d(1)(x)
    tensor([[2.7500]])
    """

    function = staticmethod(functional.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(AdaptiveAvgPool):
    """The means of windows that divide images evenly, for a given output size.

    Parameters
    ----------
    {output_size}

    Notes
    -----
    Along a dimension of size n, window i of m covers the elements ⌊i n / m⌋ to ⌈(i + 1) n / m⌉ - 1.

    Input: (N, C, H, W) or (C, H, W). Output: (N, C, *output_size) or (C, *output_size).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x = gradlab.arange(16.0).reshape(1, 4, 4)
    >>> nn.AdaptiveAvgPool2d(1)(x)
    tensor([[[7.5000]]])
    """

    function = staticmethod(functional.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(AdaptiveAvgPool):
    """The means of windows that divide volumes evenly, for a given output size.

    Parameters
    ----------
    {output_size}

    Notes
    -----
    Along a dimension of size n, window i of m covers the elements ⌊i n / m⌋ to ⌈(i + 1) n / m⌉ - 1.

    Input: (N, C, D, H, W) or (C, D, H, W). Output: (N, C, *output_size) or (C, *output_size).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x = gradlab.arange(8.0).reshape(1, 2, 2, 2)
    >>> nn.AdaptiveAvgPool3d(1)(x)
    tensor([[[[3.5000]]]])
    """

    function = staticmethod(functional.adaptive_avg_pool3d)


class AdaptiveMaxPool(Pooling):
    """The maxima of windows that divide the input evenly."""

    repr_format = "output_size={output_size}"

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Tensor) -> Any:
        return type(self).function(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(AdaptiveMaxPool):
    """The maxima of windows that divide sequences evenly, for a given output size.

    Parameters
    ----------
    {output_size}
    {return_indices}

    Notes
    -----
    Along a dimension of size n, window i of m covers the elements ⌊i n / m⌋ to ⌈(i + 1) n / m⌉ - 1.

    Input: (N, C, L) or (C, L). Output: (N, C, *output_size) or (C, *output_size).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x = gradlab.tensor([[1.0, 3.0, 2.0, 5.0]])
    >>> nn.AdaptiveMaxPool1d(2)(x)
    tensor([[3., 5.]])
    """

    function = staticmethod(functional.adaptive_max_pool1d)


class AdaptiveMaxPool2d(AdaptiveMaxPool):
    """The maxima of windows that divide images evenly, for a given output size.

    Parameters
    ----------
    {output_size}
    {return_indices}

    Notes
    -----
    Along a dimension of size n, window i of m covers the elements ⌊i n / m⌋ to ⌈(i + 1) n / m⌉ - 1.

    Input: (N, C, H, W) or (C, H, W). Output: (N, C, *output_size) or (C, *output_size).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x = gradlab.arange(16.0).reshape(1, 4, 4)
    >>> nn.AdaptiveMaxPool2d(2)(x)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """

    function = staticmethod(functional.adaptive_max_pool2d)
