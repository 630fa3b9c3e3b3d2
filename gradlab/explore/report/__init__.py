"""Reports: `making` puts one together from a trace, `shown` is what a reader has, the other modules are its parts."""

from gradlab.explore.report.making import Subject, differentiate, differentiate_from, explain, jacobian_of, make_report, report_of
from gradlab.explore.report.shown import Bounds, Report

__all__ = [
    "Bounds",
    "Report",
    "Subject",
    "differentiate",
    "differentiate_from",
    "explain",
    "jacobian_of",
    "make_report",
    "report_of",
]
