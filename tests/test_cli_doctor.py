"""Test `gradlab doctor script.py`: it runs the script as Python does, and reports problems with its gradients by line."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from grouped import exhaustive_after_first

from gradlab import cli
from gradlab.diagnose.source_locations import cells
from gradlab.explore.doctor.examine import CHECKS_OF_RUNS
from gradlab.explore.doctor.findings import Diagnosis
from gradlab.explore.doctor.registry import KINDS
from gradlab.explore.script import Program, ScriptRun, timings_table
from gradlab.explore.trace import pacing

TORCHES = ["gradlab", pytest.param("torch", marks=pytest.mark.torch)]
# A regression in a function of a script. Tests insert a faulty expression as {loss}. `# here` marks its line.
TRAINING = """\
import argparse

import {library} as torch
from {library} import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 16)
        self.fc2 = nn.Linear(16, 1)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rate", type=float, default=0.05)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.rate)
    x = torch.randn(64, 4)
    y = x.sum(1)
    for _ in range(arguments.steps):
        optimizer.zero_grad()
        out = model(x)
        loss = {loss}  # here
        loss.backward()
        optimizer.step()
    print(f"steps {{arguments.steps}}")


if __name__ == "__main__":
    main()
"""
HEALTHY = "((out.squeeze(1) - y) ** 2).mean()"
FAULTS = {  # faulty loss, and text that its report must contain
    "((out - y) ** 2).mean()": "(64, 64)",
    "((out.squeeze(1) - y) ** 2).mean() + 0 * torch.sqrt(out * 0).sum()": "sqrt",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def doctor(here, capsys):
    """Return a function that runs `gradlab doctor train.py …` in this process and returns (status, output, errors)."""

    def doctor(text, *arguments, before=()):
        Path("train.py").write_text(text)
        status = cli.main(["doctor", *before, "train.py", *arguments])
        return status, *capsys.readouterr()

    return doctor


@pytest.fixture(autouse=True)
def check_interpreter_state():
    """Check that the interpreter state that running a script changes is restored."""
    before = sys.argv, sys.modules["__main__"], sys.path[:], sys.meta_path[:], cells.current, cells.called
    torch = sys.modules.get("torch")
    backward = torch.Tensor.backward if torch is not None else None
    yield
    assert (sys.argv, sys.modules["__main__"], sys.path, sys.meta_path, cells.current, cells.called) == before
    if torch is not None:
        assert torch.Tensor.backward is backward
        assert torch.overrides._get_current_function_mode_stack() == []
        assert not torch.nn.modules.module._global_forward_pre_hooks


def run_python(*words, cwd):
    return subprocess.run([sys.executable, *words], check=False, capture_output=True, text=True, cwd=cwd)


def lines_of(errors):
    """Return the lines of the script that have findings."""
    return [int(line) for line in re.findall(r"^train\.py:(\d+):", errors, re.MULTILINE)]


def line_with(text, mark="# here"):
    return next(i for i, line in enumerate(text.splitlines(), 1) if mark in line)


# --------------------------------------------------------------------------------------------------------------- findings
@pytest.mark.parametrize("library", TORCHES)
def test_a_healthy_script_gets_its_arguments_and_ends_with_0(library, doctor):
    status, out, errors = doctor(TRAINING.format(library=library, loss=HEALTHY), "--steps", "7", "--rate=0.01")
    assert (status, out) == (0, "steps 7\n")
    assert "called backward() 7 times: no Problem" in errors


@pytest.mark.parametrize("library", TORCHES)
@pytest.mark.parametrize("loss", FAULTS)
def test_a_fault_is_reported_with_its_line_and_status_1(library, loss, doctor):
    text = TRAINING.format(library=library, loss=loss)
    status, out, errors = doctor(text, "--steps", "4")
    assert (status, out) == (1, "steps 4\n")
    assert line_with(text) in lines_of(errors)
    assert FAULTS[loss] in errors


# A line that fails before any backward call, and texts of its report, which must not mention missing gradients.
FAILURES_BEFORE_BACKWARD = {
    "nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))(torch.randn(1, 4)).sum().backward()": (
        "1 Problem",
        "(BatchNorm1d)",
        "[1, 3]",
    ),
    "nn.Linear(4, 3)(torch.randn(2, 5)).sum().backward()": ("1 Problem", "takes 4 features"),
    "torch.nn.init.nothing(3)": ("nothing was found", "`torch.nn.init.nothing(3)` on line 4 with AttributeError", "has no rule"),
}


@pytest.mark.parametrize("library", TORCHES)
@pytest.mark.parametrize("line", FAILURES_BEFORE_BACKWARD)
def test_a_script_that_fails_before_any_backward_is_explained(library, line, doctor):
    status, _, errors = doctor(f"import {library} as torch\nfrom {library} import nn\n\n{line}\n")
    said = errors[errors.index("── gradlab doctor") :]
    assert status == 1 and "before any backward(): " + FAILURES_BEFORE_BACKWARD[line][0] in said
    assert all(words in " ".join(said.split()) for words in FAILURES_BEFORE_BACKWARD[line][1:])
    assert "gradients to look at" not in said and "No backward() was called" not in said


def test_a_script_that_exits_keeps_its_status(doctor):
    status, _, errors = doctor("import gradlab\nraise SystemExit(3)\n")
    assert status == 3 and "called no backward(): nothing to look at" in errors and "No backward() was called" in errors


FIVE_FAULTS = """\
import gradlab as torch

