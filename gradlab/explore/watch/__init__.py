"""A training, watched: `watching` is what a user has, `measuring` what is measured, `judging` what is said about it.

`picture` draws it, `card` puts it into words. `columns` keeps numbers over steps in constant memory, `pace` decides how often
something is looked at, `layers` what is watched, `histograms` keeps some moments, `replaying` the batch on which a number ceased
to be one.
"""

from gradlab.explore.watch.watching import Watch, watch

__all__ = ["Watch", "watch"]
