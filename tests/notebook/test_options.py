"""The line of options: parsing, errors, completion."""

import pytest

from gradlab.notebook.options import (
    CELL,
    LINE,
    MATRIX,
    OPTIONS,
    OptionError,
    complete,
    parse_cell,
    parse_jacobian,
    parse_line,
    split_names,
    usage,
)


def test_names_and_switches():
    request = parse_cell("model.fc1.weight params[0, 1] table['a b'] --accumulate --no-graph -q -o r")
    assert request.names == ("model.fc1.weight", "params[0, 1]", "table['a b']")
    assert request.accumulate and request.no_graph and request.quiet and request.out == "r"
    assert not request.dry and not request.jacobian and request.weights is None and request.of is None


@pytest.mark.parametrize(
    ("line", "weights", "names"),
    [
        ("-v w", "w", ()),
        ("x -v [0.1, 1.0, 1e-4] --dry", "[0.1, 1.0, 1e-4]", ("x",)),
        ("-v gl.ones(3) * 2 -q", "gl.ones(3) * 2", ()),
        ("-v 2 * w - b + f(-q, '--dry ') --dry", "2 * w - b + f(-q, '--dry ')", ()),
        ("-v w[-1] -b -q", "w[-1] -b", ()),
        ("x y -v {'a': ')'}['a']", "{'a': ')'}['a']", ("x", "y")),
        (r"-v f('it\'s -q', " + '"(")', r"f('it\'s -q', " + '"(")', ()),
        ("--weights=w", "w", ()),
        ("-v w == v", "w == v", ()),
    ],
)
def test_weights_end_at_the_next_option(line, weights, names):
    request = parse_cell(line)
    assert request.weights == weights
    assert request.names == names


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("--acumulate", "Did you mean --accumulate?"),
        ("-x", "no option -x"),
        ("-v w --graphs", "Did you mean --graph?"),
        ("--dry --accumulate", "exclude each other"),
        ("--graph --no-graph", "exclude each other"),
        ("--dry --dry", "given twice"),
        ("-v", "-v needs a value"),
        ("-v --dry", "-v needs a value"),
        ("--of --dry", "--of needs a value"),
        ("-o 3x", "can be assigned to"),
        ("-o class", "can be assigned to"),
        ("--dry=yes", "takes no value"),
        ("-v (1, 2", "not closed"),
        ("-v 'abc", "not closed"),
        ("x) y", "an extra"),
        ("-v 1 +", "not a Python expression"),
        ("f(x)", "must name a tensor"),
        ("x+y", "must name a tensor"),
        ("--of 3", "must name a tensor"),
        ("--wrt x", "no option --wrt"),
    ],
)
def test_wrong_lines_are_errors_of_one_sentence(line, part):
    with pytest.raises(OptionError) as caught:
        parse_cell(line)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "expression", "names", "weights"),
    [
        ("loss", "loss", (), None),
        ("(a - b).sum()", "(a - b).sum()", (), None),
        ("--wrt a,b (a * b).sum()", "(a * b).sum()", ("a", "b"), None),
        ("--wrt a, b (a * b).sum()", "(a * b).sum()", ("a", "b"), None),
        ("--wrt=p[0,1] --no-graph -v [1, 2] x - 3", "x - 3", ("p[0,1]",), "[1, 2]"),
        ("-q -x", "-x", (), None),
        ("-v w x -q", "x -q", (), "w"),
    ],
)
def test_line_magic_takes_options_first(line, expression, names, weights):
    request = parse_line(line)
    assert (request.expression, request.names, request.weights) == (expression, names, weights)


@pytest.mark.parametrize("line", ["", "--no-graph", "--wrt a", "--accumulate x", "--wrong x", "x +"])
def test_errors_of_the_line_magic(line):
    with pytest.raises(OptionError):
        parse_line(line)


@pytest.mark.parametrize(
    ("line", "expressions", "settings"),
    [
        ("z x", ("z", "x"), {}),
        ("z x, w", ("z", "x", "w"), {}),
        ("f(x, 2) p['a b'] q[0, 1]", ("f(x, 2)", "p['a b']", "q[0, 1]"), {}),
        ("--method sparse z x --chunk 12 -i -o J", ("z", "x"), {"method": "sparse", "chunk": "12", "live": True, "out": "J"}),
        ("--method=rows z x -q", ("z", "x"), {"method": "rows", "quiet": True}),
        ("z x -o J;", ("z", "x"), {"out": "J", "quiet": True}),
    ],
)
def test_jacobian_takes_expressions_and_options_in_any_order(line, expressions, settings):
    request = parse_jacobian(line)
    assert request.expressions == expressions
    expected = {"method": "auto", "chunk": None, "live": False, "out": None, "quiet": False} | settings
    assert {name: getattr(request, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("", "there is no output and no input. Write %jacobian OUT INPUT [INPUT …] [options]"),
        ("z", "there is no input to differentiate z by"),
        ("z x --method row", "--method must be one of auto, rows, batched, columns, sparse, got 'row'."),
        ("z x --method", "--method needs a value: --method METHOD."),
        ("z x --chunk -3", "--chunk needs an integer of at least 1, got '-3'."),
        ("z x --chunk 2.5", "--chunk needs an integer"),
        ("z x --metod rows", "%jacobian has no option --metod. Did you mean --method?"),
        ("z x --graph", "no option --graph"),
        ("z x+", "an input is not a Python expression: 'x+'"),
        ("z= x", "the output is not a Python expression: 'z='"),
        ("z x -o 3", "can be assigned to"),
        ("z (x", "not closed"),
    ],
)
def test_errors_of_jacobian_are_one_sentence(line, part):
    with pytest.raises(OptionError) as caught:
        parse_jacobian(line)
    assert part in str(caught.value) and "\n" not in str(caught.value)


def test_completion_of_jacobian():
    assert complete("%jacobian z x --", "--") == ["--method", "--chunk", "--interactive", "--out", "--quiet"]
    assert complete("%jacobian z x --method ", "") == ["auto", "rows", "batched", "columns", "sparse"]
    assert complete("%jacobian z x --method c", "c") == ["columns"]
    assert complete("%jacobian z", "z") == []
    assert complete("%grad --method ", "") == []


def test_completion_of_doctor():
    assert complete("%doctor --", "--") == complete("%%doctor --", "--") == ["--out", "--ignore", "--compiled", "--quiet"]


def test_completion_offers_unused_options():
    assert complete("%%grad x --", "--") == [
        "--weights",
        "--of",
        "--accumulate",
        "--dry",
        "--graph",
        "--no-graph",
        "--jacobian",
        "--interactive",
        "--out",
        "--help",
        "--ignore",
        "--compiled",
        "--quiet",
    ]
    assert complete("%%grad --ac", "--ac") == ["--accumulate"]
    assert complete("%%grad --dry --d", "--d") == []
    assert "--wrt" in complete("%grad --", "--") and "--of" not in complete("%grad --", "--")
    assert complete("%%grad los", "los") == []


@pytest.mark.parametrize("magic", [CELL, LINE, MATRIX])
def test_help_names_every_option(magic):
    text = usage(magic)
    for option in OPTIONS:
        assert all((flag in text) == (magic in option.where) for flag in option.flags if flag.startswith("--"))


def test_names_are_split_outside_brackets():
    assert split_names("a, p[0, 1] ,d['x,y'],") == ["a", "p[0, 1]", "d['x,y']"]
