"""Backward step by step: what each operation of a sweep was handed, what it handed on, and what had arrived there by then."""

from gradlab.explore.steps.stepping import StepThrough, step_through, stepped

__all__ = ["StepThrough", "step_through", "stepped"]
