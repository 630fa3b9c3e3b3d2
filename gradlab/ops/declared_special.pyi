# Written by `python tests/stubs.py` from the declarations of operators.
from gradlab.ops.arithmetic import xlogy as xlogy
from gradlab.ops.declared import digamma as digamma
from gradlab.ops.declared import digamma as psi
from gradlab.ops.declared import entr as entr
from gradlab.ops.declared import erf as erf
from gradlab.ops.declared import erfc as erfc
from gradlab.ops.declared import erfcx as erfcx
from gradlab.ops.declared import erfinv as erfinv
from gradlab.ops.declared import exp2 as exp2
from gradlab.ops.declared import expm1 as expm1
from gradlab.ops.declared import i0 as i0
from gradlab.ops.declared import i0e as i0e
from gradlab.ops.declared import i1 as i1
from gradlab.ops.declared import i1e as i1e
from gradlab.ops.declared import igamma as gammainc
from gradlab.ops.declared import igammac as gammaincc
from gradlab.ops.declared import lgamma as gammaln
from gradlab.ops.declared import log1p as log1p
from gradlab.ops.declared import log_ndtr as log_ndtr
from gradlab.ops.declared import ndtri as ndtri
from gradlab.ops.declared import sigmoid as expit
from gradlab.ops.declared import sinc as sinc
from gradlab.ops.elementary import logit as logit
from gradlab.ops.elementary import round as round
from gradlab.ops.gamma import mvlgamma as multigammaln
from gradlab.ops.gamma import polygamma as polygamma

__all__ = [
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log1p",
    "log_ndtr",
    "logit",
    "multigammaln",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "sinc",
    "xlogy",
]
