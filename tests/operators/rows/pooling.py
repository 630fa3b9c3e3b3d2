"""Pooling: windows of every kind, ties, NaN and infinities, indices, unbatched inputs, and the common mistakes."""

from __future__ import annotations

from operators.spelling import I, N, V, rows_for

INF, NAN = float("inf"), float("nan")
TIES = V([[[1.0, 2.0, 2.0, 0.0, 3.0], [2.0, 1.0, 2.0, 0.0, 3.0], [0.0, 0.0, -1.0, -1.0, 3.0], [0.0, 0.0, -1.0, -2.0, 3.0]]])
ODD = V([[[NAN, 1.0, -INF, -INF], [2.0, NAN, -INF, -INF], [INF, INF, 3.0, NAN], [1.0, INF, 4.0, 5.0]]])

ROWS = [
    *rows_for(
        [{"x": N(2, 3, 6, 7)}, {"x": TIES}, {"x": ODD}],
        """
        F.max_pool2d(x, 2)
        F.max_pool2d(x, 2, return_indices=True)
        F.max_pool2d(x, 3, 1, 1, return_indices=True)
        F.max_pool2d(x, (2, 3), stride=(1, 2), padding=(0, 1), ceil_mode=True, return_indices=True)
        F.max_pool2d(x, 2, 1, dilation=2)
        F.max_pool2d(x, 2, dilation=(1, 2), return_indices=True)
        F.avg_pool2d(x, 2)
        F.avg_pool2d(x, 3, 1, 1)
        F.adaptive_max_pool2d(x, (2, 3), return_indices=True)
        F.adaptive_avg_pool2d(x, 2)
    """,
    ),
    *rows_for(
        {"x": N(2, 3, 6, 7)},
        """
        torch.max_pool2d(x, [2], [1], 0, 1, True)
        F.max_pool2d(x, kernel_size=2, stride=None)
        F.max_pool2d(x[0], 2)
        F.max_pool2d(x[:0], 2)
        F.max_pool2d(x, 2).view(-1)
        F.max_pool2d(x.mT, 2).view(-1)
        F.max_pool2d(x.relu(), 2)
        F.max_pool2d(x, 3, 2, 1, 1, True)
        F.max_pool2d(x, 4, 3, 2)
        F.max_pool2d(x[0, 0], 2)
        F.max_pool2d(x[:, :0], 2)
        F.max_pool2d(x, 8)
        F.max_pool2d(x, 2, padding=2)
        F.max_pool2d(x, 2, padding=-1)
        F.max_pool2d(x, 0)
        F.max_pool2d(x, 2, 0)
        F.max_pool2d(x, 2, dilation=0)
        F.max_pool2d(x, (2, 2, 2))
        F.max_pool2d(x, 2, (2, 2, 2))
        F.max_pool2d(x, 2.5)
        F.max_pool2d(x > 0, 2)
        F.max_pool2d((x * 9).int(), 2, return_indices=True)
        F.max_pool2d([1.0], 2)
        F.avg_pool2d(x, (2, 3), stride=(1, 2), padding=(0, 1), ceil_mode=True)
        F.avg_pool2d(x, 3, 2, 1, True, False)
        F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)
        F.avg_pool2d(x, 3, 2, 1, divisor_override=4)
        F.avg_pool2d(x[0], 2)
        F.avg_pool2d(x[:0], 2)
        F.avg_pool2d(x, kernel_size=(2,))
        F.avg_pool2d((x * 9).long(), 2)
        F.avg_pool2d(x[0, 0], 2)
        F.avg_pool2d(x, 8)
        F.avg_pool2d(x, 2, padding=2)
        F.avg_pool2d(x, 2, divisor_override=0)
        F.avg_pool2d(x, (2, 2, 2))
        F.adaptive_avg_pool2d(x, 1)
        F.adaptive_avg_pool2d(x, (1, 1))
        F.adaptive_avg_pool2d(x, (None, 3))
        F.adaptive_avg_pool2d(x[0], (4, 9))
        F.adaptive_avg_pool2d(x, (2, 2, 2))
        F.adaptive_avg_pool2d(x, -1)
        F.adaptive_avg_pool2d(x[0, 0], 2)
        F.adaptive_avg_pool2d(x.long(), 2)
        F.adaptive_avg_pool2d(x[:, :, :0], 2)
        F.adaptive_max_pool2d(x, 1)
        F.adaptive_max_pool2d(x, (None, 3))
        F.adaptive_max_pool2d(x[0], (4, 9))
        F.adaptive_max_pool2d(x[0, 0], 2)
        F.lp_pool2d(x.abs() + 1, 2, 2)
        F.lp_pool2d(x, 2.0, (2, 3), stride=1, ceil_mode=True)
        y, at = F.max_pool2d(x[..., :6], 2, return_indices=True); F.max_unpool2d(y, at, 2)
        y, at = F.max_pool2d(x[..., :6], 2, return_indices=True); F.max_unpool2d(y, at, 2, output_size=(7, 6))
        y, at = F.max_pool2d(x[..., :6], 2, return_indices=True); F.max_unpool2d(y[0], at[0], 2)
        y, at = F.max_pool2d(x, 2, return_indices=True); F.max_unpool2d(y, at, 2, output_size=x.shape)
        y, at = F.max_pool2d(x, 2, return_indices=True); F.max_unpool2d(y, at, 2, output_size=(9, 9))
        y, at = F.max_pool2d(x[..., :6], 2, return_indices=True); F.max_unpool2d(y, at.int(), 2)
        y, at = F.max_pool2d(x[..., :6], 2, return_indices=True); at[1, 2, 1, 1] = 36; F.max_unpool2d(y, at, 2)
        y, at = F.max_pool2d(x[..., :6], 2, return_indices=True); F.max_unpool2d(y, at[..., 1:], 2)
    """,
    ),
    *rows_for(
        {"x": N(2, 3, 7)},
        """
        F.max_pool1d(x, 2)
        torch.max_pool1d(x, 3, 2, 1, 1, True)
        F.max_pool1d(x, 2, dilation=2, stride=1, return_indices=True)
        F.max_pool1d(x[0], [2])
        F.max_pool1d(x[0, 0], 2)
        F.max_pool1d(x, 8)
        F.max_pool1d(x, 0)
        F.max_pool1d(x, 2, 0)
        F.max_pool1d(x, 2, padding=2)
        F.max_pool1d(x, 2, padding=-1)
        F.max_pool1d(x, 2, dilation=0)
        F.max_pool1d(x, (2, 2))
        F.max_pool1d(x.detach().long(), 2)
        F.max_pool1d([1.0], 2)
        F.avg_pool1d(x, 2)
        torch.avg_pool1d(x, 3, 2, 1, True, False)
        F.avg_pool1d(x[0], 2, ceil_mode=True)
        F.avg_pool1d(x[0, 0], 2)
        F.avg_pool1d(x, 8)
        F.avg_pool1d(x, 2, padding=2)
        F.adaptive_avg_pool1d(x, 1)
        torch.adaptive_avg_pool1d(x, 3)
        F.adaptive_avg_pool1d(x[0], (9,))
        F.adaptive_avg_pool1d(x[0, 0], 2)
        F.adaptive_avg_pool1d(x, (2, 2))
        F.adaptive_max_pool1d(x, 3)
        F.adaptive_max_pool1d(x, 4, return_indices=True)
        F.adaptive_max_pool1d(x[0], 9)
        F.lp_pool1d(x, 2, 3, 2)
        y, at = F.max_pool1d(x, 2, return_indices=True); F.max_unpool1d(y, at, 2)
        y, at = F.max_pool1d(x, 2, return_indices=True); F.max_unpool1d(y, at, 2, output_size=(7,))
    """,
    ),
    *rows_for(
        {"x": N(1, 2, 4, 3, 5)},
        """
        F.max_pool3d(x, 2)
        F.max_pool3d(x, 2, 1, 1, return_indices=True)
        torch.max_pool3d(x[0], (1, 2, 2))
        F.avg_pool3d(x, 2)
        F.avg_pool3d(x, 2, 1, 1, count_include_pad=False)
        F.adaptive_avg_pool3d(x, (2, None, 3))
        F.adaptive_avg_pool3d(x, 1)
    """,
    ),
    *rows_for(
        {"x": I(1, 2, 4, 4)},
        """
        F.avg_pool2d(x, 2)
        F.max_pool2d(x, 2)
    """,
    ),
]
