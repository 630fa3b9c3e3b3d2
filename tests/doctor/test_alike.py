"""Similar findings are merged and counted; at most three are printed."""

from __future__ import annotations

from dataclasses import replace

from gradlab.explore.doctor.findings import SHOWN, Diagnosis, Finding

CUT = Finding(
    "item", "`q.item()` on line 4: `q` has no history after it; `net.a` has another way to it.", 4, remark=True, worth=0.5
)
OTHER = Finding(
    "item",
    "`v.item()` on line 9: `v` has no history after it; `net.a` and `net.b` have another way to it.",
    9,
    remark=True,
    worth=0.5,
)
SMALL = Finding(
    "vanishing",
    "The gradient of `net[0].weight` is 2.8e+03 times smaller than that of `net[6].weight`.",
    3,
    fix="Use `nn.ReLU()` in place of `nn.Sigmoid()`.",
    worth=6.0,
)


def merge(*findings):
    found = Diagnosis.of(findings)
    return [*found.findings, *found.remarks]


def test_the_same_finding_on_two_lines_is_merged():
    (one,) = merge(CUT, OTHER)
    assert one.message == f"{CUT.message} The same of `v.item()` on line 9."
    assert (one.line, one.lines, one.times) == (4, (9,), 2)


def test_another_cause_is_another_finding():
    assert len(merge(CUT, replace(OTHER, kind="numpy"))) == 2
    assert len(merge(CUT, replace(OTHER, remark=False))) == 2
    assert len(merge(CUT, replace(OTHER, message=OTHER.message.replace("another way", "no way")))) == 2


def test_other_numbers_are_another_finding_of_one_model():
    found = merge(SMALL, replace(SMALL, message=SMALL.message.replace("2.8e+03", "41"), line=5, worth=5.0))
    assert [one.worth for one in found] == [6.0, 5.0]


def test_identical_findings_are_counted():
    (one,) = merge(*[Finding("k", "A step is lost.")] * 3)
    assert str(one) == "A step is lost. (3 times)" and one.times == 3


def test_long_code_is_not_repeated():
    long = OTHER.message.replace("v.item()", "values.gather(1, actions.unsqueeze(1)).mean().item()")
    (one,) = merge(CUT, replace(OTHER, message=long))
    assert one.message.endswith("another way to it. The same on line 9.")


def test_many_places_are_counted():
    def on(line):
        return replace(CUT, message=CUT.message.replace("line 4", f"line {line}"), line=line)

    (one,) = merge(CUT, *map(on, range(10, 16)))
    assert one.message.endswith("The same on lines 10, 11, 12 and 3 more.")
    assert one.lines == tuple(range(10, 16)) and one.times == 7


def test_two_changes_are_one_change_of_two_pieces():
    first = Finding("k", "`a` on line 1 is in place.", 1, fix="Write a new one: `a = a + 1` in place of `a += 1`.")
    second = Finding("k", "`b` on line 2 is in place.", 2, fix="Write a new one: `b = b + 1` in place of `b += 1`.")
    (one,) = merge(first, second)
    assert one.fix == "Write a new one: `a = a + 1` in place of `a += 1` and `b = b + 1` in place of `b += 1`."


def test_findings_whose_fixes_name_different_tensors_are_not_merged():
    first = Finding("k", "`a` on line 1 is frozen.", 1, fix="Call `a.requires_grad_()` first.")
    assert (
        len(merge(first, replace(first, message="`b` on line 2 is frozen.", line=2, fix="Call `b.requires_grad_()` first."))) == 2
    )


def test_models_with_the_same_finding_are_listed():
    other = replace(SMALL, message=SMALL.message.replace("2.8e+03", "41"), worth=5.0, model="act=Tanh")
    (one,) = merge(other, replace(SMALL, model="act=Sigmoid"))
    assert one.model == "act=Sigmoid and act=Tanh" and one.worth == 6.0, "the numbers of the largest `worth` are kept"
    assert one.message == f"{SMALL.message} These numbers are of `act=Sigmoid`."


def test_different_findings_of_two_models_on_one_line_are_both_reported():
    other = replace(SMALL, message="The gradient of `net[0].weight` is exactly 0.", model="act=ReLU", worth=7.0)
    assert [one.model for one in merge(replace(SMALL, model="act=Sigmoid"), other)] == ["act=ReLU", "act=Sigmoid"]


def test_merging_again_changes_nothing():
    found = Diagnosis.of([CUT, OTHER, SMALL, replace(SMALL, model="a"), replace(SMALL, model="b")])
    assert Diagnosis.of([*found.findings, *found.remarks]) == found


def test_three_are_printed_problems_before_notes():
    problems = [Finding("p", f"Cause {'abcde'[i]} of it.", worth=float(i)) for i in range(2)]
    notes = [Finding("n", f"Remark {'abcde'[i]} on it.", remark=True, worth=9.0) for i in range(4)]
    found = Diagnosis.of([*notes, *problems], ["Nobody looked."])
    lines = found.text().splitlines()
    assert lines[:2] == ["Problem: Cause b of it. [p]", "Problem: Cause a of it. [p]"]
    assert lines[3:] == ["3 more notes: `.text(every=True)` has all of them.", "Nobody looked."]
    assert SHOWN == 3 and len(found.text(every=True).splitlines()) == 7


def test_the_model_is_named():
    assert Diagnosis.of([replace(SMALL, model="act=Tanh")]).text().startswith("Problem (act=Tanh): The gradient")
