"""`gradlab doctor script.py`: the script runs as Python runs it, and what is wrong with its gradients is said with its line."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gradlab import cli
from gradlab.diagnose.source_locations import cells
from gradlab.explore.trace import pacing

TORCHES = ["gradlab", pytest.param("torch", marks=pytest.mark.torch)]
# A regression in a function of a script; what a test plants stands in place of LOSS, and `# here` marks the line.
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
FAULTS = {  # what is planted, and what no sentence about it can do without
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
    """doctor(text, *arguments): the exit status, the output and the errors of `gradlab doctor train.py …` in this process."""

    def doctor(text, *arguments, before=()):
        Path("train.py").write_text(text)
        status = cli.main(["doctor", *before, "train.py", *arguments])
        return status, *capsys.readouterr()

    return doctor


@pytest.fixture(autouse=True)
def as_it_was():
    """What Python sets for a script is as it was before."""
    before = sys.argv, sys.modules["__main__"], sys.path[:], sys.meta_path[:], cells.current, cells.called
    torch = sys.modules.get("torch")
    backward = torch.Tensor.backward if torch is not None else None
    yield
    assert (sys.argv, sys.modules["__main__"], sys.path, sys.meta_path, cells.current, cells.called) == before
    if torch is not None:
        assert torch.Tensor.backward is backward
        assert torch.overrides._get_current_function_mode_stack() == []
        assert not torch.nn.modules.module._global_forward_pre_hooks


def as_python(*words, cwd):
    return subprocess.run([sys.executable, *words], check=False, capture_output=True, text=True, cwd=cwd)


def lines_of(errors):
    """The lines of the script that findings are printed below."""
    return [int(line) for line in re.findall(r"^train\.py:(\d+):", errors, re.MULTILINE)]


def line_with(text, mark="# here"):
    return next(i for i, line in enumerate(text.splitlines(), 1) if mark in line)


# ----------------------------------------------------------------------------------------------------------- what is found
@pytest.mark.parametrize("library", TORCHES)
def test_a_healthy_script_ends_with_0_and_its_arguments_reach_it(library, doctor):
    status, out, errors = doctor(TRAINING.format(library=library, loss=HEALTHY), "--steps", "7", "--rate=0.01")
    assert (status, out) == (0, "steps 7\n")
    assert "called backward() 7 times: no Problem" in errors


@pytest.mark.parametrize("library", TORCHES)
@pytest.mark.parametrize("loss", FAULTS)
def test_a_fault_is_found_in_its_line_and_the_status_is_1(library, loss, doctor):
    text = TRAINING.format(library=library, loss=loss)
    status, out, errors = doctor(text, "--steps", "4")
    assert (status, out) == (1, "steps 4\n")
    assert line_with(text) in lines_of(errors)
    assert FAULTS[loss] in errors


EARLY = {  # what ends a script before any backward, and what is said of it, without a word on gradients that are missing
    "nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))(torch.randn(1, 4)).sum().backward()": (
        "1 Problem",
        "(BatchNorm1d)",
        "[1, 3]",
    ),
    "nn.Linear(4, 3)(torch.randn(2, 5)).sum().backward()": ("1 Problem", "takes 4 features"),
    "torch.nn.init.nothing(3)": ("nothing was found", "`torch.nn.init.nothing(3)` on line 4 with AttributeError", "has no rule"),
}


@pytest.mark.parametrize("library", TORCHES)
@pytest.mark.parametrize("line", EARLY)
def test_a_script_that_fails_before_any_backward_is_explained(library, line, doctor):
    status, _, errors = doctor(f"import {library} as torch\nfrom {library} import nn\n\n{line}\n")
    said = errors[errors.index("── gradlab doctor") :]
    assert status == 1 and "before any backward(): " + EARLY[line][0] in said
    assert all(words in " ".join(said.split()) for words in EARLY[line][1:])
    assert "gradients to look at" not in said and "No backward() was called" not in said


def test_a_script_that_exits_by_itself_is_told_as_before(doctor):
    status, _, errors = doctor("import gradlab\nraise SystemExit(3)\n")
    assert status == 3 and "called no backward(): nothing to look at" in errors and "No backward() was called" in errors


MANY = """\
import gradlab as torch

