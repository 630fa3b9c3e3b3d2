"""Rewriting a cell keeps its lines and the positions of its nodes, and finds its last statement."""

import ast

import pytest

from gradlab.notebook.transform import CELL_MARK, VALUE_MARK, Instrument, ending_of, rewrite


def lines(text):
    return text.splitlines(keepends=True)


def test_only_the_first_line_changes():
    cell = lines('%%grad x -v "it\'s"\na = 1\n\nb = a\n')
    new = rewrite(cell)
    assert new[1:] == cell[1:]
    assert ast.literal_eval(new[0].removeprefix(CELL_MARK)) == 'x -v "it\'s"'


@pytest.mark.parametrize(
    "text", ["%%grad\n", "%%grad?\n", "%%gradient\nx\n", "x = 1\n%%grad\n", "%%grad\n%%capture\nx\n", "%grad x\ny\n", ""]
)
def test_other_cells_are_unchanged(text):
    assert rewrite(lines(text)) == lines(text)


def test_time_is_swapped_with_grad():
    assert rewrite(lines("%%grad x\n%%time\ny\n")) == lines("%%time\n%%grad x\ny\n")


def test_a_terminal_continues_to_read_lines():
    assert rewrite.has_side_effects is True  # then IPython's check_complete does not change the cell magic


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        ("x\ny + 1", "value", "y + 1"),
        ("y + 1;", "value", "y + 1"),
        ("await f(x)", "value", "await f(x)"),
        ("loss = f(x)", "name", "loss"),
        ("loss += f(x)", "name", "loss"),
        ("loss: T = f(x)", "name", "loss"),
        ("a = b = f(x)", "none", "an assignment to something other than one name"),
        ("a, b = f(x)", "none", "an assignment to something other than one name"),
        ("a.b = f(x)", "none", "an assignment to something other than one name"),
        ("for i in x: y", "none", "a for loop"),
        ("with f(): y", "none", "a with block"),
        ("# nothing", "none", ""),
    ],
)
def test_how_a_cell_ends(body, kind, text):
    ending = ending_of(ast.parse(body).body)
    assert (ending.kind, ending.text) == (kind, text)


def test_local_names_of_functions_and_comprehensions_are_not_mentions():
    """The parameter of `lambda w: …` is not the `w` of an earlier cell."""
    cell = """
def layer(x, w, *, last=flag):
    global total
    z, total = x @ w + bias, 0
    return [z * scale for w in z]
key = lambda p: p + shift
sum(w.sum() for w in many) + layer(a, b)
"""
    mentions = ending_of(ast.parse(cell).body).mentions
    assert set(mentions) == {"flag", "bias", "scale", "total", "key", "shift", "many", "layer", "a", "b"}


def test_mentions_are_in_the_order_of_the_cell():
    assert ending_of(ast.parse("loss = (w @ x - y).sum()\nprint(loss)").body).mentions == ("loss", "w", "x", "y")


def instrument(body):
    return ast.fix_missing_locations(Instrument().visit(ast.parse(f"{CELL_MARK}('opts')\n{body}")))


def test_the_value_passes_through_and_keeps_its_place():
    source = "a = 2\na * (1 /\n   4)"
    tree = instrument(source)
    seen = []
    exec(compile(tree, "cell", "exec"), {CELL_MARK: lambda *args: seen.append(args), VALUE_MARK: seen.append})
    assert seen == [("opts", "value", "a * (1 / 4)", ("a",), ("a",)), 0.5]
    plain = ast.parse(f"marker\n{source}")
    inner = tree.body[-1].value.args[0]
    assert ast.dump(inner, include_attributes=True) == ast.dump(plain.body[-1].value, include_attributes=True)


def test_a_tree_is_instrumented_once():
    tree = instrument("x")
    before = ast.dump(tree)
    assert ast.dump(Instrument().visit(tree)) == before


@pytest.mark.parametrize("source", ["", "x", "f(1)\nx", "'doc'"])
def test_trees_without_the_marker_pass(source):
    tree = ast.parse(source)
    before = ast.dump(tree)
    assert ast.dump(Instrument().visit(tree)) == before
