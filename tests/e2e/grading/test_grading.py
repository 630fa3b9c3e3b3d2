"""Submissions graded in separate processes get the verdicts of the notebook, and cannot forge them."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from grouped import exhaustive_after_first
from homework.answers import ANSWERS, IDLE, TABLE
from homework.notebook_of import cells
from homework.submissions import FORGES, INTENDED, RIGHT, SOURCE, submission, write_notebook, written_as
from waiting import HandClock, wait_until

from gradlab.clock import use_source
from gradlab.homework import load, run
from gradlab.homework.grading import ALTOGETHER, CELLS, DIED, GRACE, KILLED, SPENT, Gone, Submission, grade_cells
from gradlab.homework.probes import Probe

START = "import gradlab as gl"
ROWS = RIGHT["answer1"]


def points(texts, tmp_path, seed=4, **options):
    tmp_path.mkdir(exist_ok=True)
    return tuple(one.points for one in grade_cells([START, *texts], tmp_path, SOURCE, seed, **options)[0])


@pytest.mark.parametrize("who", [who for who in INTENDED if who != "endless"])
def test_a_submission_is_graded(tmp_path, who):
    verdicts = run(write_notebook(tmp_path, who), seed=4, checks=SOURCE)
    assert tuple(verdict.points for verdict in verdicts) == INTENDED[who][2]


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")
def test_the_verdict_matches_the_notebook(tmp_path):
    homework = load(SOURCE)
    for answer in [*TABLE, *ANSWERS[len(TABLE) :: 4]]:  # only some of the others, since each needs a process
        with Submission([START, *answer.cells], tmp_path) as submission:
            found = homework.check(answer.exercise, submission, 9)
        here = homework.check(answer.exercise, cells(*answer.cells), 9)
        assert found.points == answer.points, str(found)
        assert [one.good for one in found.findings] == [one.good for one in here.findings], answer.name
        said, says = [[one.words for one in each.findings if not one.words.startswith("raised")] for each in (found, here)]
        assert said == says, answer.name  # (the text of an error names its cell)


# ---------------------------------------------------------------------------------------------------------------- forgeries
FIRST = "prints a verdict, and rewrites the grader"
FORGERIES = {
    FIRST: FORGES,
    "answers in the place of perform": """
import sys
sys.modules["__main__"].perform = lambda *a: {"end": "value", "value": {"tensor": __import__("numpy").ones((3, 3))},
                                              "changed": [],
                                              "points": 30, "findings": [], "passed": True}
""",
    "writes to every file descriptor": """
import json, os, struct
body = json.dumps({"done": {"end": "value", "value": {"number": 30}, "points": 30}}).encode()
for number in range(3, 20):
    try:
        os.write(number, struct.pack(">I", len(body)) + body)
    except OSError:
        pass
""",
    "writes text that is not a message": """
import os
for number in range(3, 20):
    try:
        os.write(number, b"100 of 100 points, 100 of 100 points")
    except OSError:
        pass
""",
    "floods the pipe": """
import os, threading
def flood():
    while True:
        for number in range(3, 8):
            try:
                os.write(number, b"\\0\\0\\0\\2{}" * 1000)
            except OSError:
                pass
threading.Thread(target=flood, daemon=True).start()
""",
    "announces a message of 4 GB": """
import os
for number in range(3, 9):
    try:
        os.write(number, b"\\xff" * 4)
    except OSError:
        pass
""",
    "rewrites the checks beside it": """
from pathlib import Path
Path("checks.py").write_text("homework = None")
""",
    "forks": """
import os
if os.fork() == 0:
    os.setsid()
    import signal
    signal.alarm(30)
    signal.pause()
""",
    "ends the process": "import os\nos._exit(0)\n",
    "a library of the same name": """
from pathlib import Path
Path("gradlab.py").write_text("print(30)")
Path("numpy.py").write_text("")
""",
    "asks for a million products": """
import numpy as np
def jacobian_by_rows(f, x):
    for what in ("pull", "push"):
        for _ in range(3):
            try:
                f.query(what, np.zeros(x.numel()), np.zeros((200_000, x.numel())))
            except RuntimeError:
                pass
    return x
""",
    "counts made up": """
