"""The options of `%%grad`, `%grad`, `%jacobian`, `%graph`, `%%doctor` and `%%watch`: their table, parser, help and completion.

argparse cannot parse them: a NAME may be `params["a b"]`, and the text after `-v` is a Python expression up to the next option,
with Python's blanks, brackets, quotes and minus signs. Parser, help and completion all use one table. Parsing evaluates nothing.
"""

from __future__ import annotations

import ast
import difflib
import keyword
from collections.abc import Iterator
from dataclasses import dataclass

CELL, LINE, MATRIX, DOCTOR, GRAPH, WATCH = "%%grad", "%grad", "%jacobian", "%%doctor", "%graph", "%%watch"


class OptionError(ValueError):
    """An invalid line of options. The text is one sentence for the user."""


@dataclass(frozen=True)
class Option:
    """An option. `value` is the name of its argument in the help; empty for a switch."""

    flags: tuple[str, ...]
    field: str
    value: str
    where: tuple[str, ...]
    help: str
    choices: tuple[str, ...] = ()


OPTIONS = (
    Option(
        ("-v", "--weights"),
        "weights",
        "EXPR",
        (CELL, LINE),
        "weights for an output that is not a scalar, of its shape, to compute vᵀJ. A Python expression, evaluated after "
        "the cell; it ends at the next option. (In %grad it is one word: put brackets around blanks.)",
    ),
    Option(("--of",), "of", "NAME", (CELL,), "differentiate this instead of the value of the last statement"),
    Option(
        ("--wrt",),
        "names",
        "NAME,…",
        (LINE,),
        "differentiate with respect to these names, separated by commas. Default: all leaves",
    ),
    Option(("--accumulate",), "accumulate", "", (CELL,), "add to .grad, as backward() does, instead of replacing it"),
    Option(("--dry",), "dry", "", (CELL,), "do not write .grad"),
    Option(("--graph",), "graph", "", (CELL, LINE), "draw the graph, whatever %config GradMagics.graph says"),
    Option(("--no-graph",), "no_graph", "", (CELL, LINE), "draw no graph"),
    Option(("--jacobian",), "jacobian", "", (CELL, LINE), "show the Jacobian, of as many rows as the output has elements"),
    Option(
        ("--method",),
        "method",
        "METHOD",
        (MATRIX,),
        "method: rows, batched, columns, sparse, or auto, the cheapest by estimate",
        ("auto", "rows", "batched", "columns", "sparse"),
    ),
    Option(("--chunk",), "chunk", "N", (MATRIX,), "number of rows, columns or colours in one sweep"),
    Option(
        ("-i", "--interactive"),
        "live",
        "",
        (CELL, MATRIX, GRAPH),
        "show a live view: explore the graph, or step through the Jacobian (in a notebook)",
    ),
    Option(
        ("--level",),
        "level",
        "LEVEL",
        (GRAPH,),
        "show code (your lines), modules, or operations",
        ("code", "modules", "operations"),
    ),
    Option(("--values",), "values", "", (GRAPH,), "for the run of a model: show the values that each function returns"),
    Option(("--time",), "time", "", (GRAPH,), "for the run of a model: measure the time in each function"),
    Option(
        ("-o", "--out"),
        "out",
        "NAME",
        (CELL, LINE, MATRIX, DOCTOR, GRAPH, WATCH),
        "assign the report, the Jacobian, the graph, the diagnosis, or the watched run to this name",
    ),
    Option(("-h", "--help"), "help", "", (CELL, LINE), "print this help and run nothing"),
    Option(
        ("--ignore",),
        "ignore",
        "KIND,…",
        (CELL, DOCTOR, WATCH),
        "silence findings of these kinds, which are printed in brackets after a finding; may be given several times",
    ),
    Option(("--compiled",), "compiled", "", (CELL, DOCTOR), "run functions of torch.compile compiled, without their lines"),
    Option(("--every",), "every", "N", (WATCH,), "examine at most every N-th step"),
    Option(("-q", "--quiet"), "quiet", "", (CELL, LINE, MATRIX, DOCTOR, GRAPH, WATCH), "show nothing"),
)


@dataclass
class Request:
    """The parsed options of a line. Expressions are text that has been checked to be valid Python."""

    names: tuple[str, ...] = ()
    weights: str | None = None
    of: str | None = None
    accumulate: bool = False
    dry: bool = False
    graph: bool = False
    no_graph: bool = False
    jacobian: bool = False
    out: str | None = None
    quiet: bool = False
    help: bool = False
    method: str = "auto"
    level: str | None = None
    chunk: str | None = None
    every: str = "1"
    ignore: tuple[str, ...] = ()
    live: bool = False
    values: bool = False
    time: bool = False
    compiled: bool = False
    findings_only: bool = False
    expression: str = ""
    expressions: tuple[str, ...] = ()


def parse_cell(line: str) -> Request:
    """Read the line of a `%%grad` cell.

    Raises
    ------
    OptionError
        If an option is invalid, before anything runs.
    """
    request, rest = _options(line, CELL, stop_at_first_word=False)
    request.names = tuple(_check_name(line[start:end], "a name to differentiate with respect to") for start, end in rest)
    return request


