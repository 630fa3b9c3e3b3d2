"""Check the layers of the package: imports point downwards, and `import gradlab` loads only NumPy and the standard library."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from grouped import check_each

import gradlab
from gradlab.core.registry import PRIMITIVES

PACKAGE = Path(gradlab.__file__).parent
LAYERS = ("backend", "core", "diagnose", "rules", "public", "explore", "callbacks", "homework", "notebook")
OWN = set(LAYERS) - {"public"}
HEAVY = (
    "cupy",
    "scipy",
    "IPython",
    "ipywidgets",
    "anywidget",
    "matplotlib",
    "torch",
    "resvg_py",
    "traitlets",
    "dask",
    "distributed",
    "zarr",
    "cloudpickle",
    "lightning",
    "pytorch_lightning",
    "transformers",
    "accelerate",
    "keras",
)
FRAMEWORKS = {"lightning", "pytorch_lightning", "transformers", "accelerate", "keras", "torch"}


CLOCK_FUNCTIONS = {"perf_counter", "monotonic", "process_time", "perf_counter_ns", "monotonic_ns", "time_ns"}
MODULES_WITH_A_CLOCK = {
    "gradlab.clock",  # the one that tests can set
    "gradlab.homework.ways.engine",  # calls of gradlab would be counted as the student's there
}


def layer_of(module: str) -> int:
    parts = module.split(".")
    name = parts[1] if len(parts) > 1 else ""
    return LAYERS.index(name if name in OWN else "public")


MODULES = sorted(PACKAGE.rglob("*.py"))


def module_of(path: Path) -> str:
    return ".".join(("gradlab", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


NAMES = {module_of(path) for path in MODULES}


@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Return the nodes of a module's syntax tree, each after its parent."""
    return list(ast.walk(ast.parse(path.read_text())))


@functools.cache
def imports_of(path: Path, *, typed: bool = False) -> list[tuple[str, bool]]:
    """Return (module, at import time?) for each import and `import_module("…")`; those under TYPE_CHECKING only if `typed`."""
    nodes = nodes_of(path)
    skipped = {
        id(n)
        for node in nodes
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) and not typed
        for n in ast.walk(node)
    }
    top = {id(n) for n in nodes[0].body}
    found = []
    for node in nodes:
        names = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            parts = [f"{node.module}.{a.name}" for a in node.names]  # a part of a package may be a module
            names = [part if part in NAMES else node.module for part in parts]
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", getattr(node.func, "attr", "")) in ("import_module", "__import__")
            and isinstance(node.args[0], ast.Constant)
        ):
            names = [node.args[0].value]
        found += [(name, id(node) in top) for name in names if id(node) not in skipped]
    return found


def test_all_forms_of_imports_are_found(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "from typing import TYPE_CHECKING\nimport gradlab.a\nfrom gradlab.core import node\nfrom gradlab import c\n"
        "if TYPE_CHECKING:\n    import gradlab.unseen\n"
        "def f():\n    from gradlab.core.node import Node\n    importlib.import_module('gradlab.e')\n"
    )
    assert imports_of(path) == [
        ("typing", True),
        ("gradlab.a", True),
        ("gradlab.core.node", True),
        ("gradlab", True),
        ("gradlab.core.node", False),
        ("gradlab.e", False),
    ]


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.slow
def test_imports_have_no_cycles(typed):
    """Imports inside functions and for type checkers count, except the one that defines a tensor's methods for them."""
    graph = {module_of(p): {name for name, _ in imports_of(p, typed=typed)} & NAMES - {module_of(p)} for p in MODULES}
    if typed:
        graph["gradlab.core.tensor"].remove("gradlab.methods.tensor")
    list(TopologicalSorter(graph).static_order())  # CycleError names one


def test_the_core_names_no_rule():
    """Nor does it name modules above it in strings. They are registered by `core.registry.used` or `core.errors.explain_with`."""
    rules = set(PRIMITIVES)
    for path in (PACKAGE / "core").glob("*.py"):
        for node in nodes_of(path):
            if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == "PRIMITIVES":
                assert not (isinstance(node.slice, ast.Constant) and node.slice.value in rules), f"{path.name} names a rule"
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
                above = [layer for layer in LAYERS[2:] if node.value.startswith(f"gradlab.{layer}.")]
                assert not above, f"{path.name} names {node.value}"


LOADED_BY_ADAPTER = {
    (f"{name}_torch.py", "torch")
    for name in (
        *(
            "checkpointing",
            "compiling",
            "cuts",
            "forms",
            "forward",
            "frames",
            "gauging",
            "recording",
            "reducing",
            "risky",
            "scaling",
        ),
        "unseen",
    )
}  # loaded by torch's adapter, inside functions


def test_modules_that_import_torch_are_loaded_only_by_its_adapter():
    for path in MODULES:
        for name, at_import in imports_of(path):
            if f"{name.rpartition('.')[2]}.py" in {file for file, _ in LOADED_BY_ADAPTER}:
                assert path.name in {file for file, _ in LOADED_BY_ADAPTER} or (path.name == "library_torch.py" and not at_import)


def test_imports_point_down():
    check_each(MODULES, check_imports)