w = torch.tensor([4.0, 0.0], requires_grad=True)
m = torch.tensor([1.0], requires_grad=True)
v = torch.tensor([2.0, 0.0], requires_grad=True)
k = torch.tensor([3.0], requires_grad=True)
p = torch.zeros(4, 1, requires_grad=True)
loss = (w.log() * w).sum() + torch.round(k).sum() + (v / v).sum() + (m * 2).detach().sum() + ((p - torch.ones(4)) ** 2).mean()
loss.backward()
"""


def test_three_findings_are_printed_and_all_with_the_option_all(doctor):
    _, _, errors = doctor(FIVE_FAULTS)
    first = re.findall("■ Problem|□ Note", errors)
    more = re.search(r"(\d+) more problems?(?:, (\d+) more notes?)?: `gradlab doctor --all`", errors)
    assert len(first) == 3 and more is not None
    _, _, errors = doctor(FIVE_FAULTS, before=["--all"])
    every = re.findall("■ Problem|□ Note", errors)
    assert len(every) == 3 + sum(int(n or 0) for n in more.groups()) and "more problem" not in errors
    assert every == sorted(every)


def test_the_kind_is_printed_behind_the_message(doctor):
    _, _, errors = doctor(FIVE_FAULTS)
    blocks = [block for block in errors.split("\n\n") if "■ Problem" in block]
    kinds = [re.search(r"\[([\w-]+)\](?:\n  → |$)", block)[1] for block in blocks]
    assert len(kinds) == 3 and set(kinds) <= set(KINDS)
    assert errors.count("--explain") == 1 and errors.endswith(
        f"\n\nAbout a kind of finding: `gradlab doctor --explain {kinds[0]}`\n"
    )
    assert "--explain" not in doctor("print(1)\n")[2]


# ----------------------------------------------------------------------------------------------- kinds and the exit status
NOTE_AND_PROBLEM = """\
import gradlab as torch
from gradlab import nn

