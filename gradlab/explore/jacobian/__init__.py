"""Jacobians as matrices: `jacobian` and `hessian`, and their parts."""

from gradlab.explore.jacobian.api import hessian, jacobian
from gradlab.explore.jacobian.matrix import Hessian, Jacobian
from gradlab.explore.jacobian.methods import compute_block, scatter
from gradlab.explore.jacobian.plan import Block, Plan

__all__ = ["Block", "Hessian", "Jacobian", "Plan", "compute_block", "hessian", "jacobian", "scatter"]
