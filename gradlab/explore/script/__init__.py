"""A user's Python script, run as Python would run it and seen as a `%%grad` cell is."""

from gradlab.explore.script.output import page_of, text
from gradlab.explore.script.program import NotAScriptError, Program, module, script
from gradlab.explore.script.visiting import Visit, visit

__all__ = ["NotAScriptError", "Program", "Visit", "module", "page_of", "script", "text", "visit"]
