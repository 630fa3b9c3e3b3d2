"""Check that comments, docstrings, messages and pages are in plain English, and that functions have plain names.

`python tests/test_prose.py` counts what is found, by folder; `python tests/test_prose.py PATH ...` lists it by line.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Cells and programs as other people write them, and what other programs print.
NOT_OURS = (
    "tests/expected/*",
    "tests/operators/expected/*",
    "tests/operators/rows/*",
    "tests/rules/rows/*",
    "tests/e2e/courses/scripts/*",
)
# What `sphinx-build` and `npm` write: copies of files that are read in their own folders, and other people's code.
GENERATED = ("docs/tutorials/*.ipynb", "docs/reference/*", "docs/guide/kinds.md", ".ci/js/node_modules/*")
# This file lists what is mannered.
SKIPPED = (*NOT_OURS, *GENERATED, "tests/test_prose.py")

BE = r"(?:is|are|was|were|be|been|being)"
HAVE = r"(?:has|have|had)"
# What is mannered, and what to write instead.
MANNERED = {
    rf"(?<!there ){BE} no (?!longer|more|less|better|worse|different|other)\w": "is not a …",
    rf"\bwhat (?:{BE}|{HAVE}) (?!wrong|right|expected|given|left)": "begin with the subject: the values computed on …",
    r"\bthose whose\b|(?-i:\bThose (?:that|which|who|of|in|with|at|for)\b)": "parameters without a gradient",
    rf"\b{HAVE} (?:not|no) (?:its|their|his|the|an?|one)\b": "does not have, does not match",
    r"\b(?:told|telling|tells?(?! (?:\w+ ){0,3}apart))\b": "show, report, notify, distinguish",
    r"\bhear[sd]?\b": "receive, be notified",
    r"\bhand(?:s|ed|ing)? (?:on|down|out|over)\b": "pass, return",
    r"\bpass(?:es|ed|ing)? over\b": "skip",
    r"\bset(?:s|ting)? aside\b": "ignore, disable, save",
    r"\btak(?:e|es|en|ing) hold of\b": "drag, hold",
    r"\bgo(?:es)? by\b": "use, follow",
    r"\bbut for\b": "except",
    r"\bsave (?:for|what|that|where|in|of|those)\b": "except",
    r"\binside of\b": "inside",
    r"\b(?:is|are) good for\b": "supports, allows",
    r"\bst(?:and|ands|ood|anding)\b(?! for\b|-)": "is, appears",
    r"\bbear(?:s|ing)?\b|\bborne\b": "support, carry",
    r"\blies? (?:in|on|at|where|below|beside|between|there|within)\b": "is in",
    r"\bshall\b": "must, should, will",
    rf"\b{BE} to be\b": "must be",
    r"\bsisters?\b|\bpurse\b|\bgraver\b": "a term of the field",
    r"\bno (?:\w+ ){1,3}else\b": "no other",
}
PATTERN = re.compile("|".join(f"(?P<p{i}>{pattern})" for i, pattern in enumerate(MANNERED)), re.IGNORECASE)
ADVICE = list(MANNERED.values())
NOT_A_SUMMARY = re.compile(
    r"[a-z]\w*[ ,:]|(?:What|Whether|That|Those|These|Who|Whose|Which|Where|When|Why|How|If|As|So|It|They|There|Is|Are|Does|Do|Has"
    r"|Have|Adds|Asks|Builds|Calls|Checks|Computes|Contains|Converts|Counts|Creates|Draws|Fills|Finds|Gets|Gives|Holds|Keeps|Makes|Moves"
    r"|Opens|Prints|Raises|Reads|Records|Remembers|Removes|Replaces|Returns|Runs|Saves|Says|Sees|Sets|Shows|Stores|Takes|Tells|Tests"
    r"|Turns|Watches|Walks|Works|Writes|Yields)\b"
)
PARTICIPLE = re.compile(
    r"_*(?:[a-z]+ed|told|kept|held|heard|seen|shown|drawn|written|made|left|gone|given|taken|found|born|come|become|sent|laid|lost"
    r"|met|bound|chosen|known|grown|thrown|torn|worn|begun|done|built|meant|spent|bent|wrote|gave|took|went|came|fell|fallen|brought)"
)
# `Node.saved`: the tensors that a node saved; `Layout.left`: a side.
PLAIN_NAMES = {"seed", "seed_", "embed", "feed", "need", "speed", "saved", "left"}
QUESTION = re.compile(r"(?:[^.]|\.(?! ))*\?")  # the rest of one
JS_PROSE = re.compile(r"""//|/\*|^ \*|["'`][^"'`]* [^"'`]*["'`]""")  # a comment, or a string with a space in it
SUFFIXES = {".py", ".md", ".ipynb", ".js"}
# PyTorch's own sentences, and the title of a paper.
QUOTED = ("no larger than self", "no larger size than src", "What is the adjugate of a matrix?")


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each comment, string with a space in it, and paragraph of a page or a notebook."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        code = False
        for number, line in enumerate(text.split("\n"), 1):
            if line.lstrip().startswith("```"):
                code = not code
            elif not code:
                yield number, line
        return
    if path.suffix == ".ipynb":
        for cell in json.loads(text)["cells"]:
            if cell["cell_type"] == "markdown":
                yield from enumerate("".join(cell["source"]).split("\n"), 1)
        return
    if path.suffix == ".js":
        yield from ((number, line) for number, line in enumerate(text.split("\n"), 1) if JS_PROSE.search(line))
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING) and " " in token.string:
            for offset, line in enumerate(token.string.split("\n")):
                if not any(quoted in line for quoted in QUOTED):
                    yield token.start[0] + offset, line


