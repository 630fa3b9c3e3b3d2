"""Rules as formulas for browsers: gradlab's LaTeX as nested lists named after MathML's elements.

["mfrac", [a], [b]] is a fraction, ["mi", "y"] an identifier. Rules use a small subset of LaTeX; unknown commands are shown as
they are written.
"""

from __future__ import annotations

import re
from typing import Any

from gradlab.explore.formula import formula
from gradlab.explore.libraries import Library

Math = list[Any]  # [element, child or text, …]

TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[{}^_]|\d+(?:\.\d+)?|[A-Za-z]|\s+|.", re.DOTALL)
# fmt: off
SIGNS = {
    r"\ge": "≥", r"\le": "≤", r"\ne": "≠", r"\wedge": "∧", r"\lnot": "¬", r"\cdot": "·", r"\times": "×", r"\odot": "⊙",
    r"\sum": "∑", r"\prod": "∏", r"\top": "\N{DOWN TACK}", r"\in": "∈", r"\infty": "∞", r"\partial": "∂", r"\to": "→",
    r"\ldots": "…",
    r"\dots": "…", r"\cdots": "⋯", r"\pi": "π", r"\sigma": "σ", r"\mu": "μ", r"\epsilon": "ε", r"\varepsilon": "ε",
    r"\alpha": "α",
    r"\beta": "β", r"\gamma": "γ", r"\delta": "δ", r"\lambda": "λ", r"\Phi": "Φ", r"\phi": "φ", r"\varphi": "φ", r"\theta": "θ",
    r"\langle": "⟨", r"\rangle": "⟩", r"\lfloor": "⌊", r"\rfloor": "⌋", r"\lceil": "⌈", r"\rceil": "⌉", r"\|": "‖", r"\Vert": "‖",
    r"\lVert": "‖", r"\rVert": "‖", r"\lvert": "|", r"\rvert": "|", r"\vert": "|", r"\mid": "|", r"\circ": "∘", r"\otimes": "⊗",
    r"\star": "⋆", r"\ast": "∗", r"\pm": "±", r"\{": "{", r"\}": "}", r"\_": "_", r"\%": "%", r"\det": "det", r"\max": "max",
    r"\min": "min", r"\operatorname": "", r"\Sigma": "Σ", r"\Delta": "Δ", r"\nabla": "∇", r"\approx": "≈", r"\ll": "≪",
    r"\gg": "≫", r"\#": "#", r"\Gamma": "Γ", r"\zeta": "ζ", r"\Lambda": "Λ", r"\neq": "≠", r"\geq": "≥", r"\leq": "≤",
    r"\bmod": "mod",
    r"\lor": "\N{LOGICAL OR}", r"\arg": "arg", "\\\\": ";", "&": "",
    r"\prime": "′", r"\omega": "ω", r"\tau": "τ", r"\rho": "ρ", r"\psi": "ψ", r"\kappa": "κ", r"\neg": "¬",
    r"\ell": "\N{SCRIPT SMALL L}",
}
# fmt: on
FUNCTIONS = ("log", "exp", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "ln", "det", "max", "min")
SPACES = {r"\,": 0.17, r"\;": 0.28, r"\:": 0.22, r"\quad": 1.0, r"\qquad": 2.0, r"\ ": 0.3, r"\!": 0.0, "~": 0.3}
IGNORED = frozenset(
    (r"\left", r"\right", r"\textstyle", r"\displaystyle", r"\bigl", r"\bigr", r"\big", r"\Big", r"\Bigl", r"\Bigr", r"\limits")
)
OVER = {r"\bar": "¯", r"\overline": "¯", r"\hat": "^", r"\tilde": "~", r"\dot": "˙"}
TEXTS = (r"\mathrm", r"\text", r"\operatorname", r"\mathsf", r"\mathtt", r"\texttt", r"\mathbf", r"\boldsymbol")


def rule_of(library: Library, node: Any) -> list[Math] | None:
    """Return the operation and its rule for the cotangent ȳ, one formula per line; None if the library has none."""
    if library.name != "gradlab":
        return None
    try:
        rules = formula(node)
    except ValueError:  # a rule of the user's own
        return None
    return [math_of(line) for line in rules.lines()]


def math_of(latex: str) -> Math:
    """Return a LaTeX formula as nested lists."""
    return ["mrow", *_Reader(latex).row()]


class _Reader:
    def __init__(self, latex: str) -> None:
        self.tokens, self.at = [sign for sign in TOKEN.findall(latex) if not sign.isspace()], 0

    def row(self) -> list[Math]:
        """Read up to a closing brace or the end, with scripts attached to the preceding atom."""
        parts: list[Math] = []
        while self.at < len(self.tokens) and self.tokens[self.at] != "}":
            sign = self.tokens[self.at]
            if sign in ("^", "_"):
                self.at += 1
                base = parts.pop() if parts else ["mrow"]
                script = self.argument()
                if base[0] in ("msub", "msup") and len(base) == 3 and base[0] != ("msup" if sign == "^" else "msub"):
                    lower, upper = (base[2], script) if base[0] == "msub" else (script, base[2])
                    parts.append(["msubsup", base[1], lower, upper])
                else:
                    parts.append(["msup" if sign == "^" else "msub", base, script])
            elif (one := self.atom()) is not None:
                parts.append(one)
        return parts

    def argument(self) -> Math:
        """Read a group in braces, or one atom."""
        if self.at < len(self.tokens) and self.tokens[self.at] == "{":
            self.at += 1
            parts = self.row()
            self.at += 1
            return parts[0] if len(parts) == 1 else ["mrow", *parts]
        return (self.atom() if self.at < len(self.tokens) else None) or ["mrow"]

    def text(self) -> str:
        """Read the letters of a group in braces."""
        if self.at >= len(self.tokens) or self.tokens[self.at] != "{":
            return ""
        depth, letters = 0, []
        while self.at < len(self.tokens):
            sign = self.tokens[self.at]
            self.at += 1
            depth += (sign == "{") - (sign == "}")
            if depth == 0:
                break
            if sign not in "{}":
                letters.append(SIGNS.get(sign, " " if sign in SPACES else sign))
        return "".join(letters)

    def atom(self) -> Math | None:
        sign = self.tokens[self.at]
        if sign == "{":
            return self.argument()
        self.at += 1
        if sign in IGNORED:
            if sign in (r"\left", r"\right") and self.at < len(self.tokens) and self.tokens[self.at] == ".":
                self.at += 1
            return None
        if sign in (r"\begin", r"\end"):  # cases are shown one after the other
            self.text()
            return None
        if sign in (r"\frac", r"\tfrac", r"\dfrac"):
            return ["mfrac", self.argument(), self.argument()]
        if sign == r"\sqrt":
            return ["msqrt", self.argument()]
        if sign in OVER:
            return ["mover", self.argument(), ["mo", OVER[sign]]]
        if sign in TEXTS:
            return ["mi", self.text()]
        if sign in SPACES:
            return ["mspace", SPACES[sign]]
        if sign.startswith("\\") and sign[1:] in FUNCTIONS:
            return ["mrow", ["mi", sign[1:]], ["mspace", 0.17]]
        if sign in SIGNS:
            drawn = SIGNS[sign]
            return ["mi" if drawn.isalpha() else "mo", drawn]
        if sign[0].isdigit():
            return ["mn", sign]
        if sign.isalpha():
            return ["mi", sign]
        return ["mo", sign.replace("-", "−").removeprefix("\\")]
