"""Test that errors about gradients name the operation, the line and the shortest fix, for typical mistakes of beginners."""

from __future__ import annotations

import contextlib
import linecache
import textwrap
import warnings

import pytest

import gradlab as gl


def lesson(source, name="lesson.py"):
    """Compile source as a separate file, so that its lines count from 1."""
    source = textwrap.dedent(source).strip() + "\n"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    return compile(source, name, "exec")


def message_of(source, library=gl, recorded=True):
    with gl.record_sites() if recorded else contextlib.nullcontext(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as raised:  # noqa: PT011  (the test looks at the message)
            exec(lesson(source), {"gl": library, "x": library.ones(3, requires_grad=True)})
    return str(raised.value)


def facts(message):
    """Return the entries below the first paragraph as {label: text}, unwrapped. The last entry of a label counts."""
    entries = []
    for line in message.split("\n")[1:]:
        if line[2] != " ":
            entries.append(line.strip())
        else:
            entries[-1] += " " + line.strip()
    return {label: text.strip() for label, _, text in (entry.partition(" ") for entry in entries)}


MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation: "


def modified_message(what, version, expected):
    return f"{MODIFIED}[gradlab.FloatTensor {what} is at version {version}; expected version {expected} instead. Hint: "


TWICE = "Trying to backward through the graph a second time "
NO_GRAPH = "element 0 of tensors does not require grad and does not have a grad_fn"
UNUSED = "The differentiated Tensor at index 0 appears to not have been used in the graph. "

# {mistake: (program, beginning of PyTorch's message, entries below it)}
MISTAKES = {
    "an output written to": (
        """
        y = x.exp()
        y += 1
        y.sum().backward()
        """,
        modified_message("[3]], which is output 0 of Exp,", 1, 0),
        {
            "saved": "lesson.py line 1: `y = x.exp()` (its result, at version 0)",
            "modified": "lesson.py line 2: `y += 1` (`+=`, to version 1)",
            "fix": "write `y = y + 1` instead of `y += 1` on line 2",
        },
    ),
    "an input written to by a method, twice": (
        """
        w = x * 1
        loss = (w * w).sum() + 1
        w.mul_(2)
        w.add_(gl.ones(3), alpha=2)
        loss.backward()
        """,
        modified_message("[3]], which is output 0 of Add,", 2, 0),
        {
            "saved": "lesson.py line 2, `w * w` in `loss = (w * w).sum() + 1` (`w`, at version 0)",
            "modified": "lesson.py line 3: `w.mul_(2)` (mul_, to version 1, the first of 2 writes)",
            "fix": "write `w = w.mul(2)` instead of `w.mul_(2)` on line 3",
        },
    ),
    "written before and after it was saved": (
        """
        w = x * 1
        w.mul_(2)
        y = x / w
        w.sub_(1)
        y.sum().backward()
        """,
        modified_message("[3]], which is output 0 of Sub,", 2, 1),
        {
            "saved": "lesson.py line 3: `y = x / w` (`w`, at version 1)",
            "modified": "lesson.py line 4: `w.sub_(1)` (sub_, to version 2)",
            "fix": "write `w = w.sub(1)` instead of `w.sub_(1)` on line 4",
        },
    ),
    "an element written to": (
        """
        y = x.sigmoid()
        y[0] = 0.
        y.sum().backward()
        """,
        modified_message("[3]], which is output 0 of Sigmoid,", 1, 0),
        {
            "modified": "lesson.py line 2: `y[0] = 0.` (item assignment, to version 1)",
            "fix": "add `y = y.clone()` before line 2, so that the saved values are not changed",
        },
    ),
    "written through a view": (
        """
        c = x.outer(x).tanh()
        c.diagonal().add_(-1).pow_(2)
        c.sum().backward()
        """,
        modified_message("[3, 3]], which is output 0 of Tanh,", 2, 0),
        {
            "modified": "lesson.py line 2: `c.diagonal().add_(-1).pow_(2)` (add_, to version 1, the first of 2 writes)",
            "fix": "add `c = c.clone()` before line 2, so that the saved values are not changed",
        },
    ),
    "written through a detached twin": (
        """
        y = x.sigmoid()
        shown = y.detach()
        shown[0] = 0.
        y.sum().backward()
        """,
        MODIFIED,
        {
            "modified": "lesson.py line 3: `shown[0] = 0.` (item assignment, to version 1)",
            "fix": "detach() shares the memory: write detach().clone() on line 2",
        },
    ),
    "inplace=True": (
        """
        h = x.sigmoid()
        gl.nn.functional.relu(h, inplace=True).sum().backward()
        """,
        MODIFIED,
        {
            "modified": "lesson.py line 2: `gl.nn.functional.relu(h, inplace=True).sum().backward()` (relu, to version 1)",
            "fix": "remove `inplace=True` on line 2",
        },
    ),
    "an optimizer's step between two losses": (
        """
        w = gl.ones(3, requires_grad=True)
        optimizer = gl.optim.SGD([w], lr=0.1)
        first, second = (w * w).sum(), (w ** 3).sum()
        first.backward()
        optimizer.step()
        second.backward()
        """,
        modified_message("[3]]", 1, 0),
        {
            "saved": "lesson.py line 3, `w ** 3` in `first, second = (w * w).sum(), (w ** 3).sum()` (`w`, at version 0)",
            "modified": "lesson.py line 5: `optimizer.step()` (step() of an optimizer, to version 1)",
            "fix": "run every backward() before step() on line 5, or compute the loss again after it",
        },
    ),
    "a leaf updated too early": (
        """
        loss = (x * x).sum()
        with gl.no_grad():
            x -= 0.1 * x
        loss.backward()
        """,
        MODIFIED,
        {
            "modified": "lesson.py line 3: `x -= 0.1 * x` (`-=`, to version 1)",
            "fix": "run backward() before the write on line 3, or compute the loss again after it",
        },
    ),
    "backward twice": (
        """
        loss = x.exp().sum()
        loss.backward()
        loss.backward()
        """,
        TWICE,
        {
            "freed": "lesson.py line 1, `x.exp()` in `loss = x.exp().sum()` (ExpBackward0)",
            "by": "lesson.py line 2: `loss.backward()`",
            "fix": "write `loss.backward(retain_graph=True)` on line 2, or add the losses and call backward() once",
        },
    ),
    "autograd.grad, then backward of a shared part": (
        """
        h = x.tanh()
        g, = gl.autograd.grad(h.sum(), x)
        (2 * h).sum().backward()
        """,
        TWICE,
        {
            "freed": "lesson.py line 1: `h = x.tanh()` (TanhBackward0)",
            "by": "lesson.py line 2: `g, = gl.autograd.grad(h.sum(), x)`",
            "fix": "write `gl.autograd.grad(h.sum(), x, retain_graph=True)` on line 2, or add the losses and call backward() once",  # noqa: E501
        },
    ),
    "a hidden state carried over": (
        """
        h = gl.zeros(3)
        for step in range(3):
            h = (h + x).tanh()
            loss = h.sum()
            loss.backward()
        """,
        TWICE,
        {
            "freed": "lesson.py line 3: `h = (h + x).tanh()` (TanhBackward0)",
            "by": "lesson.py line 5: `loss.backward()`",
            "carried": (
                "lesson.py line 3: `h = (h + x).tanh()`: this result is older than that call, and the tensor differentiated "
                "here was computed from it afterwards"
            ),
            "fix": "detach what one step passes to the next (h = h.detach()), or compute it again in each step",
        },
    ),
    "detached on the way": (
        """
        h = x.exp().detach()
        loss = (h * 2).sum()
        loss.backward()
        """,
        NO_GRAPH,
        {
            "lost": "lesson.py line 1: `h = x.exp().detach()`",
            "why": "detach() returns the values of the result of ExpBackward0 (shape [3]) without their history",
            "fix": "remove detach() on line 1 if you need the gradient",
        },
    ),
    ".data on the way": (
        """
        loss = (x.data ** 2).sum()
        loss.backward()
        """,
        NO_GRAPH,
        {
            "lost": "lesson.py line 1, `x.data` in `loss = (x.data ** 2).sum()`",
            "why": ".data returns the values of a leaf (shape [3]) without their history",
            "fix": "remove .data on line 1 if you need the gradient",
        },
    ),
    "no_grad on the way": (
        """
        with gl.no_grad():
            h = x * 2
        loss = h.sum()
        loss.backward()
        """,
        NO_GRAPH,
        {
            "lost": "lesson.py line 2: `h = x * 2`",
            "why": "computed from a leaf (shape [3]) under no_grad() or set_grad_enabled(False)",
            "fix": "compute it outside no_grad() on line 2",
        },
    ),
    "requires_grad forgotten": (
        """
        w, b = gl.ones(3), gl.zeros(())
        loss = (w * 2 + b).sum()
        loss.backward()
        """,
        NO_GRAPH,
        {
            "made": "lesson.py line 2, `w * 2` in `loss = (w * 2 + b).sum()`",
            "why": "none of its inputs requires grad",
            "fix": "call w.requires_grad_() before line 2 if you need the gradient of w",
        },
    ),
    "integers": (
        """
        w = gl.tensor([1, 2, 3])
        loss = (w / 2).sum()
        loss.backward()
        """,
        NO_GRAPH,
        {
            "made": "lesson.py line 2, `w / 2` in `loss = (w / 2).sum()`",
            "fix": "call w.requires_grad_() before line 2 if you need the gradient of w",
        },
    ),
    "an integer loss": (
        """
        w = gl.tensor([1, 2, 3])
        w.sum().backward()
        """,
        f"{NO_GRAPH}. It has dtype gradlab.int64, and integers and bools carry no gradient: write data as 1. ",
        {},
    ),
    "integers, then a mean": (
        """
        w = gl.tensor([1, 2, 3])
        w.float().mean().backward()
        """,
        NO_GRAPH,
        {
            "made": "lesson.py line 2, `w.float()` in `w.float().mean().backward()`",
            "why": "none of its inputs requires grad: they have dtype gradlab.int64, and integers and bools have no gradient",
            "fix": "use floating-point data (1. instead of 1), and call w.requires_grad_() before line 2",
        },
    ),
    "accuracy for a loss": (
        """
        right = (x > 0).float()
        right.mean().backward()
        """,
        NO_GRAPH,
        {
            "lost": "lesson.py line 1, `x > 0` in `right = (x > 0).float()`",
            "why": "a comparison of a leaf (shape [3]) returns bools, which have no gradient",
            "fix": "differentiate the values before the comparison, or use a smooth function instead (sigmoid)",
        },
    ),
    "argmax": (
        """
        guess = x.argmax() * 1.
        guess.backward()
        """,
        NO_GRAPH,
        {
            "lost": "lesson.py line 1, `x.argmax()` in `guess = x.argmax() * 1.`",
            "why": "a position in a leaf (shape [3]) is an integer, which has no gradient",
            "fix": "use values instead of positions on line 1, such as max or softmax instead of argmax",
        },
    ),
    "a cast to integers": (
        """
        loss = x.long().float().sum()
        loss.backward()
        """,
        NO_GRAPH,
        {"lost": "lesson.py line 1, `x.long()` in `loss = x.long().float().sum()`", "fix": "remove the cast on line 1"},
    ),
    "item() and back": (
        """
        total = (x * x).sum().item()
        loss = gl.tensor(total) * 2
        loss.backward()
        """,
        NO_GRAPH,
        {
            "lost": "lesson.py line 1: `total = (x * x).sum().item()`",
            "made": "lesson.py line 2: `loss = gl.tensor(total) * 2`",
            "fix": "keep the tensor itself on line 1 (`gl.stack` joins several)",
        },
    ),
    "items gathered in a list": (
        """
        losses = []
        for i in range(3):
            losses.append((x * i).sum().item())
        total = gl.tensor(losses).mean()
        total.backward()
        """,
        NO_GRAPH,
        {
            "lost": "lesson.py line 3, `(x * i).sum().item()` in `losses.append((x * i).sum().item())`",
            "made": "lesson.py line 4: `total = gl.tensor(losses).mean()`",
            "fix": "keep the tensor itself on line 3 (`gl.stack` joins several)",
        },
    ),
    "a number printed, which has nothing to do with it": (
        """
        seen = (x * x).sum().item()
        w = gl.ones(3)
        loss = (w * 2).sum()
        loss.backward()
        """,
        NO_GRAPH,
        {
            "lost": None,
            "perhaps": (
                "its values may come from lesson.py line 1: `seen = (x * x).sum().item()`, where it converted the result of "
                "SumBackward0 (shape []) to a Python number, which has no history"
            ),
            "made": "lesson.py line 3, `w * 2` in `loss = (w * 2).sum()`",
            "fix": (
                "if so, keep the tensor itself on line 1 (`gl.stack` joins several); if not, call requires_grad_() before line 3 "
                "on the tensor whose gradient you need"
            ),
        },
    ),
    "a copy by tensor()": (
        """
        loss = gl.tensor(x).sum()
        loss.backward()
        """,
        NO_GRAPH,
        {
            "lost": "lesson.py line 1, `gl.tensor(x)` in `loss = gl.tensor(x).sum()`",
            "why": "`gl.tensor(x)` copies the values of a leaf (shape [3]) without their history",
            "fix": "use x.clone() or x itself on line 1",
        },
    ),
    "a name bound again": (
        """
        loss = (x * 2).sum()
        x = x + 0
        gl.autograd.grad(loss, x)
        """,
        UNUSED,
        {
            "why": (
                "it was computed from the same tensors as the outputs (lesson.py line 2: `x = x + 0`), but the outputs do not "
                "depend on it"
            )
        },
    ),
    "used behind detach": (
        """
        w = gl.ones(3, requires_grad=True)
        loss = (x * w.detach()).sum()
        gl.autograd.grad(loss, w)
        """,
        UNUSED,
        {
            "lost": "lesson.py line 2, `w.detach()` in `loss = (x * w.detach()).sum()`",
            "fix": "remove detach() on line 2 if you need the gradient",
        },
    ),
    "a copy made beforehand": (
        """
        w = x.detach().clone().requires_grad_()
        gl.autograd.grad((x * 2).sum(), w)
        """,
        UNUSED,
        {
            "why": (
                "it is a copy, and the outputs were computed from the original: lesson.py line 1, `x.detach()` in "
                "`w = x.detach().clone().requires_grad_()`"
            ),
            "fix": "differentiate with respect to the tensor that was used, or compute with the copy",
        },
    ),
    "an input without history": (
        """
        h = x.data * 2
        gl.autograd.grad((x * h).sum(), h)
        """,
        "One of the differentiated Tensors does not require grad",
        {"lost": "lesson.py line 1, `x.data` in `h = x.data * 2`", "fix": "remove .data on line 1 if you need the gradient"},
    ),
    "another leaf": (
        """
        w = gl.ones(2, requires_grad=True)
        gl.autograd.grad((x * 2).sum(), w)
        """,
        UNUSED,
        {"why": "it is a leaf of shape [2] that no operation of the graph uses; the graph has 1 leaf of shape [3]"},
    ),
    "no scalar": (
        """
        y = x * 2
        y.backward()
        """,
        "grad can be implicitly created only for scalar outputs",
        {"at": "lesson.py line 2: `y.backward()`", "fix": "write `y.sum().backward()`, or `y.backward(gl.ones_like(y))`"},
    ),
    "weights of another shape": (
        """
        y = x * 2
        y.backward(gl.ones(2))
        """,
        "Mismatch in shape: grad_output[0] has a shape of gradlab.Size([2]) and output[0] has a shape of ",
        {
            "at": "lesson.py line 2: `y.backward(gl.ones(2))`",
            "fix": "`gl.ones_like(y)` has the right shape and weights all elements equally",
        },
    ),
    "a leaf updated with history": (
        """
        x -= 0.1 * x
        """,
        "a leaf Variable that requires grad is being used in an in-place operation.",
        {"at": "lesson.py line 1: `x -= 0.1 * x`", "fix": "`with gl.no_grad(): x -= 0.1 * x`"},
    ),
    "an element of a leaf": (
        """
        x[0] = 1.
        """,
        "a view of a leaf Variable that requires grad is being used in an in-place operation.",
        {"fix": "`with gl.no_grad(): x[0] = 1.`"},
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_message_explains_the_mistake(mistake):
    source, begins, expected = MISTAKES[mistake]
    message = message_of(source)
    assert message.startswith(begins)
    found = facts(message)
    assert {label: found.get(label) for label in expected} == expected
    assert len(message.split("\n")) <= 10
    assert all(len(line) <= 100 for line in message.split("\n")[1:])


@pytest.mark.torch
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_message_begins_as_in_torch(mistake):
    torch = pytest.importorskip("torch")
    source = MISTAKES[mistake][0]
    theirs = message_of(source, torch, recorded=False).partition(" Hint:")[0].rstrip(".").replace("torch.", "gradlab.")
    assert message_of(source).replace("torch.", "gradlab.").startswith(theirs)


def test_unrecorded_errors_say_how_to_see_the_lines():
    how = " To see the lines, run it inside `with gl.record_sites():` or in a %%grad cell."
    for mistake in ("an output written to", "backward twice", "detached on the way", "a name bound again"):
        message = message_of(MISTAKES[mistake][0], recorded=False)
        assert message.startswith(MISTAKES[mistake][1])
        assert message.partition("\n")[0].endswith(how), message
        assert "lesson.py" not in message.replace("lesson.py line 3", "", message.count("  at "))


def test_unknown_facts_are_omitted():
    """The expected version if some writes were not recorded, and the earlier call if its site was not recorded."""
    w = gl.ones(3, requires_grad=True) * 1
    w.add_(1)
    y = w * w
    w.add_(1)
    with gl.record_sites():
        w.add_(1)
    with pytest.raises(RuntimeError, match=r"at version 3; expected an earlier version instead"):
        y.sum().backward()
    x = gl.ones(3, requires_grad=True)
    with gl.record_sites():
        y = x.exp()
    y.sum().backward()
    with pytest.raises(RuntimeError) as raised:
        y.sum().backward()
    assert facts(str(raised.value))["by"] == "an earlier backward() or autograd.grad()"


def test_an_error_after_the_block_names_the_lines():
    with gl.record_sites():
        x = gl.ones(3, requires_grad=True)
        y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"saved    test_autopsy\.py line \d+: `y = x\.exp\(\)`"):
        y.sum().backward()


def test_the_gradient_of_a_non_leaf_says_what_to_write():
    with gl.record_sites(), pytest.warns(UserWarning, match=r"^The \.grad attribute of a Tensor that is not a leaf") as caught:
        exec(
            lesson("""
            x = gl.ones(3, requires_grad=True)
            hidden = x * 2
            hidden.sum().backward()
            print_me = hidden.grad
            """),
            {"gl": gl},
        )
    assert caught[0].filename == "lesson.py" and caught[0].lineno == 4
    assert facts(str(caught[0].message)) == {
        "made": "lesson.py line 2: `hidden = x * 2` (MulBackward0)",
        "fix": "call `hidden.retain_grad()` before backward()",
        "leaves": "x.grad has a gradient",
    }


def test_the_warning_without_recorded_lines():
    x = gl.ones(3, requires_grad=True)
    y = x * 2
    with pytest.warns(UserWarning, match=r"(?s)access the leaf Tensor instead\.\n.*call `y\.retain_grad\(\)` before"):
        assert y.grad is None


def test_the_warning_is_issued_once_per_line():
    x = gl.ones(3, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(50):
            y = x * 2
            assert y.grad is None
    assert len(caught) == 1
