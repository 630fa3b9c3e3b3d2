"""`%%grad` in a real IPython shell: every ending of a cell, the differentiated value, and the changes of `.grad`."""

import gc
import linecache
import re
import sys
import traceback
import weakref

import numpy as np
import pytest

from gradlab.diagnose.source_locations import positions, quote_site
from gradlab.explore.markup import escape_html
from gradlab.explore.report import Report
from gradlab.explore.report.parts import WHOLE
from gradlab.notebook.extension import load_ipython_extension, unload_ipython_extension

NO_SCALAR = "and no scalar that it assigned has a gradient to follow"
HINT = "End the cell in a tensor that was computed from one with requires_grad=True, or write %%grad --of NAME."
NO_GRADIENT = (
    "has requires_grad=False: no tensor that it was computed from requires a gradient, "
    "or it was made under no_grad() or by detach()."
)
DETACHED = (
    "has requires_grad=False: its history was lost at cell line 2: d = x.detach(); detach() returns the values of a leaf "
    "(shape [3]) without their history. Fix: remove detach() on line 2 if you need the gradient."
)
LEAVES = "x = gl.tensor([1., 2., 3.], requires_grad=True)\nw = gl.tensor([[1., 2.], [3., 4.]], requires_grad=True)"


@pytest.fixture
def cell(shell):
    shell.ok(LEAVES)
    return shell


def grad(shell, name="x"):
    found = shell.ns[name].grad
    return None if found is None else found.numpy().tolist()


def the_report(ran):
    """Return the outputs of a report: the card, the picture and the code."""
    assert [sorted(bundle) for bundle in ran.outputs] == [
        ["text/html", "text/latex", "text/plain"],
        ["image/png", "text/html", "text/plain"],
    ]
    return ran


# -------------------------------------------------------------------------------------------------------------- endings
def test_ends_in_an_expression(cell):
    ran = the_report(cell.ok("%%grad\ny = x ** 2\ny.sum()"))
    assert ran.result.item() == 14 and cell.ns["_"] is ran.result
    assert grad(cell) == [2, 4, 6]
    assert ran.outputs[0]["text/plain"].startswith(
        "y.sum() = 14, with respect to x.\nbackward() was called for you. x.grad was set (--accumulate would add)"
    )


def test_ends_in_an_assignment(cell):
    ran = the_report(cell.ok("%%grad\nloss = (x ** 2).sum()"))
    assert ran.result is None and "Out[" not in ran.stdout
    assert grad(cell) == [2, 4, 6]
    assert "loss = 14, with respect to x." in ran.text


def test_ends_in_an_augmented_assignment(cell):
    ran = cell.ok("%%grad\nloss = x.sum()\nloss += (x ** 2).sum()")
    assert "loss = 20" in ran.text and grad(cell) == [3, 5, 7]


def test_ends_in_a_semicolon(cell):
    ran = the_report(cell.ok("%%grad\n(x ** 2).sum();"))
    assert ran.result is None and "Out[" not in ran.stdout
    assert grad(cell) == [2, 4, 6]


def test_ends_in_a_for_loop(cell):
    ran = cell.ok("%%grad\nfor i in range(3):\n    y = x * i")
    assert grad(cell) is None
    assert ran.text == (f"There was nothing to differentiate: the cell ends in a for loop, {NO_SCALAR}. {HINT}")


def test_names_restrict_the_leaves_made_in_a_loop(cell):
    cell.ok("%%grad --of total\ntotal = 0\nfor i in range(3):\n    total = total + (x * i).sum()")
    assert grad(cell) == [3, 3, 3]


def test_own_backward(cell):
    ran = cell.ok("%%grad -o r\nloss = (x ** 2).sum()\nloss.backward()")
    assert grad(cell) == [2, 4, 6], "no second backward was called"
    assert cell.ns["r"].backward_calls == 1
    assert "The cell called backward() itself, once. x.grad was set." in ran.text
    assert "loss = 14, with respect to x." in ran.text
    assert cell.ns["r"]["x"].gradient.norm == pytest.approx(np.linalg.norm([2, 4, 6]))


def test_own_backward_in_a_loop_reports_the_last_call(cell):
    ran = cell.ok("%%grad -o r\nfor k in range(1, 4):\n    x.grad = None\n    loss = (x ** k).sum()\n    loss.backward()")
    assert "itself, 3 times; this is the last call. x.grad was set." in ran.text
    assert cell.ns["r"].backward_calls == 3
    assert cell.ns["r"]["x"].gradient.norm == pytest.approx(np.linalg.norm([3, 12, 27]))


