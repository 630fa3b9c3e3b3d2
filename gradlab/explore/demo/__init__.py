"""`gradlab demo`: a model that learns nothing, the doctor's finding, and the same model with the fix."""

from gradlab.explore.demo.sheet import sheet
from gradlab.explore.demo.story import Story, run_story

__all__ = ["Story", "run_story", "sheet"]
