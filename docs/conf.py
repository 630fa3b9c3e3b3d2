"""The documentation: `python -m sphinx docs site` makes it, of the lessons, of the docstrings and of the pages here."""

import os
import sys
from pathlib import Path

import gradlab

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project, author = "gradlab", "the gradlab authors"
release = version = gradlab.__version__
copyright = author

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "docstrings",
    "mathml",
    "reference_pages",
    "lesson_pages",
]
nitpicky = False
html_theme = "pydata_sphinx_theme"
html_title = "gradlab"
html_static_path = ["_static"]
html_css_files = ["gradlab.css"]
html_js_files = ["theme.js"]
default_role = "code"
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": True,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

# Nothing is asked of another host: formulas are MathML, widgets are their static twins, NumPy's inventory lies here.
html_math_renderer = "mathml"
nb_ipywidgets_js = {}

# Every cell is run when the site is made, and an error ends it. Lessons are made to be read: what is asked is folded.
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
os.environ["GRADLAB_READING"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

numpydoc_show_class_members = False
autodoc_typehints = "none"
autodoc_preserve_defaults = True