def test_own_backward_accumulates(cell):
    ran = cell.ok("%%grad -o r\nloss = (x ** 2).sum()\nloss.backward(retain_graph=True)\nloss.backward()")
    assert "itself, twice; this is the last call. x.grad was added to." in ran.text
    assert grad(cell) == [4, 8, 12]
    assert cell.ns["r"]["x"].gradient.norm == pytest.approx(2 * np.linalg.norm([2, 4, 6]))


def test_own_backward_row_by_row_with_zeroing(cell):
    ran = cell.ok("""%%grad -o r
x = gl.tensor([[1., 2., 3., 4.]], requires_grad=True)
z = 2 * x
for i in range(4):
    v = gl.zeros(1, 4)
    v[0, i] = 1
    z.backward(v, retain_graph=True)
    print(x.grad)
    x.grad.data.zero_()""")
    assert ran.stdout.splitlines()[-1] == "tensor([[0., 0., 0., 2.]])"
    assert cell.ns["r"]["x"].gradient.maximum == 2, "the gradient after the call, before it was zeroed"
    assert "z (1×4), weighted by v" in ran.text


def test_own_backward_with_inputs(cell):
    cell.ok("%%grad -o r\nloss = (x ** 2).sum() * w.sum()\nloss.backward(inputs=[w])")
    assert cell.ns["r"]["w"].gradient.maximum == 14
    assert grad(cell) is None


def test_own_backward_of_a_nameless_result(cell):
    ran = cell.ok("%%grad\nx.pow(3).sum().backward()")
    assert grad(cell) == [3, 12, 27]
    assert "x.pow(3).sum() = 36, with respect to x." in ran.text and len(ran.outputs) == 2


def test_own_backward_of_two_tensors(cell):
    ran = cell.ok("%%grad -o r\na, b = (x ** 2).sum(), w.sum()\ngl.autograd.backward([a, b])")
    assert [row.name for row in cell.ns["r"].rows] == ["x", "w"] and cell.ns["r"]["w"].gradient.norm == 2
    assert "It was called on 2 tensors together, of which this is the first." in ran.text


@pytest.mark.parametrize(
    ("body", "called", "gradient"),
    [
        ("loss = (x ** 2).sum()\nprint(loss.item())", "loss", [2, 4, 6]),
        ("a, b = (x ** 3).sum(), 1", "a", [3, 12, 27]),
        ("for i in range(3):\n    loss = x.sum() * i\n    print(i)", "loss", [2, 2, 2]),
        ("loss = x.sum()\nif True:\n    pass", "loss", [1, 1, 1]),
    ],
)
def test_a_cell_with_another_end_differentiates_the_last_scalar_that_it_assigned(cell, body, called, gradient):
    ran = cell.ok(f"%%grad\n{body}")
    assert grad(cell) == gradient and f"{called} is the last scalar that the cell assigned." in ran.text


def test_several_outputs_are_reported_on_together(cell):
    ran = cell.ok("%%grad\nx.sum(), w.sum(), x * x")
    assert grad(cell) == [3, 5, 7] and "x.sum() + w.sum() + (x * x).sum() = " in ran.text
    assert "%%grad --of NAME takes one" in ran.text


@pytest.mark.parametrize("line", ["%%grad --help\nx.sum()", "%%grad -h\nx.sum()", "%%grad -h", "%grad -h"])
def test_help_runs_nothing(cell, line):
    ran = cell.ok(line)
    assert "Run a cell and show its gradients" in ran.stdout and "--of NAME" in ran.stdout and grad(cell) is None


