"""The user's code that led to an error, and the values of its names, from the traceback.

A frame is the user's if its file is not gradlab's, installed or Python's own. The frames of a traceback still have their local
names, so the arguments of the operation that failed are known afterwards. No code of the user's is run: names are looked up, and
attributes only of modules, tensors and plain containers.
"""

from __future__ import annotations

import ast
import copy
import linecache
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

from gradlab.diagnose.sites import is_user_file
from gradlab.diagnose.source_locations import CELL_FILE, SourceLocation, cells, clip, location_of, source_of
from gradlab.diagnose.user_spelling import USUAL_NAMES
from gradlab.explore.doctor.context import code_edits
from gradlab.explore.doctor.context.program import Program, own_statements
from gradlab.explore.libraries import Library, adapters, library_of
from gradlab.explore.module_paths import is_model
from gradlab.explore.names import loop_variables, module_names
from gradlab.explore.trace import lines
from gradlab.explore.trace.data import Line

TENSOR_ATTRIBUTES = ("grad", "data", "T", "mT")  # attributes that are views or stored
# Frames between a call and its function, besides those of `_calls_modules`.
WRAPPERS = ("__call__", "__torch_function__", "__get__")
MAX_FILES = 60  # files of the user's that are searched


@dataclass(frozen=True)
class UserFrame:
    """One frame of the user's: its place, and the names that were visible in it."""

    place: SourceLocation
    names: Mapping[str, Any]