model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
out = model(torch.randn(16, 3))
loss = ((out - torch.randn(16)) ** 2).mean()
loss.backward()
"""


@pytest.mark.parametrize(
    ("options", "status", "counts"),
    [
        ([], 1, "1 Problem, 1 Note"),
        (["--ignore", "broadcast"], 0, "no Problem, 1 Note, 1 ignored"),
        (["--ignore", "broadcast", "--strict"], 1, "no Problem, 1 Note, 1 ignored"),
        (["--ignore=cancelled"], 1, "1 Problem, 1 ignored"),
        (["--ignore", "broadcast,cancelled", "--strict"], 0, "no Problem, 2 ignored"),
        (["--ignore", "broadcast", "--ignore", " cancelled,", "--strict"], 0, "no Problem, 2 ignored"),
        (["--ignore", "vanishing"], 1, "1 Problem, 1 Note"),
    ],
)
def test_ignored_kinds_are_counted_and_have_no_effect_on_the_status(options, status, counts, doctor):
    found, _, errors = doctor(NOTE_AND_PROBLEM, before=options)
    assert found == status and f"called backward() once: {counts}\n" in errors


def test_an_unknown_kind_is_an_error_before_the_script_runs(doctor):
    status, out, errors = doctor("print('ran')\n", before=["--ignore", "broadcast,detachd"])
    assert (status, out) == (2, "") and errors.endswith("'detachd' is not a kind of finding. Did you mean 'detached'?\n")


@pytest.mark.parametrize("kinds", [[""], [","], ["broadcast", " , "]])
def test_the_option_ignore_without_a_kind_is_an_error(kinds, doctor):
    options = [f"--ignore={words}" for words in kinds]
    assert doctor("print('ran')\n", before=options) == (2, "", "gradlab doctor: --ignore: expected the name of a kind.\n")


def test_options_after_the_script_are_passed_to_it(doctor):
    words = ["--ignore", "broadcast", "--format", "json", "--strict", "--timings", "--explain"]
    assert doctor("import sys\nprint(sys.argv[1:])\n", *words)[:2] == (0, f"{words}\n")


def test_the_script_may_be_missing_only_if_a_kind_is_explained(here, capsys):
    for words in (["doctor"], ["doctor", "--strict"], ["doctor", "-m"], ["doctor", "--html", "o.html"]):
        with pytest.raises(SystemExit) as failure:
            cli.main(words)
        assert failure.value.code == 2 and "required: SCRIPT" in capsys.readouterr().err


def test_the_timings_of_checks_are_printed_with_their_kinds(doctor):
    status, out, errors = doctor(NOTE_AND_PROBLEM, before=["--timings"])
    heading, *rows = errors[errors.index("check  ") :].split("\n\n")[0].splitlines()
    names = {row.split()[0] for row in rows if not row.startswith(" ")}
    assert (status, out) == (1, "") and heading.split() == ["check", "ms", "share", "kinds"]
    assert names >= {check.name for check in CHECKS_OF_RUNS} and {"explain_graph_errors"} <= names
    assert re.search(r"^find_sums +\d+\.\d{2} +(?:\d+%)? +sum-for-mean$", errors, re.MULTILINE)
    assert re.search(r"\nAll checks took \d+\.\d{2} ms\. The script ran for \d+\.\d{2} s\.\n$", errors)


def test_timings_are_sorted(clock):
    """Each check has its share of the time."""
    seconds = {"find_sums": 0.25, "find_cuts": 0.75, "explain_refusals": 0.0}
    run = ScriptRun(Program("a.py", "/a.py", "", (), "/"), 0, Diagnosis(seconds=seconds), None, 1, seconds=4.0)
    _, *rows, empty, last = timings_table(run).splitlines()
    assert [row.split()[:3] for row in rows if not row.startswith(" ")] == [
        ["find_cuts", "750.00", "75%"],
        ["find_sums", "250.00", "25%"],
        ["explain_refusals", "0.00", "0%"],
    ]
    assert last == "All checks took 1000.00 ms. The script ran for 4.00 s."


@pytest.mark.parametrize("library", TORCHES)
def test_parameters_in_attributes_have_names(library, doctor):
    """The second layer is not in the optimizer. Both are attributes of an object local to a function."""
    text = f"""\
import {library} as torch
from {library} import nn


class Trainer:
    def __init__(self):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
        self.optimizer = torch.optim.SGD(self.model[0].parameters(), lr=0.1)

    def fit(self, x, y):
        for _ in range(6):
            self.optimizer.zero_grad()
            ((self.model(x) - y) ** 2).mean().backward()
            self.optimizer.step()


def main():
    x = torch.randn(10, 3)
    Trainer().fit(x, x.sum(1, keepdim=True))


main()
"""
    status, _, errors = doctor(text)
    assert status == 1 and "`self.model[2].weight`" in errors and "optimizer" in errors


@pytest.mark.parametrize("package", ["parts", "parts.root"], ids=["package", "namespace package"])
@pytest.mark.parametrize("library", TORCHES)
def test_lines_in_modules_next_to_the_script_are_shown(library, package, doctor, here):
    (here / "parts").mkdir()
    if package == "parts":
        (here / "parts" / "__init__.py").write_text("from .root import root\n")
    (here / "parts" / "root.py").write_text(f"import {library} as torch\n\n\ndef root(x):\n    return torch.sqrt(x)\n")
    text = f"import {library} as torch\nfrom {package} import root\nw = torch.zeros(3, requires_grad=True)\n"
    text += "root(w * w).sum().backward()\n"
    status, _, errors = doctor(text)
    assert status == 1 and lines_of(errors) == [4]
    assert "root.py line 5: return torch.sqrt(x)" in errors
    assert not any(name.split(".")[0] == "parts" for name in sys.modules)  # another script may have a module of this name


def test_a_script_without_backward_is_reported(doctor):
    status, _, errors = doctor("import gradlab as gl\nprint(gl.ones(2).sum())\n")
    assert status == 0 and "nothing to look at" in errors and "No backward() was called" in errors


# ---------------------------------------------------------------------------------------------------- comparison with python
PRINTS_ITS_NAMES = """\
import sys, pickle
from beside import f
class Own:
    pass
