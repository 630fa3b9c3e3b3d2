"""Follow advice about graphs: change the program literally as the message says, and run it again.

The namespace has the user's variables and the library under the user's name, and nothing more.
"""

from __future__ import annotations

import linecache
import re
import textwrap
import warnings

import numpy as np
import pytest

import gradlab as gl

NAMES = ["gl", "gradlab", "torch", "mine"]

# The program (X is the library), the name of the leaf, and its gradient, computed by hand.
PROGRAMS = {
    "a product that is not a scalar": (
        """
        x = X.tensor([1., 2., 3.], requires_grad=True)
        y = X.tensor([4., 5., 6.])
        (x * y).backward()
        """,
        "x",
        [4, 5, 6],
    ),
    "a sum that is not a scalar": (
        """
        x = X.tensor([1., 2., 3.], requires_grad=True)
        (x + x ** 2).backward()
        """,
        "x",
        [3, 5, 7],
    ),
    "a sign": (
        """
        x = X.tensor([1., 2., 3.], requires_grad=True)
        (-x).backward()
        """,
        "x",
        [-1, -1, -1],
    ),
    "a name that is not a scalar": (
        """
        x = X.tensor([1., 2., 3.], requires_grad=True)
        y = x ** 2
        y.backward()
        """,
        "x",
        [2, 4, 6],
    ),
    "a conditional expression": (
        """
        x = X.tensor([1., 2., 3.], requires_grad=True)
        (x * 2 if len(x) else x).backward()
        """,
        "x",
        [2, 2, 2],
    ),
    "weights of another shape": (
        """
        x = X.tensor([1., 2., 3.], requires_grad=True)
        (x * x).backward(X.ones(2))
        """,
        "x",
        [2, 4, 6],
    ),
    "an output written to": (
        """
        x = X.zeros(3, requires_grad=True)
        y = x.exp()
        y *= x + 1
        y.sum().backward()
        """,
        "x",
        [2, 2, 2],
    ),
    "an attribute written to": (
        """
        x = X.zeros(3, requires_grad=True)
        class Model: pass
        model = Model()
        model.h = x.exp()
        model.h -= 1 if len(x) else 2
        model.h.sum().backward()
        """,
        "x",
        [1, 1, 1],
    ),
    "an input written to by a method": (
        """
        x = X.ones(3, requires_grad=True)
        w = x * 1
        loss = (w * w).sum()
        w.mul_(2)
        loss.backward()
        """,
        "x",
        [2, 2, 2],
    ),
    "an element written to": (
        """
        x = X.zeros(3, requires_grad=True)
        y = x.sigmoid()
        y[0] = 0.
        y.sum().backward()
        """,
        "x",
        [0, 0.25, 0.25],
    ),
    "backward twice": (
        """
        x = X.zeros(3, requires_grad=True)
        loss = x.exp().sum()
        loss.backward()
        loss.backward()
        """,
        "x",
        [2, 2, 2],
    ),
    "grad twice": (
        """
        x = X.zeros(3, requires_grad=True)
        loss = x.exp().sum()
        g, = X.autograd.grad(loss, [x])
        loss.backward()
        """,
        "x",
        [1, 1, 1],
    ),
    "a leaf updated with history": (
        """
        w = X.ones(3, requires_grad=True)
        (w * w).sum().backward()
        w -= 0.5 * w.grad
        """,
        "w",
        [2, 2, 2],
    ),
    "an element of a leaf": (
        """
        w = X.ones(3, requires_grad=True)
        w[0] = 1.
        (w * w).sum().backward()
        """,
        "w",
        [2, 2, 2],
    ),
    "requires_grad forgotten": (
        """
        w = X.ones(3)
        loss = (w * 2).sum()
        loss.backward()
        """,
        "w",
        [2, 2, 2],
    ),
    "a frozen model": (
        """
        model = X.nn.Linear(2, 1)
        model.requires_grad_(False)
        inputs = X.ones(3, 2)
        loss = model(inputs).sum()
        loss.backward()
        w = model.weight
        """,
        "w",
        [[3, 3]],
    ),
    "a frozen model of a model": (
        """
        class Trainer: pass
        self = Trainer()
        self.net = X.nn.Sequential(X.nn.Linear(2, 1))
        for p in self.net.parameters(): p.requires_grad = False
        inputs = X.ones(3, 2)
        loss = (self.net(inputs) - X.ones(3, 1)).sum()
        loss.backward()
        w = self.net[0].weight
        """,
        "w",
        [[3, 3]],
    ),
    "detach between x and the loss": (
        """
        x = X.zeros(3, requires_grad=True)
        h = x.exp().detach()
        loss = (h * 2).sum()
        loss.backward()
        """,
        "x",
        [2, 2, 2],
    ),
    "data between x and the loss": (
        """
        x = X.ones(3, requires_grad=True)
        loss = (x.data ** 2).sum()
        loss.backward()
        """,
        "x",
        [2, 2, 2],
    ),
    "a copy by tensor()": (
        """
        x = X.ones(3, requires_grad=True)
        loss = X.tensor(x).sum()
        loss.backward()
        """,
        "x",
        [1, 1, 1],
    ),
    "a hidden state carried over": (
        """
        x = X.zeros(3, requires_grad=True)
        h = X.zeros(3)
        for step in range(3):
            h = (h + x).tanh()
            loss = h.sum()
            loss.backward()
        """,
        "x",
        [3, 3, 3],
    ),
}
UPDATES = {
    "a leaf that a step rebinds": "w = w - 0.25 * w.grad",
    "a step by a factor": "w = w * (1 - 0.25 * w.grad / w.detach())",
    "a step by a function": "w = X.sub(w, 0.25 * w.grad)",
}


