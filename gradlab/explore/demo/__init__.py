"""`gradlab demo`: a model that learns nothing, what the doctor finds, and the same model with the fix."""

from gradlab.explore.demo.sheet import sheet
from gradlab.explore.demo.story import Story, told

__all__ = ["Story", "sheet", "told"]