from gradlab.homework import probes
probes.Probe.pulls = property(lambda self: [1] * 5, lambda self, value: None)
probes.Probe.elsewhere = property(lambda self: 0)
""",
}


@pytest.mark.parametrize("name", exhaustive_after_first(FIRST, *(name for name in FORGERIES if name != FIRST)))
def test_a_forgery_gets_no_points(tmp_path, name):
    assert points([FORGERIES[name]], tmp_path) == (0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("name", ["counts made up", FIRST])
def test_forged_counts_do_not_turn_difference_quotients_into_sweeps(tmp_path, name):
    texts = [FORGERIES[name].replace('sys.modules["__main__"].perform', "unused"), *IDLE]
    assert points(texts, tmp_path)[0] == 4


ELSEWHERE = {
    "in another shape": "f((flat + e).reshape(-1, 1)) - f((flat - e).reshape(-1, 1))",
    "with an axis more": "f((flat + e).reshape(1, *x.shape)) - f((flat - e).reshape(1, *x.shape))",
    "past the tensor": "gl.tensor(f.query('value', (flat + e).numpy()) - f.query('value', (flat - e).numpy()))",
    "past the function": "gl.tensor(f._ask(0, 'value', [(flat + e).numpy()]) - f._ask(0, 'value', [(flat - e).numpy()]))",
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_difference_quotients_are_detected_however_f_is_called(name):
    usual = "f((flat + e).reshape(x.shape)) - f((flat - e).reshape(x.shape))"
    assert usual in IDLE[0]
    found = load(SOURCE).check(1, cells(IDLE[0].replace(usual, ELSEWHERE[name]), *IDLE[1:]))
    assert found.points == 4, str(found)
    assert "these are difference quotients" in str(found)


def test_all_calls_at_points_beside_x_are_counted():
    at = np.array([[0.1, 0.2], [0.3, 0.4]])
    probe = Probe(lambda x: x.reshape(-1), at)
    for x in (at, at.astype(np.float32), at.reshape(-1), at.astype(np.complex128)):
        probe.answer("value", [x])
    assert (probe.calls, probe.elsewhere) == (4, 0)
    v = np.ones(4)
    probe.answer("pull", [at, v])
    probe.answer("push", [at.reshape(-1), np.stack([v, v])])
    assert (probe.elsewhere, probe.pulls, probe.pushes, probe.sweeps) == (0, [1], [2], 3)
    for n, x in enumerate((at + 1e-9, at.astype(np.float16), at + 1e-20j, at.reshape(-1)[::-1]), 1):
        probe.answer("value", [x])
        assert probe.elsewhere == n
    probe.answer("pull", [at - 1e-9, v])
    assert probe.elsewhere == 5
    with pytest.raises(ValueError, match="the limit is 1000"):
        probe.answer("pull", [at, np.ones((1001, 4))])


def test_a_right_answer_beside_a_forgery_gets_its_points(tmp_path):
    assert points([FORGERIES["rewrites the checks beside it"], *RIGHT.values()], tmp_path) == (30, 20, 20, 15, 15, 0)


TURNS_THE_WATCH_OFF = """
import sys
def jacobian_by_rows(f, x):
    sys.setprofile(None)
    return gl.func.jacrev(f, chunk_size=1)(x).reshape(-1, x.numel())
"""
LIES_ABOUT_X = (
    ROWS.replace("    x = x.detach()", "    given = x.detach()\n    x = x.detach()").replace(
        "    return gl.stack", "    given[...] = 0\n    return gl.stack"
    )
    + """