def test_ends_in_none(cell):
    ran = cell.ok("%%grad\ny = x * 2\nNone")
    assert ran.text == f"There was nothing to differentiate: the last expression is None. {HINT}" and grad(cell) is None


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("3", f"the last expression is an int, no tensor. {HINT}"),
        ("n = None", f"n is None. {HINT}"),
        ("n = 'text'", f"n is a str, no tensor. {HINT}"),
        ("k = gl.arange(3)\nk", "k is int64, and only floating point tensors have gradients."),
        ("d = x.detach()\nd", f"d {DETACHED}"),
        ("a, b = 2, 1", f"the cell ends in an assignment to something other than one name, {NO_SCALAR}. {HINT}"),
        ("if True:\n    x.sum()", f"the cell ends in an if statement. {HINT}"),
        ("# only a remark", f"there is no statement in the cell. {HINT}"),
    ],
)
def test_nothing_to_differentiate_is_reported_in_one_line(cell, body, why):
    ran = cell.ok(f"%%grad -o r\n{body}")
    assert ran.text == f"There was nothing to differentiate: {why}"
    assert cell.ns["r"] is None and grad(cell) is None
    if body == "3":
        assert ran.result == 3 and "Out[" in ran.stdout


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("1 / 0\ny = x * 2\ny.sum()", 2),
        ("y = (x * 2).sum()\n1 / 0\ny", 3),
        ("y = (x * 2).sum()\ny.backward()\n1 / 0", 4),
        ("y = (x * 2).sum()\ny * (1 / 0)", 3),
        ("def f():\n    return 1 / 0\nf()", 4),
    ],
)
def test_an_exception_makes_no_report(cell, body, line):
    ran = cell.run(f"%%grad -o r\n{body}")
    assert isinstance(ran.error, ZeroDivisionError) and ran.outputs == [] and "r" not in cell.ns
    assert f"line {line}" in ran.stdout or f"--> {line} " in ran.stdout
    assert "gradlab/notebook" not in ran.stdout, "the traceback is that of the cell"
    assert grad(cell) == ([2, 2, 2] if ".backward()" in body else None)
    the_report(cell.ok("%%grad\nx.sum()"))


def test_a_syntax_error_is_native(cell):
    ran = cell.run("%%grad\ny = (x *\ny.sum()")
    assert isinstance(ran.error, SyntaxError) and ran.outputs == []


def test_an_interrupt_makes_no_report(cell):
    ran = cell.run("%%grad -o r\ny = (x * 2).sum()\nraise KeyboardInterrupt\ny")
    assert isinstance(ran.error, KeyboardInterrupt) and ran.outputs == [] and grad(cell) is None and "r" not in cell.ns


def test_an_interrupt_during_the_backward_of_the_magic_restores_grad(cell):
    cell.ok("x.sum().backward()\ndef stop(g): raise KeyboardInterrupt\ny = x * w.sum()\nhandle = y.register_hook(stop)")
    ran = cell.run("%%grad -o r\ny.sum()")
    assert isinstance(ran.error, KeyboardInterrupt) and ran.outputs == [] and "r" not in cell.ns
    assert grad(cell) == [1, 1, 1] and grad(cell, "w") is None


def test_top_level_await(cell):
    ran = the_report(cell.ok("%%grad\nimport asyncio\nawait asyncio.sleep(0)\nasync def f(): return (x ** 2).sum()\nawait f()"))
    assert ran.result.item() == 14 and grad(cell) == [2, 4, 6]
    assert "await f() = 14" in ran.text


def test_a_cell_may_run_another(cell):
    ran = cell.ok("%%grad\nget_ipython().run_cell('%%grad --no-graph --dry\\nw.sum()')\nx.sum()")
    assert grad(cell) == [1, 1, 1] and grad(cell, "w") is None
    assert ran.text.index("w.sum() = 10, with respect to w") < ran.text.index("x.sum() = 6, with respect to x")
    ran = cell.ok("%%grad\nget_ipython().run_cell('%%grad -q\\nw.sum()')\nx.sum() * 2")
    assert grad(cell, "w") == [[1, 1], [1, 1]] and grad(cell) == [1, 1, 1], "the inner cell called backward"
    assert "The cell called backward() itself, once." in ran.text


# ------------------------------------------------------------------------------------------------ the differentiated value
def test_names_restrict(cell):
    ran = cell.ok("%%grad x\nloss = (x * w.sum()).sum()")
    assert grad(cell) == [10, 10, 10] and grad(cell, "w") is None
    assert "with respect to x." in ran.text and "loss.backward(inputs=[x])" in ran.text


def test_names_may_be_expressions(cell):
    cell.ok("params = [x, {'w 1': w}]\nclass M: pass\nmodel = M()\nmodel.fc = M()\nmodel.fc.weight = w")
    ran = cell.ok("%%grad params[0] params[1]['w 1']\nloss = (x * w.sum()).sum()")
    assert grad(cell) == [10, 10, 10] and grad(cell, "w") == [[6, 6], [6, 6]]
    assert "params[0] and params[1]['w 1']" in ran.text
    cell.ok("%%grad model.fc.weight -o r\nloss = (x * w.sum()).sum()")
    assert [row.name for row in cell.ns["r"].rows] == ["model.fc.weight"]


