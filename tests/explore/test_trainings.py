"""Several models in one program: each is identified by its leaves, has its own name, and is examined up to its end."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np
import pytest

import gradlab as gl
from gradlab.explore.trace.identities import Identities
from gradlab.explore.trace.labels import Identity, labels, short, values_around
from gradlab.explore.trace.loops import Progress
from gradlab.explore.trace.notes import users_frames
from gradlab.explore.trace.recorder import Recorder
from gradlab.explore.trace.trainings import MAX_TRAININGS

try:
    import torch
except ImportError:
    torch = None

pytestmark = pytest.mark.usefixtures("clock")
both = pytest.mark.parametrize("lib", [gl, pytest.param(torch, marks=pytest.mark.torch)], ids=["gradlab", "torch"])


def net_of(lib, act="ReLU"):
    return lib.nn.Sequential(lib.nn.Linear(3, 4), getattr(lib.nn, act)(), lib.nn.Linear(4, 1))


def sweep(lib, net, *seeds):
    net.zero_grad()
    x = lib.tensor(np.random.default_rng(*seeds or (0,)).normal(size=(5, 3)).astype(np.float32))
    loss = (net(x) ** 2).mean()
    loss.backward()
    return loss


# ----------------------------------------------------------------------------------------------------- sweeps of one model
@both
def test_each_model_of_a_loop_is_one_training(lib):
    space, norms, said = {}, [], []
    with Recorder(lambda: space) as recorder:
        recorder.on_end = lambda training: said.append(training.owners["net"][1]) or len(said)
        for act in ["Sigmoid", "Tanh", "ReLU"]:
            space["net"] = net_of(lib, act)
            for _ in range(4):
                sweep(lib, space["net"])
            norms.append([float(np.linalg.norm(p.grad.numpy())) for p in space["net"].parameters()])
        known = recorder.trainings.known
        assert [(one.sweeps, one.over) for one in known] == [(4, True), (4, True), (4, False)]
        assert labels([one.identity for one in known]) == ["act=Sigmoid", "act=Tanh", "act=ReLU"]
        recorder.end_training(known[2])
    assert [type(one).__name__ for one in said] == ["Sigmoid", "Tanh", "ReLU"], "each is examined with its names at that time"
    assert [one.diagnosis for one in known] == [1, 2, 3]
    for training, expected in zip(known, norms, strict=True):
        trace = training.trace
        assert (trace.sweep, trace.sweeps) == (4, 4)
        assert len(trace.leaves) == 4 and len({leaf.name for leaf in trace.leaves}) == 4, "no table has two models"
        np.testing.assert_allclose(sorted(leaf.gradient.norm for leaf in trace.leaves), sorted(expected), rtol=1e-5)


@both
def test_a_model_that_was_replaced_is_released(lib):
    space, gone = {}, []
    with Recorder(lambda: space) as recorder:
        for _ in range(3):
            space["net"] = net_of(lib)
            gone.append(weakref.ref(next(iter(space["net"].parameters()))))
            sweep(lib, space["net"])
        gc.collect()
        assert [ref() is None for ref in gone] == [True, True, False]
        assert recorder.trainings.known[0].owners == {}


@both
def test_models_that_take_turns_are_two_trainings(lib):
    space = {"a": net_of(lib), "b": net_of(lib, "Tanh")}
    with Recorder(lambda: space) as recorder:
        for i in range(5):
            sweep(lib, space["a"], i)
            sweep(lib, space["b"], i)
        known = recorder.trainings.known
        assert [(one.sweeps, one.over, one.identity.model) for one in known] == [(5, False, "a"), (5, False, "b")]
        assert labels([one.identity for one in known]) == ["a", "b"]
        for one in known:
            recorder.end_training(one)
        assert [(one.trace.sweep, one.trace.sweeps) for one in known] == [(5, 5), (5, 5)]
        assert {leaf.key for leaf in known[0].trace.leaves} == {id(p) for p in space["a"].parameters()}


@both
def test_losses_that_share_parameters_are_one_training(lib):
    """A critic is trained first, then a generator through it, as in an adversarial network."""
    space = {"critic": net_of(lib), "generator": lib.nn.Linear(3, 3)}
    with Recorder(lambda: space) as recorder:
        for i in range(3):
            sweep(lib, space["critic"], i)
            x = lib.tensor(np.random.default_rng(i).normal(size=(5, 3)).astype(np.float32))
            (-space["critic"](space["generator"](x))).mean().backward()
        (training,) = recorder.trainings.known
        assert training.sweeps == 6 and len(training.keys) == 6
        assert len(recorder.trace().leaves) == 6 and recorder.trace().sweep == 6


@both
def test_two_trainings_that_a_loss_joins_become_one(lib):
    space = {"a": net_of(lib), "b": net_of(lib)}
    with Recorder(lambda: space) as recorder:
        sweep(lib, space["a"])
        sweep(lib, space["b"])
        x = lib.tensor(np.ones((2, 3), np.float32))
        (space["a"](x) + space["b"](x)).sum().backward()
        (training,) = recorder.trainings.known
        assert training.sweeps == 3 and len(recorder.trace().leaves) == 8


@both
def test_models_by_hand_are_distinguished_and_single_tensors_are_not(lib):
    space = {}

    def parameter(*shape):
        return lib.tensor(np.ones(shape, np.float32), requires_grad=True)

    with Recorder(lambda: space) as recorder:
        for scale in (1.0, 2.0):
            space["W1"], space["W2"] = parameter(3, 4), parameter(4, 1)
            for _ in range(2):
                (parameter(2, 3).detach() @ space["W1"] @ space["W2"] * scale).sum().backward()
        for n in range(3):
            space["x"] = parameter(3)
            (space["x"] ** n).sum().backward()
            (parameter(3, 4) @ parameter(4, 1)).sum().backward()  # copies that are created at each step, as in meta-learning
        assert [(one.sweeps, len(one.keys)) for one in recorder.trainings.known] == [(2, 2), (2, 2)]
        assert recorder.trainings.rest.sweeps == 2 + 6
        assert labels([one.identity for one in recorder.trainings.known]) == ["scale=1", "scale=2"]


@both
def test_the_number_of_models_is_bounded(lib):
    space = {}
    with Recorder(lambda: space) as recorder:
        for i in range(MAX_TRAININGS + 5):
            space["net"] = net_of(lib)
            sweep(lib, space["net"], i)
        trainings = recorder.trainings
        assert len(trainings.known) == MAX_TRAININGS and trainings.left_out == 5
        assert labels([one.identity for one in trainings.known])[-1] == f"i={MAX_TRAININGS + 4}", "the last is shown"
        assert recorder.trace().leaves[0].name.startswith("net")


@both
def test_each_model_is_examined_even_if_there_is_no_time(lib, monkeypatch, clock):
    finish = Recorder._finish
    monkeypatch.setattr(Recorder, "_finish", lambda self, sweep: (clock.move(60.0), finish(self, sweep))[1])
    space = {}
    with Recorder(lambda: space) as recorder:
        for act in ["Sigmoid", "Tanh", "ReLU"]:
            space["net"] = net_of(lib, act)
            for _ in iter([1, 2, 3].copy()):
                sweep(lib, space["net"])
        known = recorder.trainings.known
        assert [(one.sweeps, one.shown_sweep.number) for one in known] == [(3, 1), (3, 1), (3, 1)], "the last one is unknown"
        recorder.end_training(known[2])
    places = [node.place for one in known for node in one.trace.nodes if node.kind == "operation"]
    assert sum(place is None for place in places) < len(places), "the first has its lines"


@both
def test_one_backward_for_each_model_has_its_lines_without_time(lib, monkeypatch, clock):
    """The source shows that a loop creates a model in each iteration, so the next one's operations are recorded, too."""
    finish = Recorder._finish
    monkeypatch.setattr(Recorder, "_finish", lambda self, sweep: (clock.move(60.0), finish(self, sweep))[1])
    with Recorder(dict) as recorder:
        for act in ["Sigmoid", "Tanh", "ReLU"]:
            net = net_of(lib, act)
            sweep(lib, net)
        known = recorder.trainings.known
        recorder.end_training(known[2])
    for one in known:
        assert all(node.place is not None for node in one.trace.nodes if node.kind == "operation")