print(sys.argv, __name__, __file__, sys.path[0], __spec__, __package__, type(__loader__).__name__, __doc__)
print(pickle.loads(pickle.dumps(Own())).__class__)
def inner():
    raise KeyError("lost")
try:
    f(inner)
except KeyError as error:
    raise ValueError("again") from error
"""


@pytest.mark.e2e
def test_output_and_traceback_are_those_of_python(here):
    """The output and the traceback are those of `python train.py`, followed by the report."""
    (here / "train.py").write_text(PRINTS_ITS_NAMES)
    (here / "beside.py").write_text("def f(g):\n    return g()\n")
    plain = run_python("train.py", "--a", "b c", cwd=here)
    ours = run_python("-m", "gradlab", "doctor", "train.py", "--a", "b c", cwd=here)
    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout) == (1, plain.stdout)
    assert plain.stderr.count("Traceback") == 2
    assert ours.stderr.startswith(plain.stderr + "── gradlab doctor: train.py ended with status 1")


@pytest.mark.e2e
@pytest.mark.torch
def test_a_traceback_through_torch_has_no_frames_of_gradlab(here):
    """The traceback contains neither frames of gradlab nor the frames of torch that called them."""
    text = (
        "import torch\nw = torch.ones(3, requires_grad=True)\nlin = torch.nn.Linear(3, 1)\nlin(w).backward()\n"
        "y = w.exp()\ny += 1\ny.sum().backward()\n"
    )
    (here / "train.py").write_text(text)
    plain = run_python("train.py", cwd=here)
    ours = run_python("-m", "gradlab", "doctor", "train.py", cwd=here)
    assert "modified by an inplace operation" in plain.stderr and ours.returncode == 1
    assert ours.stderr.startswith(plain.stderr)


@pytest.mark.e2e
def test_a_syntax_error_is_reported_as_by_python(here):
    (here / "train.py").write_text("x = (1,\ndef\n")
    plain = run_python("train.py", cwd=here)
    ours = run_python("-m", "gradlab", "doctor", "train.py", cwd=here)
    assert ours.returncode == 1 and ours.stderr.startswith(plain.stderr)


@pytest.mark.parametrize(
    ("code", "status"), [("None", 0), ("0", 0), ("3", 3), ("'words'", 1), ("True", 1), ("-1", 255), ("256 + 7", 7)]
)
def test_the_status_of_the_script_is_returned(code, status, doctor):
    found, _, errors = doctor(f"import sys\nsys.exit({code})\n")
    assert found == status
    assert ("words\n" in errors) == (code == "'words'")


def test_the_status_of_the_script_has_priority_over_a_problem(doctor):
    text = (
        "import sys\nimport gradlab as gl\nw = gl.zeros(2, requires_grad=True)\nw.sqrt().mul(0).sum().backward()\nsys.exit(4)\n"
    )
    status, _, errors = doctor(text)
    assert status == 4 and "Problem" in errors
    assert doctor(text.replace("sys.exit(4)", ""))[0] == 1


@pytest.mark.e2e
def test_a_module_and_its_package(here, capsys):
    (here / "pack").mkdir()
    (here / "pack" / "__init__.py").write_text("")
    (here / "pack" / "value.py").write_text("value = 5\n")
    (here / "pack" / "train.py").write_text(
        "import sys\nfrom .value import value\nprint(value, sys.argv[1:], __package__, __name__)\n"
    )
    plain = run_python("-m", "pack.train", "x", "--html", cwd=here)
    assert cli.main(["doctor", "-m", "pack.train", "--", "x", "--html"]) == 0
    assert capsys.readouterr().out == plain.stdout == "5 ['x', '--html'] pack __main__\n"
    assert cli.main(["doctor", "-m", "pack.nothing"]) == 2
    assert "no module pack.nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere.py", "there is no file nowhere.py"),
        (".", "is a folder"),
        ("lesson.ipynb", "%%doctor"),
        ("numpy.linalg", "gradlab doctor -m numpy.linalg"),
        ("train", "There is train.py"),
        ("binary.py", "is not Python source"),
    ],
)
def test_an_argument_that_is_not_a_script_is_an_error(name, said, here, capsys):
    (here / "train.py").write_text("")
    (here / "lesson.ipynb").write_text("{}")
    (here / "binary.py").write_bytes(b"\x93\0\xff")
    assert cli.main(["doctor", name]) == 2
    shown = capsys.readouterr()
    assert said in shown.err and not shown.out


TWO_MODELS = """\
import {library} as lib
nn = lib.nn
lib.manual_seed(0)
X, Y = lib.randn(16, 4), lib.randint(0, 3, (16,))
def train(act, last):
    net = nn.Sequential(nn.Linear(4, 8), act(), nn.Linear(8, 3), *last)
    opt = lib.optim.SGD(net.parameters(), lr=0.1)
    for step in range(4):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(X), Y)  # here
        loss.backward()
        opt.step()
