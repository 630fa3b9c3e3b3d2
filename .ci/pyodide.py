"""Tests on Pyodide, in Node, CPython and NumPy in WebAssembly as in a browser: the core, the rules, and rows recorded of torch.

    npm --prefix .ci/js ci && python .ci/pyodide.py

builds gradlab's wheel, and runs pytest in two processes, which is what there is instead of threads. What was skipped is told,
with the reasons. It fails where anything fails, and where what it needs cannot be had: it never passes because it could not run.

Pyodide itself is npm's (.ci/js/package.json). NumPy and SciPy for it are on no index yet; a package that is on PyPI carries them
for its own site, and they are taken out of that, if they are the very files that are named here.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CARRIER = "open-webui==0.12.4"
WHEELS = {  # sha256, as in the lock file that lies beside them
    "numpy-2.4.3-cp314-cp314-pyemscripten_2026_0_wasm32.whl": "0cad9c1b91f0082e4f959bc0e0bf5835a2efbba6ab3b1e9d1fe6e7e564cca98e",
    "scipy-1.18.0-cp314-cp314-pyemscripten_2026_0_wasm32.whl": "4ef1569eac793bec84a92fa2eaf24eafb4529ff10c5ed87d1e335063f26142f3",
}
PYTEST = ["pytest==9.*", "pluggy", "iniconfig", "pygments", "packaging"]
POSITIONS = "sorting- or reductions- or indexing- or pooling- or cumulative- or linalg-"  # of int64, where sizes have 32 bits
RUNS = [["tests/rules"], ["tests/core"], ["tests/operators/test_operators.py", "-k", POSITIONS]]
OPTIONS = ["-q", "-m", "not (e2e or exhaustive)", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--tb=short"]
LIMIT = 1800  # seconds, for a process that hangs
PROCESSES = 2


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *arguments], check=True)


def wheels(folder: Path) -> list[str]:
    """The wheels that were built for Pyodide, in the folder."""
    pip("download", "--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--dest", str(folder), CARRIER)
    (carrier,) = folder.glob("open_webui-*.whl")
    with zipfile.ZipFile(carrier) as archive:
        for name, digest in WHEELS.items():
            content = archive.read(f"open_webui/frontend/pyodide/{name}")
            if hashlib.sha256(content).hexdigest() != digest:
                raise SystemExit(f"{CARRIER} has another {name} than the one that is known.")
            (folder / name).write_bytes(content)
    return [str(folder / name) for name in WHEELS]


def packages(folder: Path) -> None:
    """What has no machine code, in the folder: pytest, and gradlab as it is installed."""
    pip("install", "--no-deps", "--only-binary=:all:", "--target", str(folder), *PYTEST)
    pip("wheel", "--no-deps", "--wheel-dir", str(folder.parent), str(ROOT))
    (wheel,) = folder.parent.glob("gradlab-*.whl")
    pip("install", "--no-deps", "--target", str(folder), str(wheel))


def run(program: list[str], tests: list[str]) -> tuple[bool, str]:
    """Whether pytest passed in a process of its own, and what it printed."""
    try:
        command = [*program, "--", *OPTIONS, *tests]
        output: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        done = subprocess.run(command, check=False, cwd=ROOT, timeout=LIMIT, **output)
    except subprocess.TimeoutExpired as error:
        said = error.stdout.decode(errors="replace") if isinstance(error.stdout, bytes) else error.stdout or ""
        return False, f"{said}\nIt had not ended after {LIMIT} s."
    passed = done.returncode == 0 and " passed" in done.stdout.rstrip().rpartition("\n")[2]
    return passed, done.stdout


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        built, site = Path(name, "wheels"), Path(name, "packages")
        built.mkdir()
        site.mkdir()
        program = ["node", str(ROOT / ".ci" / "js" / "pyodide.mjs"), str(ROOT), str(site), *wheels(built)]
        packages(site)
        with ThreadPoolExecutor(PROCESSES) as pool:
            results = list(pool.map(lambda tests: run(program, tests), RUNS))
    for tests, (_, printed) in zip(RUNS, results, strict=True):
        print(f"--- {' '.join(tests)}\n{printed.rstrip()}")
    return 0 if all(passed for passed, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
