"""A training, watched: `front` is `gl.watch`, `watching` what a user has, `measuring` what is measured, `judging` what is said.

`examination` runs the doctor beside it, `progress` says how long it takes. `picture` draws it, `card` puts it into words.
`columns` keeps numbers over steps in constant memory, `pace` decides how often something is looked at, `layers` what is watched,
`histograms` keeps some moments, `replaying` the batch on which a number ceased to be one.
"""

from gradlab.explore.watch.front import watch
from gradlab.explore.watch.watching import Watch

__all__ = ["Watch", "watch"]