class Scene:
    """The traceback of an error.

    Parameters
    ----------
    error : BaseException
    namespace : mapping of str to object, optional
        Further names, such as those of models.

    Attributes
    ----------
    frames : tuple of UserFrame
        The user's frames, outermost first; empty if no code of the user's led to the error.
    """

    def __init__(self, error: BaseException, namespace: Mapping[str, Any] | None = None) -> None:
        self.error, self.namespace = error, namespace or {}
        frames, traceback = [], error.__traceback__
        while traceback is not None:
            frame = traceback.tb_frame
            place = location_of((frame.f_code, traceback.tb_lasti)) if is_user_file(frame.f_code.co_filename) else None
            if place is not None:
                frames.append(UserFrame(place, {**frame.f_globals, **frame.f_locals}))
            traceback = traceback.tb_next
        self.frames = tuple(frames)

    # ------------------------------------------------------------------------------------------------------------ where
    @property
    def place(self) -> SourceLocation:
        """The place in the innermost frame of the user's."""
        return self.frames[-1].place

    @property
    def source_line(self) -> Line:
        """The place as the line of a trace."""
        place = self.place
        text = clip(place.text)
        own = place.filename == self.file
        return Line(place.where, place.line, place.end, None, text, text, place.function, in_cell=own, file=place.filename)

    @cached_property
    def file(self) -> str:
        """The file whose lines are reported: the cell that ran, else the file of the innermost frame."""
        named = [frame.place.filename for frame in self.frames]
        return next((name for name in named if name == cells.current or CELL_FILE.match(name)), named[-1])

    @cached_property
    def line(self) -> int | None:
        """The line of that file in the innermost of its frames."""
        return next((frame.place.line for frame in reversed(self.frames) if frame.place.filename == self.file), None)

    def on_line(self, place: SourceLocation | None = None) -> str:
        """Return " on line 3", or " at" and the place in another file."""
        place = place or self.place
        return f" on line {place.line}" if place.filename == self.file else f" at {place.where}"

    @cached_property
    def code(self) -> str:
        """The code that failed, in backticks, with its line, and the line of the cell that led there if it is in another file."""
        called_on = f" (called on line {self.line})" if self.place.filename != self.file and self.line is not None else ""
        return f"`{clip(self.place.text)}`{self.on_line()}{called_on}"

    def quote(self, statement: ast.stmt, filename: str = "") -> str:
        """Return a statement in backticks with its line, of one with a block its first line, for a sentence.

        The statement is in the failing file unless another is given.
        """
        place = self.location(statement, filename)
        text = ast.get_source_segment("".join(place.lines), statement) or source_of(statement)
        if getattr(statement, "body", None):
            text = text.partition("\n")[0]
        return f"`{clip(' '.join(text.split()))}`{self.on_line(place)}"

    def location(self, statement: Any, filename: str = "") -> SourceLocation:
        """Return the location of a statement in a file; in the failing one unless another is given."""
        end = statement.end_lineno or statement.lineno
        columns = statement.col_offset, statement.end_col_offset or 0
        return SourceLocation(filename or self.place.filename, self.place.function, statement.lineno, end, *columns)

    # ---------------------------------------------------------------------------------------------------------- program
    @cached_property
    def program(self) -> Program:
        """The program in the failing file."""
        return Program.of_file(self.place.filename)

    @cached_property
    def statement(self) -> Any:
        """The innermost statement that failed; None if its source is not known."""
        return self.program.statement_at(self.place.line)

    @cached_property
    def node(self) -> Any:
        """The expression that failed, a node of `program`; None if it is not known."""
        place = self.place
        position = (place.line, place.start_column, place.end, place.end_column)
        for node in ast.walk(self.program.tree):
            if isinstance(node, ast.expr) and position == (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset):
                return node
        return None

    @cached_property
    def programs(self) -> dict[str, Program]:
        """The user's files and cells, by name.

        The failing one is first, then follow those of the traceback, those of functions and classes with a name in the frames,
        and the cells that have run.
        """
        files = [self.place.filename, *(frame.place.filename for frame in reversed(self.frames))]
        files += known_files([*(frame.names for frame in reversed(self.frames)), self.namespace])
        programs = {self.place.filename: self.program}
        for name in dict.fromkeys(files):
            if name not in programs and len(programs) < MAX_FILES and is_user_file(name):
                programs[name] = Program.of_file(name)
        return programs

    @cached_property
    def scope(self) -> list[ast.stmt]:
        """The statements of the function that failed, or of the file outside functions, in the order of the text."""
        return self.scope_of(self.program, self.place)

    def scope_of(self, program: Program, place: SourceLocation) -> list[ast.stmt]:
        """Return the statements of the function around a place, or of the file outside functions."""
        functions = [
            node
            for node in ast.walk(program.tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and node.lineno <= place.line <= (node.end_lineno or 0)
            and node.name == place.function
        ]
        return self.statements_of(functions[-1] if functions else program.tree)

    def statements_of(self, function: Any) -> list[ast.stmt]:
        """Return the statements of a function or a file in the order of the text, without those of functions in it."""
        return sorted(own_statements(function), key=lambda node: (node.lineno, node.col_offset))

    def called_functions(self, start: Any = None) -> list[tuple[str, Any]]:
        """Return the functions of the user's files that the code calls, directly or through each other: (file, function).

        Calls are followed by name, from the frames of the traceback or from the node `start`. `forward` is taken as called if
        there is a model.
        """
        bodies: list[Any] = [start]
        if start is None:
            bodies = []
            for frame in self.frames:
                program = self.programs.get(frame.place.filename)
                bodies += self.scope_of(program, frame.place) if program is not None else []
        called = [self.value(node.func) for node in ast.walk(start or ast.Pass()) if isinstance(node, ast.Call)]
        models = [one for one in called if is_model(one)] if start is not None else self.modules()
        kinds = {kind.__name__ for model in models for part in model.modules() for kind in type(part).__mro__}
        names = {"forward"} if models else set()
        known = [
            (name, node, owner)
            for name, program in self.programs.items()
            for node, owner in functions_of(program.tree)
            if self.is_current(name, owner or node)
        ]
        found: dict[int, tuple[str, Any]] = {}
        for _ in range(len(known) + 1):
            names |= {name for body in bodies for name in _names_called(body)}
            bodies = []
            for name, node, owner in known:
                other = node.name == "forward" and owner is not None and owner.name not in kinds
                if node.name in names and id(node) not in found and not other:
                    found[id(node)] = (name, node)
                    bodies.append(node)
            if not bodies:
                break
        current = [id(node) for body in self.frames for node in self._around(body.place)]
        return [pair for key, pair in found.items() if key not in current]

    def is_current(self, filename: str, node: Any) -> bool:
        """Return whether the name of a function or class still refers to the one in this file."""
        value = self._functions_by_name.get(node.name)
        if value is None:  # in a function, or in a cell whose names are gone
            return not CELL_FILE.match(filename) or any(frame.place.filename == filename for frame in self.frames)
        return filename in files_of(value)

    @cached_property
    def _functions_by_name(self) -> dict[str, Any]:
        """The user's functions and classes with a name in the frames or the namespace."""
        named: dict[str, Any] = {}
        for space in (*(frame.names for frame in reversed(self.frames)), self.namespace):
            for name, value in list(space.items()):
                if files_of(value) and (isinstance(value, type) or hasattr(value, "__code__")):
                    named.setdefault(name, value)
        return named

    def _around(self, place: SourceLocation) -> list[Any]:
        """Return the functions around a place that have the name of its function."""
        program = self.programs.get(place.filename)
        return [
            node
            for node in ast.walk(program.tree if program is not None else ast.Pass())
            if isinstance(node, ast.FunctionDef)
            and node.name == place.function
            and node.lineno <= place.line <= (node.end_lineno or 0)
        ]

    def modules(self) -> list[Any]:
        """Return the models with a name in the frames or the namespace."""
        modules: dict[int, Any] = {}
        for space in (*(frame.names for frame in reversed(self.frames)), self.namespace):
            for value in list(space.values()):
                if is_model(value):
                    modules.setdefault(id(value), value)
        return list(modules.values())

    @cached_property
    def loop(self) -> Any:
        """The outermost loop of `scope` around the failing line; None outside loops."""
        line = self.place.line
        loops = (node for node in self.scope if isinstance(node, (ast.For, ast.AsyncFor, ast.While)))
        return next((node for node in loops if node.lineno <= line <= (node.end_lineno or 0)), None)

    # ----------------------------------------------------------------------------------------------------------- library
    @cached_property
    def library(self) -> Library:
        """The library of the tensors in the failing statement, else the library that raised the error."""
        for _, tensor in self.tensors(self.statement):
            adapter = library_of(tensor)
            if adapter is not None:
                return adapter
        traceback, raised = self.error.__traceback__, ""
        while traceback is not None:
            raised = traceback.tb_frame.f_globals.get("__name__", "") or raised
            traceback = traceback.tb_next
        known = {library.name: library for library in adapters()}
        named = [library for name, library in known.items() if any(one is sys.modules[name] for one in self.names.values())]
        return known.get(raised.partition(".")[0]) or (named[-1] if named else adapters()[0])

    @cached_property
    def alias(self) -> str:
        """The user's name for that library."""
        wanted = sys.modules.get(self.library.name)
        names = [name for name, value in self.names.items() if value is wanted and not name.startswith("_")]
        return next((name for name in names if name in USUAL_NAMES), names[0] if names else self.library.usual)

    @property
    def is_recording(self) -> bool:
        """Return whether gradients are enabled now."""
        return bool(sys.modules[self.library.name].is_grad_enabled())

    def spell(self, text: str) -> str:
        """Return a text with "gradlab." replaced by the user's name for the library."""
        return text.replace("gradlab.", f"{self.alias}.")

    def ones(self, name: str) -> str:
        """Return code for a tensor of ones with the shape of another one."""
        return f"{self.alias}.ones_like({name})"

    # ------------------------------------------------------------------------------------------------------------ values
    @cached_property
    def names(self) -> Mapping[str, Any]:
        """The names that were visible in the innermost frame."""
        return self.frames[-1].names

    def value(self, node: Any) -> Any:
        """Return the value of a name, an attribute or an item; None for other expressions."""
        return self.value_in(self.names, node)

    def is_module(self, node: Any) -> bool:
        """Return whether an expression is a module of Python's: `torch.nn.init`."""
        value = self.names.get(node.id) if isinstance(node, ast.Name) else None
        return self.is_module(node.value) if isinstance(node, ast.Attribute) else isinstance(value, ModuleType)

    def value_in(self, names: Mapping[str, Any], node: Any) -> Any:
        """Return the value of an expression in a frame with these names. See `value`."""
        if isinstance(node, str):
            with suppress(SyntaxError, ValueError):
                return self.value_in(names, ast.parse(node, mode="eval").body)
            return None
        if isinstance(node, ast.Name):
            return names.get(node.id)
        if isinstance(node, ast.Attribute):
            return _attribute(self.value_in(names, node.value), node.attr)
        if isinstance(node, ast.Subscript):
            held, key = self.value_in(names, node.value), self._key(node.slice)
            if is_model(held):
                return dict(held.named_children()).get(str(key))
            with suppress(Exception):
                return held[key] if type(held) in (list, tuple, dict) else None
        return None

    def _key(self, node: Any) -> Any:
        return node.value if isinstance(node, ast.Constant) else self.names.get(node.id) if isinstance(node, ast.Name) else None

    def tensors(self, node: Any) -> list[tuple[str, Any]]:
        """Return the code and the value of each tensor in an expression, in the order of the text, without called functions."""
        tensors: dict[str, Any] = {}
        for child in _outermost(node):
            value = self.value(child)
            if library_of(value) is not None:
                tensors.setdefault(source_of(child), value)
        return list(tensors.items())

    @cached_property
    def arguments(self) -> dict[str, tuple[Any, Any]]:
        """The arguments of the failing call, by the names of the parameters: an expression and its value.

        Empty if the call was not of a Python function.
        """
        call, (frame, module) = self.node, self._called_frame
        if frame is None or not isinstance(call, ast.Call) or any(isinstance(one, ast.Starred) for one in call.args):
            return {}
        code, space = frame.f_code, dict(frame.f_locals)
        names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        positional, args = code.co_argcount, list(call.args)
        own = isinstance(call.func, ast.Attribute) and not self.is_module(call.func.value) and self.value(call.func) is None
        if module is None and own and isinstance(call.func, ast.Attribute):
            args = [call.func.value, *args]  # a method's receiver
        elif names[:1] == ["self"]:
            names, positional = names[1:], positional - 1
        if module is not None:  # forward() may have bound its names again
            space |= dict(zip(names, module.get("args", ()), strict=False)) | module.get("kwargs", {})
        given: dict[Any, Any] = dict(zip(names[:positional], args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg in names}
        return {name: (node, space.get(name)) for name, node in given.items() if name is not None}

    @cached_property
    def _called_frame(self) -> tuple[Any, Any]:
        """The frame of the function that the failing expression called, and the names of the frame that called the module."""
        after, module, traceback = None, None, self.error.__traceback__
        while traceback is not None:
            frame = traceback.tb_frame
            if is_user_file(frame.f_code.co_filename):
                after = module = None
            elif after is None and (frame.f_code.co_name in WRAPPERS or _calls_modules(frame)):
                module = module or (frame.f_locals if "args" in frame.f_locals and "self" in frame.f_locals else None)
            elif after is None and not _is_recorder(frame):
                after = frame
            traceback = traceback.tb_next
        return after, module if after is not None and after.f_code.co_name == "forward" else None

    @cached_property
    def operands(self) -> list[tuple[Any, Any]]:
        """The tensors that the failing expression was applied to, in the order of the text: an expression and its value."""
        known = {id(node): value for node, value in self.arguments.values()}
        stored = isinstance(self.node, ast.Subscript) and isinstance(self.node.ctx, ast.Store)
        given = [(node, self.value(node)) for node in operands_of(self.statement if stored else self.node or self.statement)]
        given = [(node, known.get(id(node)) if value is None else value) for node, value in given]
        return [(node, value) for node, value in given if library_of(value) is not None]

    def shape(self, node: Any) -> list[int] | None:
        """Return the shape of an expression's value, as far as it follows from the shapes of names."""
        value = next((one for part, one in self.operands if part is node), None)
        value = self.value(node) if value is None else value
        if library_of(value) is not None:
            return list(value.shape)
        if isinstance(node, (ast.Constant, ast.UnaryOp)):
            return [] if isinstance(node, ast.Constant) else self.shape(node.operand)
        if isinstance(value, (int, float)):
            return []
        sides: tuple[Any, ...] = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
        sides = (node.left, *node.comparators) if isinstance(node, ast.Compare) else sides
        shapes = [self.shape(side) for side in sides]
        if not shapes or None in shapes:
            return None
        first, second = shapes[0] or [], shapes[-1] or []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            inner = len(first) > 1 < len(second) and first[-1] == second[-2]
            return [*first[:-1], second[-1]] if inner and (len(second) == 2 or first[:-2] == second[:-2]) else None
        if not can_broadcast(first, second):
            return None
        longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
        ones = [1] * (len(longer) - len(shorter)) + shorter
        return [b if a == 1 else a for a, b in zip(longer, ones, strict=True)]

    def replace(self, new: str, node: Any) -> str:
        """Return "`new` in place of `old`" for an expression in the failing statement.

        As much of the code around it is included as is needed to make `old` occur once in the statement. In a file other than
        `file` a single name is not enough.
        """
        replacement, around = code_edits.parse_expression(new), self.statement
        if replacement is None or around is None or node is None:
            return ""
        parents = {id(child): parent for parent in ast.walk(around) for child in ast.iter_child_nodes(parent)}
        elsewhere = self.place.filename != self.file
        one = node
        while True:
            text = source_of(one)
            if not isinstance(one, (ast.expr, ast.stmt)):
                one = parents.get(id(one))
                if one is None:
                    return ""
                continue
            alike = sum(source_of(other) == text for other in ast.walk(around) if isinstance(other, type(one)))
            small = elsewhere and isinstance(one, (ast.Name, ast.Attribute))
            if (alike == 1 and not small) or id(one) not in parents:
                edited = copy.deepcopy(one, {id(node): replacement})
                return code_edits.instead(source_of(edited), text) if "\n" not in ast.unparse(one) else ""
            one = parents[id(one)]

    @cached_property
    def call(self) -> tuple[str, Any, list[Any]] | None:
        """The innermost module that was being called: its name, itself, and its tensor arguments. None outside modules."""
        innermost, traceback = None, self.error.__traceback__
        called: Any = {}  # the names of the frame that calls a module: forward() may bind its own again
        while traceback is not None:
            frame = traceback.tb_frame
            seen = frame.f_locals.get("self")
            if "args" in frame.f_locals and _calls_modules(frame):
                called = frame.f_locals if "self" in frame.f_locals else called
            if frame.f_code.co_name in ("forward", "_conv_forward") and is_model(seen):
                arguments = [frame.f_locals.get(name) for name in frame.f_code.co_varnames[1 : frame.f_code.co_argcount]]
                if called.get("self") is seen:
                    arguments = [*called["args"], *called.get("kwargs", {}).values()] or arguments
                if innermost is None or innermost[1] is not seen:
                    innermost = (self.path(seen), seen, [one for one in arguments if library_of(one) is not None])
            traceback = traceback.tb_next
        return innermost

    def layer(self, module: Any) -> str:
        """Return "`model[0]` (Conv2d)", or "the Conv2d" for a layer without a name."""
        path, kind = self.path(module), type(module).__name__
        return f"the {kind}" if path == kind else f"`{path}` ({kind})"

    def path(self, module: Any) -> str:
        """Return the name of a module, "model.layers[0]"; its class if it has no name."""
        return self._module_names.get(id(module)) or type(module).__name__

    @cached_property
    def _module_names(self) -> dict[int, str]:
        spaces = [self.namespace, *(frame.names for frame in self.frames)]
        others = [{name: value for name, value in space.items() if name != "self"} for space in spaces]
        own = [{"self": space["self"]} for space in spaces if "self" in space]
        return module_names([*others, *own], loop_variables(self.place.filename))


def functions_of(tree: Any, owner: Any = None) -> Iterator[tuple[Any, Any]]:
    """Yield the functions of a file, nested ones too, and the class of each."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node, owner
        yield from functions_of(
            node, node if isinstance(node, ast.ClassDef) else None if isinstance(node, ast.FunctionDef) else owner
        )


def _names_called(body: Any) -> Iterator[str]:
    """Yield the names of the functions that a statement or a function calls, without their modules."""
    for node in ast.walk(body):
        if isinstance(node, ast.Call):
            yield node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def operands_of(node: Any) -> list[Any]:
    """Return the operands of an operation or a call, with the items of lists, a method's receiver first."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return [node.targets[0], node.value]
    parts = [] if isinstance(node, ast.Subscript) else lines.operands_of(node)
    several = [part.elts if isinstance(part, (ast.List, ast.Tuple)) else [part] for part in parts]
    return [one for some in several for one in some] if isinstance(node, ast.Call) else parts


def can_broadcast(a: list[int], b: list[int]) -> bool:
    """Return whether two shapes broadcast."""
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))


