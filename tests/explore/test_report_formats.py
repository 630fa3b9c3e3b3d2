"""Test `gradlab doctor --format json|github|sarif`: the report alone on standard output, and its content."""

from __future__ import annotations

import io
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

from gradlab import __version__, cli
from gradlab.explore import script
from gradlab.explore.doctor.findings import Diagnosis, Finding
from gradlab.explore.doctor.registry import KINDS
from gradlab.explore.script import github_report, json_report, running, sarif_report
from gradlab.explore.script.formats import json_safe
from gradlab.explore.script.locations import source_line
from gradlab.explore.script.program import Program
from gradlab.explore.script.redirection import redirect_stdout_to_stderr
from gradlab.explore.script.running import ScriptRun

FORMATS = ["json", "github", "sarif"]
FAULTY = """\
import gradlab as torch

w = torch.tensor([4.0, 0.0], requires_grad=True)
v = torch.tensor([5.0, 0.0], requires_grad=True)
loss = torch.sqrt(w * w).sum()  # first
loss = loss + torch.sqrt(v * v).sum()  # second
loss.backward()
"""
NOTE = """\
import gradlab as torch
from gradlab import nn

model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
model(torch.randn(16, 3)).square().mean().backward()
"""
HEALTHY = "import gradlab as torch\n\nw = torch.ones(3, requires_grad=True)\n(w * w).sum().backward()\n"
HEADING = "── gradlab doctor"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """An empty current folder, outside a job of GitHub Actions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    return tmp_path


@pytest.fixture
def doctor(here, capfd):
    """Return a function that runs `gradlab doctor … train.py` in this process and returns (status, output, errors)."""

    def doctor(text, *options, name="train.py", arguments=()):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
        before = sys.stdout, stdout_identity()
        status = cli.main(["doctor", *options, name, *arguments])
        assert (sys.stdout, stdout_identity()) == before
        return status, *capfd.readouterr()

    return doctor


def stdout_identity():
    """Return what the file descriptor of standard output refers to."""
    found = os.fstat(1)
    return found.st_dev, found.st_ino


def run_command(*words, cwd, **options):
    command = [sys.executable, "-m", "gradlab", *words]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=cwd, **options)


COMMAND = re.compile(r"::(error|warning|notice) ([^:]*)::(.*)")


def unescape(text):
    for escape, character in (("%3A", ":"), ("%2C", ","), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        text = text.replace(escape, character)
    return text


def read_commands(output):
    """Parse workflow commands as the runner of GitHub Actions does. Return (command, properties, message) for each line."""
    commands = []
    for line in output.splitlines():
        command, properties, message = COMMAND.fullmatch(line).groups()
        pairs = [pair.split("=", 1) for pair in properties.split(",")]
        commands.append((command, {name: unescape(value) for name, value in pairs}, unescape(message)))
    return commands


def read_sarif(output):
    """Parse SARIF, check the properties that the standard or code scanning requires, and return its only run."""
    log = json.loads(output)
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "gradlab doctor" and driver["version"] == __version__
    for rule in driver["rules"]:
        assert all(rule[name]["text"] for name in ("shortDescription", "fullDescription", "help"))
        assert rule["defaultConfiguration"]["level"] in ("error", "note")
    (invocation,) = run["invocations"]
    assert type(invocation["executionSuccessful"]) is bool and type(invocation["exitCode"]) is int
    for notification in invocation["toolExecutionNotifications"]:
        assert notification["message"]["text"]
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "note") and result["message"]["text"]
        assert len(result["locations"]) == 1
        related = result.get("relatedLocations", [])
        for location in (*result["locations"], *related):
            artifact, region = location["physicalLocation"]["artifactLocation"], location["physicalLocation"]["region"]
            assert re.fullmatch(r"[\w./%~-]+", artifact["uri"]) and artifact["uriBaseId"] == "%SRCROOT%"
            assert 1 <= region["startLine"] <= region.get("endLine", region["startLine"])
        links = re.findall(r"(?<!\\)\]\((\d+)\)", result["message"]["text"])
        assert [int(number) for number in links] == [location["id"] for location in related]
    return run


READERS = {"json": json.loads, "github": read_commands, "sarif": read_sarif}


def place_of(result):
    physical = result["locations"][0]["physicalLocation"]
    return unquote(physical["artifactLocation"]["uri"]), physical["region"]["startLine"]


# ----------------------------------------------------------------------------------------------------------------- findings
def test_all_formats_report_the_same_findings(doctor):
    status, output, errors = doctor(FAULTY, "--format", "json")
    report = json.loads(output)
    assert status == report["exit_status"] == 1 and HEADING not in errors
    (finding,) = report["findings"]
    lines = {word: i for i, line in enumerate(FAULTY.splitlines(), 1) for word in ("first", "second") if line.endswith(word)}
    assert {finding["line"], *finding["lines"]} == set(lines.values()) and finding["times"] == 2
    assert (finding["kind"], finding["severity"], finding["file"]) == ("inf-born", "problem", "train.py")
    assert finding["end_line"] == finding["line"] and finding["code"] == FAULTY.splitlines()[finding["line"] - 1]

    ((command, properties, message),) = read_commands(doctor(FAULTY, "--format", "github")[1])
    assert command == "error" and message == f"{finding['message']}\n{finding['fix']}"
    line = str(finding["line"])
    title = "gradlab doctor [inf-born]"
    assert properties == {"file": "train.py", "line": line, "endLine": line, "title": title}

    run = read_sarif(doctor(FAULTY, "--format", "sarif")[1])
    (result,), (rule,) = run["results"], run["tool"]["driver"]["rules"]
    assert (result["ruleId"], result["level"]) == ("inf-born", "error") and place_of(result) == ("train.py", finding["line"])
    (related,) = result["relatedLocations"]
    assert [related["physicalLocation"]["region"]["startLine"]] == finding["lines"]
    whole = f"{finding['message']} {finding['fix']} See [line {finding['lines'][0]}](1)."
    assert result["message"]["markdown"] == whole and result["message"]["text"] == whole.replace("`", "'")
    kind = KINDS["inf-born"]
    assert rule["shortDescription"]["text"] == kind.meaning.replace("`", "'") and rule["id"] == kind.name


def test_the_report_in_json(doctor):
    status, output, _ = doctor(FAULTY, "--format", "json", arguments=["--epochs", "3"])
    report = json.loads(output)
    assert list(report) == [
        *("version", "gradlab", "program", "arguments", "exit_status", "script_status", "backward_calls"),
        *("findings", "unseen", "ignored", "seconds"),
    ]
    assert (report["version"], report["gradlab"], report["program"]) == (1, __version__, "train.py")
    assert report["arguments"] == ["--epochs", "3"] and report["backward_calls"] == 1 and report["script_status"] == 0
    assert report["unseen"] == [] and report["ignored"] == 0
    assert set(report["seconds"]) == {"script", "checks"} and "find_non_finite" in report["seconds"]["checks"]
    (finding,) = report["findings"]
    assert list(finding) == [
        *("kind", "severity", "message", "fix", "file", "line", "end_line", "code", "lines", "place", "model", "times"),
        "evidence",
    ]
    assert finding["place"] is None and finding["model"] == "" and finding["evidence"]["zeros"] == 1


def test_a_note_has_a_lower_level(doctor):
    status, output, _ = doctor(NOTE, "--format", "json")
    assert status == 0 and [one["severity"] for one in json.loads(output)["findings"]] == ["note"]
    ((command, _, _),) = read_commands(doctor(NOTE, "--format", "github")[1])
    assert command == "warning"
    (result,) = read_sarif(doctor(NOTE, "--format", "sarif")[1])["results"]
    assert result["level"] == "note"


@pytest.mark.parametrize("form", FORMATS)
def test_a_healthy_script_has_no_findings(form, doctor):
    status, output, _ = doctor(HEALTHY, "--format", form)
    report = READERS[form](output)
    assert status == 0
    assert report == [] if form == "github" else report["findings" if form == "json" else "results"] == []


@pytest.mark.parametrize("form", FORMATS)
def test_the_limits_of_the_checks_are_reported(form, doctor):
    _, output, _ = doctor("print('no backward')\n", "--format", form)
    report = READERS[form](output)
    if form == "github":
        ((command, properties, sentence),) = report
        assert command == "notice" and properties == {"title": "gradlab doctor"}
    elif form == "json":
        (sentence,) = report["unseen"]
    else:
        (notification,) = report["invocations"][0]["toolExecutionNotifications"]
        sentence = notification["message"]["text"]
    assert sentence.startswith("No backward() was called")


def test_all_findings_are_reported(doctor):
    """The text has three of them."""
    text = "import gradlab as torch\nimport gradlab as gl\n" + "".join(
        f"w{i} = torch.tensor([0.0], requires_grad=True)\n" for i in range(5)
    )
    terms = ["w0.log()", "w1 / w1", "torch.sqrt(w2)", "(w3 * 2).detach()", "torch.round(w4)"]
    text += f"loss = ({' + '.join(terms)}).sum()\nloss.backward()\n"
    findings = json.loads(doctor(text, "--format", "json")[1])["findings"]
    assert len(findings) > 3
    assert len(read_commands(doctor(text, "--format", "github")[1])) == len(findings)
    results = read_sarif(doctor(text, "--format", "sarif")[1])["results"]
    assert [result["ruleId"] for result in results] == [finding["kind"] for finding in findings]


# ------------------------------------------------------------------------------------------------------- names and places
STRANGE = "a folder: 100%, é/train [1].py"
PARTS = "import gradlab as torch\n\n\ndef root(x):\n    return torch.sqrt(x)\n"
USES_PARTS = """\
import gradlab as torch
from parts.root import root