for act, last in [(nn.Sigmoid, [nn.Softmax(1)]), (nn.Tanh, [])]:
    train(act, last)
"""


@pytest.mark.parametrize("library", TORCHES)
def test_every_model_of_a_script_is_checked(library, doctor, here):
    text = TWO_MODELS.format(library=library)
    status, _, errors = doctor(text, before=["--html", "page.html"])
    assert status == 1 and lines_of(errors) == [line_with(text)] and "called backward() 8 times: 1 Problem" in errors
    assert "■ Problem  act=Sigmoid: " in errors
    page = (here / "page.html").read_text()
    assert "act=Tanh" in page and "act=Sigmoid" in page and "of 2 models" in page


def test_scripts_do_not_share_names(doctor):
    """A second script does not see the names of the first."""
    doctor("left = 1\nimport gradlab as gl\n(gl.ones(2, requires_grad=True) * 0).sum().backward()\n")
    status, out, _ = doctor("print('left' in globals(), __name__)\n")
    assert (status, out) == (0, "False __main__\n")


@pytest.mark.e2e
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("library", TORCHES)
def test_findings_are_reported_after_ctrl_c(library, here, sigint):
    text = (
        f"import threading\nimport {library} as torch\nw = torch.zeros(3, requires_grad=True)\n"
        "while True:\n    torch.sqrt(w * w).sum().backward()  # here\n    print('go', flush=True)\n    threading.Event().wait()\n"
    )
    (here / "train.py").write_text(text)
    process = subprocess.Popen(
        [sys.executable, "-m", "gradlab", "doctor", "train.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "go\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "KeyboardInterrupt" in errors and "was interrupted and called backward()" in errors
    assert line_with(text) in lines_of(errors)


@pytest.mark.e2e
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_keeps_its_status_and_prints_no_report(here):
    (here / "train.py").write_text(
        "import os, sys\nchild = os.fork()\nif not child:\n    sys.exit(5)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    ours = run_python("-m", "gradlab", "doctor", "train.py", cwd=here)
    assert (ours.returncode, ours.stdout) == (0, "5\n")
    assert ours.stderr.count("gradlab doctor:") == 1


# ------------------------------------------------------------------------------------------------------------- the HTML page
@pytest.mark.parametrize("library", TORCHES)
@pytest.mark.parametrize("where", ["before", "behind", "joined"])
def test_the_option_html_is_accepted_at_any_position(library, where, doctor, here):
    text = TRAINING.format(library=library, loss="((out - y) ** 2).mean()")
    words = {"before": ([], ["--html", "o.html"]), "behind": (["--html", "o.html"], []), "joined": (["--html=o.html"], [])}[where]
    status, out, _ = doctor(text, "--steps", "3", *words[0], before=words[1])
    assert (status, out) == (1, "steps 3\n")
    page = (here / "o.html").read_text()
    assert "(64, 64)" in page and "fc1" in page and "default-src 'none'" in page and "3 times" in page
    assert "train.py" in page and "<script" not in page


def test_names_of_the_user_are_escaped_on_the_page(here, capsys):
    name = "<img src=x onerror=alert(1)>&.py"
    (here / name).write_text(
        "import gradlab as gl\nd = {'<b>&\"': gl.ones(2, requires_grad=True)}\n"
        "(d['<b>&\"'].sqrt() * gl.zeros(2)).sum().backward()  # <script>alert(2)</script>\n"
    )
    assert cli.main(["doctor", "--html", "o.html", name]) == 1
    capsys.readouterr()
    page = (here / "o.html").read_text()
    assert "<img src=x" not in page and "<script" not in page and "<b>&" not in page
    assert "&lt;img src=x" in page and "&lt;script&gt;alert(2)" in page and "&lt;b&gt;&amp;" in page


def test_a_page_of_a_script_without_backward(doctor, here):
    status, _, _ = doctor("print(1)\n", before=["--html", "o.html"])
    page = (here / "o.html").read_text()
    assert status == 0 and "No backward() was called" in page


def test_a_page_that_cannot_be_written_is_an_error_before_the_script_runs(doctor, here):
    for words, said in (
        (["--html", "none/o.html"], "does not exist"),
        (["--html", "."], "is a folder"),
        (["--html"], "expected the name"),
    ):
        status, out, errors = doctor("print('ran')\n", *words)
        assert (status, out) == (2, "") and said in errors
    assert doctor("import os\nos.mkdir('sub')\nos.chdir('sub')\n", "--html", "o.html")[0] == 0
    os.chdir(here)
    assert (here / "o.html").exists()


# ---------------------------------------------------------------------------------------------- scripts with many backward calls
NAN_AT_STEP_3 = """\
import {library} as torch
w = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
for i in range(8):
    opt.zero_grad()
    loss = torch.sqrt((w * float(i != 3)) ** 2).sum()  # here
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("library", TORCHES)
def test_the_origin_of_nan_is_reported(library, doctor):
    text = NAN_AT_STEP_3.format(library=library)
    status, _, errors = doctor(text)
    assert status == 1 and line_with(text) in lines_of(errors) and "sqrt" in errors