def dtype_of(tensor: Any) -> str:
    """Return the name of a tensor's dtype: "float32"."""
    return str(tensor.dtype).rpartition(".")[2]


def is_float(tensor: Any) -> bool:
    """Return whether a tensor has a floating-point or complex dtype."""
    return dtype_of(tensor).startswith(("float", "bfloat", "complex"))


def numbers_in(text: str) -> list[int]:
    """Return the integers in a text: [2, -1] for "[2, -1]"."""
    return [int(number) for number in re.findall(r"-?\d+", text)]


def _calls_modules(frame: Any) -> bool:
    """Return whether a frame is between the call of a module and its `forward`."""
    return str(frame.f_globals.get("__name__", "")).endswith((".nn.modules.module", ".nn.modules.hooks"))


def _is_recorder(frame: Any) -> bool:
    """Return whether a frame is in the code that records operations."""
    return str(frame.f_globals.get("__name__", "")).startswith(("gradlab.explore", "gradlab.diagnose"))


def known_files(spaces: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the files of the functions, classes and models in some namespaces, then the cells that have run, newest first."""
    files = [name for space in spaces for value in list(space.values()) for name in files_of(value)]
    return [*files, *(name for name in reversed(list(linecache.cache)) if CELL_FILE.match(name))]


def files_of(value: Any) -> list[str]:
    """Return the files that define a function, a class, a module of Python's or the classes of a model."""
    if is_model(value):
        with suppress(Exception):
            kinds = dict.fromkeys(type(module) for module in value.modules())
            return [name for kind in kinds for name in files_of(kind)]
    if isinstance(value, ModuleType):
        own = getattr(value, "__file__", None)
        return [own] if isinstance(own, str) and own.endswith(".py") and is_user_file(own) else []
    if isinstance(value, type):
        functions = [one for one in vars(value).values() if hasattr(one, "__code__")]
        return [one.__code__.co_filename for one in functions[:1]]
    inner: Any = getattr(value, "__wrapped__", value) if hasattr(value, "__code__") else None
    return [inner.__code__.co_filename] if hasattr(inner, "__code__") else []


def _outermost(node: Any) -> Iterator[Any]:
    """Yield the names, attributes and items in an expression that are not part of a longer one."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            yield from _outermost(node.func.value)
        for part in (*node.args, *(keyword.value for keyword in node.keywords)):
            yield from _outermost(part)
    elif isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        yield node
    elif node is not None:
        for child in ast.iter_child_nodes(node):
            yield from _outermost(child)


def _attribute(value: Any, name: str) -> Any:
    """Return an attribute without running code: a part of a module, one of `TENSOR_ATTRIBUTES`, or an item of `__dict__`."""
    if library_of(value) is not None:
        with suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch warns about the `.grad` of a tensor that is not a leaf
            return getattr(value, name) if name in TENSOR_ATTRIBUTES else None
        return None
    held = getattr(value, "__dict__", None)
    if not isinstance(held, dict):
        return None
    if is_model(value):
        for parts in (value.named_parameters(recurse=False), value.named_buffers(recurse=False), value.named_children()):
            if name in (attributes := dict(parts)):
                return attributes[name]
    return held.get(name)