def compile_program(source, file):
    """Compile a program as a file whose lines can be shown."""
    file = file.replace(" ", "_")
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    return compile(source, file, "exec")


def run(source, name, file):
    """Run a program in a new namespace, with a name for the library. Return the namespace, the lines and the message."""
    space, lines = {name: gl}, re.sub(r"\bX\.", f"{name}.", source)
    with warnings.catch_warnings(record=True) as caught, gl.record_sites():
        warnings.simplefilter("always")
        try:
            exec(compile_program(lines, file), space)
        except RuntimeError as error:
            return space, lines, str(error)
        except TypeError:  # None times a number, after a warning
            assert caught
    return space, lines, "".join(str(one.message) for one in caught)


def fix_of(message):
    """Return the advice of a message on one line."""
    found = re.search(r"\n  fix +(.*(?:\n {11}.*)*)", message)
    assert found, message
    return " ".join(found[1].split())


def follow_advice(source, message):
    """Return the programs changed as advised, one for each alternative."""
    lines, fix = source.split("\n"), fix_of(message)
    at = re.search(r"\b(?:on|before) line (\d+)", fix)
    failed = re.search(r"\n  at +\S+ line (\d+)", message)
    number = int((at or failed or "00")[1]) - 1

    def with_line(new):
        indent = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
        return "\n".join([*lines[:number], *(indent + one for one in new), *lines[number + 1 :]])

    code, line = re.findall(r"`([^`]+)`", fix), lines[number].strip()
    if "instead of" in fix:
        assert line == code[1]
        return [with_line([code[0]])]
    if fix.startswith("add"):
        return [with_line([code[0], line])]
    if "has the right shape" in fix:
        return [with_line([re.sub(r"backward\(.*\)$", f"backward({code[0]})", line)])]
    if fix.startswith("write") and "retain_graph" in fix:
        assert ast_call(code[0]) in line
        return [with_line([line.replace(line[line.index(ast_call(code[0])) :], code[0])])]
    if fix.startswith("detach what one step passes"):
        return [source.rstrip("\n") + "\n    " + re.search(r"\((h = h\.detach\(\))\)", fix)[1] + "\n"]
    if "use x.clone() or x itself" in fix:
        return [with_line([re.sub(r"\w+\.tensor\(x\)", new, line)]) for new in ("x.clone()", "x")]
    if "remove" in fix:
        return [with_line([line.replace("." + re.search(r"remove \.?(\S+)", fix)[1], "")])]
    if "requires_grad_()" in fix:
        calls = [one for one in code if one.endswith("requires_grad_()")] or re.findall(r"call (\S+\.requires_grad_\(\))", fix)
        return [with_line([*calls, line])]
    return [with_line([one]) for one in code]