@pytest.mark.parametrize("library", TORCHES)
def test_nan_from_an_unchecked_step_is_found_with_the_option_every(library, doctor, monkeypatch):
    monkeypatch.setattr(pacing, "EARLY", 0)
    monkeypatch.setattr(pacing, "allowance", lambda own: -1.0)  # no time is left after the first call
    text = NAN_AT_STEP_3.format(library=library)
    status, _, errors = doctor(text)
    assert status == 1 and "`w` holds NaN" in errors and "6 of 8 were not" in " ".join(errors.split()) and "sqrt" not in errors
    assert "8 times: 1 Problem\n" in errors, "consequences of the first problem are not reported"
    advice = re.search(r"`gradlab doctor (.*?)`", errors)[1].split()
    assert advice == ["--every", "train.py"]
    status, _, errors = doctor(text, before=advice[:1])
    assert status == 1 and line_with(text) in lines_of(errors) and "sqrt" in errors


# ---------------------------------------------------------------------------------- libraries and modules imported by the script
IMPORTS_TORCH = """\
import os
os.environ["SET_BEFORE"] = "1"
import torch
loss = torch.sqrt(torch.zeros(2, requires_grad=True) ** 2).sum()  # here
loss.backward()
"""


@pytest.mark.e2e
@pytest.mark.torch
def test_torch_is_traced_from_its_import_on(here):
    """The script imports torch, gradlab does not."""
    (here / "train.py").write_text("import sys\nassert 'torch' not in sys.modules\n" + IMPORTS_TORCH)
    ours = run_python("-m", "gradlab", "doctor", "train.py", cwd=here)
    assert ours.returncode == 1 and lines_of(ours.stderr) == [6]


@pytest.mark.torch
@pytest.mark.e2e
@pytest.mark.parametrize("context", exhaustive_after_first("fork", "spawn"))
def test_data_loader_workers(context, here):
    (here / "train.py").write_text(f"""\
import torch
from torch.utils.data import DataLoader, Dataset


class Data(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, i):
        return torch.full((4,), float(i)), torch.tensor(float(i))


def main():
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for x, y in DataLoader(Data(), batch_size=4, num_workers=2, multiprocessing_context={context!r}):
        loss = ((model(x) - y) ** 2).mean()  # here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
""")
    ours = run_python("-m", "gradlab", "doctor", "train.py", cwd=here)
    assert ours.returncode == 1 and "(4, 4)" in ours.stderr
    assert lines_of(ours.stderr) == [line_with((here / "train.py").read_text())]


