"""Joining the JavaScript modules of a view, and properties of all modules. Their behaviour is tested in a browser."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from gradlab.explore.terms import RULES
from gradlab.explore.theme import view_styles
from gradlab.notebook.bundle import EXPORTS, IMPORT, STATIC, script, styles

MODULES = sorted(STATIC.rglob("*.js"))
SHEETS = sorted(STATIC.rglob("*.css"))
# Entry modules of widgets and saved pages, and the function that each calls.
ENTRIES = {
    "explorer/view.js": "render",
    "jacobian/view.js": "render",
    "playground/page.js": "open",
    "playground/view.js": "render",
    "question/view.js": "render",
    "stepper/page.js": "render",
    "stepper/view.js": "render",
    "watch/view.js": "render",
}
LARGEST = {"explorer/view.js": 105_000}  # bytes; the explorer contains the stepper
LARGE = 70_000
UNWANTED = (
    *("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval", "Function", "fetch", "XMLHttpRequest"),
    *("WebSocket", "EventSource", "sendBeacon", "importScripts", "localStorage", "document.cookie"),
)  # creating markup or code from text, and access beyond the page
NAMESPACES = {"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"}  # names that nothing is fetched from


def name_of(path):
    return path.relative_to(STATIC).as_posix()


def imports_of(path):
    """Return (names, module) for each import of a module in the package."""
    text = re.sub(r"\s+", " ", path.read_text())
    found = re.findall(r'import \{ ([^}]*?),? \} from "([^"]*)"', re.sub(r"/\*\* @import.*?\*/", "", text))
    return [(names.split(", "), name_of((path.parent / source).resolve())) for names, source in found]


@pytest.fixture
def folder(tmp_path):
    """Function `folder({"kit/a.js": text})` that writes files and returns their folder."""

    def write(files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    return write


# ---------------------------------------------------------------------------------------------------------------- joining
A = (
    "// Said of a.\n\nconst ONE = 1;\n\nfunction f() {\n  return `${ONE}` + g();\n}\n\n"
    "function g() {\n  return 2;\n}\n\nexport { ONE, f };\n"
)
B = 'import { ONE, f } from "../kit/a.js";\nimport { C } from "./c.js";\n\nconst g = f();\n\nexport { g };\n'
C = 'import { ONE } from "../kit/a.js";\n\n/**\n * A class.\n */\nclass C {}\n\nexport {\n  C,\n};\n'


def test_each_module_is_a_function_in_the_order_of_imports(folder):
    assert (
        script("v/b.js", folder({"kit/a.js": A, "v/b.js": B, "v/c.js": C}))
        == """\
