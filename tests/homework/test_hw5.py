"""The checks of homework 5 on the answers that students give (`answers_hw5.py`), and what a check's function with two derivatives
answers, counts and refuses."""

from __future__ import annotations

import json
import shutil
from time import perf_counter

import numpy as np
import pytest
from homework.answers_hw5 import ANSWERS, ENDLESS, NOTEBOOK, RIGHT, RIGHT_TOO, SOURCE, WRONG, hvp
from homework.notebook_of import cells
from homework.typed_in import SEEDS

import gradlab as gl
from gradlab import clock
from gradlab.autograd.gradcheck import GradcheckError
from gradlab.homework import Twice, case, central_differences, load, run, student_version
from gradlab.homework.grading import Submission, grade_cells
from gradlab.homework.probes import Probe, ProbedFunction
from gradlab.homework.time_limits import TimeBudget

EVERY = {answer.name: answer for answer in ANSWERS}
pytestmark = pytest.mark.filterwarnings(
    "ignore::RuntimeWarning", "ignore:.*create_graph=True.*:UserWarning", "ignore:Input #0:UserWarning"
)
START = "import gradlab as gl"


def verdict(number, *texts, seed=0, **options):
    return load(SOURCE).check(number, cells(*texts), seed, **options)


# ------------------------------------------------------------------------------------------------------------- the answers
@pytest.mark.parametrize("seed", SEEDS)
def test_the_solutions_earn_everything(seed):
    space = cells(*RIGHT.values())
    for number, (_, points, _) in load(SOURCE).exercises.items():
        found = load(SOURCE).check(number, space, seed)
        assert found.has_passed and found.points == points, str(found)


def test_it_is_100_points_and_the_answers_are_many():
    assert load(SOURCE).points == 100
    assert len(EVERY) == len(ANSWERS)
    assert len(WRONG) >= 40 and len(RIGHT_TOO) >= 12


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (9, 20531))])
@pytest.mark.parametrize("name", EVERY)
def test_an_answer_is_worth_its_points_and_told_why(name, seed):
    answer = EVERY[name]
    found = verdict(answer.exercise, *answer.cells, seed=seed)
    assert found.points == answer.points, str(found)
    assert answer.says in str(found)
    assert "the check itself failed" not in str(found)
    assert found.has_passed == (answer in RIGHT_TOO)


def test_a_turn_that_never_ends_is_stopped():
    with clock.use_source(perf_counter):
        found = verdict(5, RIGHT["answer4"], *ENDLESS, budget=TimeBudget(1, 1, 0.1))
    assert "is there a loop that never ends?" in str(found)
    assert found.findings[0].good and not found.findings[1].good  # where the eigenvalue is negative u turns round for ever


def test_a_slip_in_hvp_is_paid_once():
    assert verdict(5, *hvp("return u"), RIGHT["answer5"]).has_passed


def test_what_gradcheck_says_is_what_is_asked():
    """The two answers of exercise 3, and its number, by the library itself."""
    space = cells(*RIGHT.values())
    for name, x in (("Sign", [0.5, -0.3]), ("Softplus", [0.5, 2.0])):
        at = gl.tensor(x, dtype=gl.float64 if name == "Sign" else gl.float32, requires_grad=True)
        with pytest.raises(GradcheckError):
            gl.autograd.gradcheck(space[name].apply, (at,))
    grid = [gl.tensor(float(t)) for t in np.linspace(0.3, 1.5, 200)]
    softplus, h = space["Softplus"].apply, 1e-6
    off = [abs(float((softplus(t + h) - softplus(t - h)) / (2 * h)) - float(gl.sigmoid(t))) for t in grid]
    assert 0.006 < max(off) < 0.6


def test_a_case_can_be_pasted():
    space = cells(*RIGHT.values())
    space["case"] = lambda *which: case(*which, folder=SOURCE)
    exec("x, V, a = case(2, 2)\ny = Normalise.apply(x, a)", space)
    rows = np.sqrt((np.asarray(space["y"]) ** 2).sum(1))
    np.testing.assert_allclose(rows, space["a"])
    exec("f, x, V = case(4, 1)\nHu = hvp(f, x, V)", space)

    def slope(t):
        at = gl.tensor(np.asarray(t.array), requires_grad=True)
        with gl.enable_grad():
            return gl.autograd.grad(space["f"](at), at)[0]

    H = central_differences(slope, space["x"])
    np.testing.assert_allclose(space["Hu"], H @ np.asarray(space["V"]), atol=1e-7)
    exec("f, x = case(5, 2)\nvalue = largest_eigenvalue(f, x)", space)
    values = np.linalg.eigvalsh(central_differences(slope, space["x"]))
    assert values[0] < 0 < values[-1] < -values[0]
    assert space["value"] == pytest.approx(values[0], abs=1e-6)


