"""Images read between their pixels, and the grids of affine maps."""

from __future__ import annotations

from itertools import product

from operators.spelling import N, U, V, rows_for

MODES, PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
CALLS = [
    f"F.grid_sample(x, g, mode={mode!r}, padding_mode={padding!r}, align_corners={corners})"
    for mode, padding, corners in product(MODES, PADDINGS, (False, True))
]
VOLUMES = [call for call in CALLS if "bicubic" not in call]

ROWS = [
    *rows_for({"x": N(2, 3, 4, 5), "g": U(2, 3, 2, 2, low=-1.4, high=1.4)}, CALLS),
    *rows_for({"x": N(1, 2, 4, 5), "g": U(1, 2, 3, 2, low=-6.0, high=6.0)}, CALLS),
    *rows_for({"x": N(1, 2, 1, 3), "g": U(1, 2, 2, 2, low=-1.5, high=1.5)}, CALLS),
    *rows_for({"x": N(2, 2, 3, 2, 4), "g": U(2, 2, 1, 3, 3, low=-1.4, high=1.4)}, VOLUMES),
    *rows_for({"x": N(1, 1, 3, 3), "g": V([[[[0.0, 0.0], [1.0, -1.0], [-1.0, 0.5], [2.0, 0.0]]]])}, CALLS),
    *rows_for(
        {"t": N(2, 2, 3), "v": N(1, 3, 4), "x": N(2, 2, 4, 4)},
        """
        F.affine_grid(t, (2, 1, 3, 4), align_corners=False)
        F.affine_grid(t, (2, 1, 3, 4), align_corners=True)
        F.affine_grid(t, [2, 5, 1, 2], align_corners=True)
        F.affine_grid(t, (2, 1, 3, 4))
        F.affine_grid(v, (1, 1, 2, 3, 4), align_corners=False)
        F.affine_grid(v, (1, 1, 2, 3, 4), align_corners=True)
        F.grid_sample(x, F.affine_grid(t * 0.3, (2, 2, 3, 3), align_corners=False), align_corners=False)
        F.grid_sample(x, F.affine_grid(t * 0.3, (2, 2, 3, 3), align_corners=False))
        F.affine_grid(t, (2, 1, 3))
        F.affine_grid(v, (2, 1, 3, 4), align_corners=False)
        F.affine_grid(t, (2, 1, 0, 4), align_corners=False)
        F.affine_grid(t.long(), (2, 1, 3, 4), align_corners=False)
    """,
    ),
    *rows_for(
        {"x": N(1, 2, 3, 4), "y": N(1, 2, 3, 4, 2), "g": U(1, 2, 2, 2), "h": U(1, 2, 2, 2, 3)},
        """
        F.grid_sample(x, g)
        F.grid_sample(x, g, mode='cubic')
        F.grid_sample(x, g, padding_mode='mirror')
        F.grid_sample(x, h)
        F.grid_sample(y, g)
        F.grid_sample(y, h, mode='bicubic', align_corners=False)
        F.grid_sample(x, g[..., :1], align_corners=False)
        F.grid_sample(x.expand(2, 2, 3, 4), g, align_corners=False)
        F.grid_sample(x[:, :, :0], g, align_corners=False)
        F.grid_sample(x[:, :0], g, align_corners=False)
        F.grid_sample(x, g[:, :0], align_corners=False)
        F.grid_sample(x.long(), g, align_corners=False)
        F.grid_sample(x.half(), g.half(), align_corners=False).dtype == torch.half
        F.grid_sample(x, g.half(), align_corners=False)
        F.grid_sample(x.detach(), g.detach() * nan, align_corners=False)
        F.grid_sample(x.detach(), g.detach() * nan, align_corners=False, padding_mode='border')
        F.grid_sample(x.detach(), g.detach() * inf, align_corners=False, mode='nearest')
    """,
    ),
]