const $kit$a = (() => {
const ONE = 1;
function f() {
return `${ONE}` + g();
}
function g() {
return 2;
}
return { ONE, f };
})();
const $v$c = (() => {
const { ONE } = $kit$a;
class C {}
return { C };
})();
const $v$b = (() => {
const { ONE, f } = $kit$a;
const { C } = $v$c;
const g = f();
return { g };
})();
export default $v$b;
"""
    )


END = "\nconst a = 1;\nexport { a };\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("const a = 1;\n", "must end in a list of exports"),
        ("", "must end in a list of exports"),
        ("export { a };\nconst a = 1;\n", "must end in a list of exports"),
        ("export const a = 1;\n", "must end in a list of exports"),
        ("export default { a };\n", "must end in a list of exports"),
        ('export { a } from "./b.js";\n', "must end in a list of exports"),
        ("const a = 1;\nexport { a as b };\n", "must end in a list of exports"),
        ("export const b = 1;" + END, "has an unsupported form or place"),
        ('import b from "./b.js";' + END, "has an unsupported form or place"),
        ('import * as b from "./b.js";' + END, "has an unsupported form or place"),
        ('import { b as c } from "./b.js";' + END, "has an unsupported form or place"),
        ('import "./b.js";' + END, "has an unsupported form or place"),
        ('import { b } from "https://somewhere/b.js";' + END, "has an unsupported form or place"),
        ('import { b } from "../../kit/b.js";' + END, "has an unsupported form or place"),
        ('import { b } from "../kit/../b.js";' + END, "has an unsupported form or place"),
        ('import { b } from "b";' + END, "has an unsupported form or place"),
        ('const c = 1;\nimport { b } from "./b.js";' + END, "has an unsupported form or place"),
        ('const b = await import("./b.js");' + END, "has an unsupported form or place"),
        ("function c() {\n  return import (b);\n}" + END, "has an unsupported form or place"),
        ("const c = import.meta.url;" + END, "has an unsupported form or place"),
        ('import { c } from "./b.js";' + END, "v/a.js: v/b.js does not export c"),
        ('import { a } from "./a.js";' + END, "v/a.js imports this module"),
        ('import { c } from "./cycle.js";' + END, "v/cycle.js: v/a.js imports this module, directly or not"),
        ("let a = 1;\nexport { a };\n", "no line begins with a function, class or constant a"),
        ("const { a } = b;\nexport { a };\n", "no line begins with a function, class or constant a"),
        ("function b() {\n  const a = 1;\n}\nexport { a };\n", "no line begins with a function, class or constant a"),
        ("const ab = 1;\nexport { a };\n", "no line begins with a function, class or constant a"),
        ("const c = `\n// kept\n`;" + END, "v/a.js:1: a template must end on its line"),
        ("const c = 1; /* that\n*/" + END, "v/a.js:1: a comment after code must end on its line"),
        ("/* that\n*/ const c = 1;" + END, "v/a.js:2: code after the end of a comment"),
        ("/* that\nconst c = 1;" + END, "ends within a comment"),
        ("const a = 1;\nexport {\n  a,\n", "ends within a list"),
    ],
)
def test_another_form_is_an_error(folder, text, message):
    files = {
        "v/a.js": text,
        "v/b.js": "const b = 1;\nexport { b };\n",
        "v/cycle.js": 'import { a } from "./a.js";\nconst c = a;\nexport { c };\n',
    }
    with pytest.raises(ValueError, match=message):
        script("v/a.js", folder(files))


@pytest.mark.parametrize("entry", ["a.js", "../kit/a.js", "/kit/a.js", "kit/a.mjs", "kit/A.js", "kit/deep/a.js"])
def test_a_module_is_in_a_subfolder(folder, entry):
    with pytest.raises(ValueError, match=r"a module must be named folder/file\.js"):
        script(entry, folder({"kit/a.js": A}))


def test_comments_are_removed(folder):
    text = (
        "// one\n/* two */\n/**\n * three: import x from y `\n   four */\nconst a = /** @type {any} */ (1); // five\n"
        'const b = "import { c } from";\n/* six */ const c = 2;\nexport { a };\n'
    )
    assert script("v/a.js", folder({"v/a.js": text})).splitlines()[1:4] == [
        "const a = (1);",
        'const b = "import { c } from";',
        "/* six */ const c = 2;",
    ]


def test_comments_in_strings_are_kept(folder):
    kept = [
        'const b = "one // two";',
        "const c = 'three // four', d = 1;",
        "const e = `five // ${a}`;",
        "const f = /six // seven/;",
    ]
    text = "\n".join(["const a = 1; // gone", *kept, "const g = 2; // it's kept", "export { a };", ""])
    assert script("v/a.js", folder({"v/a.js": text})).splitlines()[1:7] == ["const a = 1;", *kept, "const g = 2; // it's kept"]


# -------------------------------------------------------------------------------------------------------------------- modules
@pytest.mark.parametrize("path", MODULES + SHEETS, ids=name_of)
def test_each_module_is_short_and_has_a_comment_and_no_external_code(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 600
    assert text.startswith(("// ", "/* ")), "it begins with a comment on its purpose"
    assert set(re.findall(r"\bhttps?:[^\s\"'`)]*", text)) <= NAMESPACES
    assert not re.search(r"url\(|@import\s+[\"'u]|//[\w-]+\.[\w-]+/", text)
    assert not re.search(rf"\b({'|'.join(UNWANTED)})\b", text)


def test_the_kit_imports_no_view():
    for path in STATIC.glob("kit/*.js"):
        assert {source.split("/")[0] for _, source in imports_of(path)} <= {"kit"}, path


def test_no_module_or_export_is_unused():
    """Every module is part of a widget, and every export is imported by another module or called by the widget."""
    waiting, reached, used = list(ENTRIES), set(), set(ENTRIES.items())
    while waiting:
        if (module := waiting.pop()) not in reached:
            reached.add(module)
            for names, source in imports_of(STATIC / module):
                waiting.append(source)
                used |= {(source, name) for name in names}
    assert reached == set(map(name_of, MODULES))
    exported = {
        (name_of(path), name) for path in MODULES for name in EXPORTS.search(re.sub(r"\s+", " ", path.read_text()))[1].split(", ")
    }
    assert exported == used


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_widget_is_one_module_of_a_bounded_size(entry):
    text = script(entry)
    assert len(text.encode()) < LARGEST.get(entry, LARGE)
    lines = text.splitlines()
    assert [line for line in lines if re.match(r"\s*(import|export)\b", line)] == [lines[-1]]
    assert not any(IMPORT.search(line) for line in lines) and "@param" not in text
    assert text == script(entry), "joining is deterministic"


@pytest.mark.e2e
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_widget_is_read_by_node_as_well(entry, tmp_path):
    (tmp_path / "view.mjs").write_text(script(entry))
    subprocess.run(["node", "--check", tmp_path / "view.mjs"], check=True)


def test_style_sheets_are_one_after_another():
    kit, own = (STATIC / name for name in ("kit/kit.css", "jacobian/jacobian.css"))
    whole = "".join([view_styles(), RULES, kit.read_text(), own.read_text()])
    assert styles("kit/kit.css", "jacobian/jacobian.css") == re.sub(r"/\*[^*]*\*/\s*", "", whole), "without comments"
    assert len(styles("kit/kit.css", "jacobian/jacobian.css").encode()) < 60_000
    for path, root in ((kit, ".gl-view"), (own, ".gl-jacobian")):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        for selectors in re.findall(r"([^{};]+)\{(?=[^{}]*\})", text):
            for selector in re.sub(r"\([^()]*(\([^()]*\)[^()]*)*\)", "", selectors).split(","):
                assert root in selector or ":has" in selector, f"{path.name}: {selector} would style elements outside views"