def check_imports(path):
    module = module_of(path)
    if module in ("gradlab", "gradlab.__main__", "gradlab.cli"):
        return
    for name, at_import in imports_of(path):
        if name.startswith("gradlab."):
            assert layer_of(name) <= layer_of(module), f"{module} imports {name}, which is above it"
        elif at_import and name.split(".")[0] in HEAVY and (path.name, name.split(".")[0]) not in LOADED_BY_ADAPTER:
            is_callback = module.startswith("gradlab.callbacks.") and name.split(".")[0] in FRAMEWORKS
            assert is_callback or layer_of(module) == LAYERS.index("notebook"), f"{module} imports {name} when it is loaded"
        if name.split(".")[0] in ("IPython", "ipywidgets", "anywidget"):
            assert layer_of(module) == LAYERS.index("notebook"), f"{module} imports {name}"


def test_all_modules_read_one_clock():
    """All time limits read `gradlab.clock`, which tests can set."""
    names = {path: {getattr(node, "attr", getattr(node, "id", "")) for node in nodes_of(path)} for path in MODULES}
    assert {module_of(path) for path, found in names.items() if CLOCK_FUNCTIONS & found} == MODULES_WITH_A_CLOCK


def test_no_module_over_600_lines():
    lengths = {path: len(path.read_text().splitlines()) for path in MODULES}
    assert {path: length for path, length in lengths.items() if length > 600} == {}


EXPLORE = [path for path in MODULES if path.is_relative_to(PACKAGE / "explore")]
PUBLIC_IN_STDLIB = {"_getframe", "_replace"}  # documented names of the standard library
ALLOWED_OF_TORCH = {  # widely used; there is no public way to get a view's base, a node's order, a mode's position, or the scale
    "_get_scale_async",  # of a GradScaler without waiting for the device
    *("_base", "_version", "_get_sequence_nr", "_sequence_nr", "_values"),
    *("_get_current_function_mode_stack", "_pop_mode", "_push_mode"),
}
ALLOWED_TO_HIDE = {  # used by torch itself to compute without modes, on tensors of all kinds; there is no public way
    *("_C", "_autograd", "_functions", "_functorch"),
    *("_DisableTorchDispatch", "_disable_current_modes", "_dispatch_tls_is_dispatch_key_excluded", "_len_torch_dispatch_stack"),
    *("_enable_record_function", "_profiler_enabled"),
}


def test_explorers_use_no_private_names():
    """Neither by attribute nor by import. Protocols such as IPython's `_repr_mimebundle_` are allowed."""
    assert len(EXPLORE) > 100
    check_each(EXPLORE, check_private_names)


def check_private_names(path):
    reached = []
    for node in nodes_of(path):
        if isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
            reached.append((node.attr, ast.unparse(node)))
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            reached += [(alias.name, f"{node.module}.{alias.name}") for alias in node.names]
    allowed = PUBLIC_IN_STDLIB | (ALLOWED_OF_TORCH if path.name.endswith("_torch.py") else set())
    allowed |= ALLOWED_TO_HIDE if path.name in ("forms_torch.py", "unseen_torch.py") else set()
    assert [text for name, text in reached if name.startswith("_") and not name.endswith("_") and name not in allowed] == []


@pytest.mark.e2e
def test_import_loads_numpy_and_the_standard_library_only():
    code = (
        "import sys, numpy; before = set(sys.modules); import gradlab; print(' '.join(sorted("
        "{m.split('.')[0] for m in set(sys.modules) - before})))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    foreign = [
        m
        for m in loaded
        if m not in sys.stdlib_module_names
        and m not in ("gradlab", "numpy")
        and not m.startswith(("_distutils", "__editable", "_virtualenv"))
    ]
    assert foreign == []


MAGICS = "magics", "gradcheck_magic", "graph_magic", "jacobian_magic"


def test_code_is_generated_in_one_module_only():
    """Magics also evaluate the user's expressions, in the user's namespace."""
    for path in MODULES:
        called = [n.func for n in nodes_of(path) if isinstance(n, ast.Call)]
        calls = [function.id for function in called if isinstance(function, ast.Name)]
        allowed = {f"{name}.py": {"exec"} for name in ("generate", "running", "examples")}
        allowed |= {f"{name}.py": {"eval"} for name in MAGICS}
        assert not {"exec", "eval"} & set(calls) - allowed.get(path.name, set()), f"{path.name} calls exec or eval"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (gradlab, "fft"),
        (gradlab.nn, "LazyLinear"),
        (gradlab.nn.functional, "conv_tbc"),
        (gradlab.linalg, "ldl_factor"),
        (gradlab.special, "foo"),
        (gradlab.autograd, "kineto_available"),
        (gradlab.utils, "cpp_extension"),
        (gradlab.cuda, "nvtx"),
    ],
)
def test_missing_names_have_a_helpful_error(module, name):
    with pytest.raises(
        AttributeError, match=f"module '{module.__name__}' has no attribute '{name}': it is not one of PyTorch's names"
    ):
        getattr(module, name)


def test_star_import_imports_names_of_torch_and_no_modules():
    space: dict[str, object] = {}
    exec("from gradlab import *", space)
    assert {"tensor", "randn", "no_grad", "float32", "pi"} <= set(space)
    assert not [name for name, value in space.items() if type(value) is type(ast) and name != "__builtins__"]


def test_dir_lists_the_explorers_but_no_internal_modules():
    assert {"graph", "jacobian", "explain", "formula", "tensor"} <= set(dir(gradlab))
    assert not {"core", "rules", "backend"} & set(dir(gradlab))