def parse_doctor(line: str) -> Request:
    """Read the line of `%%doctor` or `%doctor`: only options.

    Raises
    ------
    OptionError
        If the line has anything else.
    """
    request, rest = _options(line, DOCTOR, stop_at_first_word=False)
    if rest:
        raise OptionError(f"{DOCTOR} takes only options, got {line.strip()!r}. For one tensor, call gl.doctor(loss).")
    request.findings_only = True
    return request


def parse_watch(line: str) -> Request:
    """Read the line of a `%%watch` cell: only options. Raises OptionError."""
    request, rest = _options(line, WATCH, stop_at_first_word=False)
    if rest:
        raise OptionError(f"{WATCH} takes no names, got {line.strip()!r}: it finds the loss by its backward().")
    return request


def parse_line(line: str) -> Request:
    """Read the line of `%grad`: options, then the expression; a `;` at its end hides the output. Raises OptionError."""
    line, silent = line.rstrip().rstrip(";"), line.rstrip().endswith(";")
    request, rest = _options(line, LINE, stop_at_first_word=True)
    request.quiet = request.quiet or silent
    if request.help:
        return request
    if not rest:
        raise OptionError("there is no expression to differentiate. Write %grad [options] EXPRESSION, options first.")
    request.expression = _check_expression(line[rest[0][0] :].strip(), "the expression")
    return request


def parse_jacobian(line: str) -> Request:
    """Read the line of `%jacobian`: options and expressions, the first of them the output. Raises OptionError."""
    line, silent = line.rstrip().rstrip(";"), line.rstrip().endswith(";")
    request, rest = _options(line, MATRIX, stop_at_first_word=False)
    request.quiet = request.quiet or silent
    texts = [text for start, end in rest for text in split_names(line[start:end])]
    if len(texts) < 2:
        missing = f"there is no input to differentiate {texts[0]} by" if texts else "there is no output and no input"
        raise OptionError(f"{missing}. Write %jacobian OUT INPUT [INPUT …] [options]; OUT is a tensor or a function.")
    request.expressions = tuple(_check_expression(text, "the output" if k == 0 else "an input") for k, text in enumerate(texts))
    return request


def parse_graph(line: str) -> Request:
    """Read the line of `%graph`: options and one expression. Raises OptionError."""
    line, silent = line.rstrip().rstrip(";"), line.rstrip().endswith(";")
    request, rest = _options(line, GRAPH, stop_at_first_word=False)
    request.quiet = request.quiet or silent
    texts = [line[start:end] for start, end in rest]
    if len(texts) != 1:
        expressions = f"{len(texts)} expressions, {', '.join(texts)}" if texts else "nothing"
        raise OptionError(
            f"%graph takes one expression, got {expressions}. Write %graph OUT [options]; OUT is a tensor, a list of "
            "them, or a call of a model, without blanks outside brackets."
        )
    request.expression = _check_expression(texts[0], "the expression")
    return request


def _options(line: str, magic: str, *, stop_at_first_word: bool) -> tuple[Request, list[tuple[int, int]]]:
    known = {flag: option for option in OPTIONS if magic in option.where for flag in option.flags}
    request, rest, seen = Request(), [], set()
    words = list(_words(line))
    i = 0
    while i < len(words):
        start, end = words[i]
        word = line[start:end]
        flag, equals, inline = word.partition("=") if word.startswith("--") else (word, "", "")
        option = known.get(flag)
        if option is None:
            if _looks_like_option(word) and not (stop_at_first_word and not word.startswith("--")):
                raise OptionError(_unknown(flag, magic, known))
            if stop_at_first_word:
                rest.append((start, end))
                break
            rest.append((start, end))
            i += 1
            continue
        if option.field in seen and option.field != "ignore":
            raise OptionError(f"{flag} is given twice.")
        seen.add(option.field)
        i += 1
        if not option.value:
            if equals:
                raise OptionError(f"{flag} takes no value, got {inline!r}.")
            setattr(request, option.field, True)
            continue
        if equals:
            text = inline
        elif option.field == "weights" and not stop_at_first_word:
            first = i
            while i < len(words) and line[slice(*words[i])].partition("=")[0] not in known:
                if line[slice(*words[i])].startswith("--"):
                    raise OptionError(_unknown(line[slice(*words[i])], magic, known))
                i += 1
            text = line[words[first][0] : words[i - 1][1]] if i > first else ""
        elif option.field in ("names", "ignore"):
            text = ""  # a, b: blanks around commas are skipped
            while i < len(words) and (not text or text.endswith(",") or line[words[i][0]] == ","):
                text += line[slice(*words[i])]
                i += 1
        elif i < len(words):
            text = line[slice(*words[i])]
            i += 1
        else:
            text = ""
        if not text.strip() or text in known:
            raise OptionError(f"{flag} needs a value: {flag} {option.value}.")
        value = _convert(option, text, flag)
        setattr(request, option.field, (*request.ignore, *value) if option.field == "ignore" else value)
    for one, other in (("accumulate", "dry"), ("graph", "no_graph")):
        if getattr(request, one) and getattr(request, other):
            raise OptionError(f"--{one} and --{other.replace('_', '-')} exclude each other.")
    return request, rest


