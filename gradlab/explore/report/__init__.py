"""Reports: `builder` puts one together from a trace, `report` is what a reader has, the other modules are its parts."""

from gradlab.explore.report.builder import (
    Subject,
    differentiate,
    differentiate_from,
    explain,
    jacobian_of,
    make_report,
    report_of,
)
from gradlab.explore.report.report import Bounds, Report

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
