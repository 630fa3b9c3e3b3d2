"""The doctor in a watch: its findings on the first steps of a training, with lines, and that it releases everything."""

from __future__ import annotations

import inspect
import math

import pytest
from leftovers import find_leftovers, find_torch_leftovers
from watched import LIBRARIES, data, library, mlp

import gradlab as gl
from gradlab.diagnose.faults import FaultWarning
from gradlab.diagnose.source_locations import cells
from gradlab.explore.watch import examination
from gradlab.explore.watch.progress import duration


@pytest.fixture(params=LIBRARIES)
def lib(request):
    yield library(request.param)
    assert find_leftovers() == [] and examination._here.running is None and cells.current is None
    if request.param == "torch":
        assert find_torch_leftovers() == []


FULL, FIRST = 20, 10


@pytest.fixture
def few(monkeypatch):
    """Examine few steps, which makes them fast."""
    for place in ("examination.FULL", "watching.FULL"):
        monkeypatch.setattr(f"gradlab.explore.watch.{place}", FULL)
    monkeypatch.setattr("gradlab.explore.watch.examination.FIRST", FIRST)


def test_of_how_many_steps_the_pages_speak():
    assert (examination.FULL, examination.FIRST) == (200, 100)


def line_of(function, text):
    """Return the number of the line of a function that contains a text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def steps_of(w, opt, loss_of, steps):
    """Run ordinary steps in a watched block."""
    for _ in range(steps):
        opt.zero_grad()
        loss = loss_of()
        loss.backward()
        opt.step()
        w.log(loss)


def test_a_gradient_that_is_none_names_the_operation_its_line_and_a_fix(lib):
    net, (x, y) = mlp(lib, 6, 1), data(lib)
    opt = lib.optim.SGD(net.parameters(), lr=0.01)
    with gl.watch(net, opt) as w:
        for step in range(40):
            opt.zero_grad()
            error = (net(x) - y) * (0.0 if step == 30 else 1.0)
            rmse = lib.sqrt((error**2).mean())
            rmse.backward()
            opt.step()
            w.log(rmse)
    found = w.findings.findings[0]
    here = test_a_gradient_that_is_none_names_the_operation_its_line_and_a_fix
    assert found.line == line_of(here, "rmse = lib.sqrt")
    assert found.message.startswith(
        "At step 31 the gradient of `net[0].weight` and `net[0].bias` was not finite for the first time"
    )
    assert "the derivative of sqrt there, 1 / (2 · sqrt(0)), is inf" in found.message
    assert found.evidence["step"] == 31
    assert "lib.sqrt((error ** 2).mean() + 1e-12)" in found.fix
    text = repr(w)
    assert f"[{found.kind}]" in text and f"line {found.line}" in text


def test_many_sigmoids_are_named(lib):
    net, (x, y) = mlp(lib, 6, *[16] * 10, 1, activation="Sigmoid"), data(lib)
    opt = lib.optim.SGD(net.parameters(), lr=0.01)
    with gl.watch(net, opt) as w:
        steps_of(w, opt, lambda: lib.nn.functional.mse_loss(net(x), y), 5)
    (found,) = w.findings.findings
    assert found.kind == "vanishing" and "10 sigmoids" in found.message and found.fix


def test_the_first_loss_is_looked_at(lib):
    lib.manual_seed(0)
    x, _ = data(lib)
    labels = lib.tensor([i % 5 for i in range(len(x))])
    net = lib.nn.Linear(6, 5)
    with lib.no_grad():
        net.weight *= 100.0
    opt = lib.optim.SGD(net.parameters(), lr=0.01)
    with gl.watch(net, opt) as w:
        steps_of(w, opt, lambda: lib.nn.functional.cross_entropy(net(x), labels), 5)
    found = [*w.findings.findings, *w.findings.remarks]
    assert any(f"{math.log(5):.3g}" in one.message for one in found), [one.message for one in found]


@pytest.mark.parametrize("steps", [FULL, FULL + 1, 3 * FULL])
@pytest.mark.parametrize("known", [True, False])
def test_a_run_is_recorded_in_full_up_to_a_number_of_steps_and_not_at_all_beyond(lib, steps, known, few):
    a = lib.ones(3).requires_grad_()
    opt = lib.optim.SGD([a], lr=0.01)
    recorded, backward = [], lib.Tensor.backward

    def step(w):
        opt.zero_grad()
        loss = ((a - 2.0) ** 2).sum()
        loss.backward()
        opt.step()
        w.log(loss)
        recorder = w._examination.recorder
        recorded.append(recorder is not None)
        if recorder is not None:
            assert recorder.journal.skipped == 0 and recorder.sweeps == len(recorded)

    with gl.watch([a], opt) as w:
        if known:
            for _ in range(steps):
                step(w)
        else:
            done = 0
            while done < steps:
                step(w)
                done += 1
        if steps > FULL and lib.__name__ == "torch":
            assert [one for one in find_torch_leftovers() if one not in ("backward", "GradScaler")] == []
    assert lib.Tensor.backward is backward
    seen = steps if known and steps <= FULL else FIRST
    assert sum(recorded) == seen - 1  # the last of them ends it
    found = w.history()
    assert w._judge.examination.steps == seen
    assert len(found["step"]) > 10


def test_what_is_wrong_is_said_while_a_long_run_goes_on(lib, few):
    net, (x, y) = mlp(lib, 6, 1), data(lib)
    opt = lib.optim.SGD(net.parameters(), lr=0.001)
    said = []
    with gl.watch(net, opt) as w:
        for _ in range(2 * FULL):
            opt.zero_grad()
            loss = ((net(x) - y[:, 0]) ** 2).mean()  # (64, 1) and (64,)
            loss.backward()
            opt.step()
            w.log(loss)
            said.append([one.kind for one in w.findings.findings])
    assert said[FIRST - 2] == [] and "broadcast" in said[FIRST] and "broadcast" in said[-1]


def test_watches_in_one_block_have_each_their_own(lib):
    good, poor, (x, y) = mlp(lib, 6, 1), mlp(lib, 6, 1), data(lib)
    first, second = (lib.optim.SGD(net.parameters(), lr=0.01) for net in (good, poor))
    with gl.watch(good, first) as a, gl.watch(poor, second) as b:
        assert a._examination is b._examination
        for _ in range(10):
            first.zero_grad()
            loss = ((good(x) - y) ** 2).mean()
            loss.backward()
            first.step()
            a.log(loss)
            error = ((poor(x) - y) ** 2).mean()
            error.backward()
            second.step()
            b.log(error)
    assert a.findings.findings == ()
    (found,) = b.findings.findings
    assert found.kind == "accumulated" and found.model == "" and "second.zero_grad()" in found.fix


def test_a_second_watch_after_the_first_begins_anew(lib):
    (x, y), kinds = data(lib), []
    for clear in (False, True):
        net = mlp(lib, 6, 1)
        opt = lib.optim.SGD(net.parameters(), lr=0.01)
        with gl.watch(net, opt) as w:
            for _ in range(6):
                if clear:
                    opt.zero_grad()
                loss = ((net(x) - y) ** 2).mean()
                loss.backward()
                opt.step()
                w.log(loss)
        kinds.append([one.kind for one in w.findings.findings])
    assert kinds == [["accumulated"], []]


def accumulate(lib, w, net, opt, stop=None):
    """Train with gradients that nothing clears; raise an error after eight steps."""
    x, y = data(lib)
    with w:
        for step in range(12):
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            opt.step()
            w.log(loss)
            if step == 7 and stop is not None:
                raise stop("stop")


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_run_that_is_stopped_is_examined(lib, error):
    net = mlp(lib, 6, 1)
    opt = lib.optim.SGD(net.parameters(), lr=0.01)
    w = gl.watch(net, opt)
    with pytest.raises(error):
        accumulate(lib, w, net, opt, error)
    assert w.interrupted == error.__name__ and "accumulated" in [one.kind for one in w.findings.findings]


def test_a_fault_of_the_recorder_does_not_stop_the_training(lib, monkeypatch):
    monkeypatch.setattr(examination.Recorder, "meet_libraries", lambda self: 1 / 0)
    net = mlp(lib, 6, 1)
    opt = lib.optim.SGD(net.parameters(), lr=0.01)
    w = gl.watch(net, opt)
    with pytest.warns(FaultWarning, match="watched the training"):
        accumulate(lib, w, net, opt)
    assert w.steps == 12 and w.trouble


# -------------------------------------------------------------------------------------------------------------- its name
def test_a_loss_is_named_by_the_call_that_logs_it(lib):
    a = lib.ones(2).requires_grad_()
    opt = lib.optim.SGD([a], lr=0.01)

    def loss_name(log, **options):
        with gl.watch([a], opt, **options) as w:
            mse = (a * a).mean()
            mse.backward()
            opt.step()
            log(w, mse)
        return w.loss_name

    assert loss_name(lambda w, mse: w.log(mse)) == "mse"
    assert loss_name(lambda w, mse: w.log(mse.detach().item())) == "mse"
    assert loss_name(lambda w, mse: w.log(float(mse.detach()))) == "mse"
    assert loss_name(lambda w, mse: w.log(loss=mse)) == "mse"
    assert loss_name(lambda w, mse: w.log(mse * 2)) == "loss"
    assert loss_name(lambda w, mse: w.log(mse), loss="error") == "error"


# ------------------------------------------------------------------------------------------------------------- progress
class Batches:
    """Four batches, with the attributes of PyTorch's data loader and tqdm's bar."""

    def __init__(self, x):
        self._x, self.total = x, 4

    def __len__(self):
        return self.total

    def __iter__(self):
        yield from self._x.reshape(4, -1, 6)


class DataLoader(Batches):
    __module__ = "torch.utils.data.dataloader"


class Bar(Batches):
    __module__ = "tqdm.std"


def of_loop(lib, loop):
    """Train in a loop, which gets a function that runs a step, and return the reported number of steps."""
    a = lib.ones(6, 1).requires_grad_()
    opt = lib.optim.SGD([a], lr=1e-3)
    said = []
    with gl.watch([a], opt) as w:

        def step(x):
            loss = (x @ a).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            said.append(w.total)

        loop(step, data(lib)[0])
    return said


def test_the_number_of_steps_is_read_off_the_loops(lib):
    def by_range(step, x):
        for _ in range(9):
            step(x)

    def by_epochs(step, x):
        loader = DataLoader(x)
        for _epoch in range(3):
            for batch in loader:
                step(batch)

    def by_a_list(step, x):
        batches = [x, x, x]
        for i, batch in enumerate(batches):
            if i < 3:
                step(batch)

    def by_a_bar(step, x):
        bar = Bar(x)
        for batch in bar:
            step(batch)

    def by_a_bar_around(step, x):
        tqdm = iter
        for batch in tqdm([x, x]):
            step(batch)

    def by_others(step, x):
        for batch in Batches(x):
            step(batch)

    def by_while(step, x):
        done = 0
        while done < 5:
            step(x)
            done += 1

    def by_generator(step, x):
        for batch in (x for _ in range(5)):
            step(batch)

    assert of_loop(lib, by_range)[1:] == [9] * 8
    assert of_loop(lib, by_epochs)[1:] == [12] * 11
    assert of_loop(lib, by_a_list)[1:] == [3] * 2
    assert of_loop(lib, by_a_bar)[1:] == [4] * 3
    assert of_loop(lib, by_a_bar_around)[1:] == [2]
    assert set(of_loop(lib, by_others)) == {None}
    assert set(of_loop(lib, by_while)) == {None}
    assert set(of_loop(lib, by_generator)) == {None}


def test_loops_around_the_block_do_not_count(lib):
    x, _ = data(lib)
    a = lib.ones(6, 1).requires_grad_()
    totals = []
    for rate in (0.1, 0.01):
        opt = lib.optim.SGD([a], lr=1e-3 * rate)
        with gl.watch([a], opt) as w:
            for _ in range(7):
                opt.zero_grad()
                (x @ a).square().mean().backward()
                opt.step()
        totals.append(w.total)
    assert totals == [7, 7]


def test_steps_of_several_sweeps_are_counted_once(lib):
    x, _ = data(lib)
    a = lib.ones(6, 1).requires_grad_()
    opt = lib.optim.SGD([a], lr=1e-3)
    with gl.watch([a], opt) as w:
        for _ in range(6):
            opt.zero_grad()
            for part in (x[:32], x[32:]):
                ((x @ a).square().mean() * float(len(part) > 0)).backward()
            opt.step()
        assert w.total == 6


def test_speed_and_the_time_that_is_left(lib, clock):
    x, _ = data(lib)
    a = lib.ones(6, 1).requires_grad_()
    opt = lib.optim.SGD([a], lr=1e-3)
    with gl.watch([a], opt) as w:
        for step in range(40):
            opt.zero_grad()
            loss = (x @ a).square().mean()
            loss.backward()
            clock.move(0.5)
            opt.step()
            w.log(loss)
            if step == 19:
                assert "Step 20 of 40 · " in repr(w) and "2 steps per second, 10 s left" in repr(w)
    assert "Step 40 · " in repr(w) and "2 steps per second" in repr(w) and "left" not in repr(w)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (8.4, "8 s"),
        (89, "89 s"),
        (150, "2 min"),
        (3600, "1 h"),
        (5400, "1 h 30 min"),
        (86400, "1 day"),
        (2.5 * 86400, "2 days 12 h"),
    ],
)
def test_times_in_words(seconds, said):
    assert duration(seconds) == said


@pytest.mark.torch
def test_the_number_of_steps_of_pytorchs_own_loader():
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    loader = DataLoader(TensorDataset(torch.ones(10, 6)), batch_size=3)
    net = torch.nn.Linear(6, 1)
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    totals = []
    with gl.watch(net, opt) as w:
        for _epoch in range(2):
            for (batch,) in loader:
                steps_of(w, opt, lambda batch=batch: net(batch).square().mean(), 1)
                totals.append(w.total)
    assert w.steps == 8 and totals[-1] == 8
