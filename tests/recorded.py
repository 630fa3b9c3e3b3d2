"""What PyTorch was recorded to do: one format, one reader, one recorder.

    python tests/recorded.py [TOPIC …]            record the rows that are not recorded yet, by the torch that is installed
    python tests/recorded.py --again [TOPIC …]    record all rows of the topics again

A topic is a table of cases, functions of the library that return plain data, and a file of what torch made of them, one row a
line, so that a change is reviewed as a diff. `optim/training` is the file `optim/expected/training.json`. A file says by which
version of torch its rows were recorded, and which of them by another one. Numbers are written by Python's `repr`, which loses
nothing. Dtype names keep their `torch.`; the tests know that gradlab writes `gradlab.`.
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
class Book:
    """The rows of a topic, and the versions of torch that they were recorded by."""

    rows: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, topic: str) -> Book:
        """What is recorded of a topic."""
        found = json.loads(path_of(topic).read_text())
        other = {title: version for version, titles in found.get("others", {}).items() for title in titles}
        return cls(found["rows"], {title: other.get(title, found["torch"]) for title in found["rows"]})

    def write(self, topic: str) -> str:
        """Put the rows in their file. Returns what was written."""
        usual = Counter(self.versions.values()).most_common(1)[0][0]
        others: dict[str, list[str]] = {}
        for title, version in self.versions.items():
            if version != usual:
                others.setdefault(version, []).append(title)
        lines = ",\n".join([f" {json.dumps(title)}: {json.dumps(data)}" for title, data in self.rows.items()])
        head = f'"torch": "{usual}",\n' + (f'"others": {json.dumps(others)},\n' if others else "")
        text = f'{{{head}"rows": {{\n{lines}\n}}}}\n'
        path_of(topic).parent.mkdir(exist_ok=True)
        path_of(topic).write_text(text)
        return text


def path_of(topic: str) -> Path:
    """Where a topic is recorded."""
    group, _, name = topic.rpartition("/")
    return HERE / group / "expected" / f"{name}.json"


def rows(topic: str) -> dict[str, Any]:
    """What torch made of the cases of a topic, by their titles."""
    return Book.of(topic).rows


def recorded_by(topic: str, torch: Any) -> Iterator[str]:
    """The titles of the rows that this version of torch was recorded by: those that it must agree with."""
    versions = Book.of(topic).versions
    return (title for title, version in versions.items() if version == version_of(torch))


def version_of(torch: Any) -> str:
    return str(torch.__version__).partition("+")[0]


# ------------------------------------------------------------------------------------------------------------- recording
def topics() -> dict[str, Callable[[], dict[str, Case]]]:
    """Every topic: what makes the table of its cases."""
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


def record(topic: str, cases: dict[str, Case], torch: Any, again: bool = False) -> Book:
    """The rows of a topic: those that are there already, unless `again`, and what this torch makes of the others."""
    old = Book() if again or not path_of(topic).exists() else Book.of(topic)
    book = Book()
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
        sys.exit(f"No topic {', '.join(sorted(unknown))}. There are: {', '.join(there)}.")
    for topic in names or there:
        cases = there[topic]()
        before = Book() if not path_of(topic).exists() else Book.of(topic)
        text = record(topic, cases, torch, again).write(topic)
        new = len(cases) if again else len(cases.keys() - before.rows.keys())
        print(f"{topic}: {new} of {len(cases)} rows recorded by torch {version_of(torch)}, {len(text) / 1024:.0f} KB")


if __name__ == "__main__":
    main(sys.argv[1:])
