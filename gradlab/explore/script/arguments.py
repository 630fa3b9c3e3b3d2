"""Check the arguments of `gradlab doctor` before the script runs. Errors are ValueErrors."""

from __future__ import annotations

from pathlib import Path

from gradlab.explore.doctor import examine  # noqa: F401  (registers the kinds)
from gradlab.explore.doctor.registry import require_kinds


def read_kinds(options: list[str]) -> frozenset[str]:
    """Return the kinds of findings that the options --ignore name."""
    kinds = [[kind.strip() for kind in option.split(",") if kind.strip()] for option in options]
    if not all(kinds):
        raise ValueError("--ignore: expected the name of a kind.")
    try:
        return require_kinds(kind for several in kinds for kind in several)
    except ValueError as error:
        raise ValueError(f"--ignore: {error}") from None


def extract_html_option(arguments: list[str]) -> tuple[list[str], Path | None]:
    """Return the script's arguments without `--html FILE`, and FILE if it was given."""
    for at, word in enumerate(arguments):
        if word.startswith("--html="):
            return [*arguments[:at], *arguments[at + 1 :]], Path(word.removeprefix("--html="))
        if word == "--html":
            if at + 1 == len(arguments):
                raise ValueError("--html: expected the name of a file.")
            return [*arguments[:at], *arguments[at + 2 :]], Path(arguments[at + 1])
    return arguments, None


def absolute_page(page: Path) -> Path:
    """Return the absolute path of the HTML page, since the script may change the current folder."""
    page = page.absolute()
    if page.is_dir():
        raise ValueError(f"--html: expected a file, but {page} is a folder.")
    if not page.parent.is_dir():
        raise ValueError(f"--html: the folder {page.parent} does not exist.")
    return page