def test_non_leaves_are_shown_and_not_written(cell):
    ran = cell.ok("%%grad h x -o r\nh = x * 2\nloss = (h ** 2).sum() + x.sum()")
    r = cell.ns["r"]
    assert r["h"].gradient.norm == pytest.approx(np.linalg.norm([4, 8, 12])) and not r["h"].is_leaf
    assert grad(cell) == [9, 17, 25] and grad(cell, "w") is None
    with pytest.warns(UserWarning, match="not a leaf"):
        assert cell.ns["h"].grad is None
    assert "The gradient of h is only shown" in ran.text


def test_only_a_non_leaf(cell):
    cell.ok("%%grad h -o r\nh = x * 2\nloss = (h ** 2).sum()")
    assert grad(cell) is None and cell.ns["r"]["h"].gradient.maximum == 12


def test_non_leaf_off_the_path_of_the_named_leaf(cell):
    cell.ok("%%grad w h -o r\nh = x * 2\nloss = h.sum() + w.sum()")
    assert cell.ns["r"]["h"].gradient.norm == pytest.approx(3**0.5) and grad(cell) is None and grad(cell, "w") == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    ("options", "body", "expected"),
    [
        ("-v [0.1, 1.0, 0.0001]", "y = x * 2", [0.2, 2.0, 0.0002]),
        ("-v gl.tensor([0., 2., 8.]) * 2 - 1", "x * 1", [-1, 3, 15]),
        ("x -v v", "v = gl.ones(3)\ny = x ** 2", [2, 4, 6]),
        ("-v (1, 2, 3) --no-graph", "x * 1", [1, 2, 3]),
        ("-v 3", "x.sum()", [3, 3, 3]),
    ],
)
def test_weights(cell, options, body, expected):
    ran = cell.ok(f"%%grad {options}\n{body}")
    assert grad(cell) == pytest.approx(expected)
    assert "weighted by" in ran.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-v [1, 2]", "Mismatch in shape: grad_output[0] has a shape of"),
        ("-v 'abc'", "the weights must be numbers"),
        ("-v nix", "nix: NameError: name 'nix' is not defined"),
        ("nix", "nix: NameError: name 'nix' is not defined"),
        ("len", "len is builtin_function_or_method, not a tensor."),
        ("--of nix", "nix: NameError: name 'nix' is not defined"),
    ],
)
def test_errors_fail_the_cell_and_keep_grad(cell, options, message):
    cell.ok("x.sum().backward()")
    ran = cell.run(f"%%grad {options} -o r\ny = x * 2")
    assert not ran.success and message in str(ran.error) and message in ran.stdout + ran.stderr
    assert ran.outputs == [] and grad(cell) == [1, 1, 1] and "r" not in cell.ns
    assert "magics.py" not in ran.stdout


def test_small_output_gets_its_jacobian(cell):
    cell.ok("x.sum().backward()")
    ran = cell.ok("%%grad -o r\nz = x ** 2")
    assert grad(cell) == [1, 1, 1], ".grad is unchanged"
    assert "so this is its Jacobian; .grad was left alone" in ran.text
    assert [sorted(bundle) for bundle in ran.outputs][1:3] == [["image/png", "text/html", "text/plain"]] * 2
    exec(cell.ns["r"].by_hand, cell.ns)
    assert cell.ns["J"].numpy().tolist() == [[2, 0, 0], [0, 4, 0], [0, 0, 6]]
    assert "z[2]     0     0     6" in ran.outputs[1]["text/plain"]


def test_large_output_gets_pytorchs_error_with_advice(cell):
    ran = cell.run("%%grad\nbig = x[0] * gl.ones(10, 10)")
    assert isinstance(ran.error, RuntimeError) and ran.outputs == []
    assert str(ran.error).startswith("grad can be implicitly created only for scalar outputs")
    assert "10×10" in str(ran.error) and "%%grad -v gl.ones_like(big)" in str(ran.error) and "up to 64" in str(ran.error)
    cell.ok("%%grad -v gl.ones_like(big)\nbig = x[0] * gl.ones(10, 10)")
    assert grad(cell) == [100, 0, 0]
    cell.ok("%config GradMagics.jacobian_rows = 2")
    assert not cell.run("%%grad\nz = x ** 2").success


def test_jacobian_on_request(cell):
    ran = cell.ok("%%grad --jacobian\nloss = (x ** 2).sum()")
    assert grad(cell) == [2, 4, 6]
    assert "Jacobian of loss" in ran.text and "J = gl.stack" in ran.text


