"""Test the core, the rules and rows recorded from torch on Pyodide: CPython and NumPy in WebAssembly, run by Node.

    npm --prefix .ci/js ci && python .ci/pyodide.py

builds gradlab's wheel and runs pytest in two processes (Pyodide has no threads). Skipped tests are printed with their reasons. It
fails if a test fails or if a package cannot be downloaded, so it never passes without running.

Pyodide comes from npm (.ci/js/package.json). No index has NumPy and SciPy for it yet. A package on PyPI contains them; they are
taken from it and compared with the digests below.
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
WHEELS = {  # sha256, as in the lock file beside them
    "numpy-2.4.3-cp314-cp314-pyemscripten_2026_0_wasm32.whl": "0cad9c1b91f0082e4f959bc0e0bf5835a2efbba6ab3b1e9d1fe6e7e564cca98e",
    "scipy-1.18.0-cp314-cp314-pyemscripten_2026_0_wasm32.whl": "4ef1569eac793bec84a92fa2eaf24eafb4529ff10c5ed87d1e335063f26142f3",
}
PYTEST = ["pytest==9.*", "pluggy", "iniconfig", "pygments", "packaging"]
POSITIONS = "sorting- or reductions- or indexing- or pooling- or cumulative- or linalg-"  # positions are int64, sizes 32-bit
RUNS = [["tests/rules"], ["tests/core"], ["tests/operators/test_operators.py", "-k", POSITIONS]]
OPTIONS = ["-q", "-m", "not (e2e or exhaustive)", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--tb=short"]
LIMIT = 1800  # seconds, for a process that hangs
PROCESSES = 2


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *arguments], check=True)


def wheels(folder: Path) -> list[str]:
    """Put the wheels built for Pyodide in `folder`, and return their paths."""
    pip("download", "--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--dest", str(folder), CARRIER)
    (carrier,) = folder.glob("open_webui-*.whl")
    with zipfile.ZipFile(carrier) as archive:
        for name, digest in WHEELS.items():
            content = archive.read(f"open_webui/frontend/pyodide/{name}")
            if hashlib.sha256(content).hexdigest() != digest:
                raise SystemExit(f"{CARRIER} contains a {name} with an unexpected digest.")
            (folder / name).write_bytes(content)
    return [str(folder / name) for name in WHEELS]


def packages(folder: Path) -> None:
    """Install the packages without machine code in `folder`: pytest, and gradlab from its wheel."""
    pip("install", "--no-deps", "--only-binary=:all:", "--target", str(folder), *PYTEST)
    pip("wheel", "--no-deps", "--wheel-dir", str(folder.parent), str(ROOT))
    (wheel,) = folder.parent.glob("gradlab-*.whl")
    pip("install", "--no-deps", "--target", str(folder), str(wheel))


def run(program: list[str], tests: list[str]) -> tuple[bool, str]:
    """Run pytest in a new process. Return whether it passed, and its output."""
    try:
        command = [*program, "--", *OPTIONS, *tests]
        output: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        done = subprocess.run(command, check=False, cwd=ROOT, timeout=LIMIT, **output)
    except subprocess.TimeoutExpired as error:
        said = error.stdout.decode(errors="replace") if isinstance(error.stdout, bytes) else error.stdout or ""
        return False, f"{said}\nIt did not finish within {LIMIT} s."
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