w = torch.zeros(3, requires_grad=True)
root(w * w).sum().backward()
"""


@pytest.fixture
def in_strange_folder(here, doctor):
    (here / "a folder: 100%, é" / "parts").mkdir(parents=True)
    (here / "a folder: 100%, é" / "parts" / "root.py").write_text(PARTS)
    return lambda *options: doctor(USES_PARTS, *options, name=STRANGE)


@pytest.mark.skipif(os.name != "posix", reason="a colon in a file name")
def test_names_with_special_characters_and_places_in_modules(in_strange_folder):
    root = "a folder: 100%, é/parts/root.py"
    report = json.loads(in_strange_folder("--format", "json")[1])
    (finding,) = report["findings"]
    assert report["program"] == finding["file"] == STRANGE and finding["line"] == 5 and finding["end_line"] is None
    assert finding["place"] == {"file": root, "line": 5, "end_line": 5, "code": "return torch.sqrt(x)"}

    ((_, properties, message),) = read_commands(in_strange_folder("--format", "github")[1])
    assert properties["file"] == STRANGE and properties["line"] == "5"
    assert message.splitlines()[-1] == f"{root}:5: return torch.sqrt(x)"

    (result,) = read_sarif(in_strange_folder("--format", "sarif")[1])["results"]
    assert place_of(result) == (STRANGE, 5)
    (related,) = result["relatedLocations"]
    assert unquote(related["physicalLocation"]["artifactLocation"]["uri"]) == root
    assert result["message"]["text"].endswith(f"See [{root}, line 5](1).")


def test_paths_are_relative_to_the_folder_in_which_the_command_began(doctor, here):
    text = "import os\nos.mkdir('other')\nos.chdir('other')\n" + FAULTY
    _, output, _ = doctor(text, "--format", "json")
    os.chdir(here)
    assert [finding["file"] for finding in json.loads(output)["findings"]] == ["train.py"]


def test_a_script_outside_the_current_folder_has_an_absolute_path(doctor, here, monkeypatch):
    (here / "work").mkdir()
    monkeypatch.chdir(here / "work")
    report = json.loads(doctor(FAULTY, "--format", "json", name="../train.py")[1])
    assert report["findings"][0]["file"] == str(here / "train.py")
    (result,) = json.loads(doctor(FAULTY, "--format", "sarif", name="../train.py")[1])["runs"][0]["results"]
    artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": (here / "train.py").as_uri()}


def test_annotations_of_a_job_are_relative_to_the_checkout(doctor, here, monkeypatch):
    (here / "work").mkdir()
    monkeypatch.chdir(here / "work")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(here))
    ((_, properties, _),) = read_commands(doctor(FAULTY, "--format", "github")[1])
    assert properties["file"] == "work/train.py"
    (result,) = read_sarif(doctor(FAULTY, "--format", "sarif")[1])["results"]
    assert place_of(result)[0] == "work/train.py"
    assert json.loads(doctor(FAULTY, "--format", "json")[1])["program"] == "train.py"
    monkeypatch.setenv("GITHUB_WORKSPACE", str(here / "elsewhere"))
    ((_, properties, _),) = read_commands(doctor(FAULTY, "--format", "github")[1])
    assert properties["file"] == "train.py"


def run_with(*findings):
    """Return a run of a script with three lines and these findings."""
    program = Program("train.py", os.path.abspath("train.py"), "first\nsecond\nthird\n", (), "")
    return ScriptRun(program, 0, Diagnosis(findings), None, backward_calls=1, folder=os.getcwd())


def test_code_in_messages_is_escaped():
    code = "model[0](d['k'] % {1: x})"
    run = run_with(Finding("dead", f"`{code}` is 0,\r\n*not* {{0}}.", 2, model="act=nn.ReLU, lr=0.1"))
    message = f"act=nn.ReLU, lr=0.1: `{code}` is 0,\r\n*not* {{0}}."
    assert json.loads(json_report(run, 1))["findings"][0]["message"] == message.partition(": ")[2]
    ((_, _, annotated),) = read_commands(github_report(run, 1))
    assert annotated == message
    (result,) = read_sarif(sarif_report(run, 1))["results"]
    code = r"model\[0\](d\['k'\] % {{1: x}})"
    assert result["message"]["text"] == f"act=nn.ReLU, lr=0.1: '{code}' is 0,\r\n*not* {{{{0}}}}."
    assert result["message"]["markdown"] == ("act=nn.ReLU, lr=0.1: `model[0](d['k'] % {{1: x}})` is 0,\r\n\\*not\\* {{0}}.")


def test_a_finding_without_a_line():
    run = run_with(Finding("dead", "Units are dead."))
    (finding,) = json.loads(json_report(run, 1))["findings"]
    assert (finding["file"], finding["line"], finding["end_line"], finding["code"]) == ("train.py", None, None, "")
    ((_, properties, _),) = read_commands(github_report(run, 1))
    assert properties == {"file": "train.py", "title": "gradlab doctor [dead]"}
    (result,) = read_sarif(sarif_report(run, 1))["results"]
    assert place_of(result) == ("train.py", 1)  # code scanning requires a line


def test_a_kind_that_is_not_declared_is_reported():
    log = json.loads(sarif_report(run_with(Finding("new-kind", "Something is wrong.", 1)), 1))
    assert log["runs"][0]["tool"]["driver"]["rules"] == [{"id": "new-kind"}]


def test_file_names_that_are_not_utf_8_are_replaced():
    program = Program("a\udcff.py", os.path.abspath("a\udcff.py"), "x\n", ("b\udcff",), "")
    run = ScriptRun(program, 0, Diagnosis((Finding("dead", "Units are dead.", 1),)), None, 1, folder=os.getcwd())
    report = json.loads(json_report(run, 1))
    assert report["program"] == "a?.py" and report["arguments"] == ["b?"]
    (result,) = read_sarif(sarif_report(run, 1))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%FF.py"


def test_values_become_plain_data():
    class Other:
        def __str__(self):
            return "other"

    values = {
        "nan": math.nan,
        "infinity": -np.float32(np.inf),
        "numbers": (np.int64(3), np.float32(0.5), np.bool_(True), True, 7, None),
        "array": np.array([[1.0, np.inf]]),
        "long": np.longdouble(2),
        "set": {2, 1},
        3: Other(),
        "nested": [{"shape": (1, 2)}],
    }
    plain = json_safe(values)
    assert plain == {
        "nan": "NaN",
        "infinity": "-Infinity",
        "numbers": [3, 0.5, True, True, 7, None],
        "array": [[1.0, "Infinity"]],
        "long": 2.0,
        "set": [1, 2],
        "3": "other",
        "nested": [{"shape": [1, 2]}],
    }
    assert [type(value) for value in plain["numbers"]] == [int, float, bool, bool, int, type(None)]
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


# ---------------------------------------------------------------------------------------------------- exit status and errors
@pytest.mark.parametrize("form", FORMATS)
def test_a_script_that_fails_has_a_report(form, doctor):
    status, output, errors = doctor(FAULTY + "raise ValueError('lost')\n", "--format", form)
    report = READERS[form](output)
    assert status == 1 and errors.endswith("ValueError: lost\n")
    if form == "json":
        assert (report["exit_status"], report["script_status"]) == (1, 1) and report["findings"]
    if form == "sarif":
        (invocation,) = report["invocations"]
        assert not invocation["executionSuccessful"] and "status 1" in invocation["exitCodeDescription"]


@pytest.mark.parametrize(("end", "expected"), [("raise SystemExit(3)", 3), ("raise KeyboardInterrupt", 130), ("", 1)])
@pytest.mark.parametrize("form", FORMATS)
def test_the_status_of_the_script_is_reported(form, end, expected, doctor):
    status, output, _ = doctor(f"{FAULTY}{end}\n", "--format", form)
    report = READERS[form](output)
    assert status == expected
    if form == "json":
        assert (report["exit_status"], report["script_status"]) == (expected, expected if end else 0)
    if form == "sarif":
        (invocation,) = report["invocations"]
        assert invocation["exitCode"] == expected and invocation["executionSuccessful"] == (not end)


def test_the_reported_status_is_that_of_the_option_strict(doctor):
    status, output, _ = doctor(NOTE, "--strict", "--format", "json")
    assert status == json.loads(output)["exit_status"] == 1


def test_ignored_findings_are_counted(doctor):
    status, output, _ = doctor(NOTE, "--strict", "--ignore", "cancelled", "--format", "json")
    report = json.loads(output)
    assert (status, report["findings"], report["ignored"]) == (0, [], 1)


@pytest.mark.parametrize("form", FORMATS)
def test_a_syntax_error_has_a_report(form, doctor):
    status, output, errors = doctor("x = (1,\n", "--format", form)
    READERS[form](output)
    assert status == 1 and "SyntaxError" in errors


def test_the_page_and_the_timings_do_not_disturb_the_report(doctor, here):
    _, output, errors = doctor(FAULTY, "--timings", "--format", "json", "--html", "page.html")
    json.loads(output)
    assert "find_non_finite" in errors and "page.html" in errors and "inf" in (here / "page.html").read_text()


def test_an_unknown_format_is_an_error(doctor, capfd):
    with pytest.raises(SystemExit) as failure:
        doctor("print('ran')\n", "--format", "xml")
    out, errors = capfd.readouterr()
    assert failure.value.code == 2 and out == "" and "'sarif'" in errors


# ---------------------------------------------------------------------------------------------------------- standard output
@pytest.mark.parametrize("form", FORMATS)
def test_what_the_script_prints_goes_to_standard_error(form, doctor):
    text = "import os, sys\nprint('by print')\nos.write(1, b'by descriptor\\n')\nsys.__stdout__.write('by the original\\n')\n"
    _, output, errors = doctor(text + FAULTY, "--format", form)
    READERS[form](output)
    for words in ("by print\n", "by descriptor\n"):
        assert words in errors and words not in output


# The output of a script as a stream that is closed, or that closes what it wraps.
STREAMS = {
    "closed": "sys.stdout.close()",
    "wrapped": "sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')\nprint('é')",
    "detached": "sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding='utf-8')\nprint('é')",
    "replaced": "sys.stdout = io.StringIO()\nprint('é')",
    "missing": "sys.stdout = None\nprint('é')",
}


@pytest.mark.parametrize("case", STREAMS)
def test_a_script_may_replace_its_output(case, doctor):
    status, output, errors = doctor(f"import io, sys\n{STREAMS[case]}\n{FAULTY}", "--format", "json")
    assert status == 1 and len(json.loads(output)["findings"]) == 1
    assert ("é" in errors) == (case in ("wrapped", "detached"))


def test_standard_output_is_restored_after_an_error(doctor, monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError("in the doctor")

    monkeypatch.setattr(running, "_diagnose", fail)
    before = sys.stdout, stdout_identity()
    with pytest.raises(RuntimeError, match="in the doctor"):
        doctor("print('printed')\n", "--format", "json")
    assert (sys.stdout, stdout_identity()) == before


def test_standard_output_without_a_file_descriptor(monkeypatch):
    def refuse(descriptor):
        raise OSError("bad file descriptor")

    streams = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    monkeypatch.setattr(os, "dup", refuse)
    with redirect_stdout_to_stderr():
        print("inside")  # noqa: T201
    print("after")  # noqa: T201
    assert [stream.getvalue() for stream in streams] == ["after\n", "inside\n"]


CHATTY = """\
import atexit
import os
import subprocess
import sys
import threading
print("by print")
os.system("echo by a shell")
subprocess.run([sys.executable, "-c", "print('by a child')"])
atexit.register(print, "by an exit handler")
finished = threading.Event()
threading.Thread(target=lambda: (threading.main_thread().join(), print("by a thread"))).start()
"""


@pytest.mark.e2e
@pytest.mark.parametrize("form", FORMATS)
def test_standard_output_is_the_report_alone(form, here):
    (here / "train.py").write_text(CHATTY + FAULTY)
    ours = run_command("doctor", "--format", form, "train.py", cwd=here)
    assert ours.returncode == 1, ours.stderr
    report = READERS[form](ours.stdout)
    assert len(report if form == "github" else report["findings" if form == "json" else "results"]) == 1
    for who in ("print", "a shell", "a child", "an exit handler", "a thread"):
        assert f"by {who}\n" in ours.stderr
    assert HEADING not in ours.stderr and "■" not in ours.stderr


@pytest.mark.e2e
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_prints_nothing_into_the_report(here):
    text = "import os, sys\nchild = os.fork()\nif not child:\n    print('by a child')\n    sys.exit()\nos.waitpid(child, 0)\n"
    (here / "train.py").write_text(text + FAULTY)
    ours = run_command("doctor", "--format", "json", "train.py", cwd=here)
    assert len(json.loads(ours.stdout)["findings"]) == 1 and ours.stderr.count("by a child\n") == 1


@pytest.mark.e2e
def test_characters_that_the_output_does_not_have_are_escaped(here):
    (here / "é.py").write_text(FAULTY, encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    ours = run_command("doctor", "--format", "github", "é.py", cwd=here, env=environment)
    assert ours.returncode == 1, ours.stderr
    assert r"file=\xe9.py," in ours.stdout


def print_first(function, words):
    """Return a function that prints, as a thread of the script may at this moment, and calls another."""

    def call(*arguments):
        print(words)  # noqa: T201
        os.write(1, f"{words} to the descriptor\n".encode())
        return function(*arguments)

    return call


@pytest.mark.parametrize("form", FORMATS)
def test_what_threads_print_during_the_report_goes_to_standard_error(form, doctor, monkeypatch):
    for name in (f"{form}_report", "timings_table", "write_page"):
        monkeypatch.setattr(script, name, print_first(getattr(script, name), f"during {name}"))
    _, output, errors = doctor(FAULTY, "--format", form, "--timings", "--html", "page.html")
    READERS[form](output)
    assert errors.count("during ") == 6


def test_the_stream_of_the_script_has_no_lock_that_a_daemon_thread_could_hold_at_exit():
    with redirect_stdout_to_stderr():
        assert isinstance(sys.stdout.buffer, io.RawIOBase)


def test_all_of_a_long_report_is_written(doctor, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data)[:100]))
    _, output, _ = doctor(FAULTY, "--format", "json")
    assert len(output) > 100 and json.loads(output)["findings"]


def test_streams_that_the_script_replaced_are_flushed_before_the_report(doctor, monkeypatch):
    text = "import io, sys\nold = sys.stdout\nold.write('partial')\nsys.stdout = io.StringIO()\n"
    monkeypatch.setattr(script, "json_report", print_first(json_report, "the report"))
    _, _, errors = doctor(f"{text}sys.keep = old\n{FAULTY}", "--format", "json")
    del sys.keep
    assert errors.index("partial") < errors.index("the report to the descriptor")


# Ends of a script, and lines of standard error.
ENDS = {
    "closed output": ("sys.__stdout__.close()", 1, ""),
    "closed errors": ("sys.stderr.close()", 1, ""),
    "missing errors": ("sys.stderr = None\nsys.exit('words')", 1, "words"),
    "hook": (
        "def hook(*error):\n    raise KeyError('in the hook')\nsys.excepthook = hook\nraise ValueError('lost')",
        1,
        "Error in sys.excepthook:",
    ),
    "hook that exits": ("sys.excepthook = lambda *error: sys.exit(7)\nraise ValueError('lost')", 7, ""),
    "missing hook": ("del sys.excepthook\nraise ValueError('lost')", 1, "ValueError: lost"),
    "argument of sys.exit": ("class Code:\n    def __str__(self):\n        raise KeyError\nsys.exit(Code())", 1, ""),
}


@pytest.mark.e2e
@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("end", ENDS)
def test_a_script_that_ends_badly_has_a_report(end, form, here):
    code, status, said = ENDS[end]
    (here / "train.py").write_text(f"{FAULTY}import sys\n{code}\n")
    ours = run_command("doctor", "--format", form, "train.py", cwd=here)
    assert ours.returncode == status and said in ours.stderr and "gradlab/cli.py" not in ours.stderr
    if form == "json":
        assert len(json.loads(ours.stdout)["findings"]) == 1
    else:
        assert ours.stderr.count(HEADING) == 1 and "[inf-born]" in ours.stderr


@pytest.mark.e2e
def test_an_error_in_the_hook_is_printed_as_by_python(here):
    (here / "train.py").write_text(f"import sys\n{ENDS['hook'][0]}\n")
    plain = subprocess.run([sys.executable, "train.py"], check=False, capture_output=True, text=True, cwd=here)
    ours = run_command("doctor", "train.py", cwd=here)
    assert "Original exception was:" in plain.stderr and ours.stderr.startswith(plain.stderr)


@pytest.mark.e2e
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="writes to /dev/full")
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_full_disk_is_an_error_without_a_traceback(form, here):
    (here / "train.py").write_text("print('printed')\n" + FAULTY)
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "gradlab", "doctor", "--format", form, "train.py"]
        environment = {**os.environ, "PYTHONUNBUFFERED": ""}
        ours = subprocess.run(command, check=False, stdout=full, stderr=subprocess.PIPE, text=True, cwd=here, env=environment)
    assert ours.returncode == 1 and "Traceback" not in ours.stderr and "Exception ignored" not in ours.stderr
    assert re.search("gradlab doctor: cannot write .*: No space left on device\\.\n$", ours.stderr)
    assert (HEADING in ours.stderr) == (form == "text")


@pytest.mark.e2e
def test_the_page_is_written_although_the_reader_has_closed_the_pipe(here):
    (here / "train.py").write_text(FAULTY)
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "gradlab", "doctor", "--format", "json", "--html", "page.html", "train.py"]
    ours = subprocess.run(command, check=False, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=here)
    os.close(writer)
    assert ours.returncode == 141 and ours.stderr == "" and "inf" in (here / "page.html").read_text()


def test_a_report_is_printed_if_the_page_cannot_be_written(doctor, here):
    (here / "pages").mkdir()
    status, output, errors = doctor(f"{FAULTY}import os\nos.rmdir('pages')\n", "--format", "json", "--html", "pages/page.html")
    assert status == 1 and json.loads(output)["findings"] and "cannot write" in errors


@pytest.mark.parametrize("separator", ["\f", "\v", "\x1c", "\x85", "\u2028"])
def test_only_newlines_end_a_line_of_the_source(separator):
    source = f"a = '{separator}'\nb = 2\r\nc = 3\rd = 4"
    run = ScriptRun(Program("train.py", "/train.py", source, (), ""), 0, Diagnosis(()), None, 1)
    assert [source_line(run, number) for number in range(2, 6)] == ["b = 2", "c = 3", "d = 4", ""]