# -------------------------------------------------------------------------------------------------------- changes of .grad
def test_a_second_run_does_not_accumulate_and_keeps_the_old_gradient(cell):
    cell.ok("%%grad\nloss = (x ** 2).sum()")
    ran = cell.ok("%%grad -o r\nloss = (x ** 3).sum()")
    assert grad(cell) == [3, 12, 27]
    assert f"x.grad (norm {np.linalg.norm([2, 4, 6]):.4g}) was replaced" in ran.text
    assert cell.ns["r"].previous["x"].tolist() == [2, 4, 6]
    assert [note.text[0].text for note in cell.ns["r"]["x"].notes] == ["replaced"]


def test_accumulate_adds(cell):
    cell.ok("%%grad\nloss = (x ** 2).sum()")
    ran = cell.ok("%%grad --accumulate -o r\nloss = (x ** 2).sum()")
    assert grad(cell) == [4, 8, 12] and "was added to" in ran.text and cell.ns["r"].previous == {}
    cell.ok("%config GradMagics.accumulate = True")
    cell.ok("%%grad\nloss = (x ** 2).sum()")
    assert grad(cell) == [6, 12, 18]


def test_dry_keeps_grad(cell):
    cell.ok("x.sum().backward()")
    ran = cell.ok("%%grad --dry -o r\nloss = (x ** 2).sum()")
    assert grad(cell) == [1, 1, 1] and ".grad was left alone (--dry)" in ran.text
    assert cell.ns["r"]["x"].gradient.maximum == 6


def test_the_graph_is_kept_so_a_later_backward_adds(cell):
    cell.ok("%%grad\nloss = (x ** 2).sum()")
    cell.ok("loss.backward()")
    assert grad(cell) == [4, 8, 12]


@pytest.mark.parametrize("options", ["", "x", "--dry", "--accumulate", "h x", "h", "--no-graph"])
def test_hooks_run_once(cell, options):
    cell.ok("ran = []\nx.register_hook(lambda g: ran.append('leaf'))")
    cell.ok(f"%%grad {options}\nh = x * 2\nh.register_hook(lambda g: ran.append('h'))\nloss = (h ** 2).sum()")
    assert cell.ns["ran"] == (["h"] if options == "h" else ["h", "leaf"])


@pytest.mark.parametrize("options", ["", "--accumulate", "x h"])
def test_a_hook_that_raises_leaves_grad_as_it_was(cell, options):
    cell.ok("""x.sum().backward(); w.sum().backward()
def wrong(g): raise ValueError('from the hook')
h = x * 2
h.register_hook(wrong)
loss = (w * w).sum() + h.sum()""")
    ran = cell.run(f"%%grad {options}\nloss * 1")
    assert isinstance(ran.error, ValueError) and ran.outputs == [] and "wrong(g)" in ran.stdout
    assert grad(cell) == [1, 1, 1] and grad(cell, "w") == [[1, 1], [1, 1]]


def test_auto_backward_off(cell):
    cell.ok("%config GradMagics.auto_backward = False")
    ran = cell.ok("%%grad\nloss = (x ** 2).sum()")
    assert grad(cell) is None
    assert ran.text == (
        "This cell called no backward(), and none was called for you (GradMagics.auto_backward is False): there is no "
        "gradient to show."
    )
    ran = cell.ok("%%grad\nloss = (x ** 2).sum()\nloss.backward()")
    assert grad(cell) == [2, 4, 6] and "The cell called backward() itself, once." in ran.text


# ---------------------------------------------------------------------------------------------------------------- rows
def test_warnings_are_only_certain_facts(cell):
    cell.ok("""%%grad -o r
unused = gl.ones(2, requires_grad=True)
z = gl.zeros(2, requires_grad=True)
x.sum() * 0 + (z ** 2).sum()""")
    notes = {row.name: [note.text[0].text for note in row.notes] for row in cell.ns["r"].rows}
    assert notes["x"] == ["every element of the gradient is exactly 0"]
    assert notes["z"] == ["every element of the gradient is exactly 0"]
    assert notes["unused"] == ["not in the graph of the result, so the gradient is None"]
    ran = cell.ok("%%grad x w k -o r\nk = gl.arange(3)\nf = gl.ones(1)\n((x - 1) ** 0.5 / 0 * f).sum()")
    assert "not in the graph" in ran.text and "no gradient: int64 is not a floating-point dtype" in ran.text
    assert "the gradient has " in ran.text and "infinite" in ran.text