# ------------------------------------------------------------------------------------------------------------------- names
def training(loops=(), given=(), model="", line=""):
    values = ({(name, 0): text for name, text in dict(one).items()} for one in (loops, given))
    return Identity(model, line, next(values), next(values))


@pytest.mark.parametrize(
    ("trainings", "expected"),
    [
        ([training({"act": "ReLU"}, model="net")], [""]),
        ([training({"act": "ReLU", "seed": "0"}), training({"act": "Tanh", "seed": "0"})], ["act=ReLU", "act=Tanh"]),
        (
            [training({"a": "1", "b": "1"}), training({"a": "1", "b": "2"}), training({"a": "2", "b": "1"})],
            ["a=1, b=1", "a=1, b=2", "a=2, b=1"],
        ),
        ([training({"i": "0", "act": "ReLU"}), training({"i": "1", "act": "Tanh"})], ["act=ReLU", "act=Tanh"]),
        ([training(given={"lr": "0.1"}), training(given={"lr": "1"})], ["lr=0.1", "lr=1"]),
        ([training(model="a"), training(model="b")], ["a", "b"]),
        ([training(model="net", line="line 3"), training(model="net", line="line 5")], ["net, line 3", "net, line 5"]),
        ([training(model="net", line="line 3"), training(model="net", line="line 3")], ["net, 1 of 2", "net, 2 of 2"]),
        ([training(), training()], ["model, 1 of 2", "model, 2 of 2"]),
    ],
)
def test_labels(trainings, expected):
    assert labels(trainings) == expected


