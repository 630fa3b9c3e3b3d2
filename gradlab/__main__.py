"""`python -m gradlab`: the command `gradlab`, of the Python that runs it."""

from __future__ import annotations

import sys

from gradlab.cli import main

if __name__ == "__main__":
    sys.exit(main())
