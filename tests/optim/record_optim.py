"""Record what PyTorch 2.13 does with optimizers and schedules: `python tests/optim/record_optim.py`, with torch installed."""
from __future__ import annotations

import json
import sys
from pathlib import Path

import optim_cases
import schedule_cases
import torch

if not torch.__version__.startswith("2.13."):
    sys.exit(f"The expectations are those of torch 2.13; this is {torch.__version__}.")
for topic, cases in (optim_cases.TOPICS | schedule_cases.TOPICS).items():
    lines = [f" {json.dumps(name)}: {json.dumps(case(torch))}" for name, case in cases.items()]
    Path(__file__).with_name("expected").joinpath(f"{topic}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
