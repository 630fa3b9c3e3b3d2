"""Check the uses of a student's work besides calls: variables, ways, programs, and libraries that are forbidden as a whole."""

from __future__ import annotations

import sys
from time import perf_counter
from types import ModuleType

import numpy as np
import pytest
from homework.notebook_of import cells
from homework.typed_in import verdict_text

import gradlab as gl
from gradlab import clock
from gradlab.homework import Homework, case, references
from gradlab.homework.calling import plain, unplain
from gradlab.homework.cotangents import diagnose_cotangent
from gradlab.homework.forbidden import codes_of
from gradlab.homework.grading import Submission
from gradlab.homework.program_comparison import ProgramComparison, run_on_tensors
from gradlab.homework.programs import Program
from gradlab.homework.time_limits import TimeBudget
from gradlab.homework.verdicts import Other
from gradlab.homework.ways import case_arguments, get_way, graph
from gradlab.homework.ways.repair import count_edits


def run_checks(checks, work, **options):
    """The verdict of one exercise that is made here."""
    homework = Homework("made here")
    homework.exercise(1, "t", 10)(checks)
    return homework.check(1, work, **options)


# ---------------------------------------------------------------------------------------------------------------- variables
VARIABLES = """
numbers = {"a": [1.0, None], 2: gl.tensor([3.0]), "c": {"d": ("x", True)}}
nothing = None
"""


def looked_at(student):
    found = student.value("numbers")
    student.check(4, "a dict", isinstance(found, dict) and list(found) == ["a", 2, "c"], "no dict")
    student.check(2, "its entries", found["a"] == [1.0, None] and found["c"] == {"d": ("x", True)}, "something else")
    student.check(2, "a tensor in it", isinstance(found[2], gl.Tensor) and found[2].item() == 3, "no tensor")
    student.check(2, "nothing", student.value("nothing") is None, "something")


def test_variables_are_read_dicts_too():
    assert run_checks(looked_at, cells(VARIABLES)).points == 10


@pytest.mark.e2e
def test_variables_are_read_from_another_process(tmp_path):
    with Submission(["import gradlab as gl", VARIABLES], tmp_path) as submission:
        found = run_checks(looked_at, submission)
    assert found.points == 10, str(found)


def test_a_variable_that_is_missing_is_said():
    assert "this name is not defined in the notebook yet" in verdict_text(run_checks(lambda student: student.value("n"), {}))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"a": 1, 2: None}, dict),
        ({}, dict),
        ({(1, 2): 3}, Other),  # a key that is neither text nor a number
        ({True: 3}, Other),
        ({str(k): k for k in range(1001)}, Other),
        ({"a": {"a": {"a": {"a": {"a": 1}}}}}, dict),
    ],
)
def test_which_dicts_cross(value, kind):
    assert isinstance(unplain(plain(value)), kind)


@pytest.mark.parametrize("data", [{"dict": [[1.5, {"none": True}]]}, {"dict": [["a"]]}, {"dict": {"a": 1}}])
def test_what_is_no_dict_is_refused(data):
    with pytest.raises(ValueError, match="not a value"):
        unplain(data)


# --------------------------------------------------------------------------------------------------------------------- ways
def test_an_unknown_way_is_refused_with_those_there_are():
    for call in (lambda: get_way("round"), lambda: case_arguments("round", ())):
        with pytest.raises(ValueError, match="way='round': expected one of engine, graph, repair"):
            call()
    found = run_checks(lambda student: student.function("f", way="round"), cells("f = abs"))
    assert "way='round': expected" in verdict_text(found) and "Please report this to your teacher" in verdict_text(found)


@pytest.fixture
def a_way(monkeypatch):
    """A way of this test's own: it gives the function each number by itself, and takes what comes to the power."""
    module = ModuleType("gradlab.homework.ways.powers")
    module.use = lambda made, numbers, power: [made(number) ** power for number in numbers]
    module.case_arguments = lambda numbers, power: {"number": numbers[0]}
    monkeypatch.setattr("gradlab.homework.ways._module", lambda way: module)
    return module


