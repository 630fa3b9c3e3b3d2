"""Write the reference: one page for each family of public names, collected from the modules so that none is missing."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx

import gradlab

# Modules with public names, and the titles of their pages.
PLACES = {
    "gradlab": "Tensors and their operators",
    "gradlab.linalg": "Linear algebra",
    "gradlab.special": "Special functions",
    "gradlab.autograd": "Gradients",
    "gradlab.func": "Transformations of functions",
    "gradlab.nn": "Modules",
    "gradlab.nn.functional": "Functions of networks",
    "gradlab.nn.init": "Initial weights",
    "gradlab.nn.utils": "Gradient clipping, parameters as one vector",
    "gradlab.optim": "Optimizers",
    "gradlab.optim.lr_scheduler": "Learning rates over time",
    "gradlab.utils.data": "Data sets and loaders",
    "gradlab.homework": "Exercises that check themselves",
}
# Modules that import a framework. They are described where it is installed.
CALLBACKS = ("lightning", "huggingface", "accelerate", "keras")
TITLES = {
    "callbacks": "Callbacks of frameworks",
    "explorers": "The explorers",
    "tensor": "Tensor",
    "declared": "Element by element",
}
TITLES |= {place.removeprefix("gradlab."): title for place, title in PLACES.items()}
INTRODUCTION = """\
Every public function and class, with its arguments and an example. The names are PyTorch's, with ``gradlab`` in place of
``torch``. :doc:`explorers` has ``gl.explain``, ``gl.graph``, ``gl.jacobian`` and the other functions that PyTorch does not
have, and :doc:`tensor` the methods of a tensor.

"""
NAMES = re.compile(r"^\.\. auto\w+:: \S*\.(\w+)$", re.MULTILINE)
FIRST_NAMES = 6
# Classes whose methods users call.
WITH_MEMBERS = {"Module", "Optimizer", "LRScheduler", "Generator", "Homework", "Student"}
# Objects that the explorers return.
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
    """Yield the public functions and classes of a module with their names."""
    module = importlib.import_module(place)
    for name in [*getattr(module, "__all__", dir(module)), *(gradlab._LAZY if place == "gradlab" else ())]:
        value = getattr(module, name)
        if not name.startswith("_") and callable(value) and not isinstance(value, ModuleType):
            yield name, value


def family(place: str, value: Any) -> str:
    """Return the page of a name. The many names of `gradlab` itself are split by the module that defines them."""
    if place != "gradlab":
        return place.removeprefix("gradlab.")
    if value is gradlab.Tensor:
        return "tensor"
    home = getattr(value, "__module__", None) or ""
    if home.startswith(("gradlab.explore", "gradlab.notebook", "gradlab.diagnose")):
        return "explorers"
    return home.rpartition(".")[2].replace("generated", "declared") or "others"


def directive(name: str, value: Any, aliases: list[str], again: bool) -> str:
    """Return the autodoc directive. With `again`, another page describes the name too, and links lead to that page."""
    kind = "autoclass" if inspect.isclass(value) else "autofunction"
    options = ["no-index"] * again + ["members"] * (getattr(value, "__name__", "") in WITH_MEMBERS)
    text = f".. {kind}:: {name}\n" + "".join(f"   :{option}:\n" for option in options) + "\n"
    return text + (f"Also ``{'``, ``'.join(aliases)}``.\n\n" if aliases else "")


def methods() -> str:
    """Describe the methods of Tensor, and list the names that are also functions, or in-place forms of functions."""
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
        f"Functions that are also methods. The tensor is their first argument.\n\n{listed}\n\n"
        f"In-place forms. They write the result of the function into the tensor's memory.\n\n{twins}\n\n{text}"
    )


def pages() -> dict[str, str]:
    """Return the text of each page, by the stem of its file."""
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
    for name in CALLBACKS:
        with contextlib.suppress(ImportError):
            importlib.import_module(f"gradlab.callbacks.{name}")
            text = f".. autoclass:: gradlab.callbacks.{name}.Watch\n\n"
            texts["callbacks"] = texts.get("callbacks", "") + text
    texts["tensor"] += methods()
    return texts


def heading(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n\n"


def title(stem: str) -> str:
    return TITLES.get(stem) or stem.replace("_", " ").capitalize()


def index(texts: dict[str, str]) -> str:
    """Return the text of the first page: one line for each page, with its first names."""
    lines = ""
    for stem, text in texts.items():
        names = NAMES.findall(text)
        more = f" and {len(names) - FIRST_NAMES} more" * (len(names) > FIRST_NAMES)
        module = f"``gradlab.{stem}``: " if f"gradlab.{stem}" in PLACES else ""
        lines += f"- :doc:`{stem}`: {module}{', '.join(f'``{name}``' for name in names[:FIRST_NAMES])}{more}\n"
    listed = "".join(f"   {stem}\n" for stem in texts)
    return f"{heading('Reference')}{INTRODUCTION}{lines}\n.. toctree::\n   :hidden:\n\n{listed}"


def write_pages(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "reference"
    folder.mkdir(exist_ok=True)
    texts = {f"{stem}.rst": heading(title(stem)) + text for stem, text in pages().items()}
    stems = sorted((name.removesuffix(".rst") for name in texts), key=title)
    texts["index.rst"] = index({stem: texts[f"{stem}.rst"] for stem in stems})
    for path in folder.glob("*.rst"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:  # Sphinx reads changed files again
            path.write_text(text)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