def _convert(option: Option, text: str, flag: str) -> str | tuple[str, ...]:
    if option.field == "weights":
        return _check_expression(text, f"what follows {flag}")
    if option.field == "names":
        return tuple(_check_name(part, f"what follows {flag}") for part in split_names(text))
    if option.field == "ignore":
        return tuple(kind.strip() for kind in text.split(",") if kind.strip())
    if option.choices and text not in option.choices:
        raise OptionError(f"{flag} must be one of {', '.join(option.choices)}, got {text!r}.")
    if option.choices:
        return text
    if option.field in ("chunk", "every"):
        if not text.isdecimal() or int(text) < 1:
            raise OptionError(f"{flag} needs an integer of at least 1, got {text!r}.")
        return text
    if option.field == "out":
        if not text.isidentifier() or keyword.iskeyword(text):
            raise OptionError(f"{flag} needs a name that can be assigned to, got {text!r}.")
        return text
    return _check_name(text, f"what follows {flag}")


def split_names(text: str) -> list[str]:
    """Split text such as "a, params[0, 1]" at the commas outside brackets and quotes."""
    parts, start = [], 0
    for i, char, depth in _scan(text):
        if char == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


def _looks_like_option(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and (word[1] == "-" or word[1].isalpha())


def _unknown(word: str, magic: str, known: dict[str, Option]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    hint = f"Did you mean {close[0]}? " if close else ""
    return f"{magic} has no option {word}. {hint}It has {', '.join(option.flags[0] for option in _of(magic))}; see {magic}?."


def _of(magic: str) -> list[Option]:
    return [option for option in OPTIONS if magic in option.where]


def _check_expression(text: str, what: str) -> str:
    try:
        ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        raise OptionError(
            f"{what} is not a Python expression: {text.strip()!r} ({getattr(error, 'msg', None) or error})."
        ) from None
    return text.strip()


def _check_name(text: str, what: str) -> str:
    _check_expression(text, what)
    node: ast.AST = ast.parse(text.strip(), mode="eval").body
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    if not isinstance(node, ast.Name):
        raise OptionError(f"{what} must name a tensor, such as x, model.weight or params[0], got {text!r}.")
    return text.strip()


# ---------------------------------------------------------------------------------------------------------- the scanner
def _scan(line: str) -> Iterator[tuple[int, str, int]]:
    """Yield each character outside strings, with its position and the number of open brackets.

    Raises OptionError for a bracket or a quote that is not closed.
    """
    closing: list[tuple[str, int]] = []
    quote, i = "", 0
    opened = 0
    while i < len(line):
        char = line[i]
        if quote:
            if char == "\\":
                i += 1
            elif char == quote:
                quote = ""
        elif char in "'\"":
            quote, opened = char, i
        elif char in "([{":
            yield i, char, len(closing)
            closing.append((")]}"["([{".index(char)], i))
        elif char in ")]}":
            if not closing or closing[-1][0] != char:
                raise OptionError(f"there is an extra {char!r} in {line.strip()!r}.")
            closing.pop()
            yield i, char, len(closing)
        else:
            yield i, char, len(closing)
        i += 1
    if quote:
        raise OptionError(f"the quote {quote} opened at {line[opened:].strip()!r} is not closed.")
    if closing:
        raise OptionError(f"the bracket opened at {line[closing[-1][1] :].strip()!r} is not closed.")


def _words(line: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each word, separated by blanks outside brackets and quotes."""
    blank = {i for i, char, depth in _scan(line) if depth == 0 and char.isspace()}
    start = None
    for i in range(len(line) + 1):
        if i == len(line) or i in blank:
            if start is not None:
                yield start, i
            start = None
        elif start is None:
            start = i


# ------------------------------------------------------------------------------------------------------ help, completion
def usage(magic: str) -> str:
    """Return the options of a magic for its help, a line each."""
    lines = []
    for option in _of(magic):
        head = ", ".join(option.flags) + (f" {option.value}" if option.value else "")
        lines.append(f"  {head:<22} {option.help}" if len(head) <= 22 else f"  {head}\n{'':<25}{option.help}")
    return "\n".join(lines)


def complete(line: str, word: str) -> list[str]:
    """Return the options or option values that complete `word` after a magic, without those already given."""
    magics = {CELL: CELL, MATRIX: MATRIX, DOCTOR: DOCTOR, DOCTOR[1:]: DOCTOR, GRAPH: GRAPH, WATCH: WATCH}
    magic = next((magics[one] for one in magics if line.lstrip().startswith(one)), LINE)
    words = line.split()
    typed = set(words)
    before = words[-2:-1] if word else words[-1:]
    for option in _of(magic):
        if option.choices and set(before) & set(option.flags):
            return [choice for choice in option.choices if choice.startswith(word)]
    if not word.startswith("-"):
        return []
    return [
        flag
        for option in _of(magic)
        if not typed & (set(option.flags) - {word})
        for flag in option.flags
        if flag.startswith(word)
    ]
