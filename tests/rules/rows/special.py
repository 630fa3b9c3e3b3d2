"""Samples of the special functions."""

from __future__ import annotations

import numpy as np
from rules.sample import case, like

import gradlab as gl
from gradlab import special


def number(x, value):
    return like(x, np.array(value, x.array.dtype))


CASES = [
    *(
        case(name, getattr(special, name), (3, 2))
        for name in ("erf", "erfc", "erfcx", "digamma", "i0", "i0e", "i1", "i1e", "entr", "log_ndtr")
    ),
    *(case(name, lambda x, name=name: getattr(special, name)(1 - x), (3, 4)) for name in ("erf", "i1", "i1e", "i0e", "log_ndtr")),
    case("erf", gl.erf, ()),
    case("erfinv", lambda x: gl.erfinv(x - 1), (3, 2)),
    case("ndtri", lambda x: special.ndtri(x / 2), (3, 2)),
    case("lgamma", gl.lgamma, (3, 2)),
    case("lgamma", lambda x: gl.lgamma(x - 2), ()),
    case("polygamma", lambda x: gl.polygamma(1, x), (3, 2)),
    case("polygamma", lambda x: gl.polygamma(2, x), ()),
    case("polygamma", lambda x: gl.polygamma(0, x), (3,)),
    case("mvlgamma", lambda x: gl.mvlgamma(x + 1, 3), (3, 2)),
    case("igamma", lambda x: gl.igamma(number(x, 2.5), x), (3, 2)),
    case("igammac", lambda x: gl.igammac(number(x, 2.5), x), (3, 2)),
    case("zeta", lambda x: special.zeta(number(x, 2.5), x), (3, 2)),
    case("zeta", lambda x: special.zeta(3, x), ()),
]
