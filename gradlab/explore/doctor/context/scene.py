"""Where an error came from in the user's own code, and what the names there stood for: read off its traceback, after the event.

Of all frames those are the user's whose file is neither gradlab's nor installed, nor Python's own. A traceback holds the frames,
and these the names as they were, so a reader sees what an operation was given without having been there. Nothing of the user's
is run: names are looked up, attributes only of modules, tensors and plain containers.
"""

from __future__ import annotations

import ast
import copy
import linecache
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
from gradlab.explore.names import is_model, loop_variables, module_names
from gradlab.explore.trace import lines

OF_TENSORS = ("grad", "data", "T", "mT")  # attributes that compute nothing but a view
WRAPPERS = ("__call__", "__torch_function__", "__get__")  # between a call and its function, beside `_calls_modules`
MOST_FILES = 60  # of the user's that are searched for a source


@dataclass(frozen=True)
class UserFrame:
    """One frame of the user's: its place, and the names that it saw."""

    place: SourceLocation
    names: Mapping[str, Any]


class Scene:
    """What the traceback of an error tells.

    Parameters
    ----------
    error : BaseException
    namespace : mapping of str to object, optional
        Further names, of models above all.

    Attributes
    ----------
    steps : tuple of UserFrame
        The user's frames, outermost first; none of an error that no code of the user's led to.
    """

    def __init__(self, error: BaseException, namespace: Mapping[str, Any] | None = None) -> None:
        self.error, self.namespace = error, namespace or {}
        steps, traceback = [], error.__traceback__
        while traceback is not None:
            frame = traceback.tb_frame
            place = location_of((frame.f_code, traceback.tb_lasti)) if is_user_file(frame.f_code.co_filename) else None
            if place is not None:
                steps.append(UserFrame(place, {**frame.f_globals, **frame.f_locals}))
            traceback = traceback.tb_next
        self.steps = tuple(steps)

    # ------------------------------------------------------------------------------------------------------------ where
    @property
    def place(self) -> SourceLocation:
        """The innermost place of the user's."""
        return self.steps[-1].place

    @cached_property
    def file(self) -> str:
        """The file whose lines are counted: the cell that ran, else where the error came from."""
        named = [step.place.filename for step in self.steps]
        return next((name for name in named if name == cells.current or CELL_FILE.match(name)), named[-1])

    @cached_property
    def line(self) -> int | None:
        """The line of the cell that led there."""
        return next((step.place.line for step in reversed(self.steps) if step.place.filename == self.file), None)

    def on(self, place: SourceLocation | None = None) -> str:
        """ " on line 3", or where else a place is."""
        place = place or self.place
        return f" on line {place.line}" if place.filename == self.file else f" at {place.where}"

    @cached_property
    def said(self) -> str:
        """The statement that failed, with its line; and the line of the cell that led there, if it is another one."""
        led = f" (called on line {self.line})" if self.place.filename != self.file and self.line is not None else ""
        return f"`{clip(self.place.text)}`{self.on()}{led}"

    def quoted(self, statement: ast.stmt, filename: str = "") -> str:
        """A statement in a sentence, the head of one that has a block, with its line; of the failing file unless another is
        given."""
        place = self.at(statement, filename)
        text = ast.get_source_segment("".join(place.lines), statement) or source_of(statement)
        if getattr(statement, "body", None):
            text = text.partition("\n")[0]
        return f"`{clip(' '.join(text.split()))}`{self.on(place)}"

    def here(self, advice: str, statement: Any) -> str:
        """Advice that names the line of a statement of the failing file, in which lines are counted here."""
        place = self.at(statement)
        return advice.replace(f" on {place.short}", self.on(place)).replace(
            f" before {place.short}", f" before{self.on(place).removeprefix(' on')}"
        )

    def at(self, statement: Any, filename: str = "") -> SourceLocation:
        """The place of a statement of a file, the failing one unless another is given."""
        end = statement.end_lineno or statement.lineno
        columns = statement.col_offset, statement.end_col_offset or 0
        return SourceLocation(filename or self.place.filename, self.place.function, statement.lineno, end, *columns)

    # ---------------------------------------------------------------------------------------------------------- program
    @cached_property
    def program(self) -> Program:
        """The failing file."""
        return Program.of_file(self.place.filename)

    @cached_property
    def statement(self) -> Any:
        """The innermost statement that failed; None if its source is not known."""
        return self.program.at(self.place.line)

    @cached_property
    def node(self) -> Any:
        """The very expression that failed, a node of `program`; None if it is not known."""
        place = self.place
        position = (place.line, place.start_column, place.end, place.end_column)
        for node in ast.walk(self.program.tree):
            if isinstance(node, ast.expr) and position == (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset):
                return node
        return None

    @cached_property
    def programs(self) -> dict[str, Program]:
        """The user's files and cells by their names: the failing one first, then those of the traceback, of the functions and
        classes that the frames can name, and the cells that have run."""
        files = [self.place.filename, *(step.place.filename for step in reversed(self.steps))]
        files += known_files([*(step.names for step in reversed(self.steps)), self.namespace])
        programs = {self.place.filename: self.program}
        for name in dict.fromkeys(files):
            if name not in programs and len(programs) < MOST_FILES and is_user_file(name):
                programs[name] = Program.of_file(name)
        return programs

    @cached_property
    def scope(self) -> list[ast.stmt]:
        """The statements of the function that failed, or of the file outside of functions, in the order of the text."""
        return self.scope_of(self.program, self.place)

    def scope_of(self, program: Program, place: SourceLocation) -> list[ast.stmt]:
        """The statements of the function around a place, or of the file outside of functions."""
        functions = [
            node
            for node in ast.walk(program.tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and node.lineno <= place.line <= (node.end_lineno or 0)
            and node.name == place.function
        ]
        return self.statements_of(functions[-1] if functions else program.tree)

    def statements_of(self, function: Any) -> list[ast.stmt]:
        """The statements of a function or a file, those of functions within it left out, in the order of the text."""
        return sorted(own_statements(function), key=lambda node: (node.lineno, node.col_offset))

    def called_functions(self, start: Any = None) -> list[tuple[str, Any]]:
        """The functions of the user's files that are called from the frames of the traceback, or from a statement of the failing
        function, by their names, or by others of these: (file, function). `forward` counts as called where there is a model."""
        bodies: list[Any] = [start]
        if start is None:
            bodies = []
            for step in self.steps:
                program = self.programs.get(step.place.filename)
                bodies += self.scope_of(program, step.place) if program is not None else []
        called = [self.value(node.func) for node in ast.walk(start or ast.Pass()) if isinstance(node, ast.Call)]
        models = [one for one in called if is_model(one)] if start is not None else self.modules()
        kinds = {kind.__name__ for model in models for part in model.modules() for kind in type(part).__mro__}
        names = {"forward"} if models else set()
        known = [
            (name, node, owner)
            for name, program in self.programs.items()
            for node, owner in functions_of(program.tree)
            if self.holds(name, owner or node)
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
        current = [id(node) for body in self.steps for node in self._around(body.place)]
        return [pair for key, pair in found.items() if key not in current]

    def holds(self, filename: str, node: Any) -> bool:
        """Return whether the name of a function or class still refers to the one in this file."""
        value = self._named.get(node.name)
        if value is None:  # within a function, or of a cell whose names are gone
            return not CELL_FILE.match(filename) or any(step.place.filename == filename for step in self.steps)
        return filename in files_of(value)

    @cached_property
    def _named(self) -> dict[str, Any]:
        """The functions and classes of the user's by their names, methods by their own."""
        named: dict[str, Any] = {}
        for space in (*(step.names for step in reversed(self.steps)), self.namespace):
            for name, value in list(space.items()):
                if files_of(value) and (isinstance(value, type) or hasattr(value, "__code__")):
                    named.setdefault(name, value)
        return named

    def _around(self, place: SourceLocation) -> list[Any]:
        """The function of a frame."""
        program = self.programs.get(place.filename)
        return [
            node
            for node in ast.walk(program.tree if program is not None else ast.Pass())
            if isinstance(node, ast.FunctionDef)
            and node.name == place.function
            and node.lineno <= place.line <= (node.end_lineno or 0)
        ]

    def modules(self) -> list[Any]:
        """The models that the frames can name."""
        modules: dict[int, Any] = {}
        for space in (*(step.names for step in reversed(self.steps)), self.namespace):
            for value in list(space.values()):
                if is_model(value):
                    modules.setdefault(id(value), value)
        return list(modules.values())

    @cached_property
    def loop(self) -> Any:
        """The outermost loop of that scope which the failing line stands in; None outside of loops."""
        line = self.place.line
        loops = (node for node in self.scope if isinstance(node, (ast.For, ast.AsyncFor, ast.While)))
        return next((node for node in loops if node.lineno <= line <= (node.end_lineno or 0)), None)

    # ----------------------------------------------------------------------------------------------------------- library
    @cached_property
    def library(self) -> Library:
        """Whose tensors the failing statement was given, else the one that raised."""
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
        """What the user's code calls that library."""
        wanted = sys.modules.get(self.library.name)
        names = [name for name, value in self.names.items() if value is wanted and not name.startswith("_")]
        return next((name for name in names if name in USUAL_NAMES), names[0] if names else self.library.usual)

    @property
    def graded(self) -> bool:
        """Whether operations are being recorded now."""
        return bool(sys.modules[self.library.name].is_grad_enabled())

    def spelled(self, text: str) -> str:
        """Advice that says gradlab, in the user's spelling."""
        return text.replace("gradlab.", f"{self.alias}.")

    def ones(self, name: str) -> str:
        """Code for weights of the shape of a tensor."""
        return f"{self.alias}.ones_like({name})"

    # ------------------------------------------------------------------------------------------------------------ values
    @cached_property
    def names(self) -> Mapping[str, Any]:
        """What the innermost frame could name."""
        return self.steps[-1].names

    def value(self, node: Any) -> Any:
        """What an expression stood for: a name, an attribute or an item of one; None where that is not known."""
        return self.value_in(self.names, node)

    def is_module(self, node: Any) -> bool:
        """Whether an expression is a module of Python's: `torch.nn.init`."""
        value = self.names.get(node.id) if isinstance(node, ast.Name) else None
        return self.is_module(node.value) if isinstance(node, ast.Attribute) else isinstance(value, ModuleType)

    def value_in(self, names: Mapping[str, Any], node: Any) -> Any:
        """What an expression stood for in a frame of these names."""
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
        """The tensors that an expression names, as they are written, in the order of the text; what is called is left out."""
        tensors: dict[str, Any] = {}
        for child in _outermost(node):
            value = self.value(child)
            if library_of(value) is not None:
                tensors.setdefault(source_of(child), value)
        return list(tensors.items())

    @cached_property
    def arguments(self) -> dict[str, tuple[Any, Any]]:
        """What the failing call was given, by the names of its function's parameters: an expression and its value. Empty where no
        function of Python's was called."""
        call, (frame, module) = self.node, self._called
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
    def _called(self) -> tuple[Any, Any]:
        """The frame of the function that the failing expression called, and the names of the frame that called it as a module."""
        after, module, traceback = None, None, self.error.__traceback__
        while traceback is not None:
            frame = traceback.tb_frame
            if is_user_file(frame.f_code.co_filename):
                after = module = None
            elif after is None and (frame.f_code.co_name in WRAPPERS or _calls_modules(frame)):
                module = module or (frame.f_locals if "args" in frame.f_locals and "self" in frame.f_locals else None)
            elif after is None and not _watches(frame):
                after = frame
            traceback = traceback.tb_next
        return after, module if after is not None and after.f_code.co_name == "forward" else None

    @cached_property
    def operands(self) -> list[tuple[Any, Any]]:
        """The tensors that the failing expression was given, in the order of the text: an expression and its value."""
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
        if not fits(first, second):
            return None
        longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
        ones = [1] * (len(longer) - len(shorter)) + shorter
        return [b if a == 1 else a for a, b in zip(longer, ones, strict=True)]

    def swapped(self, new: str, node: Any) -> str:
        """ "`new` in place of `old`" for an expression of the failing statement, with so much around it that its text occurs once
        in the file's statement, and is not mistaken for that of another file."""
        replacement, around = code_edits.expression(new), self.statement
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
                made = copy.deepcopy(one, {id(node): replacement})
                return code_edits.instead(source_of(made), text) if "\n" not in ast.unparse(one) else ""
            one = parents[id(one)]

    @cached_property
    def call(self) -> tuple[str, Any, list[Any]] | None:
        """The innermost module that was being called: its name, itself, and the tensors it was given. None outside of one."""
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
        """A layer in a sentence: "`model[0]` (Conv2d)", "the Conv2d" of one that has no name."""
        path, kind = self.path(module), type(module).__name__
        return f"the {kind}" if path == kind else f"`{path}` ({kind})"

    def path(self, module: Any) -> str:
        """What the user calls a module: "model.layers[0]"; its class where it has no name."""
        return self._module_names.get(id(module)) or type(module).__name__

    @cached_property
    def _module_names(self) -> dict[int, str]:
        spaces = [self.namespace, *(step.names for step in self.steps)]
        others = [{name: value for name, value in space.items() if name != "self"} for space in spaces]
        own = [{"self": space["self"]} for space in spaces if "self" in space]
        return module_names([*others, *own], loop_variables(self.place.filename))


def functions_of(tree: Any, owner: Any = None) -> Iterator[tuple[Any, Any]]:
    """The functions of a file, those within others too, and the class of each."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node, owner
        yield from functions_of(
            node, node if isinstance(node, ast.ClassDef) else None if isinstance(node, ast.FunctionDef) else owner
        )


def _names_called(body: Any) -> Iterator[str]:
    """The last names of what is called in a statement or a function."""
    for node in ast.walk(body):
        if isinstance(node, ast.Call):
            yield node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def operands_of(node: Any) -> list[Any]:
    """The expressions that an operation or a call is given, the items of a call's lists among them; a method's receiver first."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return [node.targets[0], node.value]
    parts = [] if isinstance(node, ast.Subscript) else lines.operands_of(node)
    several = [part.elts if isinstance(part, (ast.List, ast.Tuple)) else [part] for part in parts]
    return [one for some in several for one in some] if isinstance(node, ast.Call) else parts


def fits(a: list[int], b: list[int]) -> bool:
    """Whether two shapes broadcast."""
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))