w = torch.tensor([4.0, 0.0], requires_grad=True)
m = torch.tensor([1.0], requires_grad=True)
v = torch.tensor([2.0, 0.0], requires_grad=True)
k = torch.tensor([3.0], requires_grad=True)
p = torch.zeros(4, 1, requires_grad=True)
loss = (w.log() * w).sum() + torch.round(k).sum() + (v / v).sum() + (m * 2).detach().sum() + ((p - torch.ones(4)) ** 2).mean()
loss.backward()
"""


def test_three_findings_are_printed_and_all_of_them_when_asked(doctor):
    _, _, errors = doctor(MANY)
    first = re.findall("■ Problem|□ Note", errors)
    more = re.search(r"(\d+) more problems?(?:, (\d+) more notes?)?: `gradlab doctor --all`", errors)
    assert len(first) == 3 and more is not None
    _, _, errors = doctor(MANY, before=["--all"])
    every = re.findall("■ Problem|□ Note", errors)
    assert len(every) == 3 + sum(int(n or 0) for n in more.groups()) and "more problem" not in errors
    assert every == sorted(every)


@pytest.mark.parametrize("library", TORCHES)
def test_what_a_trainer_holds_has_names(library, doctor):
    """The second layer is in no optimizer; both live in attributes of an object of a function."""
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


@pytest.mark.parametrize("library", TORCHES)
def test_modules_beside_the_script_and_the_line_in_them(library, doctor, here):
    (here / "parts").mkdir()
    (here / "parts" / "__init__.py").write_text("from .root import root\n")
    (here / "parts" / "root.py").write_text(f"import {library} as torch\n\n\ndef root(x):\n    return torch.sqrt(x)\n")
    text = f"import {library} as torch\nfrom parts import root\nw = torch.zeros(3, requires_grad=True)\n"
    text += "root(w * w).sum().backward()\n"
    status, _, errors = doctor(text)
    assert status == 1 and lines_of(errors) == [4]
    assert "root.py line 5: return torch.sqrt(x)" in errors
    assert not any(name.split(".")[0] == "parts" for name in sys.modules)  # another script may have others


def test_no_backward_is_said(doctor):
    status, _, errors = doctor("import gradlab as gl\nprint(gl.ones(2).sum())\n")
    assert status == 0 and "nothing to look at" in errors and "No backward() was called" in errors


# ------------------------------------------------------------------------------------------------------------ as Python does
SAYS = """\
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
def test_it_runs_as_python_runs_it_and_fails_as_it_fails(here):
    """What is printed, and the traceback, are those of `python train.py`; ours comes behind."""
    (here / "train.py").write_text(SAYS)
    (here / "beside.py").write_text("def f(g):\n    return g()\n")
    plain = as_python("train.py", "--a", "b c", cwd=here)
    ours = as_python("-m", "gradlab", "doctor", "train.py", "--a", "b c", cwd=here)
    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout) == (1, plain.stdout)
    assert plain.stderr.count("Traceback") == 2
    assert ours.stderr.startswith(plain.stderr + "── gradlab doctor: train.py ended with status 1")


@pytest.mark.e2e
@pytest.mark.torch
def test_a_traceback_through_torch_is_the_one_without_us(here):
    """Our own frames, and those of torch's that led to them, are not in it."""
    text = (
        "import torch\nw = torch.ones(3, requires_grad=True)\nlin = torch.nn.Linear(3, 1)\nlin(w).backward()\n"
        "y = w.exp()\ny += 1\ny.sum().backward()\n"
    )
    (here / "train.py").write_text(text)
    plain = as_python("train.py", cwd=here)
    ours = as_python("-m", "gradlab", "doctor", "train.py", cwd=here)
    assert "modified by an inplace operation" in plain.stderr and ours.returncode == 1
    assert ours.stderr.startswith(plain.stderr)


@pytest.mark.e2e
def test_a_syntax_error_reads_as_pythons(here):
    (here / "train.py").write_text("x = (1,\ndef\n")
    plain = as_python("train.py", cwd=here)
    ours = as_python("-m", "gradlab", "doctor", "train.py", cwd=here)
    assert ours.returncode == 1 and ours.stderr.startswith(plain.stderr)


@pytest.mark.parametrize(
    ("code", "status"), [("None", 0), ("0", 0), ("3", 3), ("'words'", 1), ("True", 1), ("-1", 255), ("256 + 7", 7)]
)
def test_the_status_of_the_script_is_handed_on(code, status, doctor):
    found, _, errors = doctor(f"import sys\nsys.exit({code})\n")
    assert found == status
    assert ("words\n" in errors) == (code == "'words'")


