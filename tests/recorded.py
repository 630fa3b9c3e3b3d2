"""Record results of PyTorch, and read the recorded results.

    python tests/recorded.py [TOPIC …]            record the missing rows with the installed torch
    python tests/recorded.py --again [TOPIC …]    record all rows of the topics again

A topic is a table of cases and a file with their results. A case is a function of the library that returns plain data. The file
has one row per line, so that changes can be reviewed as a diff. `optim/training` is the file `optim/expected/training.json`. A
file names the version of torch that recorded its rows, and lists the rows recorded by other versions. Numbers are written by
Python's `repr`, which is exact. Names of dtypes keep the prefix `torch.`, which the tests translate to `gradlab.`.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
Case = Callable[[Any], Any]


@dataclass
class Recording:
    """Rows of a topic, and the versions of torch that recorded them."""

    rows: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, topic: str) -> Recording:
        """Read the file of a topic."""
        found = json.loads(path_of(topic).read_text())
        other = {title: version for version, titles in found.get("others", {}).items() for title in titles}
        return cls(found["rows"], {title: other.get(title, found["torch"]) for title in found["rows"]})

    def write(self, topic: str) -> str:
        """Write the rows to the file of a topic. Return the text."""
        main_version = Counter(self.versions.values()).most_common(1)[0][0]
        others: dict[str, list[str]] = {}
        for title, version in self.versions.items():
            if version != main_version:
                others.setdefault(version, []).append(title)
        lines = ",\n".join([f" {json.dumps(title)}: {json.dumps(data)}" for title, data in self.rows.items()])
        head = f'"torch": "{main_version}",\n' + (f'"others": {json.dumps(others)},\n' if others else "")
        text = f'{{{head}"rows": {{\n{lines}\n}}}}\n'
        path_of(topic).parent.mkdir(exist_ok=True)
        path_of(topic).write_text(text)
        return text


def path_of(topic: str) -> Path:
    """Return the file of a topic."""
    group, _, name = topic.rpartition("/")
    return HERE / group / "expected" / f"{name}.json"


def rows(topic: str) -> dict[str, Any]:
    """Return the recorded results of a topic by title."""
    return Recording.load(topic).rows


def titles_recorded_by(topic: str, torch: Any) -> Iterator[str]:
    """Yield the titles of the rows recorded by this version of torch, which it must reproduce."""
    versions = Recording.load(topic).versions
    return (title for title, version in versions.items() if version == version_of(torch))


def version_of(torch: Any) -> str:
    return str(torch.__version__).partition("+")[0]


# ------------------------------------------------------------------------------------------------------------- recording
def topics() -> dict[str, Callable[[], dict[str, Case]]]:
    """Return a function for each topic that returns its table of cases."""
    sys.path[:0] = [str(HERE / group) for group in ("optim", "nn", "data")]
    from operators.tables import FILES, rows_of

    made: dict[str, Callable[[], dict[str, Case]]] = {
        f"operators/{name}": lambda name=name: {str(row): row.run for row in rows_of(name)} for name in FILES
    }
    tables = {
        "": ("spellings", "printing_cases", "random_cases"),
        "optim/": ("optim_cases", "schedule_cases"),
        "data/": ("data_cases",),
        "nn/": ("module_cases", "layers_cases"),
    }
    for group, modules in tables.items():
        for module in modules:
            for name, cases in importlib.import_module(module).TOPICS.items():
                made[f"{group}{name}"] = lambda cases=cases: cases
    return made


def record(topic: str, cases: dict[str, Case], torch: Any, again: bool = False) -> Recording:
    """Return the recording of a topic. Existing rows are kept unless `again` is True; the others are recorded with this torch."""
    old = Recording() if again or not path_of(topic).exists() else Recording.load(topic)
    book = Recording()
    for title, case in cases.items():
        known = title in old.rows
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            book.rows[title] = old.rows[title] if known else json.loads(json.dumps(case(torch)))
        book.versions[title] = old.versions[title] if known else version_of(torch)
    if topic.startswith("operators/"):
        from operators.agreement import condense

        condense(book.rows)
    return book


def main(arguments: list[str]) -> None:
    import torch

    again, names = "--again" in arguments, [name for name in arguments if name != "--again"]
    there = topics()
    if unknown := set(names) - set(there):
        sys.exit(f"unknown topics: {', '.join(sorted(unknown))}. Available topics: {', '.join(there)}.")
    for topic in names or there:
        cases = there[topic]()
        before = Recording() if not path_of(topic).exists() else Recording.load(topic)
        text = record(topic, cases, torch, again).write(topic)
        new = len(cases) if again else len(cases.keys() - before.rows.keys())
        print(f"{topic}: {new} of {len(cases)} rows recorded by torch {version_of(torch)}, {len(text) / 1024:.0f} KB")


if __name__ == "__main__":
    main(sys.argv[1:])
