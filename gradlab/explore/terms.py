"""Terms that are new to many readers, with short explanations that reports and live views show on hover and focus.

docs/guide/terms.md has a section for each.
"""

from __future__ import annotations

TERMS = {
    "leaf": "A tensor that no recorded operation made: one that you created, or a parameter. After a backward pass, the "
    "gradient of a leaf with requires_grad=True is in its .grad.",
    "norm": "The Euclidean norm: the root of the sum of the squares of all elements. One number for the size of a tensor.",
    "ratio": "‖gradient‖ divided by ‖weights‖: how large a gradient is next to what it changes. With SGD, a layer whose ratio is "
    "much smaller than that of the others changes slowly.",
    "weighted": "backward(gradient=v) starts from v, where backward() of a scalar starts from 1. The gradient of a leaf is then "
    "vᵀJ: the rows of the Jacobian J, each times its element of v, summed.",
}
RULES = (
    "[data-gradlab-term]{text-decoration:underline dotted;text-underline-offset:3px;cursor:help}"
    "[data-gradlab-term]:is(:focus,:focus-within)::after{content:attr(title);position:absolute;z-index:9;margin:1.6em 0 0 -2em;"
    "width:max-content;max-width:22em;padding:4px 8px;border:1px solid;border-radius:6px;"
    "background:var(--jp-layout-color1,Canvas);color:var(--jp-ui-font-color1,CanvasText);font-size:12px;line-height:1.4;font-weight:400;"
    "text-align:left;white-space:normal}"
    ":is([data-gradlab-term=norm],[data-gradlab-term=ratio])::after{transform:translateX(-100%);margin-left:0}"
)  # on focus as on hover; without a positioned ancestor, scrolling tables do not clip it