def test_the_scripts_own_status_wins_over_a_problem(doctor):
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
    plain = as_python("-m", "pack.train", "x", "--html", cwd=here)
    assert cli.main(["doctor", "-m", "pack.train", "--", "x", "--html"]) == 0
    assert capsys.readouterr().out == plain.stdout == "5 ['x', '--html'] pack __main__\n"
    assert cli.main(["doctor", "-m", "pack.nothing"]) == 1
    assert "no module pack.nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere.py", "there is no file nowhere.py"),
        (".", "is a folder"),
        ("lesson.ipynb", "%%doctor"),
        ("numpy.linalg", "gradlab doctor -m numpy.linalg"),
        ("train", "There is train.py"),
        ("binary.py", "no Python source"),
    ],
)
def test_what_is_no_script_is_said(name, said, here, capsys):
    (here / "train.py").write_text("")
    (here / "lesson.ipynb").write_text("{}")
    (here / "binary.py").write_bytes(b"\x93\0\xff")
    assert cli.main(["doctor", name]) == 1
    shown = capsys.readouterr()
    assert said in shown.err and not shown.out


MODELS = """\
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
def test_every_model_of_a_script_is_looked_at(library, doctor, here):
    text = MODELS.format(library=library)
    status, _, errors = doctor(text, before=["--html", "page.html"])
    assert status == 1 and lines_of(errors) == [line_with(text)] and "called backward() 8 times: 1 Problem" in errors
    assert "■ Problem  act=Sigmoid: " in errors
    page = (here / "page.html").read_text()
    assert "act=Tanh" in page and "for 2 models" in page


def test_other_code_of_the_process_keeps_its_names(doctor):
    """A second script sees nothing of the first."""
    doctor("left = 1\nimport gradlab as gl\n(gl.ones(2, requires_grad=True) * 0).sum().backward()\n")
    status, out, _ = doctor("print('left' in globals(), __name__)\n")
    assert (status, out) == (0, "False __main__\n")


@pytest.mark.e2e
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("library", TORCHES)
def test_ctrl_c_keeps_what_was_seen(library, here, sigint):
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
def test_a_forked_child_ends_as_it_would_and_says_nothing(here):
    (here / "train.py").write_text(
        "import os, sys\nchild = os.fork()\nif not child:\n    sys.exit(5)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    ours = as_python("-m", "gradlab", "doctor", "train.py", cwd=here)
    assert (ours.returncode, ours.stdout) == (0, "5\n")
    assert ours.stderr.count("gradlab doctor:") == 1


# ------------------------------------------------------------------------------------------------------------------ the page
@pytest.mark.parametrize("library", TORCHES)
@pytest.mark.parametrize("where", ["before", "behind", "joined"])
def test_a_page_is_written_wherever_it_is_asked_for(library, where, doctor, here):
    text = TRAINING.format(library=library, loss="((out - y) ** 2).mean()")
    words = {"before": ([], ["--html", "o.html"]), "behind": (["--html", "o.html"], []), "joined": (["--html=o.html"], [])}[where]
    status, out, _ = doctor(text, "--steps", "3", *words[0], before=words[1])
    assert (status, out) == (1, "steps 3\n")
    page = (here / "o.html").read_text()
    assert "(64, 64)" in page and "fc1" in page and "default-src 'none'" in page and "3 times" in page
    assert "train.py" in page and "<script" not in page


def test_what_a_user_names_is_text_on_the_page(here, capsys):
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


def test_a_page_that_cannot_be_written_is_said_before_the_script_runs(doctor, here):
    for words, said in (
        (["--html", "none/o.html"], "no folder"),
        (["--html", "."], "is a folder"),
        (["--html"], "needs the name"),
    ):
        status, out, errors = doctor("print('ran')\n", *words)
        assert (status, out) == (1, "") and said in errors
    assert doctor("import os\nos.mkdir('sub')\nos.chdir('sub')\n", "--html", "o.html")[0] == 0
    os.chdir(here)
    assert (here / "o.html").exists()


# ----------------------------------------------------------------------------------------------- what is looked at of many calls
SPOILS = """\
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
def test_where_numbers_are_born_is_told_when_all_is_nan_since(library, doctor):
    text = SPOILS.format(library=library)
    status, _, errors = doctor(text)
    assert status == 1 and line_with(text) in lines_of(errors) and "sqrt" in errors


@pytest.mark.parametrize("library", TORCHES)
def test_nan_that_came_while_nobody_looked_is_said_and_found_by_every(library, doctor, monkeypatch):
    monkeypatch.setattr(pacing, "allowance", lambda own: -1.0)  # after the first call there is no time
    text = SPOILS.format(library=library)
    status, _, errors = doctor(text)
    assert status == 1 and "`w` holds NaN" in errors and "6 of 8 were not" in errors and "sqrt" not in errors
    assert "8 times: 1 Problem\n" in errors, "nothing is said of what follows from it"
    advice = re.search(r"`gradlab doctor (.*?)`", errors)[1].split()
    assert advice == ["--every", "train.py"]
    status, _, errors = doctor(text, before=advice[:1])
    assert status == 1 and line_with(text) in lines_of(errors) and "sqrt" in errors


