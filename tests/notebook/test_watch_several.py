"""`%%watch` of a cell that trains several models: each is watched separately, has a distinct name, and is released."""

from __future__ import annotations

import gc
import re
import sys

import pytest
from leftovers import find_leftovers, find_torch_leftovers

from gradlab.explore.trace.labels import short
from gradlab.explore.watch import Watch
from gradlab.explore.watch.runs import MAX_RUNS, Runs

SETUP = """import LIB as lib, gradlab as gl, weakref
lib.manual_seed(0)
x, y = lib.randn(32, 4), lib.randn(32, 1)
nn = lib.nn
alive = []
def make(act, width=8):
    net = nn.Sequential(nn.Linear(4, width), act(), nn.Linear(width, 1))
    alive.append(weakref.ref(net))
    return net
def train(net, steps=6, lr=0.1):
    opt = lib.optim.SGD(net.parameters(), lr=lr)
    for i in range(steps):
        opt.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        opt.step()
    return loss.item()"""

IN_TURN = """for act in [nn.Sigmoid, nn.Tanh, nn.ReLU]:
    net = make(act)
    last = train(net)"""


@pytest.fixture(params=["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
def ready(request, shell):
    shell.ok(SETUP.replace("LIB", request.param))
    yield shell
    assert find_leftovers() == []
    if request.param == "torch":
        assert find_torch_leftovers() == []


def living_models(shell):
    """Return the models that are still alive."""
    return [ref() is not None for ref in shell.ns["alive"]]


def hooks_on(shell, optimizer, *params):
    """Count the hooks of an optimizer and of parameters."""
    if shell.ns["lib"].__name__ == "torch":
        of_params = [len(p._backward_hooks or ()) + len(getattr(p, "_post_accumulate_grad_hooks", None) or ()) for p in params]
        return len(optimizer._optimizer_step_pre_hooks) + len(optimizer._optimizer_step_post_hooks) + sum(of_params)
    return len(optimizer._before) + len(optimizer._after) + sum(len(p._backward_hooks or ()) for p in params)


# ------------------------------------------------------------------------------------------------------- one after the other
def test_each_network_of_a_loop_is_watched_and_named_by_the_value_of_the_loop(ready):
    ran = ready.ok(f"%%watch -o w\n{IN_TURN}")
    w = ready.ns["w"]
    assert isinstance(w, Runs) and list(w) == ["act=Sigmoid", "act=Tanh", "act=ReLU"]
    assert [one.steps for one in w.values()] == [6, 6, 6]
    assert [one.target.activations[0].kind for one in w.values()] == ["Sigmoid", "Tanh", "ReLU"]
    assert w["act=ReLU"].history()["loss"][-1] == pytest.approx(ready.ns["last"], rel=1e-4)
    assert set(w.findings) == set(w) and w[0] is w["act=Sigmoid"] and w[-1] is w["act=ReLU"]
    assert all(label in ran.text for label in w)
    assert all(one.target.layers == ("net[0]", "net[2]") for one in w.values())


def test_the_numbers_match_each_network_watched_alone(ready):
    ready.ok(f"%%watch -o w\nlib.manual_seed(3)\n{IN_TURN}")
    together = {label: one.history() for label, one in ready.ns["w"].items()}
    ready.ok("lib.manual_seed(3)")
    for act in ("Sigmoid", "Tanh", "ReLU"):
        ready.ok(f"%%watch -o one -q\nnet = make(nn.{act})\ntrain(net)")
        alone, other = ready.ns["one"].history(), together[f"act={act}"]
        for name in ("loss", "gradient net[0]", "gradient net[2]"):
            assert alone[name] == pytest.approx(other[name], rel=1e-6, nan_ok=True)


def test_a_finished_network_is_released_while_the_next_one_trains(ready):
    ready.ok(
        "seen = []\ndef steps_of(net):\n    opt = lib.optim.SGD(net.parameters(), lr=0.1)\n    for i in range(3):\n"
        "        opt.zero_grad(); ((net(x) - y) ** 2).mean().backward(); opt.step()\n"
        "    seen.append([ref() is not None for ref in alive])"
    )
    ready.ok("%%watch -o w\nfor act in [nn.Sigmoid, nn.Tanh, nn.ReLU]:\n    net = make(act)\n    steps_of(net)")
    assert ready.ns["seen"] == [[True], [False, True], [False, False, True]]
    assert [one.ended for one in ready.ns["w"].values()] == [True] * 3
    del ready.ns["net"]
    assert living_models(ready) == [False] * 3, "a stored run holds no model"
    assert "Step 3" in repr(ready.ns["w"]) and ready.ns["w"][0].history()["ratio net[0]"].size


def test_updates_by_hand_are_counted_for_each_network(ready):
    ready.ok(
        "%%watch -o w\nfor lr in (0.1, 0.05, 0.02):\n"
        "    a, b = lib.ones(4, 1).requires_grad_(), lib.zeros(1).requires_grad_()\n"
        "    for i in range(5):\n        loss = ((x @ a + b - y) ** 2).mean()\n        loss.backward()\n"
        "        with lib.no_grad():\n            for p in (a, b):\n                p -= lr * p.grad\n"
        "                p.grad = None"
    )
    w = ready.ns["w"]
    assert list(w) == ["lr=0.1", "lr=0.05", "lr=0.02"]
    assert [one.steps for one in w.values()] == [5, 5, 5]
    ratios = [one.history()["ratio a"][0] for one in w.values()]
    assert ratios[0] == pytest.approx(2 * ratios[1], rel=1e-3) and ratios[1] == pytest.approx(2.5 * ratios[2], rel=1e-3)
    assert not any(one.trouble for one in w.values())


def test_one_tensor_with_several_learning_rates(ready):
    ready.ok(
        "%%watch -o w\nfor lr in (0.1, 0.5):\n    t = lib.tensor(3.0, requires_grad=True)\n"
        "    for i in range(4):\n"
        "        f = t * t\n        f.backward()\n        with lib.no_grad():\n            t -= lr * t.grad\n"
        "        t.grad = None"
    )
    assert {label: one.steps for label, one in ready.ns["w"].items()} == {"lr=0.1": 4, "lr=0.5": 4}


def test_derivatives_at_many_points_are_not_trainings(ready):
    ran = ready.ok(
        "%%watch -o w\nfor k in range(40):\n    t = lib.tensor(float(k), requires_grad=True)\n    (t * t).backward()\n"
        "net = make(nn.Tanh)\nlast = train(net)"
    )
    w = ready.ns["w"]
    assert isinstance(w, Watch) and w.steps == 6 and w.layers == ("net[0]", "net[2]")
    assert "not watched" not in ran.text


def test_the_same_network_trained_twice_is_one_training_whose_steps_all_count(ready):
    ready.ok("%%watch -o w\nnet = make(nn.Tanh)\ntrain(net)\ntrain(net, steps=4)")
    assert isinstance(ready.ns["w"], Watch) and ready.ns["w"].steps == 10


# ----------------------------------------------------------------------------------------------------------------- in turn
def test_two_networks_in_turn_are_two_runs(ready):
    ready.ok(
        "%%watch -o w\nactor, critic = make(nn.Tanh), make(nn.ReLU)\n"
        "first, second = (lib.optim.SGD(n.parameters(), lr=0.1) for n in (actor, critic))\n"
        "for i in range(12):\n    first.zero_grad()\n    policy = actor(x).square().mean()\n    policy.backward()\n"
        "    first.step()\n"
        "    if i % 2:\n        second.zero_grad()\n        value = ((critic(x) - y) ** 2).mean()\n        value.backward()\n"
        "        second.step()"
    )
    w = ready.ns["w"]
    assert {label: (one.steps, one.loss_name) for label, one in w.items()} == {"actor": (12, "policy"), "critic": (6, "value")}
    assert hooks_on(ready, ready.ns["first"], *ready.ns["actor"].parameters()) == 0
    assert not any(one.ended is False for one in w.values())


def test_models_referenced_only_by_closures_are_not_finished(ready):
    ready.ok(
        "def stepper(net):\n    opt = lib.optim.SGD(net.parameters(), lr=0.1)\n    def step():\n        opt.zero_grad()\n"
        "        ((net(x) - y) ** 2).mean().backward()\n        opt.step()\n    return step"
    )
    ready.ok(
        "%%watch -o w\nsteppers = [stepper(make(act)) for act in (nn.Sigmoid, nn.Tanh)]\nfor i in range(5):\n"
        "    for k, step in enumerate(steppers):\n        step()"
    )
    assert {label: one.steps for label, one in ready.ns["w"].items()} == {"k=0": 5, "k=1": 5}


GAN = """G, D = nn.Linear(2, 4), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
of_g, of_d = lib.optim.SGD(G.parameters(), lr=0.01), lib.optim.SGD(D.parameters(), lr=0.01)
noise = lib.randn(32, 2)
def critic_step():
    of_d.zero_grad()
    d_loss = (D(G(noise).detach()) ** 2).mean() + ((D(x) - 1) ** 2).mean()
    d_loss.backward()
    of_d.step()
    return d_loss
def generator_step():
    of_g.zero_grad()
    g_loss = ((D(G(noise)) - 1) ** 2).mean()
    g_loss.backward()
    of_g.step()
    return g_loss
"""


@pytest.mark.parametrize("order", ["critic first", "generator first"])
def test_a_generator_and_its_critic_are_both_watched_each_with_its_own_loss(ready, order):
    ready.ok(GAN)
    steps = ["    d_losses.append(critic_step().item())\n", "    g_losses.append(generator_step().item())\n"]
    body = "".join(steps if order == "critic first" else steps[::-1])
    ready.ok(f"%%watch -o w\nd_losses, g_losses = [], []\nfor i in range(40):\n{body}")
    w = ready.ns["w"]
    assert sorted(w) == ["D", "G"] and w["D"].steps == w["G"].steps == 40
    assert w["D"].history()["loss"] == pytest.approx(ready.ns["d_losses"], rel=1e-4)
    assert w["G"].history()["loss"] == pytest.approx(ready.ns["g_losses"], rel=1e-4)
    for one in w.values():
        assert "Nothing was found" in str(one.findings), "the critic's .grad is cleared after the generator's loss"


# --------------------------------------------------------------------------------------------------------------------- ends
def test_trainings_beyond_the_limit_are_counted(ready):
    ran = ready.ok(
        f"%%watch -o w\nfor seed in range({MAX_RUNS + 3}):\n    lib.manual_seed(seed)\n    net = make(nn.Tanh)\n    train(net, 3)"
    )
    w = ready.ns["w"]
    assert len(w) == MAX_RUNS and w.unwatched == 3 and list(w)[:2] == ["seed=0", "seed=1"]
    assert f"3 more trainings of this cell were not watched: the maximum is {MAX_RUNS}." in ran.text
    del ready.ns["net"]
    gc.collect()
    assert not any(living_models(ready))


def test_an_error_ends_the_last_training(ready):
    ran = ready.run(f"%%watch -o w\n{IN_TURN.replace('last = train(net)', 'last = train(net, 3)')}\n    if act is nn.Tanh: 1 / 0")
    assert isinstance(ran.error, ZeroDivisionError)
    assert {label: one.interrupted for label, one in ready.ns["w"].items()} == {
        "act=Sigmoid": "",
        "act=Tanh": "ZeroDivisionError",
    }


def test_many_runs_are_folded_except_the_last(ready):
    ran = ready.ok("%%watch\nfor width in (2, 3, 4, 5):\n    net = make(nn.Tanh, width)\n    train(net, 2)")
    (page,) = [bundle["text/html"] for bundle in ran.outputs if "text/html" in bundle]
    headings = re.findall(r"<details( open)? style=[^>]*><summary[^>]*><b>(.*?)</b>", page)
    assert headings == [("", "width=2"), ("", "width=3"), ("", "width=4"), (" open", "width=5")]


def test_values_of_loops_are_escaped(ready):
    ran = ready.ok("%%watch\nfor name in ('<img src=x>', '`$b$'):\n    net = make(nn.Tanh)\n    train(net, 2)")
    (page,) = [bundle["text/html"] for bundle in ran.outputs if "text/html" in bundle]
    assert "<img src=x" not in page and "&lt;img src=x&gt;" in page


# ------------------------------------------------------------------------------------------------------------------- names
@pytest.mark.parametrize(
    ("cell", "labels"),
    [
        (
            "for act in (nn.Tanh, nn.ReLU):\n    for lr in (0.1, 0.01):\n        train(make(act), lr=lr)",
            ["act=Tanh, lr=0.1", "act=Tanh, lr=0.01", "act=ReLU, lr=0.1", "act=ReLU, lr=0.01"],
        ),
        ("for i, act in enumerate((nn.Tanh, nn.ReLU)):\n    train(make(act))", ["act=Tanh", "act=ReLU"]),
        (
            "nets = {'small': make(nn.Tanh, 2), 'large': make(nn.Tanh, 9)}\nfor name, net in nets.items():\n    train(net)",
            ["name=small", "name=large"],
        ),
        ("a, b = make(nn.Tanh), make(nn.ReLU)\ntrain(a)\ntrain(b)", ["a", "b"]),
        ("net = make(nn.Tanh)\ntrain(net)\nnet = make(nn.Tanh)\ntrain(net)", ["net, line 3", "net, line 5"]),
        ("k = 0\nwhile k < 2:\n    net = make(nn.Tanh)\n    train(net)\n    k += 1", ["net, 1 of 2", "net, 2 of 2"]),
        ("lasts = [train(make(act)) for act in (nn.Tanh, nn.ReLU)]", ["act=Tanh", "act=ReLU"]),
        (
            "for epoch in range(2):\n    for act in (nn.Tanh, nn.ReLU):\n        train(make(act))",
            ["act=Tanh, epoch=0", "act=ReLU, epoch=0", "act=Tanh, epoch=1", "act=ReLU, epoch=1"],
        ),
    ],
    ids=["a grid", "counted as well", "named", "two names", "one name twice", "a while loop", "a comprehension", "two loops"],
)
def test_labels_of_runs(ready, cell, labels):
    if "lasts" in cell and sys.version_info >= (3, 12):
        pytest.skip("a comprehension of a module has no separate names in this version")
    ready.ok(f"%%watch -q -o w\n{cell}")
    found = [", ".join(sorted(label.split(", "))) for label in ready.ns["w"]]
    assert found == [", ".join(sorted(label.split(", "))) for label in labels]


def test_values_of_loops_are_printed_without_running_the_users_code():
    class Loud:
        def __repr__(self):
            raise AssertionError("called")

    class Named(type):
        __name__ = property(lambda self: 1 / 0)

    class Quiet(metaclass=Named):
        pass

    said = [short(value) for value in (Loud(), Quiet, 0.1, 3, "x" * 99, (1, 2.5), lambda: 0, len)]
    assert said == ["", "Quiet", "0.1", "3", "", "(1, 2.5)", "", "len"]


def test_a_loss_through_a_critic_to_unwatched_tensors_is_not_the_critics(ready):
    """The generator is updated by hand, and its tensors belong to no optimizer."""
    ready.ok(
        GAN.replace("of_g, of_d =", "of_d =")
        .replace("lib.optim.SGD(G.parameters(), lr=0.01), ", "")
        .replace("    of_g.zero_grad()\n", "")
        .replace(
            "    of_g.step()\n",
            "    with lib.no_grad():\n        for p in G.parameters():\n            p -= 0.01 * p.grad; p.grad = None\n",
        )
    )
    ready.ok("%%watch -o w\nd_losses = []\nfor i in range(20):\n    d_losses.append(critic_step().item())\n    generator_step()")
    w = ready.ns["w"]
    critic = w if isinstance(w, Watch) else w["D"]
    assert critic.history()["loss"] == pytest.approx(ready.ns["d_losses"], rel=1e-4)
    assert "Nothing was found" in str(critic.findings)


def test_heads_on_a_common_body_are_all_watched(ready):
    ready.ok(
        "%%watch -o w\nbody = nn.Linear(4, 8)\nfor act in [nn.Sigmoid, nn.Tanh, nn.ReLU]:\n"
        "    head = nn.Sequential(act(), nn.Linear(8, 1))\n"
        "    opt = lib.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)\n"
        "    for i in range(9):\n        opt.zero_grad(); ((head(body(x)) - y) ** 2).mean().backward(); opt.step()"
    )
    assert [one.steps for one in ready.ns["w"].values()].count(9) == 3, "each head is watched, the first with the body"


def test_a_model_that_joins_a_loss_later_is_watched(ready):
    ready.ok(
        "%%watch -o w\na, b = make(nn.Tanh), make(nn.Tanh)\nof_a, of_b = lib.optim.SGD(a.parameters(), lr=0.01), "
        "lib.optim.SGD(b.parameters(), lr=0.01)\nfor i in range(40):\n    of_a.zero_grad(); of_b.zero_grad()\n"
        "    loss = (a(x) ** 2).mean()\n    if i >= 10:\n        loss = loss + (b(x) ** 2).mean()\n"
        "    loss.backward()\n    of_a.step()\n    if i >= 10:\n        of_b.step()"
    )
    assert list(ready.ns["w"]) == ["a", "b"] and ready.ns["w"]["a"].steps == 40


def test_a_loss_without_history_only_raises_the_programs_error(ready, recwarn):
    ran = ready.run("%%watch\nlib.ones(3).sum().backward()")
    assert isinstance(ran.error, RuntimeError) and not [one for one in recwarn if "FaultWarning" in one.category.__name__]


def test_runs_are_a_mapping(ready):
    ready.ok(f"%%watch -q -o w\n{IN_TURN}")
    w = ready.ns["w"]
    assert 5 not in w and w.get(5) is None and w.get("no") is None and w[-1] is w[2]
    with pytest.raises(KeyError, match="there is no training 'no'; there are 'act=Sigmoid'"):
        w["no"]


def test_all_optimizers_of_parts_of_a_model_are_watched(ready):
    ready.ok(
        "%%watch -o w\nnet = make(nn.Tanh)\nslow = lib.optim.SGD(net[0].parameters(), lr=0.01)\n"
        "fast = lib.optim.SGD(net[2].parameters(), lr=0.1)\nolds = []\n"
        "for i in range(5):\n    slow.zero_grad(); fast.zero_grad()\n    loss = ((net(x) - y) ** 2).mean()\n    loss.backward()\n"
        "    old = net[2].weight.detach().clone(), net[2].bias.detach().clone()\n    slow.step(); fast.step()\n"
        "    new = net[2].weight.detach(), net[2].bias.detach()\n"
        "    olds.append((sum(((a - b) ** 2).sum() for a, b in zip(new, old)) / sum((b ** 2).sum() for b in old)).sqrt().item())"
    )
    w = ready.ns["w"]
    assert w.steps == 5 and w.layers == ("net[0]", "net[2]")
    assert w.history()["ratio net[2]"] == pytest.approx(ready.ns["olds"], rel=1e-3)
    assert (w.history()["ratio net[0]"] > 0).all()


HAND_WRITTEN = """class Linear:
    def __init__(self, a, b):
        self.weight, self.bias = lib.randn(a, b), lib.zeros(b)
    def __call__(self, x):
        return x @ self.weight + self.bias
    def parameters(self):
        return [self.weight, self.bias]
layers = [Linear(4, 3), Linear(3, 1)]
for layer in layers:
    for p in layer.parameters():
        p.requires_grad = True
def fit(steps):
    for i in range(steps):
        h = x
        for layer in layers:
            h = layer(h)
        loss = ((h - y) ** 2).mean()
        for layer in layers:
            for p in layer.parameters():
                p.grad = None
        loss.backward()
        with lib.no_grad():
            for layer in layers:
                for p in layer.parameters():
                    p -= 0.01 * p.grad"""


def test_layers_by_hand_have_the_names_of_their_containers_and_not_of_loops(ready):
    ready.ok(HAND_WRITTEN)
    ready.ok("%%watch -o w\nfit(5)")
    assert ready.ns["w"].layers == ("layers[0].weight", "layers[0].bias", "layers[1].weight", "layers[1].bias")