def test_a_value_that_has_changed_is_not_used_as_a_label():
    import sys

    identity = Identity()
    for step in range(5):
        identity.keep(users_frames(sys._getframe(), lambda name: name != __file__))
        assert step == 0 or not identity.loops


class Odd:
    def __repr__(self):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (0.25, "0.25"),
        (1e-5, "1e-05"),
        ("adam", "adam"),
        (True, "True"),
        (None, "None"),
        (gl.nn.ReLU, "ReLU"),
        (gl.nn.ReLU(), "ReLU"),
        (gl.tanh, "tanh"),
        ([64, 32], "[64, 32]"),
        (list(range(9)), ""),
        ("x" * 99, ""),
        ("two\nlines", ""),
        (gl.nn.Linear(2, 1), "Linear"),
        (Odd(), ""),
        (gl.ones(3), ""),
    ],
)
def test_short_texts(value, text):
    assert short(value) == text


def test_values_are_those_of_loops_comprehensions_and_arguments():
    import sys

    def by_name(values):
        return {name: text for (name, _), text in values.items()}

    def here():
        return values_around(users_frames(sys._getframe(1), lambda name: name != __file__))

    def fit(lr, width=8):
        return [here() for step in range(2) if step >= 0][-1]

    for name, lr in [("a", 0.5)]:
        loops, given = fit(lr)
        assert name
    assert by_name(loops) == {"name": "a", "lr": "0.5", "step": "1"} and by_name(given) == {"lr": "0.5", "width": "8"}
    loops, given = [fit(rate) for rate in (0.1, 0.2)][-1]
    assert by_name(loops)["rate"] == "0.2" and by_name(given)["lr"] == "0.2"


# ----------------------------------------------------------------------------------------------------------------- progress
class Config:
    epochs = 2

    def __init__(self):
        self.steps = 3


def update_progress(progress):
    progress.update(users_frames(sys._getframe(1), lambda name: name != __file__))
    return progress.done, progress.last


N = 4