def test_a_way_takes_plain_data_and_gives_plain_data(a_way):
    came = []

    def checks(student):
        came.append(student.function("f", way="powers")([1.0, 2.0], 2))
        student.check(10, "squares", came[0].value == [4.0, 9.0], "others")

    assert run_checks(checks, cells("def f(x):\n    return x + 1")).points == 10
    assert came[0].case == "number = case(1, 1)"


def test_a_case_is_what_the_way_shows(a_way, tmp_path):
    (tmp_path / "checks.py").write_text(
        "from gradlab.homework import Homework\nhomework = Homework('t')\n"
        "@homework.exercise(1, 't', 1)\ndef one(student):\n    student.function('f', way='powers')([7.0, 2.0], 2)\n"
        "    student.function('f', way='powers', names=('n',))([8.0], 2)\n"
    )
    assert case(1, 1, folder=tmp_path) == 7
    assert case(1, 2, folder=tmp_path) == 8


def test_arguments_have_the_names_that_a_check_gives(a_way):
    answers = []
    run_checks(lambda student: answers.append(student.function("f", way="powers", names=["n"])([1.0], 2)), cells("f = abs"))
    assert answers[0].case == "n = case(1, 1)"


def test_a_way_that_shows_nothing_shows_the_arguments(a_way):
    del a_way.case_arguments
    assert case_arguments("powers", ([1.0], 2)) == ([1.0], 2)


def test_what_comes_too_late_is_told_in_the_check_s_words():
    def checks(student):
        student.function("f", late="is it 2^40 paths?")(gl.tensor(1.0))

    with clock.use_source(perf_counter):
        found = run_checks(checks, cells("def f(x):\n    while True:\n        pass"), budget=TimeBudget(0.3, 0.3, 0.1))
    assert "did not end within" in verdict_text(found) and "is it 2^40 paths?" in verdict_text(found)


# -------------------------------------------------------------------------------------------------------------------- graph
def test_a_recipe_is_a_graph():
    recipe = [["leaf", np.array([1.0, 2.0]), True], ["leaf", np.array([3.0, 4.0]), False], ["mul", 0, 1], ["times", 2, 2.0, 3]]
    made = graph.build(recipe)
    np.testing.assert_array_equal(made[-1].detach(), [24.0, 64.0])
    assert graph.use(lambda y: [y, made[0], 5], recipe, {})["value"][0] == {"step": 3}
    assert graph.use(lambda y: y, recipe, {}) == {"value": {"step": 3}}
    assert list(graph.case_arguments(recipe, {"a": 0})) == ["y", "a"]
    with pytest.raises(ValueError, match="'pow' is not a step of a recipe"):
        graph.build([["pow", 0, 1]])


def test_tensors_are_known_by_identity_and_not_by_value():
    recipe = [["leaf", np.array([1.0]), True], ["exp", 0]]
    value = graph.use(lambda y: [y.grad_fn.next_functions[0][0].variable, gl.tensor([1.0])], recipe, {})["value"]
    assert value[0] == {"step": 0} and isinstance(value[1], gl.Tensor)


def test_too_deep_is_no_crash():
    def deeper(y):
        return deeper(y)

    assert graph.use(deeper, [["leaf", np.array([1.0]), True]], {}) == {"deep": True}


# ------------------------------------------------------------------------------------------------------------------- repair
@pytest.mark.parametrize(
    ("after", "lines"),
    [
        ("def f(x):\n    a = 1\n    b = 2\n    return a + b\n", 0),
        ("def f(x):\n\n    a = 1  # one\n    b = 2\n    # the sum\n    return (a + b)\n", 0),
        ("def f(x):\n    a = 3\n    b = 2\n    return a + b\n", 1),
        ("def f(x):\n    a = 1\n    return a\n", 2),
        ("def f(x):\n    a = 1; b = 2; c = 3; d = 4\n    return a + b\n", 2),
        ("def f(x):\n    return 3\n", 3),
    ],
)
def test_lines_that_are_not_as_they_were(after, lines):
    assert count_edits("def f(x):\n    a = 1\n    b = 2\n    return a + b\n", cells(after)["f"]) == lines