# ------------------------------------------------------------------------------------------------------------ the notebook
def test_a_student_s_version_has_no_solutions_and_the_source_has_every_point():
    text = json.dumps(student_version(NOTEBOOK))
    assert "SOLUTION" not in text and "HIDDEN" not in text
    assert text.count("raise NotImplementedError()") == 10  # in nine places, and in the sentence that says to take it out
    code = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    marks = [cell["metadata"]["nbgrader"] for cell in code if cell["metadata"].get("nbgrader", {}).get("grade")]
    assert [mark["points"] for mark in marks] == [points for _, points, _ in load(SOURCE).exercises.values()]


@pytest.mark.e2e
def test_the_notebook_runs_and_its_checks_pass(tmp_path):
    shutil.copy(SOURCE / "checks.py", tmp_path)
    texts = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    with Submission([text.partition("### BEGIN HIDDEN")[0] for text in texts], tmp_path) as submission:
        submission.run()
        said = ["".join(one.get("text", "") for one in made) for made in submission.outputs]
    verdicts = [text for text in said if text.startswith("Exercise ")]
    assert [text.partition("\n")[0].rpartition(": ")[2] for text in verdicts] == [
        f"{points} of {points} points" for points in (20, 25, 15, 20, 20)
    ]
    (shown,) = [text for text in said if "2., -3." in text]  # the first column of the Hessian in exercise 4
    assert not [text for text in said if "Error" in text and "gradcheck" not in text.lower()], shown


@pytest.mark.e2e
def test_it_is_graded_in_a_process_of_its_own(tmp_path):
    assert [one.points for one in run(SOURCE / "hw5_rules.ipynb", seed=4)] == [20, 25, 15, 20, 20]


OVER_THERE = (
    "kept on the class", "one gradient for two arguments", "through everywhere", "H formed, row by row", "the sign lost"
)  # fmt: skip


@pytest.mark.e2e
def test_wrong_answers_are_told_the_same_there(tmp_path):
    for name in OVER_THERE:
        answer = EVERY[name]
        texts = [START, *(RIGHT[key] for key in RIGHT if key != f"answer{answer.exercise}"), *answer.cells]
        with Submission(texts, tmp_path) as submission:
            found = load(SOURCE).check(answer.exercise, submission, 9)
        assert found.points == answer.points, str(found)
        assert answer.says in str(found)
        assert [one.good for one in found.findings] == [
            one.good for one in verdict(answer.exercise, *answer.cells, seed=9).findings
        ]


FORGERIES = {
    "counts made up": """
from gradlab.homework import probes
probes.Probe.bends = property(lambda self: [1], lambda self, value: None)
probes.Probe.elsewhere = property(lambda self: 0)
""",
    "products past the tensor": """
import numpy as np
def hvp(f, x, u):
    H = f.query("bend", x.detach().numpy(), np.ones(()), np.eye(x.numel()).reshape(-1, *x.shape))
    return gl.tensor((H.reshape(x.numel(), -1) @ u.numpy().reshape(-1)).reshape(x.shape))
""",
    "one product at a time, in a stack of numbers": """
import numpy as np
def hvp(f, x, u):
    e = np.eye(x.numel()).reshape(-1, *x.shape)
    H = np.stack([f._ask(0, "bend", [x.detach().numpy(), np.ones(1), one[None]])[0] for one in e])
    return gl.tensor((H.reshape(x.numel(), -1) @ u.numpy().reshape(-1)).reshape(x.shape))
""",
}


@pytest.mark.e2e
@pytest.mark.parametrize("name", FORGERIES)
def test_products_are_counted_however_they_are_asked_for(tmp_path, name):
    formed = EVERY["H formed, row by row"].cells if name == "counts made up" else []
    verdicts, _ = grade_cells([START, FORGERIES[name], *formed], tmp_path, SOURCE, 4)
    assert verdicts[3].points == 13, str(verdicts[3])
    assert "sweeps, but 2 are enough" in str(verdicts[3])


# ------------------------------------------------------------------------------------------- a function with two derivatives
WEIGHT = np.random.default_rng(1).normal(size=(6, 4))
X, U, T = np.random.default_rng(2).normal(size=(3, 4))
HESSIAN = -WEIGHT.T @ np.diag(np.sin(WEIGHT @ X)) @ WEIGHT


def wave(x):
    return gl.sin(gl.tensor(WEIGHT) @ x.reshape(-1)).sum()


