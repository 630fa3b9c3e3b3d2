"""Order, running totals, and counts along an axis or of everything."""

from __future__ import annotations

from gradlab.ops import counting, sorting


class Sorting:
    """Sorting and quantiles; distinct elements and histograms."""

    sort, argsort, msort, topk, kthvalue = sorting.sort, sorting.argsort, sorting.msort, sorting.topk, sorting.kthvalue
    median, nanmedian, mode = sorting.median, sorting.nanmedian, sorting.mode
    quantile, nanquantile = sorting.quantile, sorting.nanquantile

    unique, unique_consecutive, bincount = counting.unique, counting.unique_consecutive, counting.bincount
    histc, histogram = counting.histc, counting.histogram
