"""Addresses of the documentation's pages on kinds of findings."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, metadata

PAGE = "guide/kinds.html"


def page_url(kind: str) -> str:
    """Return the address of a kind in the published documentation; "" if the package names no documentation.

    The package names it in its metadata: `Documentation` in the table `project.urls` of pyproject.toml.
    """
    base = _documentation()
    anchor = kind.replace("_", "-")  # as Sphinx writes it
    return f"{base.rstrip('/')}/{PAGE}#{anchor}" if base else ""


@cache
def _documentation() -> str:
    try:
        urls = metadata("gradlab").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    named = (url.partition(",") for url in urls)
    return next((address.strip() for name, _, address in named if name.strip().lower() == "documentation"), "")