def probe_of(function):
    probe = Probe(function, X)
    return probe, ProbedFunction(0, lambda number, what, arrays: probe.answer(what, arrays)), gl.tensor(X)


def slope_of(f, x, **options):
    leaf = x.detach().clone().requires_grad_()
    return gl.autograd.grad(f(leaf), leaf, create_graph=True, **options)[0], leaf


def stack_of(f, x):
    """Rows 0 and 1 of HU for a stack of weights and of vectors: the sum over the stack, as autograd has it."""
    g, leaf = slope_of(f, x, grad_outputs=gl.tensor([1.0, 3.0], dtype=gl.float64), is_grads_batched=True)
    weights = gl.tensor(np.stack([[U, T], [T, U]]))
    return gl.autograd.grad(g, leaf, weights, is_grads_batched=True)[0]


def in_the_second(f, x):
    g, leaf = slope_of(f, x)
    return gl.autograd.grad(g, leaf, gl.eye(4, dtype=gl.float64), is_grads_batched=True)[0]


def twice_forward(f, x):
    along = lambda t: gl.func.jvp(f, (t,), (gl.tensor(U),))[1]  # noqa: E731
    return gl.func.jvp(along, (x,), (gl.tensor(T),))[1]


WAYS = {
    "reverse over reverse": (lambda f, x: gl.func.vjp(gl.func.grad(f), x)[1](gl.tensor(U))[0], HESSIAN @ U, ([1], [], [1])),
    "forward over reverse": (lambda f, x: gl.func.jvp(gl.func.grad(f), (x,), (gl.tensor(U),))[1], HESSIAN @ U, ([1], [], [1])),
    "reverse over forward": (
        lambda f, x: gl.func.grad(lambda t: gl.func.jvp(f, (t,), (gl.tensor(U),))[1])(x), HESSIAN @ U, ([], [1], [1])
    ),
    "forward over forward": (twice_forward, U @ HESSIAN @ T, ([], [1], [1])),
    "stacks": (stack_of, np.stack([HESSIAN @ (U + 3 * T), HESSIAN @ (T + 3 * U)]), ([2], [], [4])),
    "the whole Hessian": (in_the_second, HESSIAN, ([1], [], [4])),
}  # fmt: skip


@pytest.mark.parametrize("name", WAYS)
def test_second_derivatives_are_right_and_counted(name):
    way, expected, counts = WAYS[name]
    probe, f, x = probe_of(Twice(wave))
    np.testing.assert_allclose(way(f, x).detach(), expected, atol=1e-12)
    pulls, pushes, bends = counts
    assert (probe.pulls, probe.bends) == (pulls, bends)
    assert sum(probe.pushes) == sum(pushes)
    assert probe.elsewhere == 0 and probe.sweeps == sum(map(sum, counts))


@pytest.mark.parametrize("name", WAYS)
def test_a_function_that_is_not_handed_out_so_has_first_derivatives_only(name):
    probe, f, x = probe_of(wave)
    with pytest.raises(RuntimeError, match="first derivatives only"):
        WAYS[name][0](f, x)
    assert probe.bends == []


def test_a_third_derivative_is_refused():
    _, f, x = probe_of(Twice(wave))
    g, leaf = slope_of(f, x)
    (product,) = gl.autograd.grad(g, leaf, gl.tensor(U), create_graph=True)
    with pytest.raises(RuntimeError, match="at most two derivatives"):
        product.sum().backward()


def test_the_hessian_of_a_linear_function_is_zero():
    _, f, x = probe_of(Twice(lambda x: x.sum()))
    g, leaf = slope_of(f, x)
    assert np.array_equal(gl.autograd.grad(g, leaf, gl.tensor(U))[0], np.zeros(4))


@pytest.mark.parametrize(
    ("what", "first", "second", "words"),
    [
        ("bend", np.ones(()), np.ones(3), "vectors of shape"),
        ("curve", np.ones(3), np.ones(4), "vectors of shape"),
        ("bend", np.ones(2000), np.ones(4), "the limit is 1000"),
        ("curve", np.ones((2000, 4)), np.ones(4), "the limit is 1000"),
    ],
)
def test_what_cannot_be_asked_is_said(what, first, second, words):
    probe = Probe(Twice(wave), X)
    with pytest.raises(ValueError, match=words):
        probe.answer(what, [X, first, second])
    assert probe.bends == []


def test_points_beside_x_are_counted_in_products_as_well():
    probe = Probe(Twice(wave), X)
    probe.answer("bend", [X, np.ones(()), U])
    assert probe.elsewhere == 0
    probe.answer("bend", [X + 1e-9, np.ones(()), U])
    assert (probe.elsewhere, probe.bends) == (1, [1, 1])
