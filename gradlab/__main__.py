"""Run the command `gradlab` as `python -m gradlab`."""

from __future__ import annotations

import sys

from gradlab.cli import main

if __name__ == "__main__":
    sys.exit(main())
