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
TITLES = {"explorers": "The explorers", "tensor": "Tensor", "declared": "Element by element"}
TITLES |= {place.removeprefix("gradlab."): title for place, title in PLACES.items()}
# Classes that users call methods of.
WITH_MEMBERS = {"Module", "Optimizer", "LRScheduler", "Generator", "Homework", "Student"}
# What the explorers hand out.
RESULTS = {
    "gradlab.explore.report": ["Report"],
    "gradlab.explore.graph": ["Graph"],
    "gradlab.explore.jacobian": ["Jacobian", "Plan"],
    "gradlab.explore.steps": ["StepThrough"],
    "gradlab.explore.watch": ["Watch"],
    "gradlab.explore.playground": ["Playground"],
    "gradlab.explore.doctor.findings": ["Diagnosis", "Finding"],
}


def names_of(place: str) -> Iterator[tuple[str, Any]]:
    """The functions and classes that are public there, and the names by which they are."""
    module = importlib.import_module(place)
    for name in [*getattr(module, "__all__", dir(module)), *(gradlab._LAZY if place == "gradlab" else ())]:
        value = getattr(module, name)
        if not name.startswith("_") and callable(value) and not isinstance(value, ModuleType):
            yield name, value


def family(place: str, value: Any) -> str:
    """The page that a name stands on: of the many of `gradlab` itself the module that they are written in."""
    if place != "gradlab":
        return place.removeprefix("gradlab.")
    if value is gradlab.Tensor:
        return "tensor"
    home = getattr(value, "__module__", None) or ""
    if home.startswith(("gradlab.explore", "gradlab.notebook", "gradlab.diagnose")):
        return "explorers"
    return home.rpartition(".")[2].replace("generated", "declared") or "others"


def directive(name: str, value: Any, aliases: list[str], again: bool) -> str:
    """`again`: it is described on another page too, which is the one that links lead to."""
    kind = "autoclass" if inspect.isclass(value) else "autofunction"
    options = ["no-index"] * again + ["members"] * (getattr(value, "__name__", "") in WITH_MEMBERS)
    text = f".. {kind}:: {name}\n" + "".join(f"   :{option}:\n" for option in options) + "\n"
    return text + (f"Also ``{'``, ``'.join(aliases)}``.\n\n" if aliases else "")


def methods() -> str:
    """The methods of tensors: those that have a form of their own, and the names of those that are a function or its twin."""
    same: dict[str, list[str]] = {"methods": [], "in place": []}
    text = ""
    for name, member in sorted(vars(gradlab.Tensor).items()):
        if name.startswith("_"):
            continue
        if inspect.isfunction(member) and getattr(gradlab, name.rstrip("_"), None) is not None:
            same["in place" if name.endswith("_") else "methods"].append(name)
        elif inspect.isfunction(member):
            text += f".. automethod:: gradlab.Tensor.{name}\n\n"
        elif isinstance(member, property):
            text += f".. autoproperty:: gradlab.Tensor.{name}\n\n"
    listed = ", ".join(f":func:`~gradlab.{name}`" for name in same["methods"])
    twins = ", ".join(f"``{name}``" for name in same["in place"])
    return (
        f"Functions that are methods too: the tensor is their first argument.\n\n{listed}\n\n"
        f"In place: the result of the function of that name, written into the tensor's memory.\n\n{twins}\n\n{text}"
    )


def pages() -> dict[str, str]:
    """The text of each page, by its file's stem."""
    texts: dict[str, str] = {}
    described: set[int] = set()
    for place in PLACES:
        names: dict[int, list[str]] = {}
        values = dict(sorted(names_of(place)))
        for name, value in values.items():
            names.setdefault(id(value), []).append(name)
        for name, value in values.items():
            first, *others = names[id(value)]
            if name == first:
                stem = family(place, value)
                text = directive(f"{place}.{name}", value, [f"{place}.{other}" for other in others], id(value) in described)
                texts[stem] = texts.get(stem, "") + text
                described.add(id(value))
    for module, classes in RESULTS.items():
        for name in classes:
            texts["explorers"] += f".. autoclass:: {module}.{name}\n   :members:\n\n"
    texts["tensor"] += methods()
    return texts


def heading(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n\n"


def title(stem: str) -> str:
    return TITLES.get(stem) or stem.replace("_", " ").capitalize()


def write_pages(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "reference"
    folder.mkdir(exist_ok=True)
    texts = {f"{stem}.rst": heading(title(stem)) + text for stem, text in pages().items()}
    listed = "".join(
        f"   {name.removesuffix('.rst')}\n" for name in sorted(texts, key=lambda name: title(name.removesuffix(".rst")))
    )
    texts["index.rst"] = heading("Reference") + f".. toctree::\n   :maxdepth: 1\n\n{listed}"
    for path in folder.glob("*.rst"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:  # Sphinx reads again what has changed, and nothing else
            path.write_text(text)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