# ------------------------------------------------------------------------------------------------- options, help, config
def test_a_wrong_option_fails_in_one_line_before_the_cell_runs(cell):
    ran = cell.run("%%grad --acumulate\nprint('ran')\nmade = 1")
    assert not ran.success and "made" not in cell.ns and ran.stdout == "" and ran.outputs == []
    assert ran.stderr.strip().splitlines() == [ran.stderr.strip()]
    assert ran.stderr.startswith("UsageError: %%grad has no option --acumulate. Did you mean --accumulate?")


def test_quiet_and_out(cell):
    ran = cell.ok("%%grad -q -o r\nloss = (x ** 2).sum()")
    assert ran.outputs == [] and ran.stdout == "" and isinstance(cell.ns["r"], Report) and grad(cell) == [2, 4, 6]


def test_no_graph(cell):
    assert len(cell.ok("%%grad --no-graph\nloss = (x ** 2).sum()").outputs) == 2
    cell.ok("%config GradMagics.graph = False")
    assert len(cell.ok("%%grad\nloss = (x ** 2).sum()").outputs) == 2
    assert len(cell.ok("%%grad --graph\nloss = (x ** 2).sum()").outputs) == 2


def test_help_documents(cell):
    for magic in ("%%grad", "%grad"):
        text = cell.ip.object_inspect(magic)["docstring"]
        for option in (
            "-v, --weights EXPR",
            "--of NAME",
            "--accumulate",
            "--dry",
            "--no-graph",
            "--jacobian",
            "-o, --out NAME",
            "--wrt NAME,…",
        ):
            assert option in text
    assert cell.run("%%grad?").success


@pytest.mark.slow
def test_options_complete_with_tab(cell):
    assert "--accumulate" in cell.ip.complete("--acc", "%%grad --acc")[1]
    assert "--wrt" in cell.ip.complete("--w", "%grad --w")[1]
    assert not any(found.startswith("--") for found in cell.ip.complete("los", "%%grad los")[1])


@pytest.mark.parametrize("text", ["%%time\n%%grad\n", "%%grad\n%%time\n"])
def test_time_above_and_below(cell, text):
    ran = cell.ok(f"{text}loss = (x ** 2).sum()")
    assert "Wall time" in ran.stdout and "loss = 14" in ran.text and grad(cell) == [2, 4, 6]
    ran = cell.ok(f"{text}(x ** 3).sum()")
    assert ran.result.item() == 36 and grad(cell) == [3, 12, 27]
    ran = cell.run(f"{text}y = x * 2\n1 / 0")
    assert isinstance(ran.error, ZeroDivisionError) or "ZeroDivisionError" in ran.stdout
    assert ran.outputs == []


@pytest.mark.parametrize("magic", ["%%capture", "%%bash", "%%html", "%%writefile f"])
def test_above_a_magic_that_returns_no_value(cell, magic):
    ran = cell.run(f"%%grad\n{magic}\nx.sum()")
    assert not ran.success and ran.outputs == [] and grad(cell) is None
    assert ran.stderr.startswith(
        f"UsageError: %%grad cannot see the value of a {magic.split()[0]} cell: put {magic.split()[0]} on the line above"
    )


def test_capture_above_captures_the_report(cell):
    ran = cell.ok("%%capture caught\n%%grad\nx.sum()")
    assert ran.outputs == [] and grad(cell) == [1, 1, 1]
    assert any("with respect to" in output.data.get("text/plain", "") for output in cell.ns["caught"].outputs)


def test_without_a_cell(cell):
    assert not cell.run("%%grad").success
    assert not cell.run("get_ipython().run_cell_magic('grad', '', 'x.sum()')").success


@pytest.mark.e2e
def test_shell_syntax_and_magics_inside_still_work(cell):
    ran = cell.ok("%%grad -v [1.0, 2.0, 3.0]\n!echo {x.ndim}\n%pwd\ns = '{x}'\nx * len(s)")
    assert ran.stdout.startswith("1") and grad(cell) == [3, 6, 9]


def test_line_magic(cell):
    ran = cell.ok("%grad --wrt x --no-graph -o r (x ** 2).sum() * w.sum()")
    assert grad(cell) is None and grad(cell, "w") is None
    assert [row.name for row in cell.ns["r"].rows] == ["x"] and cell.ns["r"]["x"].gradient.maximum == 60
    assert "No .grad was written." in ran.text and len(ran.outputs) == 2
    assert cell.ok("%grad -v [1,0,0] x * 2").text.startswith("x * 2 (3), weighted by [1,0,0]".replace(",0", ", 0"))
    assert cell.ok("%grad x.sum();").outputs == []
    assert not cell.run("%grad --nix x").success and not cell.run("%grad x * 2 +").success
    assert "the expression is an int, no tensor" in cell.ok("%grad 3").text
    assert isinstance(cell.run("%grad x / nix").error, NameError)
    assert cell.ok("def f():\n    local = x * 3\n    get_ipython().run_line_magic('grad', '--no-graph local.sum()')\nf()").success