def loops_with_known_ends():
    data, config, count = ["a", "b", "c"], Config(), 5

    def ranges(p):
        return [update_progress(p) for _ in range(count)]

    def over_names(p):
        return [update_progress(p) for i in range(1, 2 * N - 3)]

    def enumeration(p):
        return [update_progress(p) for i, x in enumerate(data, 1)]

    def lists(p):
        found = []
        for _ in data:
            done = update_progress(p)
            found.append(done)
        return found

    def attributes(p):
        found = []
        for _step in range(config.steps):
            for _ in zip(data, range(9), strict=False):
                found += [update_progress(p)]
        return found

    return [ranges, over_names, enumeration, lists, attributes]


@pytest.mark.parametrize("program", loops_with_known_ends(), ids=lambda program: program.__name__)
def test_the_progress_of_a_loop(program):
    """From the second sweep on, the progress at the start of a sweep is the share that is done after the next one."""
    found = program(Progress())
    total = len(found)
    first = 4 if program.__name__ == "attributes" else 1  # an outer loop counts once its second iteration has begun
    for i, (done, last) in enumerate(found[first:], start=first):
        assert done == pytest.approx(min(1.0, (i + 2) / total)), i
        assert last == (i == total - 2)


def test_the_last_of_several_sweeps_of_an_iteration_is_the_last():
    """A critic and a generator that take turns."""
    progress, found = Progress(), []
    for _ in range(4):
        found.append(update_progress(progress)[1])
        found.append(update_progress(progress)[1])
        found.append(update_progress(progress)[1])
    assert found == [False] * 10 + [True, False]


def test_wrong_ends_are_reported_a_few_times():
    """The inner loop has the outer one's variable, so its iterations cannot be distinguished."""
    progress, found = Progress(), []
    for _ in range(20):
        for _ in range(3):
            found += (update_progress(progress)[1],)
    assert found.count(True) == 3


def test_loops_without_a_known_end_have_no_progress():
    progress, data = Progress(), iter([1, 2, 3])
    found = []
    for _ in data:
        found += (update_progress(progress),)
    while len(found) < 5:
        found.append(update_progress(progress))
    assert set(found) == {(None, False)}


def test_a_range_is_read_and_not_called():
    class Loud:
        def __getattr__(self, name):
            raise AssertionError("a method was called")

        def __len__(self):
            raise AssertionError("a method was called")

        def __iter__(self):
            return iter([1, 2])

    progress, loud = Progress(), Loud()
    for _ in loud:
        found = update_progress(progress)
    assert found == (None, False)


def test_a_loop_that_uses_parameters_creates_no_model():
    progress, parameters, over = Progress(), [gl.ones(1, requires_grad=True), gl.ones(1, requires_grad=True)], []
    for step in range(N):
        for p in parameters:
            p.grad = None
        if step == 0:
            frames = users_frames(sys._getframe(), lambda name: name != __file__)
            progress.begin(frames, lambda value: any(value is one for one in parameters))
        update_progress(progress)
        over.append(progress.over)
    assert over == [True] + [False] * (N - 1), "the second iteration trains the same parameters"


# -------------------------------------------------------------------------------------------------------------- identities
class Thing:
    pass


def test_the_id_of_a_freed_object_is_not_reused_as_a_key():
    """Python gives a new object the memory of one that has just been freed."""
    identities = Identities()
    old = Thing()
    first = identities.key(old)
    assert first == id(old) == identities.key(old)
    del old
    things = [Thing() for _ in range(1000)]
    new = next((thing for thing in things if id(thing) == first), None)
    assert new is not None
    second = identities.key(new)
    assert second != first and second == identities.key(new)
    renamed = identities.settle()
    assert renamed[second] == id(new) and renamed[first] not in {id(thing) for thing in things}
    assert identities.key(new) == id(new) and identities.settle() == {}


