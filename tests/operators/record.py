"""Record what PyTorch 2.13 makes of the operators: `python tests/operators/record.py [FILE …]`, where torch is installed."""
from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
FILES = sorted(path.stem for path in (HERE / "rows").glob("[a-z]*.py"))


def main(names: list[str]) -> None:
    import torch

    if not torch.__version__.startswith("2.13."):
        sys.exit(f"The expectations are those of torch 2.13; this is {torch.__version__}.")
    for name in names or FILES:
        rows = importlib.import_module(f"operators.rows.{name}").ROWS
        titles = [str(row) for row in rows]
        if doubled := {t for t in titles if titles.count(t) > 1}:
            sys.exit(f"{name}: these rows are there twice: {sorted(doubled)}")
        lines = [f" {json.dumps(title)}: {json.dumps(row.run(torch))}" for title, row in zip(titles, rows, strict=True)]
        text = "{\n" + ",\n".join(lines) + "\n}\n"
        (HERE / "expected" / f"{name}.json").write_text(text)
        print(f"{name}: {len(lines)} rows, {len(text) / 1024:.0f} KB")


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))
    main(sys.argv[1:])
