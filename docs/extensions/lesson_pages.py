"""Copy the lessons and the tour into the documentation, because Sphinx reads only files in its own folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx


def copy_lessons(app: Sphinx) -> None:
    here = Path(app.srcdir)
    folder = here / "tutorials"
    folder.mkdir(exist_ok=True)
    notebooks = here.parent / "notebooks"
    for path in [notebooks / "quickstart.ipynb", notebooks / "training.ipynb", *sorted((notebooks / "lessons").glob("*.ipynb"))]:
        copy = folder / path.name
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            shutil.copyfile(path, copy)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", copy_lessons)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
