"""The backward pass step by step: the upstream gradient of each operation, its result for each input, and the sums so far."""

from gradlab.explore.steps.stepping import StepThrough, step_through, step_through_with_names

__all__ = ["StepThrough", "step_through", "step_through_with_names"]