@pytest.mark.torch
@pytest.mark.e2e
def test_compiled_functions_run_eagerly_and_the_report_says_so(here):
    text = """\
import torch


@torch.compile(fullgraph=True)
def loss_of(w):
    return torch.sqrt(w * w).sum()  # here


w = torch.zeros(3, requires_grad=True)
loss_of(w).backward()
"""
    (here / "train.py").write_text(text)
    ours = run_python("-m", "gradlab", "doctor", "train.py", cwd=here)
    assert ours.returncode == 1 and line_with(text) in lines_of(ours.stderr)
    assert "torch.compile was disabled" in ours.stderr
    compiled = run_python("-m", "gradlab", "doctor", "--compiled", "train.py", cwd=here)
    assert compiled.returncode == 1 and "[nan-born]" in compiled.stderr and "torch.compile was disabled" not in compiled.stderr


@pytest.mark.torch
@pytest.mark.e2e
def test_compile_is_not_mentioned_if_nothing_was_compiled(here):
    (here / "train.py").write_text("""\
import torch
import torch._dynamo

w = torch.ones(3, requires_grad=True)
if w.sum() > 5:
    w = torch.compile(w)
(w * w).sum().backward()
""")
    ours = run_python("-m", "gradlab", "doctor", "train.py", cwd=here)
    assert ours.returncode == 0 and "torch.compile" not in ours.stderr


# ------------------------------------------------------------------------------------------------------------ long trainings
@pytest.mark.e2e
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
@pytest.mark.parametrize(
    "library", [pytest.param("gradlab", marks=pytest.mark.exhaustive), pytest.param("torch", marks=pytest.mark.torch)]
)
def test_memory_does_not_grow_in_a_long_training(library, here):
    """Memory stops growing once the record of steps is full, after 10 000 steps."""
    (here / "train.py").write_text(f"""\
import {library} as torch


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(8)])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(8, 4)
for i in range(13000):
    if i == 10000:
        before = resident()
    optimizer.zero_grad()
    ((model(x) - x) ** 2).mean().backward()
    optimizer.step()
print(resident() - before)
""")
    ours = run_python("-m", "gradlab", "doctor", "train.py", cwd=here)
    assert ours.returncode == 0, ours.stderr
    assert int(ours.stdout) < 1e6
    assert "of 13\u202f000 backward calls were checked" in ours.stderr


DISTRIBUTED = """\
import os
import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.nn.parallel import DistributedDataParallel

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
{wrapped}
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(5, 8), torch.randint(0, 4, (5,))
for _ in range(3):
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print([round(p.norm().item(), 6) for p in map(lambda p: p.full_tensor() if hasattr(p, "full_tensor") else p, model.parameters())])
distributed.destroy_process_group()
"""
WRAPPERS = {
    "DDP": "model = DistributedDataParallel(model)",
    "FSDP": 'model = FullyShardedDataParallel(model, device_id=torch.device("cpu"))',
    "fully_shard": """\
mesh = init_device_mesh("cpu", (1,))
for part in (model[0], model[2], model):
    fully_shard(part, mesh=mesh)""",
}


@pytest.mark.torch
@pytest.mark.e2e
@pytest.mark.parametrize("kind", exhaustive_after_first("fully_shard", "DDP", "FSDP"))
def test_distributed_models_run_unchanged_without_findings(kind, here):
    (here / "train.py").write_text(DISTRIBUTED.format(wrapped=WRAPPERS[kind]))
    plain, ours = run_python("train.py", cwd=here), run_python("-m", "gradlab", "doctor", "train.py", cwd=here)
    assert plain.returncode == 0, plain.stderr
    assert ours.returncode == 0, ours.stderr
    assert ours.stdout == plain.stdout
    assert "called backward() 3 times: no Problem" in ours.stderr
    assert ("(DTensor" in ours.stderr) == (kind == "fully_shard")


@pytest.mark.parametrize("library", TORCHES)
def test_optimizer_steps_without_backward_are_reported(doctor, library):
    text = TRAINING.format(library=library, loss=HEALTHY).replace("        loss.backward()\n", "")
    status, _, errors = doctor(text)
    assert status == 1 and "backward() was not called" in errors
    assert lines_of(errors) == [line_with(text, "optimizer.step()")]


@pytest.mark.parametrize("library", TORCHES)
def test_steps_that_only_plot_a_schedule_are_not_reported(doctor, library):
    status, _, errors = doctor(f"""\
import {library} as torch
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
for _ in range(6):
    optimizer.step()
    scheduler.step()
""")
    assert status == 0 and "nothing to look at" in errors