def sources_of_lines():
    return [name for name in linecache.cache if name.startswith("<%grad")]


def test_the_sources_of_lines_are_not_kept_when_they_are_not_needed(cell):
    before = set(sources_of_lines())  # IPython keeps the source of lines whose errors it has shown
    for i in range(30):
        cell.ok(f"%grad -q --no-graph (x * {i}).sum()")
    gc.collect()
    cell.ok("%grad -q --no-graph x.sum()")
    assert len(set(sources_of_lines()) - before) <= 3  # sources of the last line and of the last lookup of positions


@pytest.mark.parametrize("line", ["[kept.append(x.exp()), x.sum()][1]", "(lambda x: [kept.append(x.exp()), x.sum()][1])(x)"])
def test_the_source_of_a_line_is_found_as_long_as_its_result_exists(cell, line):
    cell.ok("kept = []")
    for _ in range(2):  # the second time with the same name
        cell.ok(f"%grad -q --no-graph {line}")
        for i in range(10):
            cell.ok(f"%grad -q --no-graph (x * {i}).sum()")
        gc.collect()
        linecache.checkcache()
        cell.ok("%grad -q --no-graph x.sum()")
    assert [quote_site(one.node.site)[:18] for one in cell.ns["kept"]] == ["%grad, `x.exp()` i"] * 2
    cell.ns["kept"].clear()
    positions.code = None  # it keeps the code of the last lookup
    gc.collect()
    cell.ok("%grad -q --no-graph x.sum()")
    assert not any("kept" in name for name in sources_of_lines())


def test_the_source_of_a_line_that_failed_is_found_by_the_doctor(cell):
    assert isinstance(cell.run("%grad (x.exp() @ w[:2]).sum()").error, RuntimeError)
    gc.collect()
    cell.run("%grad -q --no-graph x.sum()")
    frames = traceback.extract_tb(sys.last_value.__traceback__)
    assert any("@ w[:2]" in frame.line for frame in frames if frame.filename.startswith("<%grad"))


# ----------------------------------------------------------------------------------------------------- load and unload
def test_loading_twice_is_the_same_as_once(cell):
    before = cell.traces()
    load_ipython_extension(cell.ip)
    assert cell.traces() == before
    assert len(cell.ok("%%grad\nx.sum()").outputs) == 2


def test_unload_and_reload(cell):
    loaded = cell.traces()
    unload_ipython_extension(cell.ip)
    unload_ipython_extension(cell.ip)
    assert not cell.run("%%grad\nx.sum()").success
    load_ipython_extension(cell.ip)
    assert {**cell.traces(), "input": 0, "ast": 0, "events": 0} == {**loaded, "input": 0, "ast": 0, "events": 0}
    the_report(cell.ok("%%grad\nx.sum()"))


def test_through_load_ext(cell):
    unload_ipython_extension(cell.ip)
    assert cell.ok("%load_ext gradlab").stderr == ""
    assert len(cell.ok("%%grad\nx.sum()").outputs) == 2
    cell.ok("%reload_ext gradlab")
    assert len(cell.ok("%%grad\nx.sum()").outputs) == 2
    cell.ok("%unload_ext gradlab")
    assert not cell.run("%%grad\nx.sum()").success
    cell.ok("%load_ext gradlab")
    assert len(cell.ok("%%grad\nx.sum()").outputs) == 2


# ------------------------------------------------------------------------------------------------------------- by hand
def fresh(cell):
    """Restore the state that every run by hand starts from."""
    cell.ok(LEAVES + "\nx.grad = gl.tensor([5., 5., 5.])")


@pytest.mark.parametrize("options", ["", "x", "--accumulate", "x w", "w", "--of loss"])
@pytest.mark.parametrize(
    "last", ["loss = (x ** 2).sum() * w.sum()", "(x ** 2).sum() * w.sum()", "loss = x.sum() ** 2\nloss * w[0, 1]"]
)
def test_by_hand_does_the_same_to_grad(cell, options, last):
    if "--of" in options and "loss =" not in last:
        last = f"loss = {last}"  # the name must exist
    fresh(cell)
    cell.ok(f"%%grad {options} -q -o r\n{last}")
    shown = {name: grad(cell, name) for name in "xw"}
    code = cell.ns["r"].by_hand
    fresh(cell)
    if "loss" in last:
        cell.ok(last.splitlines()[0])
    cell.ok(code)
    assert {name: grad(cell, name) for name in "xw"} == shown


