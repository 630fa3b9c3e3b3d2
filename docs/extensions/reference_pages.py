"""The reference: a page for each family of public names, written from what is public, so that no name is forgotten."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx

import gradlab

# Where users find names, and what the pages there are about.
PLACES = {
    "gradlab": "Tensors and their operators",
    "gradlab.linalg": "Linear algebra",
    "gradlab.special": "Special functions",
    "gradlab.autograd": "Gradients",
    "gradlab.func": "Transformations of functions",
    "gradlab.nn": "Modules",
    "gradlab.nn.functional": "Functions of networks",
    "gradlab.nn.init": "Initial weights",
    "gradlab.nn.utils": "Gradients clipped, parameters as one vector",
    "gradlab.optim": "Optimizers",
    "gradlab.optim.lr_scheduler": "Learning rates over time",
    "gradlab.utils.data": "Data sets and loaders",
    "gradlab.homework": "Exercises that check themselves",
}


def names_of(place: str) -> Iterator[tuple[str, Any]]:
    """The functions and classes that are public there, and the names by which they are."""
    module = importlib.import_module(place)
    for name in [*getattr(module, "__all__", dir(module)), *(gradlab._LAZY if place == "gradlab" else ())]:
        value = getattr(module, name)
        if not name.startswith("_") and callable(value) and not isinstance(value, ModuleType):
            yield name, value


def title(stem: str) -> str:
    return PLACES.get(f"gradlab.{stem}") or stem.rpartition(".")[2].replace("_", " ").capitalize()


def family(place: str, value: Any) -> str:
    """The page that a name stands on: of the many of `gradlab` itself the module that they are written in."""
    home = getattr(value, "__module__", None) or ""
    if place != "gradlab":
        return place.removeprefix("gradlab.")
    if home.startswith(("gradlab.explore", "gradlab.notebook", "gradlab.diagnose")):
        return "explorers"
    if value is gradlab.Tensor:
        return "tensor"
    return home.removeprefix("gradlab.").removeprefix("core.").replace("generated", "declared") or "others"


def heading(text: str, mark: str) -> str:
    return f"{text}\n{mark * len(text)}\n"


def directive(place: str, name: str, value: Any, aliases: list[str], again: bool) -> str:
    """`again`: it is described on another page too, which is the one that links lead to."""
    kind = "autoclass" if inspect.isclass(value) else "autofunction"
    text = f".. {kind}:: {place}.{name}\n" + "   :no-index:\n" * again
    if aliases:
        text += "\nAlso under the name " + ", ".join(f"``{place}.{alias}``" for alias in aliases) + ".\n"
    return text


def pages() -> dict[str, str]:
    """The text of each page, by its file's stem."""
    families: dict[str, dict[str, list[tuple[str, str, Any]]]] = {}
    for place in PLACES:
        for name, value in names_of(place):
            families.setdefault(family(place, value), {}).setdefault(place, []).append((name, place, value))
    texts, described = {}, set()
    for stem, places in families.items():
        text = ""
        for place, members in places.items():
            by_value: dict[int, list[str]] = {}
            for name, _, value in members:
                by_value.setdefault(id(value), []).append(name)
            for name, _, value in sorted(members):
                first, *others = by_value[id(value)]
                if name == first:
                    text += "\n" + directive(place, name, value, others, id(value) in described)
                    described.add(id(value))
        texts[stem] = text
    return texts


def write_pages(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "reference"
    folder.mkdir(exist_ok=True)
    texts = pages()
    for stem, text in texts.items():
        write(folder / f"{stem}.rst", heading(title(stem), "=") + text)
    listed = "\n".join(f"   {stem}" for stem in sorted(texts))
    write(folder / "index.rst", heading("Reference", "=") + f"\n.. toctree::\n   :maxdepth: 1\n\n{listed}\n")


def write(path: Path, text: str) -> None:
    """Only if it differs, so that Sphinx reads again what has changed and nothing else."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