def dtype_of(tensor: Any) -> str:
    """ "float32"."""
    return str(tensor.dtype).rpartition(".")[2]


def _calls_modules(frame: Any) -> bool:
    """Whether a frame is one between the call of a module and its `forward`."""
    return str(frame.f_globals.get("__name__", "")).endswith((".nn.modules.module", ".nn.modules.hooks"))


def _watches(frame: Any) -> bool:
    """Return whether a frame is one of the explorers', which run the operation that they record."""
    return str(frame.f_globals.get("__name__", "")).startswith(("gradlab.explore", "gradlab.diagnose"))


def known_files(spaces: Iterable[Mapping[str, Any]]) -> list[str]:
    """The files of the functions, classes and models in some namespaces, then the cells that have run, newest first."""
    files = [name for space in spaces for value in list(space.values()) for name in files_of(value)]
    return [*files, *(name for name in reversed(list(linecache.cache)) if CELL_FILE.match(name))]


def files_of(value: Any) -> list[str]:
    """The files in which a function, a class, a module of Python's or the classes of a model were written."""
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
    """The names, attributes and items in an expression that are not part of a longer one."""
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
    """An attribute that is read without running code: of a module its parts, of a tensor a few, else what the object holds."""
    if library_of(value) is not None:
        with suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch warns about the `.grad` of a tensor that is not a leaf
            return getattr(value, name) if name in OF_TENSORS else None
        return None
    held = getattr(value, "__dict__", None)
    if not isinstance(held, dict):
        return None
    if is_model(value):
        for parts in (value.named_parameters(recurse=False), value.named_buffers(recurse=False), value.named_children()):
            if name in (attributes := dict(parts)):
                return attributes[name]
    return held.get(name)
