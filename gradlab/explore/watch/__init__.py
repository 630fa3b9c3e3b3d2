"""Watching a training: `front` is `gl.watch`, `watching` the object it returns, `measuring` its measurements, `judging` findings.

`layers` has the watched tensors, `pace` chooses the steps to measure, `columns` stores numbers over steps in constant memory, and
`histograms` those of some steps. `examination` runs the doctor on the first steps, `replaying` stores and recomputes the first
step with a NaN, and `progress` has the speed. `picture` draws a run, and `card` describes it in words.
"""

from gradlab.explore.watch.front import watch
from gradlab.explore.watch.watching import Watch

__all__ = ["Watch", "watch"]
