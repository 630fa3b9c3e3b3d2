"""Test the recorder of torch's results: it records single rows, each with the version of torch."""

from __future__ import annotations

import json
import types

import pytest
import recorded


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setattr(recorded, "HERE", tmp_path)
    return tmp_path


def torch(version):
    return types.SimpleNamespace(__version__=version)


CASES = {"one": lambda lib: lib.__version__, "two": lambda lib: [1.5, float("inf")]}


def test_rows_can_be_added_by_another_version(here):
    (here / "group").mkdir()
    recorded.record("group/topic", CASES, torch("2.13.0+cpu")).write("group/topic")
    assert json.loads((here / "group/expected/topic.json").read_text()) == {
        "torch": "2.13.0",
        "rows": {"one": "2.13.0+cpu", "two": [1.5, float("inf")]},
    }
    more = {"three": lambda lib: 3, **CASES}
    recorded.record("group/topic", more, torch("2.14.1")).write("group/topic")
    book = recorded.Recording.load("group/topic")
    assert book.rows == {"three": 3, "one": "2.13.0+cpu", "two": [1.5, float("inf")]}  # in the order of the table
    assert book.versions == {"three": "2.14.1", "one": "2.13.0", "two": "2.13.0"}
    assert list(recorded.titles_recorded_by("group/topic", torch("2.13.0"))) == ["one", "two"]
    assert list(recorded.titles_recorded_by("group/topic", torch("2.14.1+cu130"))) == ["three"]


def test_again_records_all_rows_and_drops_removed_ones(here):
    (here / "group").mkdir()
    recorded.record("group/topic", CASES, torch("2.13.0")).write("group/topic")
    recorded.record("group/topic", {"one": CASES["one"]}, torch("2.14.1"), again=True).write("group/topic")
    assert recorded.Recording.load("group/topic") == recorded.Recording({"one": "2.14.1"}, {"one": "2.14.1"})


def test_every_topic_is_recorded():
    for topic, cases in recorded.topics().items():
        assert list(cases()) == list(recorded.rows(topic)), f"run python tests/recorded.py {topic}"