@both
def test_events_of_a_freed_model_are_not_those_of_another(lib):
    space = {}
    with Recorder(lambda: space) as recorder:
        for _ in range(6):
            space["net"] = net_of(lib)
            space["opt"] = lib.optim.SGD(space["net"].parameters(), lr=0.1)
            sweep(lib, space["net"])
            space["opt"].step()
        trace = recorder.trace()
    living = {id(p) for p in space["net"].parameters()}
    steps = [event for event in trace.events if event.kind == "step"]
    assert [set(event.held) for event in steps] == [living] and steps[0].whose == id(space["opt"])
    assert {leaf.key for leaf in trace.leaves} == living
    assert [len(swept.entries) for swept in trace.journal] == [4]


# ------------------------------------------------------------------------------------------------------------- taking turns
@both
def test_models_that_take_turns_through_one_line_keep_their_counts(lib, monkeypatch, clock):
    """In an ensemble without time for recording, the graph and not the line determines the model of a sweep."""
    finish = Recorder._finish
    monkeypatch.setattr(Recorder, "_finish", lambda self, sweep: (clock.move(60.0), finish(self, sweep))[1])
    space = {"a": net_of(lib), "b": net_of(lib)}
    with Recorder(lambda: space) as recorder:
        for _i in range(50):
            for name in ["a", "b"]:
                sweep(lib, space[name])
        known = recorder.trainings.known
        assert [one.sweeps for one in known] == [50, 50]
        for one in known:
            recorder.end_training(one)
    assert [one.trace.sweeps for one in known] == [50, 50]


@both
def test_the_count_includes_all_sweeps(lib, monkeypatch, clock):
    """The trace of `a` is made when `b` begins, and later unrecorded sweeps still count."""
    finish = Recorder._finish
    monkeypatch.setattr(Recorder, "_finish", lambda self, sweep: (clock.move(60.0), finish(self, sweep))[1])
    space = {"a": net_of(lib), "b": net_of(lib)}
    with Recorder(lambda: space) as recorder:
        sweep(lib, space["a"])
        sweep(lib, space["b"])
        k = 0
        while k < 9:
            sweep(lib, space["a"])
            k += 1
        first = recorder.trainings.known[0]
        assert (first.trace.sweep, first.trace.sweeps) == (1, 10)


@both
def test_a_model_whose_first_sweep_fails_keeps_the_other_s_graph(lib):
    space = {"a": net_of(lib), "b": net_of(lib)}
    with Recorder(lambda: space) as recorder:
        sweep(lib, space["a"])
        y = space["b"](lib.tensor(np.ones((2, 3), np.float32))).exp()
        loss = y.sum()
        y.add_(1)
        with pytest.raises(RuntimeError):
            loss.backward()
        assert recorder.shown_sweep.roots and recorder.shown_sweep.training is recorder.trainings.known[0]
        assert len(recorder.trace().leaves) == 4


@both
def test_models_by_hand_that_take_turns_are_distinguished(lib):
    space = {name: lib.tensor(np.ones((3, 3), np.float32), requires_grad=True) for name in "abcd"}
    x = lib.tensor(np.ones((2, 3), np.float32))
    with Recorder(lambda: space) as recorder:
        for _ in range(5):
            (x @ space["a"] @ space["b"]).sum().backward()
            (x @ space["c"] @ space["d"]).sum().backward()
        assert [(one.sweeps, len(one.keys)) for one in recorder.trainings.known] == [(5, 2), (5, 2)]


@both
def test_a_forgotten_model_is_freed(lib):
    space = {"net": net_of(lib)}
    gone = weakref.ref(space["net"])
    recorder = Recorder(lambda: space)
    with recorder:
        sweep(lib, space["net"])
    recorder.forget()
    space.clear()
    gc.collect()
    assert gone() is None


@pytest.mark.torch
def test_a_sampler_whose_length_raises():
    pytest.importorskip("torch")

    class Endless(torch.utils.data.Sampler):
        def __len__(self):
            raise NotImplementedError

        def __iter__(self):
            return iter([0, 1])

    loader = torch.utils.data.DataLoader([1.0, 2.0], sampler=Endless())
    space = {"net": net_of(torch)}
    with Recorder(lambda: space) as recorder:
        for _ in loader:
            sweep(torch, space["net"])
        assert recorder.trace().sweep == 2