def test_a_text_that_cannot_be_had_is_no_number():
    assert count_edits("def f(x):\n    return x\n", abs) is None


# ----------------------------------------------------------------------------------------------------------------- programs
def test_a_program_runs_on_anything():
    program = Program("c = a.exp() * 2 - b\nd = (c @ b.T) / 4\nout = -d.sum(0) ** 2")
    assert program.inputs == ("a", "b") and program.names == ("c", "d", "out")
    a, b = np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])
    right = -((((np.exp(a) * 2 - b) @ b.T) / 4).sum(0) ** 2)
    np.testing.assert_allclose(program(gl.tensor(a), gl.tensor(b)), right)
    assert list(program.run({"a": gl.tensor(a), "b": gl.tensor(b)})) == ["c", "d", "out"]
    with pytest.raises(TypeError, match="this program takes a, b, got 1 inputs"):
        program(a)


@pytest.mark.parametrize(
    "text",
    [
        "print(1)",
        "a = __import__('os')",
        "a = b.__class__",
        "a = b.tofile('x')",
        "a = b[0]",
        "a = b.sum(dim=0)",
        "a = b.sum(c)",
        "a = 'text'",
        "a, b = c",
        "a = b if c else d",
        "a = (lambda: b)()",
        "",
    ],
)
def test_what_is_no_program_is_refused(text):
    with pytest.raises(ValueError, match="program"):
        Program(text)


# ------------------------------------------------------------------------------------------------------- engines compared
def comparison_of(events, grads, names=("a", "b"), program="b = a * 2", **more):
    theirs = {"values": {}, "grads": grads, "names": list(names), "runs": [1] * len(names), "events": events, **more}
    inputs = {name: np.ones(()) for name in Program(program).inputs}
    return ProgramComparison(program, run_on_tensors(program, inputs, [(Program(program).names[-1], None)]), theirs)


def event(node, g, to, shares, call=0):
    return {"call": call, "node": node, "g": np.array(g), "to": to, "shares": [np.array(one) for one in shares]}


def test_gradients_in_between_are_gradlabs():
    ours = run_on_tensors("b = a * a\nc = b.exp()\nd = c + b", {"a": np.array(0.5)}, [("d", None), ("c", np.array(2.0))])
    b, c = 0.25, np.exp(0.25)
    assert ours["grads"]["c"] == 3 and ours["grads"]["d"] == 1
    np.testing.assert_allclose(ours["grads"]["b"], 3 * c + 1)
    np.testing.assert_allclose(ours["grads"]["a"], (3 * c + 1) * 2 * 0.5)
    assert ours["values"]["b"] == b


def test_a_fault_is_read_off_the_shares():
    program = "b = a + a\nc = b * 1"
    twice = [event(2, 1.0, [1], [1.0]), event(1, 1.0, [0, 0], [1.0, 1.0])]
    names = ("a", "b", "c")
    assert "`a` is reached by 2 paths, yours has only the last one: 1, not 2" in comparison_of(
        twice, {"a": 1.0}, names, program
    ).fault("a")
    early = [event(1, 1.0, [0, 0], [1.0, 1.0]), event(2, 1.0, [1], [1.0])]
    assert "the rule of `b` ran before its other user" in comparison_of(early, {"a": 1.0}, names, program).fault("a")
    assert "wrote into the cotangent" in comparison_of(twice, {"a": 1.0}, names, program, wrote=[1]).fault("a")
    assert comparison_of([], {"a": None}, names, program).fault("a") == "no share has reached `a`."
    assert comparison_of(twice, {"a": 7.0}, names, program).fault("a") == ""  # the recorded calls show no cause
    assert "`a.grad` and `b.grad` are one array" in comparison_of(
        twice, {"a": 7.0}, names, program, **{"one array": ["a", "b"]}
    ).fault("a")
    ran = comparison_of(twice, {"a": 2.0}, names, program, runs=[0, 3, 1])
    assert ran.repeated_rule() == "the rule of `b` ran 3 times" and not ran.repeated_rule(calls=3)


