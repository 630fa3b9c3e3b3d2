"""The documentation. `python -m sphinx docs site` builds it from the pages here, the lessons and the docstrings."""

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
    "sphinx_design",
    "descriptions",
    "docstrings",
    "gallery",
    "kinds_page",
    "mathml",
    "reference_pages",
    "lesson_pages",
]
nitpicky = False
html_theme = "pydata_sphinx_theme"
html_title = "gradlab for PyTorch"  # in the title bar of every page
descriptions_default = (
    "gradlab shows the gradients of PyTorch and NumPy code in Jupyter, what is wrong with them, and the graph behind them."
)
html_static_path = ["_static"]
html_css_files = ["gradlab.css"]
html_js_files = ["theme.js"]
default_role = "code"
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {page: [] for page in ("index", "getting-started", "gallery", "torch")}
no_contents = ["index", "gallery", *(f"gallery/{page.stem}" for page in Path(__file__).parent.glob("gallery/*.md"))]
html_theme_options = {
    "navigation_with_keys": True,
    "show_prev_next": True,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": {"**": ["page-toc"], **{page: [] for page in no_contents}},
    "logo": {"text": "gradlab"},
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

# Nothing is loaded from another host: formulas are MathML, and of a widget its static picture is shown.
html_math_renderer = "mathml"
nb_ipywidgets_js = {}

# Every cell runs when the site is built, and an error ends the build. The questions and answers of the lessons are folded.
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
