"""The themes of pictures, read from theme.css, which the live views load as it is.

A drawing refers to a colour by its variable, `fill="var(--gl-ink)"`. Put into a page that has theme.css, it takes the page's
theme. A file or an `<img>` has no such page, so there the variables are replaced by the colours of one theme, or, for "auto",
by those of the light theme with rules that a browser follows in a dark theme and everything else ignores.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Literal, get_args

Theme = Literal["auto", "light", "dark", "high-contrast", "high-contrast-dark"]

STYLES = (Path(__file__).parent / "theme.css").read_text(encoding="utf-8")
HIGH = "@media (prefers-contrast: more)"
COLOUR = re.compile(r"(--gl-[a-z-]+):[^;]*light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
LETTERS = re.compile(r'\b(font-size|font-weight|text-anchor)="([a-z0-9.]+)"')
USED = re.compile(r'\b(fill|stroke|stop-color)="var\((--gl-[a-z-]+)\)"')  # quotes in the user's text are escaped
NAMED_HIGH = ':is([data-vscode-theme-kind^="vscode-high-contrast"], [data-jp-theme-name*="High Contrast"])'
SCHEME = re.compile(r"^:is\(.*color-scheme: [a-z ]+; \}$", re.MULTILINE)


@cache
def colours(theme: Theme = "light") -> dict[str, str]:
    """Return the colour of each variable in a theme; for "auto", in the light one.

    Parameters
    ----------
    theme : {"auto", "light", "dark", "high-contrast", "high-contrast-dark"}

    Returns
    -------
    dict of str to str
        ``{"--gl-ink": "#1c2430", …}``.

    Raises
    ------
    ValueError
        If `theme` is not one of these.
    """
    if theme not in get_args(Theme):
        raise ValueError(f"theme must be one of {', '.join(map(repr, get_args(Theme)))}; got {theme!r}.")
    usual, _, high = STYLES.partition(HIGH)
    found = COLOUR.findall(usual + high if theme.startswith("high") else usual)
    return {name: dark if theme.endswith("dark") else light for name, light, dark in found}


def hex_of(colour: str) -> str:
    """Return the light theme's colour of a variable such as ``"var(--gl-ink)"``, where variables are not supported:
    ``"#1c2430"``."""
    return colours()[colour.removeprefix("var(").removesuffix(")")]


def resolve_variables(body: str, theme: Theme) -> tuple[str, str]:
    """Replace the variables in a drawing.

    Parameters
    ----------
    body : str
        SVG elements.
    theme : {"auto", "light", "dark", "high-contrast", "high-contrast-dark"}

    Returns
    -------
    body, rules : str
        The elements with hex colours; for "auto" the rules for a dark theme and for high contrast, else "".
    """
    light = colours(theme)
    found = sorted(set(USED.findall(body)))
    body = USED.sub(lambda match: f'{match[1]}="{light[match[2]]}"', body)
    if theme != "auto":
        return body, ""

    def rules(other: Theme, before: dict[str, str]) -> str:
        new = colours(other)
        return "".join(f'[{key}="{light[name]}"]{{{key}:{new[name]}}}' for key, name in found if new[name] != before[name])

    return body, _by_media(rules)


def _by_media(rules: Callable[[Theme, dict[str, str]], str]) -> str:
    """Join the rules of the other themes. `rules` returns them for a theme and the colours of another one."""
    media = {
        "(prefers-color-scheme:dark)": rules("dark", colours()),
        "(prefers-contrast:more)": rules("high-contrast", colours()),
        "(prefers-contrast:more) and (prefers-color-scheme:dark)": rules("high-contrast-dark", colours("dark")),
    }
    return "".join(f"@media {when}{{{then}}}" for when, then in media.items() if then)


def use_classes(body: str) -> tuple[str, str]:
    """Replace the variables and font attributes in a drawing by classes, which take fewer bytes.

    Parameters
    ----------
    body : str
        SVG elements, none of which has a class.

    Returns
    -------
    body, rules : str
        The elements, and the rules of their classes in all themes.
    """
    classes: dict[tuple[tuple[str, str], ...], str] = {}

    def replace(match: re.Match[str]) -> str:
        used = tuple(sorted((*USED.findall(match[2]), *LETTERS.findall(match[2]))))
        if not used:
            return match[0]
        name = classes.setdefault(used, f"c{len(classes)}")
        return f'<{match[1]} class="{name}"' + re.sub(rf" (?:{USED.pattern}|{LETTERS.pattern})", "", match[2])

    body = re.sub(r'<([a-z]+)((?: [\w:-]+="[^"]*")+)', replace, body)
    having: dict[tuple[str, str], list[str]] = {}
    for used, name in classes.items():
        for one in used:
            having.setdefault(one, []).append(f".{name}")
    names = {one: ",".join(classes_of) for one, classes_of in having.items()}

    def rules(other: Theme, before: dict[str, str]) -> str:
        new = colours(other)
        changed = ((one, new[one[1]]) for one in names if one[1] in new and new[one[1]] != before.get(one[1]))
        return "".join(f"{names[one]}{{{one[0]}:{colour}}}" for one, colour in changed)

    fixed = ((one, f"{one[1]}px" if one[0] == "font-size" else one[1]) for one in names if not one[1].startswith("--"))
    letters = "".join(f"{names[one]}{{{one[0]}:{value}}}" for one, value in fixed)
    return body, rules("light", {}) + letters + _by_media(rules)


def view_styles() -> str:
    """Return theme.css for live views, with its high-contrast rules also for notebooks with a theme of that name."""
    block = re.search(r"\.gl-view (\{[^}]*\})", STYLES.partition(HIGH)[2])
    assert block is not None
    return f"{STYLES}{NAMED_HIGH} .gl-view {block[1]}\n"


def scheme_rules() -> str:
    """Return the rules that set the theme of a static picture to the notebook's."""
    return "".join(rule.replace(":is(.gl-view, .gradlab-picture)", ".gradlab-picture") for rule in SCHEME.findall(STYLES)[1:])
