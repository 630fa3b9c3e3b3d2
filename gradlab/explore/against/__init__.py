"""Run a function in gradlab and in PyTorch, and compare values and gradients."""

from gradlab.explore.against.check import check_against_torch
from gradlab.explore.against.comparison import Difference
from gradlab.explore.against.result import TorchComparison

__all__ = ["Difference", "TorchComparison", "check_against_torch"]
