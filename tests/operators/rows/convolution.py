"""Convolutions: strides, padding, dilation, groups, unbatched inputs, and the common mistakes."""

from __future__ import annotations

from operators.spelling import I, N, V, rows_for

IMAGE = {"x": N(2, 4, 6, 5), "w": N(6, 4, 3, 2), "b": N(6)}
GROUPED = {"x": N(2, 4, 6, 5), "w": N(6, 2, 3, 2), "b": N(6)}
LINE = {"x": N(2, 4, 7), "w": N(6, 4, 3), "b": N(6)}
BACK = {"x": N(2, 4, 3, 4), "w": N(4, 3, 3, 2), "b": N(3)}

ROWS = [
    *rows_for(
        IMAGE,
        """
        F.conv2d(x, w)
        F.conv2d(x, w, b)
        torch.conv2d(x, w, b, 2, 1)
        F.conv2d(input=x, weight=w, bias=b, stride=(2, 1), padding=(1, 2), dilation=(1, 2))
        F.conv2d(x, w, padding='valid')
        warnings = __import__('warnings'); warnings.simplefilter('ignore'); F.conv2d(x, w, b, padding='same')
        F.conv2d(x[0], w, b)
        F.conv2d(x[:0].detach(), w.detach(), b)
        F.conv2d(x.mT, w.mT, b, [2], [1])
        F.conv2d(x, w, b).view(-1)
        F.conv2d(x, w[:, :, :1, :1], b)
        F.conv2d(x, w[:, :, :1, :1], b, 2)
        F.conv2d(x, w, b[:2])
        F.conv2d(x, w, b[:, None])
        F.conv2d(x[:, :3], w)
        F.conv2d(x[0, 0], w)
        F.conv2d(x[..., None], w)
        F.conv2d(x[:, :, :2], w)
        F.conv2d(x, w[0])
        F.conv2d(x, w, stride=(1, 1, 1))
        F.conv2d(x, w, padding=(1, 1, 1))
        F.conv2d(x, w, stride=0)
        F.conv2d(x, w, padding=-1)
        F.conv2d(x.double(), w.double(), dilation=0)
        F.conv2d(x, w, groups=0)
        F.conv2d(x, w, groups=4)
        F.conv2d(x, w, padding='other')
        F.conv2d(x, w, padding='same', stride=2)
        F.conv2d(x, w, stride=1.5)
        F.conv2d([1.0], w)
        F.conv2d(x, None)
        F.conv2d(x.int(), w)
        F.conv2d(x, w, b.half())
        F.conv2d(x.half(), w.half(), b)
    """,
    ),
    *rows_for(
        {"x": N(2, 4, 6, 5), "w": N(6, 4, 3, 3), "b": N(6)},
        """
        F.conv2d(x, w, b, padding='same')
        F.conv2d(x, w, b, padding='same', dilation=2)
        F.conv2d(x, w, b, 1, 1).relu().sum()
    """,
    ),
    *rows_for(
        GROUPED,
        """
        F.conv2d(x, w, b, groups=2)
        F.conv2d(x, w, None, 2, 1, 1, 2)
        F.conv2d(x[:, :2], w, b)
    """,
    ),
    *rows_for(
        {"x": N(2, 4, 5, 5), "w": N(4, 1, 3, 3), "v": N(8, 1, 2, 2)},
        """
        F.conv2d(x, w, groups=4, padding=1)
        F.conv2d(x, v, groups=4, stride=2)
    """,
    ),
    *rows_for(
        LINE,
        """
        F.conv1d(x, w)
        torch.conv1d(x, w, b, 2, 1, 2)
        F.conv1d(x[0], w, b)
        F.conv1d(x, w, b, padding='same')
        F.conv1d(x, w[:, :2], b, groups=2)
        F.conv1d(x[0, 0], w)
        F.conv1d(x, w[:, :, :, None])
        F.conv1d(x, w, padding=(1,))
    """,
    ),
    *rows_for(
        {"x": N(1, 2, 3, 4, 3), "w": N(3, 2, 2, 2, 2)},
        """
        F.conv3d(x, w)
        torch.conv3d(x, w, stride=(1, 2, 1), padding=1)
        F.conv3d(x[0], w)
        F.conv_transpose3d(x, w.transpose(0, 1), stride=2)
    """,
    ),
    *rows_for(
        BACK,
        """
        F.conv_transpose2d(x, w)
        torch.conv_transpose2d(x, w, b, 2)
        F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1)
        F.conv_transpose2d(x, w, b, 3, 1, (2, 1), 1, (1, 2))
        F.conv_transpose2d(x, w, b, dilation=2, output_padding=1)
        F.conv_transpose2d(x[0], w, b)
        F.conv_transpose2d(x, w, stride=2, groups=2)
        F.conv_transpose2d(x, w, b, output_padding=1)
        F.conv_transpose2d(x[:, :3], w)
        F.conv_transpose2d(x, w, x[0, 0, 0])
        F.conv_transpose2d(x.double(), w[:, :, :1, :1].double(), padding=3)
        F.conv_transpose2d(x, w, stride=0)
        F.conv_transpose2d(x, w, padding=-1)
        F.conv_transpose2d([1.0], w)
    """,
    ),
    *rows_for(
        {"x": N(2, 4, 5), "w": N(4, 3, 3), "b": N(3)},
        """
        F.conv_transpose1d(x, w, b)
        torch.conv_transpose1d(x, w, b, 2, 1, 1)
        F.conv_transpose1d(x[0], w)
        F.conv_transpose1d(x, w, groups=4, stride=2)
        F.conv_transpose1d(x, w, stride=2, output_padding=2)
    """,
    ),
    *rows_for(
        {"x": I(1, 1, 4, 4), "w": I(2, 1, 2, 2)},
        """
        F.conv2d(x, w)
        F.conv2d(x, w.float())
    """,
    ),
    *rows_for(
        {"x": V([[[1.0, float("inf"), 2.0, 3.0, float("nan"), 4.0, 5.0, 6.0]]]), "w": V([[[1.0, 2.0]]])},
        """
        F.conv1d(x, w)
        F.conv1d(x, w, stride=2)
    """,
    ),
]
