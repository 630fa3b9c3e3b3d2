"""Record what PyTorch 2.13 makes of the cases: `python tests/nn/module_record.py`, by hand, where torch is installed."""
from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from module_cases import CASES

if not torch.__version__.startswith("2.13."):
    sys.exit(f"The expectations are those of torch 2.13; this is {torch.__version__}.")
lines = [f" {json.dumps(name)}: {json.dumps(case(torch))}" for name, case in CASES.items()]
path = Path(__file__).parent / "module_expected.json"
path.write_text(f'{{"torch": "{torch.__version__}",\n"cases": {{\n' + ",\n".join(lines) + "\n}}\n")
