"""Order, running totals, and counts along an axis or of everything."""

from __future__ import annotations

from gradlab.methods.writing import twin
from gradlab.ops import counting, cumulative, sorting


class Sorting:
    """Sorting and quantiles; running sums and differences; distinct elements and histograms."""

    sort, argsort, msort, topk, kthvalue = sorting.sort, sorting.argsort, sorting.msort, sorting.topk, sorting.kthvalue
    median, nanmedian, mode = sorting.median, sorting.nanmedian, sorting.mode
    quantile, nanquantile = sorting.quantile, sorting.nanquantile

    cumsum, cumprod, logcumsumexp = cumulative.cumsum, cumulative.cumprod, cumulative.logcumsumexp
    cumsum_, cumprod_ = twin(cumulative.cumsum), twin(cumulative.cumprod)
    cummax, cummin, diff = cumulative.cummax, cumulative.cummin, cumulative.diff
    cov, corrcoef = cumulative.cov, cumulative.corrcoef

    unique, unique_consecutive, bincount = counting.unique, counting.unique_consecutive, counting.bincount
    histc, histogram = counting.histc, counting.histogram