@pytest.mark.parametrize("options", ["--dry", "h", "h x --dry"])
@pytest.mark.parametrize("weights", ["", "-v [1, 2, 3]", "-v gl.ones(3) * 2"])
def test_by_hand_gives_the_same_gradients(cell, options, weights):
    body = "h = x * 2\nout = h ** 2" + ("" if weights else "\nout = out.sum()")
    cell.ok(f"%%grad {options} {weights} -q -o r\n{body}")
    cell.ok(cell.ns["r"].by_hand)
    for row, gradient in zip(cell.ns["r"].rows, cell.ns["gradients"], strict=True):
        assert row.gradient.norm == pytest.approx(float(np.linalg.norm(gradient.numpy())), rel=1e-6)
        assert row.gradient.maximum == float(gradient.numpy().max())


def test_by_hand_of_weights(cell):
    fresh(cell)
    cell.ok("%%grad -v 1, 2, 3 -q -o r\ny = x ** 2")
    shown = grad(cell)
    fresh(cell)
    cell.ok("y = x ** 2\n" + cell.ns["r"].by_hand)
    assert grad(cell) == shown == [2, 8, 18]


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ("opt.zero_grad()", "x.grad and w.grad are None now: cleared since, and shown as computed by backward."),
        ("opt.zero_grad(set_to_none=False)", "x.grad and w.grad are 0 now: cleared since"),
        ("w.grad = None", "w.grad is None now: cleared since"),
        ("w.grad = None; x.grad.zero_()", "w.grad is None and x.grad is 0 now: cleared since"),
        ("opt.step()", ""),
    ],
)
def test_gradients_that_were_cleared_after_backward(cell, after, said):
    cell.ok("opt = gl.optim.SGD([x, w], lr=0.1)")
    cell.ok(f"%%grad -o r\nopt.zero_grad()\nloss = (x ** 2).sum() * w.sum()\nloss.backward()\n{after}")
    sentence = cell.ns["r"].sentence
    assert said in sentence if said else "cleared" not in sentence
    assert cell.ns["r"]["x"].gradient.norm > 0


# ------------------------------------------------------------------------------------------------------------- references
def test_tensors_are_freed_after_the_cell(cell):
    cell.ok("%%grad -o r\nloss = (x ** 2).sum() * w.sum()\nz = loss * 1")
    node, tensor = weakref.ref(cell.ns["loss"].grad_fn), weakref.ref(cell.ns["loss"])
    assert cell.ns["r"].graph().nodes
    cell.ns["x"].grad = cell.ns["w"].grad = None
    cell.ok("del loss, z")
    gc.collect()
    assert node() is None and tensor() is None
    assert {node.name for node in cell.ns["r"].graph().nodes} >= {"x", "w", "loss"}, "the report has its own trace"


def test_own_backward_keeps_nothing_alive(cell):
    cell.ok("%%grad -o r\nloss = (x ** 2).sum()\nloss.backward(retain_graph=True)")
    node = weakref.ref(cell.ns["loss"].grad_fn)
    cell.ok("del loss")
    gc.collect()
    assert node() is None


def test_the_code_for_the_whole_text_of_a_graph_works_as_printed(shell):
    layers = "*(layer for i in range(30) for layer in (gl.nn.Linear(3 + i, 4 + i), gl.nn.Tanh()))"
    shell.ok(f"import gradlab as gl\nmodel = gl.nn.Sequential({layers})\nx = gl.ones(2, 3)")
    cell = "loss = model(x).sum()"
    html = "".join(data.get("text/html", "") for data in shell.ok(f"%%grad\n{cell}").outputs)
    folded = re.search(r"<pre[^>]*>([^<]*… and \d+ more lines)\n", html)[1]
    assert f"{folded}\n{escape_html(WHOLE)}</pre>" in html
    magic, code = re.fullmatch(r"\(The whole text: (%%grad -o report) above the cell, then (print\(.*\))\.\)", WHOLE).groups()
    shell.ok(f"{magic}\n{cell}")
    printed = shell.ok(code).stdout
    assert len(printed) > len(folded) and "model[58].weight" in printed and "more line" not in printed
