"""The same function run by gradlab and by PyTorch, and what they agree on."""

from gradlab.explore.against.check import check_against_torch
from gradlab.explore.against.comparing import Difference
from gradlab.explore.against.result import Comparison

__all__ = ["Comparison", "Difference", "check_against_torch"]
