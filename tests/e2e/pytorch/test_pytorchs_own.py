"""PyTorch's tests of autograd pass while they are recorded or watched, and its tests of optimizers and modules pass under
`gradlab doctor`, if they pass by themselves.

The wheel of the installed release does not have these files. They are read from the folder GRADLAB_PYTORCH_TESTS (`test` of a
checkout), or otherwise fetched from GitHub by the tag of the release.
"""

import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from xml.etree import ElementTree

import pytest

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.exhaustive]

RELEASE = torch.__version__.partition("+")[0]
AT = f"https://raw.githubusercontent.com/pytorch/pytorch/v{RELEASE}/test/"

# While a program is recorded, the graph of the last backward is kept until the report is made at the end of the block, because a
# trace reads its nodes then. Each of these tests expects that an object in such a graph is freed immediately.
LIVE_LONGER = {
    "tracing": {
        "test_create_graph_and_full_backward_hook_cycle",
        "test_custom_function_cycle",
        "test_hook_closure_cycle_use_custom_function_False_use_tensor_hook_False",
        "test_hook_closure_cycle_use_custom_function_False_use_tensor_hook_True",
        "test_hook_closure_cycle_use_custom_function_True_use_tensor_hook_False",
        "test_hook_closure_cycle_use_custom_function_True_use_tensor_hook_True",
        "test_nested_anomaly_printstack_cleanup",
        "test_post_accumulate_grad_hook_gets_cleaned_up",
    },
    "watch": set(),
}
# torch's TestCase counts the function modes at the beginning and the end of a test; gradlab's is removed while recording pauses.
PAUSED = "torch function mode stack was leaked"


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """Function that writes one of the files and its imports into a folder, and returns its path."""
    folder = tmp_path_factory.mktemp("pytorch")

    def text_of(name):
        given = os.environ.get("GRADLAB_PYTORCH_TESTS")
        if given:
            path = Path(given) / name
            return path.read_text() if path.exists() else None
        try:
            with urllib.request.urlopen(AT + name, timeout=60) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def put(name, *beside):
        for one in (name, *beside):
            try:
                text = text_of(one)
            except OSError as error:
                pytest.skip(f"{one} of PyTorch {RELEASE} cannot be fetched: {error}. GRADLAB_PYTORCH_TESTS may name its folder.")
            if text is None and one == name:
                pytest.skip(f"there is no {one} of PyTorch {RELEASE}")
            if text is not None:
                (folder / one).parent.mkdir(exist_ok=True)
                (folder / one).write_text(text)
        path = folder / name
        for module in re.findall(r"^from (autograd\.\w+) import", path.read_text(), re.MULTILINE):
            if not (folder / f"{module.replace('.', '/')}.py").exists():
                path.write_text(re.sub(rf"^from {module} import.*\n", "", path.read_text(), flags=re.MULTILINE))
        return path

    return put


def verdicts(path, inside=""):
    """Run a file of tests. Return the outcome of each test by name ("passed", "skipped" or the error message), and the output."""
    report = path.with_suffix(f".{inside or 'plain'}.xml")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", path.name]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"):
        environment.pop(name, None)
    if inside:
        command[3:3] = ["-p", "inside"]
        environment["GRADLAB_INSIDE"] = inside
    ran = subprocess.run(command, cwd=path.parent, env=environment, capture_output=True, text=True, check=False)
    assert report.exists(), ran.stdout[-3000:] + ran.stderr[-3000:]
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        bad = [one for one in case if one.tag in ("failure", "error")]
        skipped = any(one.tag == "skipped" for one in case)
        name = f"{case.get('classname')}.{case.get('name')}"
        found[name] = (bad[0].get("message") or "failed") if bad else "skipped" if skipped else "passed"
    return found, ran.stdout


@pytest.mark.parametrize("inside", ["tracing", "watch"])
def test_the_tests_of_autograd_pass_while_recorded_or_watched(suite, inside):
    path = suite("test_autograd.py", "autograd/test_complex.py", "autograd/test_functional.py", "autograd/test_logging.py")
    plain, _ = verdicts(path)
    seen, said = verdicts(path, inside)
    passing = [name for name, verdict in plain.items() if verdict == "passed"]
    assert len(passing) > 400, plain
    changed = {name: seen.get(name, "missing") for name in passing if seen.get(name) != "passed"}
    print(f"{len(passing)} pass plainly, {len(passing) - len(changed)} inside {inside}")  # noqa: T201
    assert {name.rpartition(".")[2] for name in changed} <= LIVE_LONGER[inside], changed
    assert "gradlab failed" not in said


@pytest.mark.parametrize("name", ["test_optim.py", "test_nn.py"])
def test_a_suite_has_the_same_failures_under_the_doctor(suite, name):
    path = suite(name)

    def failures(*command):
        ran = subprocess.run([sys.executable, *command, path.name], cwd=path.parent, capture_output=True, text=True, check=False)
        assert re.search(r"^Ran \d\d+ tests", ran.stderr, re.MULTILINE), ran.stderr[-3000:]
        parts = re.split(r"^=+\n(?=(?:FAIL|ERROR): )", ran.stderr, flags=re.MULTILINE)[1:]
        return {part.partition("\n")[0] for part in parts if PAUSED not in part}, ran.stderr

    plain, _ = failures()
    seen, said = failures("-m", "gradlab", "doctor")
    assert seen == plain
    assert "gradlab failed" not in said
