"""Compare the generated functions printed in docs/explanation/generated.md with the sources that are generated."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradlab.core.generate import caller_source, record_source
from gradlab.core.registry import PRIMITIVES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "generated.md"
if not PAGE.is_file():
    pytest.skip("not a checkout", allow_module_level=True)

BLOCKS = re.findall(r"^```\{code-block\} python\n:caption: (\w+)\.(\w+)\n\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def without_blank_lines(source: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in source.split("\n") if line.strip())


def test_the_page_has_two_functions_of_each_operation():
    assert [(op, name) for op, name, _ in BLOCKS] == [(op, name) for name in ("record", "vjp") for op in ("exp", "add", "matmul")]


@pytest.mark.parametrize(("op", "name", "block"), BLOCKS, ids=[f"{op}.{name}" for op, name, _ in BLOCKS])
def test_the_page_prints_the_generated_source(op, name, block):
    primitive = PRIMITIVES[op]
    source = record_source(primitive) if name == "record" else caller_source(primitive, name, primitive.rules)
    if block.startswith("def "):
        assert without_blank_lines(block) == without_blank_lines(source)
    else:
        assert without_blank_lines(block) in without_blank_lines(source)
