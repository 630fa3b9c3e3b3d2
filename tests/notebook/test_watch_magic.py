"""`%%watch` finds and watches the training of a cell, which runs as without it."""

from __future__ import annotations

import pytest
from leftovers import find_leftovers

SETUP = """import LIB as lib, gradlab as gl
lib.manual_seed(0)
net = lib.nn.Sequential(lib.nn.Linear(4, 8), lib.nn.ReLU(), lib.nn.Linear(8, 1))
opt = lib.optim.Adam(net.parameters(), lr=0.01)
x, y = lib.randn(32, 4), lib.randn(32, 1)"""
LOOP = """for i in range(20):
    opt.zero_grad()
    cost = ((net(x) - y) ** 2).mean()
    cost.backward()
    opt.step()"""
BY_HAND = """def train():
    a = lib.ones(4, 1).requires_grad_()
    for i in range(20):
        err = ((x @ a - y) ** 2).mean()
        err.backward()
        with lib.no_grad():
            a -= 0.1 * a.grad
            a.grad = None
train()"""


@pytest.fixture(params=["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
def ready(request, shell):
    shell.ok(SETUP.replace("LIB", request.param))
    return shell


def test_the_model_the_optimizer_and_the_loss_are_found(ready):
    ran = ready.ok(f"%%watch -o w\n{LOOP}")
    w = ready.ns["w"]
    assert (w.steps, w.layers, w.loss_name, w.optimizer_name) == (20, ("net[0]", "net[2]"), "cost", "Adam")
    assert ready.ns["cost"].item() == pytest.approx(w.history()["loss"][-1], rel=1e-5)
    assert "Step 20 · cost" in ran.text


def test_a_training_in_a_function_is_found_among_its_names(ready):
    ready.ok(f"%%watch -o w\n{BY_HAND}")
    w = ready.ns["w"]
    assert (w.steps, w.layers, w.loss_name, w.optimizer_name) == (20, ("a",), "err", "")
    assert w.history()["ratio a"][0] > 0


def test_a_training_in_an_object_is_found(ready):
    ready.ok(
        "class Trainer:\n    def __init__(self):\n        self.model, self.optimizer = net, opt\n    def fit(self):\n"
        "        for _ in range(3):\n            self.optimizer.zero_grad()\n            loss = self.model(x).mean()\n"
        "            loss.backward()\n            self.optimizer.step()\n"
    )
    ready.ok("%%watch -o w\nTrainer().fit()")
    assert ready.ns["w"].steps == 3 and ready.ns["w"].optimizer_name == "Adam"


def test_an_error_is_shown_as_usual_and_the_recorded_steps_are_kept(ready):
    ran = ready.run(f"%%watch -o w\n{LOOP}\n    if i == 7: 1 / 0")
    assert isinstance(ran.error, ZeroDivisionError)
    assert ready.ns["w"].steps == 8 and ready.ns["w"].interrupted == "ZeroDivisionError"
    assert find_leftovers() == []


def test_options(ready):
    assert "no backward()" in ready.ok("%%watch\n1 + 1").stdout
    assert "takes no names" in ready.run("%%watch net\n1 + 1").stderr
    assert "integer of at least 1" in ready.run("%%watch --every 0\n1 + 1").stderr
    ran = ready.ok(f"%%watch -q --every 4 -o w\n{LOOP}")
    assert ran.text == "" and ready.ns["w"].every == 4


def test_all_hooks_are_removed(ready):
    ready.ok(f"%%watch -q\n{LOOP}")
    assert find_leftovers() == []
    lib = ready.ns["lib"]
    if lib.__name__ == "torch":
        assert lib.Tensor.backward.__module__ == "torch._tensor"


def test_a_nonfinite_gradient_in_the_first_sweep_is_examined(ready):
    """The watch begins with that sweep, before its hooks are registered."""
    ready.ok(
        "%%watch -o w\nfor i in range(2):\n    opt.zero_grad()\n    cost = (net(x) * 0).sqrt().sum()\n"
        "    cost.backward()\n    opt.step()"
    )
    w = ready.ns["w"]
    assert w.bad_step.step == 1 and w.bad_step.what == "gradient" and w.bad_step.sweep is not None
    assert "sqrt" in w.findings.findings[0].message


# ----------------------------------------------------------------------------------------------------- the doctor in a watch
FAULTY = """opt.zero_grad()
for i in range(12):
    cost = ((net(x) - y) ** 2).mean()
    cost.backward()
    opt.step()"""


def test_a_watched_cell_has_the_findings_of_a_grad_cell(ready):
    state = "import copy\nkept = copy.deepcopy(net.state_dict())"
    ready.ok(state)
    ready.ok(f"%%watch -o w\n{FAULTY}")
    ready.ok(
        "net.load_state_dict(kept)\nfor p in net.parameters(): p.grad = None\nopt = lib.optim.Adam(net.parameters(), lr=0.01)"
    )
    ready.ok(f"%%grad -o report\n{FAULTY}")
    watched, reported = ready.ns["w"].findings, ready.ns["report"]
    for one, other in zip(watched.findings, reported.findings, strict=True):
        assert (one.kind, one.line, one.fix, one.message) == (other.kind, other.line, other.fix, other.message)
    assert [(one.kind, one.line) for one in watched.findings] == [("accumulated", 5)]


def test_the_doctor_reports_the_same_afterwards(ready):
    ran = ready.ok(f"%%watch -o w\n{FAULTY}")
    assert "[accumulated]" in ran.text
    assert "[accumulated]" in str(ready.ok("%doctor").result)


def test_a_kind_is_silenced(ready):
    ran = ready.ok(f"%%watch -o w --ignore accumulated\n{FAULTY}")
    assert "accumulated" not in ran.text and ready.ns["w"].findings.ignored == 1
    commented = FAULTY.replace("cost.backward()", "cost.backward()  # gradlab: ignore[accumulated]")
    assert "accumulated" not in ready.ok(f"%%watch\n{commented}").text
    assert "is not a kind" in ready.run(f"%%watch --ignore nonsense\n{FAULTY}").stderr


def test_a_library_that_the_cell_imports_is_watched(ready):
    name = ready.ns["lib"].__name__
    ran = ready.ok(f"%%watch -o w\nimport {name} as lib\n{FAULTY}")
    assert ready.ns["w"].steps == 12 and "[accumulated]" in ran.text


def test_an_error_is_explained_once_with_the_run(ready):
    ran = ready.run(f"%%watch -o w\n{FAULTY}\nnet(lib.ones(3, 9))")
    assert ran.error is not None and ready.ns["w"].steps == 12
    assert ran.text.count("[accumulated]") == 1
    kinds = [one.kind for one in ready.ns["w"].findings.findings]
    assert kinds == ["accumulated"]


def test_kinds_of_errors_are_reported_without_an_error(ready):
    """The checks of errors report these kinds, too."""
    ready.ok(
        "%%watch -o w\nfor i in range(6):\n    opt.zero_grad()\n    hidden = net[:2](x).detach()\n"
        "    cost = ((net[2](hidden) - y) ** 2).mean()\n    cost.backward()\n    opt.step()"
    )
    assert [(one.kind, one.line) for one in ready.ns["w"].findings.findings] == [("detached", 4)]


def test_an_interrupt_ends_the_run(ready):
    ran = ready.run(f"%%watch -o w\n{FAULTY}\nraise KeyboardInterrupt")
    assert "[accumulated]" in ran.text and ready.ns["w"].interrupted == "KeyboardInterrupt"
    assert find_leftovers() == []


def test_without_a_backward_the_doctor_says_why(ready):
    ran = ready.ok("%%watch\nwith lib.no_grad():\n    cost = ((net(x) - y) ** 2).mean()\nopt.step()")
    assert "no backward()" in ran.stdout


@pytest.mark.torch
def test_a_training_of_which_all_steps_are_skipped_has_one_finding_and_no_picture(shell):
    shell.ok(SETUP.replace("LIB", "torch"))
    scaled = LOOP.replace("20", "14").replace("cost.backward()", "scaler.scale(cost / 0).backward()")
    scaled = scaled.replace("opt.step()", "scaler.step(opt); scaler.update()")
    shell.ok("scaler = lib.amp.GradScaler('cpu')")
    ran = shell.ok(f"%%watch -o w\n{scaled}")
    w = shell.ns["w"]
    assert w.steps == 0 and w.bad_step is None and w.loss_scale == 8.0
    assert [one.kind for one in w.findings.findings] == ["falling-scale"]
    assert "14 of 14 steps skipped" in ran.text and "‖gradient‖" not in ran.text