# --------------------------------------------------------------------------------------------------- what is imported later
LATER = """\
import os
os.environ["SET_BEFORE"] = "1"
import torch
loss = torch.sqrt(torch.zeros(2, requires_grad=True) ** 2).sum()  # here
loss.backward()
"""


@pytest.mark.e2e
@pytest.mark.torch
def test_torch_is_seen_from_its_import_on(here):
    """It is imported by the script and not by us."""
    (here / "train.py").write_text("import sys\nassert 'torch' not in sys.modules\n" + LATER)
    ours = as_python("-m", "gradlab", "doctor", "train.py", cwd=here)
    assert ours.returncode == 1 and lines_of(ours.stderr) == [6]


@pytest.mark.torch
@pytest.mark.e2e
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_that_load_data(context, here):
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
    ours = as_python("-m", "gradlab", "doctor", "train.py", cwd=here)
    assert ours.returncode == 1 and "(4, 4)" in ours.stderr
    assert lines_of(ours.stderr) == [line_with((here / "train.py").read_text())]


@pytest.mark.torch
@pytest.mark.e2e
def test_what_is_compiled_is_seen_line_by_line_and_that_is_said(here):
    text = """\
import torch


@torch.compile(fullgraph=True)
def loss_of(w):
    return torch.sqrt(w * w).sum()  # here


w = torch.zeros(3, requires_grad=True)
loss_of(w).backward()
"""
    (here / "train.py").write_text(text)
    ours = as_python("-m", "gradlab", "doctor", "train.py", cwd=here)
    assert ours.returncode == 1 and line_with(text) in lines_of(ours.stderr)
    assert "torch.compile was set aside" in ours.stderr


@pytest.mark.torch
@pytest.mark.e2e
def test_nothing_is_said_of_compiling_where_nothing_was_compiled(here):
    (here / "train.py").write_text("""\
import torch
import torch._dynamo

w = torch.ones(3, requires_grad=True)
if w.sum() > 5:
    w = torch.compile(w)
(w * w).sum().backward()
""")
    ours = as_python("-m", "gradlab", "doctor", "train.py", cwd=here)
    assert ours.returncode == 0 and "set aside" not in ours.stderr


# ------------------------------------------------------------------------------------------------------------ long trainings
@pytest.mark.e2e
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory as Linux tells it")
@pytest.mark.parametrize(
    "library", [pytest.param("gradlab", marks=pytest.mark.exhaustive), pytest.param("torch", marks=pytest.mark.torch)]
)
def test_a_long_training_keeps_no_more_than_a_short_one(library, here):
    """Once the notes on steps are full, which are 10 000, what is held grows no more."""
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
    ours = as_python("-m", "gradlab", "doctor", "train.py", cwd=here)
    assert ours.returncode == 0, ours.stderr
    assert int(ours.stdout) < 1e6
    assert "of 13\u202f000 backward calls were looked at" in ours.stderr


SHARDED = """\
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
WRAPPED = {
    "DDP": "model = DistributedDataParallel(model)",
    "FSDP": 'model = FullyShardedDataParallel(model, device_id=torch.device("cpu"))',
    "fully_shard": """\
mesh = init_device_mesh("cpu", (1,))
for part in (model[0], model[2], model):
    fully_shard(part, mesh=mesh)""",
}


@pytest.mark.torch
@pytest.mark.e2e
@pytest.mark.parametrize("kind", WRAPPED)
def test_what_is_distributed_runs_as_it_is_and_is_left_in_peace(kind, here):
    (here / "train.py").write_text(SHARDED.format(wrapped=WRAPPED[kind]))
    plain, ours = as_python("train.py", cwd=here), as_python("-m", "gradlab", "doctor", "train.py", cwd=here)
    assert plain.returncode == 0, plain.stderr
    assert ours.returncode == 0, ours.stderr
    assert ours.stdout == plain.stdout
    assert "called backward() 3 times: no Problem" in ours.stderr
    assert ("(DTensor" in ours.stderr) == (kind == "fully_shard")


@pytest.mark.parametrize("library", TORCHES)
def test_steps_of_an_optimizer_without_any_backward(doctor, library):
    text = TRAINING.format(library=library, loss=HEALTHY).replace("        loss.backward()\n", "")
    status, _, errors = doctor(text)
    assert status == 1 and "backward() was not called" in errors
    assert lines_of(errors) == [line_with(text, "optimizer.step()")]


@pytest.mark.parametrize("library", TORCHES)
def test_steps_that_show_a_schedule_are_left_in_peace(doctor, library):
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
