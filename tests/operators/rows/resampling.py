"""Padding, columns of windows, interpolation and shuffles."""

from __future__ import annotations

from operators.spelling import I, N, V, rows_for

ROWS = [
    *rows_for(
        {"x": N(2, 3, 4, 5)},
        """
        F.pad(x, (1, 2))
        F.pad(x, [1, 2, 0, 1], value=1.5)
        F.pad(x, (1, 1, 1, 1, 1, 1, 1, 1), 'constant', 2)
        F.pad(x, (-1, 2, 1, -1))
        F.pad(x, (-1, -1))
        F.pad(x, (0, 0))
        F.pad(x, ())
        F.pad(input=x, pad=(1, 1), mode='constant', value=float('-inf'))
        torch.constant_pad_nd(x, (1, 0), 3.0)
        F.pad(x, (1, 2, 0, 1), 'reflect')
        F.pad(x, (-1, 2, 1, 1), 'reflect')
        F.pad(x, (4, 4, 3, 3), mode='reflect')
        F.pad(x, (1, 2, 0, 1), 'replicate')
        F.pad(x, (7, 2, -1, 6), 'replicate')
        ~ F.pad(x, (1, 2, 0, 1), 'circular')
        ~ F.pad(x, (5, 5, 4, 4), 'circular')
        ~ F.pad(x, (-1, 2, 1, -1), 'circular')
        F.pad(x[0], (1, 2, 0, 1), 'reflect')
        F.pad(x[0], (1, 2), 'reflect')
        F.pad(x[0], (1, 2), 'replicate')
        ~ F.pad(x[0], (1, 2), 'circular')
        F.pad(x, (1, 1, 1, 1)).view(-1)
        F.pad(x.mT, (1, 1, 1, 1)).view(-1)
        F.pad(x, (1,))
        F.pad(x, 1)
        F.pad(x, (1,) * 10)
        F.pad(x, (-3, -3))
        F.pad(x, (1, 1), 'other')
        F.pad(x, (1, 1), 'reflect')
        F.pad(x, (1, 1, 1, 1, 1, 1), 'reflect')
        F.pad(x, (5, 1, 1, 1), 'reflect')
        F.pad(x, (6, 1, 1, 1), 'circular')
        F.pad(x, (1, 1, 1, 1), 'reflect', 1.0)
        F.pad(x[0, 0, 0], (1, 1), 'reflect')
        F.pad([1.0], (1, 1))
    """,
    ),
    *rows_for(
        {"x": N(1, 2, 2, 3, 2)},
        """
        F.pad(x, (1, 1, 0, 1, 1, 0), 'replicate')
        F.pad(x, (1, 1, 0, 1, 1, 0), 'reflect')
        ~ F.pad(x, (1, 1, 0, 1, 1, 0), 'circular')
        F.interpolate(x, scale_factor=2)
        F.interpolate(x, (3, 2, 4), mode='trilinear')
        F.interpolate(x, (3, 2, 4), mode='area')
    """,
    ),
    *rows_for(
        [{"x": I(2, 3)}, {"x": V([[True, False], [False, True]], bool)}],
        """
        F.pad(x, (1, 1))
        F.pad(x, (1, 1), value=1)
        F.pad(x, (1, 1), 'replicate')
    """,
    ),
    *rows_for(
        {"x": N(2, 3, 5, 6)},
        """
        F.unfold(x, 2)
        F.unfold(x, (3, 2), dilation=(1, 2), padding=1, stride=(2, 1))
        F.unfold(x[0], 3)
        F.unfold(x[:0], 2)
        F.unfold(x, 7)
        F.unfold(x, 2, padding=-1)
        F.unfold(x, 2, stride=0)
        F.unfold(x, (2, 2, 2))
        F.unfold(x[0, 0], 2)
        F.unfold(x.long(), 2)
        F.fold(F.unfold(x, 2), (5, 6), 2)
        F.fold(F.unfold(x, 3, 1, 1, 2), x.shape[-2:], 3, padding=1, stride=2)
        F.fold(F.unfold(x[0], 2), (5, 6), (2, 2))
        F.fold(F.unfold(x, 2), (5, 7), 2)
        F.fold(F.unfold(x, 2)[:, 1:], (5, 6), 2)
        F.fold(x[0, 0, 0], (5, 6), 2)
    """,
    ),
    *rows_for(
        {"x": N(2, 2, 4, 5)},
        """
        F.interpolate(x, scale_factor=2)
        F.interpolate(x, size=(3, 7))
        F.interpolate(x, 3)
        F.interpolate(x, scale_factor=(1.5, 0.5))
        F.interpolate(x, scale_factor=1.7, recompute_scale_factor=True)
        F.interpolate(x, scale_factor=1.7, mode='nearest-exact')
        F.interpolate(x, scale_factor=2, mode='bilinear')
        F.interpolate(x, scale_factor=1.7, mode='bilinear', align_corners=False)
        F.interpolate(x, (3, 9), mode='bilinear', align_corners=True)
        F.interpolate(x, (1, 1), mode='bilinear', align_corners=True)
        F.interpolate(x, (4, 5), mode='bilinear')
        F.interpolate(x, scale_factor=2, mode='bicubic')
        F.interpolate(x, (3, 9), mode='bicubic', align_corners=True)
        F.interpolate(x, 3, mode='area')
        F.interpolate(x[:, :, 0], 7)
        F.interpolate(x[:, :, 0], 7, mode='linear')
        F.interpolate(x[:, :, 0], 3, mode='linear', align_corners=True)
        F.interpolate(x[:, :, 0], 3, mode='area')
        F.upsample(x, scale_factor=2)
        F.upsample(x, scale_factor=2, mode='bilinear')
        F.upsample_nearest(x, scale_factor=2)
        F.upsample_bilinear(x, size=(7, 8))
        F.interpolate(x)
        F.interpolate(x, 2, 2)
        F.interpolate(x, (2, 2, 2))
        F.interpolate(x, scale_factor=(2, 2, 2))
        F.interpolate(x, 2, mode='linear')
        F.interpolate(x[0], 2, mode='bilinear')
        F.interpolate(x, 2, mode='other')
        F.interpolate(x[0, 0], 2)
        F.interpolate(x, 2, align_corners=True)
        F.interpolate(x, 0)
        F.interpolate(x, 2, recompute_scale_factor=True)
        F.interpolate(x.long(), 2)
        F.pixel_unshuffle(x[..., :4], 2)
        F.pixel_unshuffle(x, 2)
        F.pixel_unshuffle(x, 0)
        F.channel_shuffle(x, 2)
        F.channel_shuffle(x, 3)
    """,
    ),
    *rows_for(
        {"x": N(2, 8, 2, 3)},
        """
        F.pixel_shuffle(x, 2)
        torch.pixel_shuffle(x[0], 2)
        torch.pixel_unshuffle(torch.pixel_shuffle(x, 2), 2)
        torch.channel_shuffle(x, 4)
        F.pixel_shuffle(x, 3)
        F.pixel_shuffle(x, 0)
        F.pixel_shuffle(x[0, 0], 2)
    """,
    ),
    *rows_for(
        {"x": V([[1.0, float("inf"), 2.0, float("nan"), 3.0, 4.0]])},
        """
        F.pad(x, (1, 1))
        F.pad(x, (2, 1), 'reflect')
        F.interpolate(x[None], 12)
        F.interpolate(x[None], 4, mode='linear')
    """,
    ),
]