def test_nothing_that_came_is_no_error():
    nothing = ProgramComparison("b = a * 2", run_on_tensors("b = a * 2", {"a": np.ones(())}, [("b", None)]), {})
    assert (
        nothing.own_grads == {}
        and nothing.repeated_rule() == nothing.early_rule() == nothing.changed_data() == nothing.refusal == ""
    )


# ------------------------------------------------------------------------------------------------------------- cotangents
RIGHT = np.array([[1.0, 2.0, 4.0], [3.0, -1.0, 0.5]])
SQUARE = np.array([[1.0, 2.0], [3.0, -1.0]])


@pytest.mark.parametrize(
    ("got", "right", "says"),
    [
        (RIGHT, RIGHT, ""),
        (RIGHT.T, RIGHT, "it is transposed."),
        (SQUARE.T, SQUARE, "it is transposed."),
        (RIGHT, RIGHT.sum(0), "the same number was used 2 times: how do its 2 shares combine?"),
        (RIGHT, RIGHT.sum(1, keepdims=True), "the same number was used 3 times: how do its 3 shares combine?"),
        (RIGHT, RIGHT.sum(), "the same number was used 6 times: how do its 6 shares combine?"),
        (RIGHT.sum(0, keepdims=True), RIGHT.sum(0), "the numbers are right, but with an extra axis of length 1."),
        (RIGHT * 5, RIGHT, "every entry is 5 times too large."),
        (RIGHT / 5, RIGHT, "every entry is 5 times too small."),
        (-RIGHT, RIGHT, "every sign is wrong."),
        (0 * RIGHT, RIGHT, "all entries are zero."),
        (RIGHT + 1, RIGHT, ""),
        (RIGHT * np.nan, RIGHT, ""),
        (RIGHT, RIGHT.sum(0) + 1, ""),
        (None, RIGHT, ""),
        ("text", RIGHT, ""),
    ],
)
def test_what_the_numbers_of_a_cotangent_say(got, right, says):
    assert diagnose_cotangent(got, np.asarray(right)) == says


# ------------------------------------------------------------------------------------------------------------- references
@pytest.mark.parametrize("shape", [(), (3,), (1,), (2, 1), (1, 3), (2, 3), (4, 1, 3), (1, 1, 1)])
def test_the_reference_of_unbroadcast_is_the_adjoint(shape):
    draw = np.random.default_rng(1).normal
    wide = np.broadcast_shapes(shape, (2, 3))
    u, g = draw(size=shape), draw(size=wide)
    back = references.unbroadcast(g, shape)
    assert back.shape == shape
    np.testing.assert_allclose((np.broadcast_to(u, wide) * g).sum(), (u * back).sum())


# -------------------------------------------------------------------------------------------------------------- off limits
def use_way(text, paths):
    def checks(student):
        student.function("f", forbidden=paths)(gl.tensor([1.0]))
        student.check(10, "all", True, "")

    return run_checks(checks, cells(text))


def test_a_whole_library_is_off_limits():
    found = use_way("def f(y):\n    work = gl.exp\n    return work(y)\n", ("gradlab.*",))
    assert "it uses `gradlab." in verdict_text(found) and "(line 3 of its cell: `return work(y)`)" in verdict_text(found)
    assert use_way("def f(gradlab):\n    return [gradlab]\n", ("gradlab.*",)).points == 10


def test_another_library_is_known_by_its_modules(monkeypatch):
    module = ModuleType("torch.made_here")
    exec("def helper(x):\n    return x\ndef grad(x):\n    return helper(x)", module.__dict__)
    monkeypatch.setitem(sys.modules, "torch.made_here", module)
    found = use_way("import sys\ndef f(y):\n    return sys.modules['torch.made_here'].grad(3)\n", ("torch.*",))
    assert "it uses `torch.made_here.grad` (line 3 of its cell" in verdict_text(found)
    assert use_way("def f(y):\n    return y.exp()\n", ("torch.*",)).points == 10


def test_a_pattern_is_a_library_and_no_more():
    assert codes_of("torch.*") == {}
    with pytest.raises(ValueError, match="is not a path"):
        codes_of("torch.nn.*")
