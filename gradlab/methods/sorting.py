"""Order, running totals, and counts along an axis or of everything."""

from __future__ import annotations

from gradlab.ops import counting


class Sorting:
    """Sorting and quantiles; distinct elements and histograms."""

    unique, unique_consecutive, bincount = counting.unique, counting.unique_consecutive, counting.bincount
    histc, histogram = counting.histc, counting.histogram