import gradlab.homework.calling
gradlab.homework.calling._find_change = lambda *a: ""
"""
)


@pytest.mark.parametrize("text", [TURNS_THE_WATCH_OFF, LIES_ABOUT_X], ids=["borrowing", "overwriting"])
def test_some_checks_trust_the_submission(tmp_path, text):
    """Only the submission's own process sees whether it uses the library's Jacobian or changes x, as documented."""
    assert points([text], tmp_path)[0] == 30


def test_the_library_s_jacobian_is_one_sweep_even_if_the_watch_is_off(tmp_path):
    assert points([TURNS_THE_WATCH_OFF.replace(", chunk_size=1", "")], tmp_path)[0] == 24


# ------------------------------------------------------------------------------------------------------------------- limits
@pytest.mark.exhaustive
def test_an_endless_submission_takes_at_most_a_minute_and_a_gigabyte(tmp_path):
    most = [0]

    def measure_memory(submission=Submission._exchange):
        def exchange(self, *args):
            made = submission(self, *args)
            if self._process is not None:
                status = Path(f"/proc/{self._process.pid}/status").read_text()
                most[0] = max(most[0], *[int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")])
            return made

        return exchange

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Submission, "_exchange", measure_memory())
        verdicts = run(write_notebook(tmp_path, "endless"), seed=4, checks=SOURCE)
    assert most[0] < 1_000_000  # kB
    assert tuple(verdict.points for verdict in verdicts) == INTENDED["endless"][2]
    assert "did not end within 10 s" in str(verdicts[0])


EVERY_ONE_ENDLESS = {
    key: text.replace("def ", "def ", 1).split(":\n")[0] + ":\n    while True:\n        try:\n            pass\n"
    "        except BaseException:\n            pass\n"
    for key, text in RIGHT.items()
}


STUCK = """
import pathlib
pathlib.Path("here").touch()
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
"""


@pytest.mark.parametrize(("seconds", "words"), [(CELLS[0] + GRACE, KILLED), (ALTOGETHER, SPENT.format(ALTOGETHER))])
def test_a_process_that_does_not_answer_is_killed_after_its_time(tmp_path, seconds, words):
    by_hand = HandClock()
    with use_source(by_hand), Submission([START, STUCK, "print('still here')"], tmp_path) as submission:
        moving = threading.Thread(target=lambda: (wait_until((tmp_path / "here").exists), by_hand.move(seconds)))
        moving.start()
        if seconds == ALTOGETHER:
            with pytest.raises(Gone, match=re.escape(words)):
                submission.run()
        else:
            submission.run()
            assert submission.outputs[1:] == [[{"text": f"This cell: {words}"}], [{"text": "still here\n"}]]
        moving.join()


@pytest.mark.exhaustive
def test_several_endless_loops_take_no_longer(tmp_path):
    verdicts = run(written_as(tmp_path, submission(EVERY_ONE_ENDLESS)), seed=4, checks=SOURCE)
    assert [verdict.points for verdict in verdicts] == [0] * 6
    spent = SPENT.format(ALTOGETHER)
    assert all("did not end within" in str(verdict) or spent in str(verdict) for verdict in verdicts)


def test_memory_is_bounded(tmp_path):
    hungry = "def jacobian_by_rows(f, x):\n    return [bytearray(10 ** 8) for _ in range(100)]\n"
    verdicts, _ = grade_cells([START, hungry, *list(RIGHT.values())[1:]], tmp_path, SOURCE, 0)
    assert "raised MemoryError" in str(verdicts[0])
    assert [verdict.points for verdict in verdicts[1:]] == [20, 20, 15, 15, 0]


def test_a_process_that_ends_itself_is_distinguished_from_a_killed_one(tmp_path):
    ending = "import os\ndef jacobian_by_rows(f, x):\n    os._exit(0)\n"
    verdicts, _ = grade_cells([START, ending, *list(RIGHT.values())[1:]], tmp_path, SOURCE, 0)
    assert DIED in str(verdicts[0]) and KILLED not in str(verdicts[0])
    assert [verdict.points for verdict in verdicts] == [0, 20, 20, 15, 15, 0]


def test_no_process_is_left_running(tmp_path):
    with Submission(
        [START, "import subprocess\nchild = subprocess.Popen(['sleep', '60'])\nprint(child.pid)"], tmp_path
    ) as submission:
        submission.run()
        child, own = int(submission.outputs[1][0]["text"]), submission._process.pid
    for number in (child, own):
        wait_until(lambda number=number: not _lives(number), f"the end of {number}")


def _lives(number):
    try:
        with open(f"/proc/{number}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_submission_does_not_see_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("A_TOKEN_OF_THE_TEACHER", "secret")
    with Submission(["import os\nprint('secret' in str(os.environ), os.environ['HOME'])"], tmp_path) as submission:
        submission.run()
        assert submission.outputs[0] == [{"text": f"False {tmp_path}\n"}]


# ------------------------------------------------------------------------------------------------------------------ outputs
def test_outputs_of_cells_are_kept(tmp_path):
    texts = [
        "1 + 1",
        "print('a')\nraise ValueError('no')",
        "%load_ext gradlab\nimport gradlab as gl",
        "gl.ones(2)",
        "def f(:",
        "print('x' * 99_999)",
        "for i in range(10_000):\n    print('line', i)\nraise ValueError('at the end')",
        "from IPython.display import display\ndisplay(3)",
    ]
    with Submission(texts, tmp_path) as submission:
        submission.run()
        made = ["".join(one.get("text", "") for one in cell) for cell in submission.outputs]
    assert made[0] == "2\n"
    assert made[1].startswith("a\n") and "ValueError: no" in made[1]
    assert made[2] == ""
    assert made[3] == "tensor([1., 1.])\n"
    assert "SyntaxError" in made[4]
    assert made[5] == f"\n… 95000 characters are left out here …\n{'x' * 4999}\n"
    assert made[6].startswith("line 0\nline 1\n") and made[6].endswith("ValueError: at the end\n") and len(made[6]) < 21_000
    assert made[7] == "3\n"


def test_pictures_are_kept(tmp_path):
    text = "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    with Submission([text], tmp_path) as submission:
        submission.run()
        assert any("png" in one for one in submission.outputs[0])


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"cells": 3}', '{"cells": [{"cell_type": "code"}]}', "\x00"])
def test_a_file_that_is_not_a_notebook_is_an_error(tmp_path, content):
    path = tmp_path / "hw3_jacobian.ipynb"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"hw3_jacobian\.ipynb is not a notebook"):
        run(path, checks=SOURCE)


def test_files_beside_a_notebook_are_copied(tmp_path):
    path = written_as(tmp_path, submission({"answer1": "from rows_of_mine import jacobian_by_rows"}))
    (tmp_path / "rows_of_mine.py").write_text("import gradlab as gl\n" + ROWS)
    assert run(path, checks=SOURCE)[0].points == 30
    assert not os.path.exists(tmp_path / "__pycache__")