def ast_call(code):
    """Return `loss.backward(` for `loss.backward(retain_graph=True)`."""
    return code[: code.index("retain_graph")].rstrip(", ")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_advice_as_printed_gives_the_gradient(program, name):
    source, leaf, expected = PROGRAMS[program]
    source = textwrap.dedent(source).lstrip("\n")
    _, lines, message = run(source, name, f"advice {program} {name}.py")
    changed = follow_advice(lines, message)
    assert changed
    for k, one in enumerate(changed):
        space, _, said = run(one, name, f"advice {program} {name} {k}.py")
        assert said == "", (one, said)
        np.testing.assert_allclose(space[leaf].grad.numpy(), expected, err_msg=one)


def program_with_steps(update, separately=False):
    """Return a program with three steps, each of which rebinds a leaf. Its gradient is read in the same line, or in another."""
    return (
        "w = X.tensor([1.], requires_grad=True)\nfor step in range(3):\n    loss = (w * w).sum()\n"
        "    if w.is_leaf: w.grad = None\n    loss.backward()\n" + "    seen = w.grad\n" * separately + f"    {UPDATES[update]}\n"
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("where", ["in one line", "separately"])
def test_a_leaf_that_a_step_rebinds_is_updated_in_place(update, name, where):
    """Minimise w² from 1 with step 1/4: w ← w − w/2. With `retain_grad()` the gradient would include all previous steps."""
    source = program_with_steps(update, separately=where == "separately")
    _, lines, message = run(source, name, f"step {update} {name} {where}.py")
    assert message.startswith("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed.")
    assert "call `w.retain_grad()`" not in message
    (changed,) = follow_advice(lines, message)
    space, _, said = run(changed, name, f"step again {update} {name} {where}.py")
    assert said == ""
    np.testing.assert_allclose(space["w"].detach().numpy(), [0.125])
    assert space["w"].is_leaf


def test_a_round_trip_through_numpy_is_not_corrected_by_requires_grad():
    for way in ("x.detach().numpy() * 2", "(x * x).tolist()", "[v.item() for v in x * x]"):
        source = f"x = X.ones(3, requires_grad=True)\narray = {way}\nother = array\ns = X.tensor(other)\n"
        _, _, message = run(f"{source}loss = s.sum()\nloss.backward()\n", "gl", f"trip {way}.py")
        assert "s.requires_grad_()" not in message, message
        assert "line 2" in message


def test_a_name_for_the_library_is_found_where_it_is_used():
    space = {}
    exec(compile_program("def inside(lib):\n    y = lib.ones(2, requires_grad=True) * 2\n    y.backward()\n", "inside.py"), space)
    with pytest.raises(RuntimeError, match=r"or `y\.backward\(lib\.ones_like\(y\)\)`"):
        space["inside"](gl)


def test_without_a_name_for_the_library_none_is_needed():
    lines = "y = x * 2\ny.backward()\n"
    x = gl.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError) as caught:
        exec(compile_program(lines, "no name.py"), {"x": x})
    changed = follow_advice(lines, str(caught.value))
    assert len(changed) == 2 and "gradlab" not in "".join(changed)
    for one in changed:
        x.grad = None
        exec(one, {"x": x})
        assert x.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("update", UPDATES.values())
def test_the_step_is_found_where_lines_were_not_recorded(update):
    source = (
        "w = gl.tensor([1.], requires_grad=True)\nw = w * 1\n(w * w).sum().backward()\nseen = w.grad\n"
        f"if seen is not None:\n    {update}\n"
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile_program(source.replace("X.", "gl."), f"unrecorded {update}.py"), {"gl": gl})
    assert "retain_grad()` before" not in str(caught[0].message) and "`with gl.no_grad(): w" in str(caught[0].message)


def test_a_name_that_is_rebound_otherwise_may_retain_its_gradient():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(
            compile_program("w = gl.ones(3, requires_grad=True)\nw = w * 2\nw.sum().backward()\nw.grad\nv = w\n", "else.py"),
            {"gl": gl},
        )
    assert "call `w.retain_grad()` before backward()" in str(caught[0].message)
