"""Write formulas as MathML. Browsers lay it out without a script, and screen readers can read it."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx


def mathml(node: nodes.Node, as_block: bool) -> str:
    """Convert without `\\textstyle`, for which MathML has no element. Sums in a line are small anyway."""
    markup: str = tex2mathml(node.astext().replace(r"\textstyle", ""), as_block=as_block)
    return markup


def inline(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node, as_block=False))
    raise nodes.SkipNode


def block(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math">{mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