def mannered(path: Path) -> Iterator[str]:
    """Yield each pattern found in the prose of a file: the line, the words, and what to write instead."""
    if not PATTERN.search(path.read_text(encoding="utf-8")):  # most files: saves splitting it into tokens
        return
    for number, line in prose(path):
        for match in PATTERN.finditer(line):
            if not QUESTION.match(line, match.end()):
                advice = ADVICE[int(match.lastgroup[1:])]
                yield f"{path.relative_to(ROOT)}:{number}: “{line[match.start() : match.end() + 20]}” ({advice})"


def definitions(path: Path) -> Iterator[str]:
    """Yield each docstring whose summary does not start with a verb or a noun, and each function named by a participle."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    public = {
        constant.value
        for node in tree.body
        if isinstance(node, ast.Assign) and any(isinstance(name, ast.Name) and name.id == "__all__" for name in node.targets)
        for constant in ast.walk(node.value)
        if isinstance(constant, ast.Constant)
    }
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        number, name = (1, "") if isinstance(node, ast.Module) else (node.lineno, node.name)
        place = f"{path.relative_to(ROOT)}:{number}"
        summary = (ast.get_docstring(node) or "").split("\n")[0]
        if NOT_A_SUMMARY.match(summary):
            yield f"{place}: “{summary}” (start with an imperative or a noun)"
        is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if is_function and PARTICIPLE.fullmatch(name) and name not in PLAIN_NAMES | public:
            yield f"{place}: {name}() (a verb, or what it returns)"


def files(*folders: str) -> list[Path]:
    """Return the files with prose in these folders of the repository."""
    paths = []
    for folder in folders:
        path = ROOT / folder
        found = [path] if path.is_file() else [one for one in path.rglob("*") if one.suffix in SUFFIXES]
        paths += [one for one in found if not is_skipped(one)]
    return sorted(set(paths))


def is_skipped(path: Path) -> bool:
    return any(fnmatch(path.relative_to(ROOT).as_posix(), pattern) for pattern in SKIPPED)


@cache
def everything() -> list[Path]:
    return files("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "TORCH.md", "docs", "gradlab", "tests", ".ci",
                 "benchmarks", "notebooks", "hatch_build.py")  # fmt: skip


def findings(path: Path) -> list[str]:
    return [*mannered(path), *(definitions(path) if path.suffix == ".py" else ())]


def folder_of(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[: 2 if parts[0] in ("gradlab", "tests", "docs") else 1][: max(1, len(parts) - 1)])


FOLDERS = sorted(set(map(folder_of, everything())))


@pytest.mark.skipif(not (ROOT / "ARCHITECTURE.md").is_file(), reason="not a checkout")
@pytest.mark.parametrize("folder", FOLDERS)
def test_prose_is_plain(folder):
    paths = [path for path in everything() if folder_of(path) == folder]
    assert [line for path in paths for line in findings(path)] == []


MANNERED_LINES = """\
# If `input` is no tensor.
# what is computed cannot travel to the workers
# Those whose `.grad` is meant are passed over
# a weight has not its shape
# may be heard
# the sisters of the source
# there is no batch size else
"""


def test_mannered_lines_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "mannered.py").write_text(MANNERED_LINES)
    (tmp_path / "mannered.md").write_text(MANNERED_LINES)
    for name in ("mannered.py", "mannered.md"):
        assert {int(line.split(":")[1]) for line in mannered(tmp_path / name)} == set(range(1, 8))


def test_plain_lines_are_not_found(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    path = tmp_path / "plain.py"
    path.write_text(
        "# If `x` is not a Tensor.\n# There is no graph.\n# `y` is no longer a leaf.\n# what is wrong\n"
        "# tell the two models apart\n"
        "what = 'is no word'.no_one\n"
        'def add(x):\n    """Return the sum."""\n'
        'def saved_tensors(x):\n    """Tensors that a node saved."""\n'
    )
    assert [*mannered(path), *definitions(path)] == ["plain.py:6: “is no word'” (is not a …)"]


def test_summaries_and_names_are_checked(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    path = tmp_path / "names.py"
    path.write_text(
        '__all__ = ["sorted"]\n'
        'def kept():\n    """Whether it is."""\n'
        'def sorted():\n    """Returns the order."""\n'
        'def seed():\n    """Set the seed."""\n'
        'class Of:\n    """What it is."""\n    def _added(self):\n        """input plus one."""\n'
    )
    places = [line.split(":")[1] for line in definitions(path)]
    assert sorted(map(int, places)) == [2, 2, 4, 8, 10, 10]


if __name__ == "__main__":
    if sys.argv[1:]:
        print(*(line for path in files(*sys.argv[1:]) for line in findings(path)), sep="\n")
    else:
        counts = Counter({folder_of(path): 0 for path in everything()})
        for path in everything():
            counts[folder_of(path)] += len(findings(path))
        print(*(f"{count:6} {folder}" for folder, count in sorted(counts.items())), sep="\n")
