"""The line of options: what is read, what is refused, what completes."""

import pytest

from gradlab.notebook.options import CELL, LINE, OPTIONS, OptionError, complete, parse_cell, parse_line, split_names, usage


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
        ("x) y", "too many"),
        ("-v 1 +", "no Python expression"),
        ("f(x)", "must name a tensor"),
        ("x+y", "must name a tensor"),
        ("--of 3", "must name a tensor"),
        ("--wrt x", "no option --wrt"),
    ],
)
def test_wrong_lines_are_refused_in_one_sentence(line, part):
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
def test_line_magic_refuses(line):
    with pytest.raises(OptionError):
        parse_line(line)


def test_completion_offers_what_is_left():
    assert complete("%%grad x --", "--") == [
        "--weights",
        "--of",
        "--accumulate",
        "--dry",
        "--graph",
        "--no-graph",
        "--jacobian",
        "--out",
        "--quiet",
    ]
    assert complete("%%grad --ac", "--ac") == ["--accumulate"]
    assert complete("%%grad --dry --d", "--d") == []
    assert "--wrt" in complete("%grad --", "--") and "--of" not in complete("%grad --", "--")
    assert complete("%%grad los", "los") == []


@pytest.mark.parametrize("magic", [CELL, LINE])
def test_help_names_every_option(magic):
    text = usage(magic)
    for option in OPTIONS:
        assert all((flag in text) == (magic in option.where) for flag in option.flags if flag.startswith("--"))


def test_names_are_split_outside_of_brackets():
    assert split_names("a, p[0, 1] ,d['x,y'],") == ["a", "p[0, 1]", "d['x,y']"]
