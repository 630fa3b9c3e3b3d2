"""Samples of maps along axes: padding, averages, interpolation, columns of windows."""

from __future__ import annotations

from rules.sample import case

from gradlab.nn import functional as F  # noqa: N812

CASES = [
    case("resample", lambda x: F.pad(x, (1, 2, -1, 1), value=3.0), (3, 4)),
    case("remap", lambda x: F.pad(x, (2, 1), "reflect"), (2, 4)),
    case("remap", lambda x: F.pad(x, (2, 1, 0, 1), "replicate"), (1, 2, 3)),
    case("resample", lambda x: F.pad(x, (2, -1), "circular"), (2, 4)),
    case("remap", lambda x: F.avg_pool2d(x, 2), (2, 4, 5)),
    case("remap", lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), (1, 4, 5)),
    case("remap", lambda x: F.avg_pool1d(x, 2, 1), (2, 4)),
    case("remap", lambda x: F.adaptive_avg_pool2d(x, (2, 4)), (1, 3, 3)),
    case("resample", lambda x: F.interpolate(x, (1, 4)), (1, 1, 2, 3)),
    case("resample", lambda x: F.unfold(x, 2, padding=1, stride=2), (1, 3, 4)),
    case("resample", lambda x: F.fold(x, (3, 4), 2, 2), (4, 2)),
    case("resample", lambda x: F.interpolate(x, scale_factor=2), (1, 1, 2, 3)),
    case("resample", lambda x: F.interpolate(x, 5, mode="linear"), (2, 1, 3)),
    case("resample", lambda x: F.interpolate(x, (3, 2), mode="bilinear", align_corners=True), (1, 1, 2, 3)),
    case("resample", lambda x: F.interpolate(x, 5, mode="bicubic"), (1, 1, 3, 2)),
    case("resample", lambda x: F.interpolate(x, 2), (1, 1, 5)),
]
