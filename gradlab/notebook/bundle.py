"""Join the JavaScript modules of a live view into one ES module, and its style sheets into one.

A widget sends the browser one ES module as text. The source of a view is several modules in `static/`: `kit` has the shared parts
(elements, number formats, colours, heat map, graph, messages to the kernel), and each view has its own folder. They are plain ES
modules for editors, the type checker and the linter. There is no build step: they are joined here when a widget's class is
created, in the order of their imports.

Joining does not parse JavaScript. It supports only modules of this form, and raises an error for others:

- The imports come first, by name and from a file: ``import { a, b } from "../kit/dom.js";``. No other names, no cycles.
- One list of exports comes last: ``export { a, b };``. Each name is a function, a class or a constant of the module, defined
  at the beginning of a line, so that it can be copied.
- Nothing is imported later (``import(``, ``import.meta``).
- Templates (`` `…` ``) and comments after code end on their line. Lines within ``/* … */`` or beginning with ``//`` are
  comments. Comments and indents are removed, because the text is sent with every widget and saved in notebooks. Comments after
  code are removed if they have no quotes and slashes, which could be part of a string or a pattern; and so are casts.

Each module becomes a function that is called once and returns its exports; its other names are local::

    const $kit$dom = (() => {
    …
    return { html, svg };
    })();
    const $jacobian$view = (() => {
    const { html } = $kit$dom;
    …
    return { render };
    })();
    export default $jacobian$view;
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from gradlab.explore import terms
from gradlab.explore.theme import view_styles

STATIC = Path(__file__).parent / "static"

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
LIST = rf"\{{ ({NAME}(?:, {NAME})*),? \}}"
IMPORT = re.compile(rf'import {LIST} from "((?:\./|\.\./[a-z_]+/)[a-z_]+\.js)";')
EXPORTS = re.compile(rf"export {LIST};")
MODULE = re.compile(r"[a-z_]+/[a-z_]+\.js")
AFTER = re.compile(r"""\s+// [^"'`/]*$|/\*\* @type \{[^'"`*]*\} \*/ ?""")  # a comment after code, a cast
ELSEWHERE = re.compile(r"(?:import|export)\b|.*\bimport\s*[(.]")  # at the beginning of a line, or a dynamic import


def script(entry: str, folder: Path = STATIC) -> str:
    """Return one ES module with `entry` and all its imports. Its default export has the exports of `entry`.

    Parameters
    ----------
    entry : str
        A module by its path in `folder`: ``"jacobian/view.js"``.
    folder : Path

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If a module does not have the form described above. The error names the file.
    """
    exports: dict[str, list[str] | None] = {}  # of each module; None while its imports are read
    joined: list[str] = []
    _add(entry, folder, exports, joined)
    return "\n".join([*joined, f"export default {_variable(entry)};", ""])


def styles(*names: str, folder: Path = STATIC) -> str:
    """Return the theme, the rules of terms and style sheets of `folder`, one after another, without comments."""
    sheets = [view_styles(), terms.RULES, *((folder / name).read_text(encoding="utf-8") for name in names)]
    return re.sub(r"/\*.*?\*/\s*", "", "".join(sheets), flags=re.DOTALL)


def _add(module: str, folder: Path, exports: dict[str, list[str] | None], joined: list[str]) -> None:
    """Append `module` to `joined`, after its imports."""
    if not MODULE.fullmatch(module):
        raise ValueError(f"{module}: a module must be named folder/file.js, in lower case")
    exports[module] = None
    statements = list(_statements(module, (folder / module).read_text(encoding="utf-8")))
    head: list[str] = []
    while statements and (match := IMPORT.fullmatch(statements[0])):
        names, source = match[1].split(", "), _resolve(module, match[2])
        if source not in exports:
            _add(source, folder, exports, joined)
        if (offered := exports[source]) is None:
            raise ValueError(f"{module}: {source} imports this module, directly or not; modules import in one direction only")
        if missing := [name for name in names if name not in offered]:
            raise ValueError(f"{module}: {source} does not export {', '.join(missing)}")
        head.append(f"const {{ {', '.join(names)} }} = {_variable(source)};")
        statements.pop(0)
    last = EXPORTS.fullmatch(statements.pop()) if statements else None
    if last is None:
        raise ValueError(f"{module}: it must end in a list of exports: export {{ a, b }};")
    for line in statements:
        if ELSEWHERE.match(line):
            raise ValueError(f"{module}: this import or export has an unsupported form or place: {line}")
    exports[module] = names = last[1].split(", ")
    for name in names:
        own = re.compile(rf"(?:(?:async )?function\*? |class |const ){name}\b")
        if not any(own.match(line) for line in statements):
            raise ValueError(f"{module}: {name} is exported, but no line begins with a function, class or constant {name}")
    body = (line.lstrip() for line in statements)
    joined += [f"const {_variable(module)} = (() => {{", *head, *body, f"return {{ {', '.join(names)} }};", "})();"]


def _statements(module: str, text: str) -> Iterator[str]:
    """Yield the lines of a module without comments and blank lines. A list on several lines is joined to one."""
    waiting = ""  # the beginning of a list
    comment = False
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip()
        if comment or (bare.startswith("/*") and bare.find("*/") in (-1, len(bare) - 2)):
            comment = not bare.endswith("*/")
            if comment and "*/" in bare:
                raise ValueError(f"{module}:{number}: code after the end of a comment: {bare}")
        elif not bare or bare.startswith("//"):
            continue
        elif bare.count("`") % 2:
            raise ValueError(f"{module}:{number}: a template must end on its line: {bare}")
        elif bare.rfind("/*") > bare.rfind("*/"):
            raise ValueError(f"{module}:{number}: a comment after code must end on its line: {bare}")
        elif waiting or re.match(r"(?:import|export) \{", line):
            waiting = f"{waiting} {bare}".lstrip()
            if waiting.endswith(";"):
                yield waiting
                waiting = ""
        else:
            yield AFTER.sub("", line).rstrip()
    if comment or waiting:
        raise ValueError(f"{module}: it ends within a {'comment' if comment else f'list: {waiting}'}")


def _resolve(module: str, source: str) -> str:
    """Resolve the path of an imported module."""
    where = PurePosixPath(module).parent
    return str(where / source[2:] if source.startswith("./") else PurePosixPath(source[3:]))


def _variable(module: str) -> str:
    """Return the variable of a module's exports: "$kit$dom"."""
    return "$" + module.removesuffix(".js").replace("/", "$")
