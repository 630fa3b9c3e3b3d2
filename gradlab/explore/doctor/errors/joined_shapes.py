"""Explain errors of cat, stack, view, expand, einsum, `tensor([[…]])` and conditions: which operand, and which dimension."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from math import prod
from typing import Any

from gradlab.diagnose.source_locations import source_of
from gradlab.explore.doctor.context.code_edits import parenthesize
from gradlab.explore.doctor.context.scene import Scene, numbers_in
from gradlab.explore.doctor.findings import Finding

MAX_SHOWN = 4
FIXED_DIMENSIONS = {"vstack": 0, "row_stack": 0, "dstack": 2}  # the dimension along which they join; hstack: 1, or 0 for one axis


def explain_shapes(scene: Scene, rule: str) -> Finding:
    """Return a finding on operands of which only the shapes are known."""
    named = [(source_of(node), list(one.shape)) for node, one in scene.operands]
    named = named or [(name, list(one.shape)) for name, one in scene.tensors(scene.statement)]
    shapes = f" ({', '.join(f'`{name}` {shape}' for name, shape in named[:MAX_SHOWN])})" if named else ""
    return Finding("shape", f"{scene.code}: shapes do not fit{shapes}.", fix=rule, evidence=dict(named[:MAX_SHOWN]))


# ------------------------------------------------------------------------------------------------------------ cat, stack
def _explain_cat(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain a cat of tensors that differ in another dimension."""
    along, expected, got, number = (int(match[i]) for i in (1, 2, 3, 4))
    items = _items(scene)
    names = [name for name, _ in items]
    shapes: list[list[int] | None] = [shape for _, shape in items]
    if number >= len(items) or shapes[0] is None or shapes[number] is None:
        return Finding(
            "shape",
            f"{scene.code} joins along dimension {along}, so all other dimensions must be equal. One is {expected} in the first "
            f"tensor and {got} in tensor {number}, counted from 0.",
            evidence={"along": along, "expected": expected, "got": got, "tensor": number},
        )
    a, b = shapes[0] or [], shapes[number] or []
    differ = [k for k in range(len(a)) if k != along and a[k] != b[k]]
    at = differ[0] if differ else along
    other = _find_joinable_dimension([shape for shape in shapes if shape is not None])
    code = (
        _suggest_dimension(scene, other)
        if other is not None and len(shapes) == sum(shape is not None for shape in shapes)
        else ""
    )
    return Finding(
        "shape",
        f"{scene.code} joins along dimension {along}, so all other dimensions must be equal: `{names[0]}` has shape {a} and "
        f"`{names[number]}` {b}. Dimension {at} is {a[at]} and {b[at]}.",
        fix=f"They can be joined along dimension {other}: {code}."
        if code
        else "Make the sizes there equal by slicing or padding.",
        evidence={names[0]: a, names[number]: b, "along": along, "dimension": at, **({"fits": other} if code else {})},
    )


def _explain_numbers_of_axes(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain a cat of tensors with different numbers of axes."""
    items = [(name, shape, node) for (name, shape), node in zip(_items(scene), _nodes(scene), strict=False) if shape is not None]
    odd = next(((one, other) for one in items for other in items if len(one[1]) < len(other[1])), None)
    if odd is None:
        return explain_shapes(scene, "All of them need the same number of axes.")
    (name, shape, node), (longer, wanted, _) = odd
    along = _joined_dimension(scene, len(wanted))
    code = ""
    for k in range(len(wanted)):
        extended = [*shape[:k], 1, *shape[k:]]
        if len(extended) == len(wanted) and all(extended[i] == wanted[i] for i in range(len(wanted)) if i != along):
            code = scene.replace(f"{parenthesize(name)}.unsqueeze({k})", node)
            break
    return Finding(
        "shape",
        f"{scene.code} joins tensors with the same number of axes: `{name}` has shape {shape} and `{longer}` {wanted}.",
        fix=f"Add an axis: {code}." if code else "Add an axis with unsqueeze().",
        evidence={name: shape, longer: wanted},
    )


def _explain_stack(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain a stack of tensors of different shapes."""
    first, second, entry = numbers_in(match[1]), numbers_in(match[3]), int(match[4])
    items, start = _items(scene), int(match[2])
    names = [f"`{items[i][0]}`" if i < len(items) else f"tensor {i}" for i in (start, entry)]
    differ = [k for k in range(min(len(first), len(second))) if first[k] != second[k]]
    where = (
        f" Dimension {differ[0]} is {first[differ[0]]} and {second[differ[0]]}." if differ and len(first) == len(second) else ""
    )
    code, other = "", None
    if items and isinstance(scene.node, ast.Call) and source_of(scene.node.func).endswith("stack"):
        shapes = [shape for _, shape in items]
        other = _find_joinable_dimension([shape for shape in shapes if shape is not None]) if None not in shapes else None
        func = source_of(scene.node.func).removesuffix("stack") + "cat"
        if other is not None and scene.node.args and source_of(scene.node.func).rpartition(".")[2] == "stack":
            code = scene.replace(f"{func}({source_of(scene.node.args[0])}, dim={other})", scene.node)
    return Finding(
        "shape",
        f"{scene.code} needs tensors of the same shape: {names[0]} has shape {first} and {names[1]} {second}.{where}",
        fix=f"To join them along dimension {other}, without a new axis: {code}."
        if code
        else "Make the shapes equal by slicing or padding.",
        evidence={"first": first, "second": second, "dimension": differ[0] if differ else None, "entry": entry, "start": start},
    )


def _find_joinable_dimension(shapes: list[list[int]]) -> int | None:
    """Return the dimension along which tensors of these shapes can be joined."""
    if not shapes or len({len(shape) for shape in shapes}) != 1:
        return None
    for d in range(len(shapes[0])):
        if len({(*shape[:d], *shape[d + 1 :]) for shape in shapes}) == 1:
            return d
    return None


def _suggest_dimension(scene: Scene, dimension: int) -> str:
    """Return code for the same call along another dimension."""
    call = scene.node
    name = source_of(call.func).rpartition(".")
    if not call.args:
        return ""
    func = source_of(call.func) if name[2] not in ("hstack", "column_stack", *FIXED_DIMENSIONS) else f"{name[0]}{name[1]}cat"
    return scene.replace(f"{func}({source_of(call.args[0])}, dim={dimension})", call)


def _joined_dimension(scene: Scene, axes: int) -> int:
    """Return the dimension along which the failing call joins."""
    call = scene.node
    name = source_of(call.func).rpartition(".")[2] if isinstance(call, ast.Call) else ""
    if name in FIXED_DIMENSIONS:
        return FIXED_DIMENSIONS[name]
    if name in ("hstack", "column_stack"):
        return 1 if axes > 1 else 0
    given = call.args[1:2] if isinstance(call, ast.Call) else []
    given += [k.value for k in call.keywords if k.arg in ("dim", "axis")] if isinstance(call, ast.Call) else []
    try:
        return int(ast.literal_eval(given[0])) % axes if given else 0
    except (ValueError, SyntaxError):
        return 0


def _nodes(scene: Scene) -> list[Any]:
    """Return the expressions of the tensors in a call's list; if the list is given by name, those of its items."""
    call = scene.node
    if not isinstance(call, ast.Call) or not call.args:
        return []
    first = call.args[0]
    if isinstance(first, (ast.List, ast.Tuple)):
        return list(first.elts)
    value = scene.value(first)
    if type(value) in (list, tuple) and len(value) < 1000:
        return [ast.parse(f"{source_of(first)}[{i}]", mode="eval").body for i in range(len(value))]
    return []


def _items(scene: Scene) -> list[tuple[str, list[int] | None]]:
    """Return the expressions of the joined tensors, and their shapes as far as they are known."""
    return [(source_of(node), scene.shape(node)) for node in _nodes(scene)]


# ---------------------------------------------------------------------------------------------------------- view, expand
def _explain_view(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain a view with another number of elements."""
    wanted, size = numbers_in(match[1]), int(match[2])
    call = scene.node
    given = next(((node, one) for node, one in scene.operands if prod(one.shape) == size), None)
    name = f"`{source_of(given[0])}`" if given is not None else "the tensor"
    shape = list(given[1].shape) if given is not None else None
    known = prod(n for n in wanted if n >= 0)
    rule = (
        f"With -1 in {wanted} the number of elements must be a multiple of {known}"
        if -1 in wanted
        else f"{wanted} has {known} elements"
    )
    code, words = "", ""
    if given is not None and shape is not None and len(wanted) == 2 and len(shape) > 2 and wanted[0] in (-1, shape[0]):
        code = scene.replace(f"{parenthesize(source_of(given[0]))}.flatten(1)", call)
        words = f"To keep the first axis and flatten the others to {prod(shape[1:])}"
    return Finding(
        "shape",
        f"{scene.code}: {name} has {size} elements{f' (shape {shape})' if shape is not None else ''}. {rule}.",
        fix=f"{words}: {code}." if code else "Give a size with as many elements, or check the shape of the tensor.",
        evidence={
            "size": size,
            "wanted": wanted,
            "factor": known,
            **({"shape": shape} if shape is not None else {}),
            **({"flat": prod(shape[1:])} if code and shape is not None else {}),
        },
    )


def _explain_strides(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain a view of a tensor that is not contiguous."""
    call, code = scene.node, ""
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "view":
        func = ast.Attribute(call.func.value, "reshape", ast.Load())
        code = scene.replace(source_of(ast.Call(func, call.args, call.keywords)), call)
    name = f"`{source_of(call.func.value)}`" if code else "the tensor"
    return Finding(
        "shape",
        f"{scene.code}: {name} is not contiguous in memory (it was transposed, permuted or expanded), and view() cannot join its "
        "axes.",
        fix=f"Use reshape(), which copies if needed: {code}." if code else "Use reshape() instead of view().",
    )


def _explain_expand(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain the expansion of an axis whose size is not 1."""
    wanted, size, axis = int(match[1]), int(match[2]), int(match[3])
    found = re.search(r"Target sizes: (\[[-\d, ]*\])\.\s+Tensor sizes: (\[[\d, ]*\])", str(scene.error))
    shapes = (numbers_in(found[1]), numbers_in(found[2])) if found else None
    given = next((node for node, one in scene.operands if shapes and list(one.shape) == shapes[1]), None)
    name = f"`{source_of(given)}`" if given is not None else "the tensor"
    code = ""
    if given is not None and shapes is not None:
        for k in range(len(shapes[1]) + 1):
            extended = [*shapes[1][:k], 1, *shapes[1][k:]]
            if len(extended) == len(shapes[0]) and all(m in (1, n) for m, n in zip(extended, shapes[0], strict=True)):
                code = scene.replace(f"{parenthesize(source_of(given))}.unsqueeze({k})", given)
                break
    statement = scene.statement
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript) and shapes:
        target = source_of(statement.targets[0])
        return Finding(
            "shape",
            f"{scene.code}: `{target}` has shape {shapes[0]}, and {name} has shape {shapes[1]}. Dimension "
            f"{axis} is {wanted} and {size}.",
            fix=f"Assign a tensor of shape {shapes[0]}.",
            evidence={"wanted": wanted, "own": size, "dimension": axis, "shape": shapes[1], "asked": shapes[0]},
        )
    what = f" {name} has shape {shapes[1]}, and {shapes[0]} was requested." if shapes else ""
    return Finding(
        "shape",
        f"{scene.code} can expand only axes of size 1.{what} Dimension {axis} should become {wanted}, and it is {size}.",
        fix=f"Add an axis: {code}." if code else "",
        evidence={
            "wanted": wanted,
            "own": size,
            "dimension": axis,
            **({"shape": shapes[1], "asked": shapes[0]} if shapes else {}),
        },
    )


def _explain_einsum(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain a letter of einsum that has two sizes."""
    letter, size, operand, seen = match[1], int(match[2]), int(match[3]), int(match[4])
    call = scene.node
    text = call.args[0].value if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Constant) else None
    tensors = call.args[1:] if isinstance(call, ast.Call) else []
    terms = [term.strip() for term in text.partition("->")[0].split(",")] if isinstance(text, str) else []
    parts: list[str] = []
    evidence: dict[str, Any] = {"size": size, "seen": seen, "operand": operand}
    for term, node in zip(terms, tensors, strict=False):
        shape = scene.shape(node)
        if letter in term and shape is not None and len(shape) == len(term):
            name = source_of(node)
            parts.append(f"{shape[term.index(letter)]} in `{name}` (shape {shape}, dimension {term.index(letter)})")
            evidence |= {name: shape, f"dimension of {name}": term.index(letter)}
    if len(parts) >= 2:
        return Finding("shape", f"{scene.code}: the letter {letter} has two sizes: {' and '.join(parts)}.", evidence=evidence)
    return Finding(
        "shape",
        f"{scene.code}: the letter {letter} has two sizes: {seen} before, and {size} in operand {operand}, counted from 0.",
        evidence=evidence,
    )


# ----------------------------------------------------------------------------------------------------------------- lists
def _explain_ragged_list(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain a list of lists of different lengths."""
    expected, axis, got = int(match[1]), int(match[2]), int(match[3])
    call = scene.node
    node = call.args[0] if isinstance(call, ast.Call) and call.args else None
    value = _literal(scene, node)
    lengths = [len(row) for row in value] if isinstance(value, (list, tuple)) and all(map(_is_row, value)) else []
    name = source_of(node) if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) else ""
    odd = next((i for i, n in enumerate(lengths) if n != lengths[0]), None)
    rows = f"`{name}[0]` has {expected} items and `{name}[{odd}]` {got}" if name and odd is not None and axis == 1 else ""
    code = ""
    flat = bool(lengths) and axis == 1 and all(isinstance(one, (int, float)) for row in value for one in row)
    if (
        flat
        and isinstance(call, ast.Call)
        and node is not None
        and not any(isinstance(n, ast.Name) and n.id == "row" for n in ast.walk(node))
    ):
        options = "".join(f", {ast.unparse(keyword)}" for keyword in call.keywords if keyword.arg == "dtype")
        row = f"{source_of(call.func)}(row{options})"
        padded = f"{scene.alias}.nn.utils.rnn.pad_sequence([{row} for row in {source_of(node)}], batch_first=True)"
        code = scene.replace(padded, call)
    return Finding(
        "shape",
        f"{scene.code}: the inner lists have different lengths, and the rows of a tensor have one length. "
        f"{rows or f'In dimension {axis} one has {expected} items and another {got}'}.",
        fix=f"Pad the shorter ones with 0: {code}; or keep a list of tensors."
        if code
        else "Pad the shorter ones, or keep a list of tensors.",
        evidence={"expected": expected, "got": got, "dimension": axis, **({"row": odd} if rows else {})},
    )


def _is_row(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _literal(scene: Scene, node: Any) -> Any:
    """Return the value of a list that is a literal or has a name."""
    value = scene.value(node) if node is not None else None
    try:
        return ast.literal_eval(node) if value is None and node is not None else value
    except (ValueError, TypeError, SyntaxError):
        return None


def _explain_list_of_tensors(scene: Scene, match: re.Match[str]) -> Finding | None:
    """Explain `tensor([a, b])` of tensors that have several elements."""
    call = scene.node
    if not isinstance(call, ast.Call) or source_of(call.func).rpartition(".")[2] not in ("tensor", "as_tensor"):
        return None
    shapes = [shape for _, shape in _items(scene)]
    if not shapes or None in shapes or len({tuple(shape or ()) for shape in shapes}) != 1:
        return None
    func = source_of(call.func).rpartition(".")[0] or scene.alias
    code = scene.replace(f"{func}.stack({source_of(call.args[0])})", call)
    return Finding(
        "shape",
        f"{scene.code} takes numbers, and got tensors of shape {shapes[0]}.",
        fix=f"Join the tensors with stack(): {code}." if code else "Join the tensors with stack().",
        evidence={"shape": shapes[0]},
    )


# ------------------------------------------------------------------------------------------------------------ conditions
def _explain_condition(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain a tensor of several elements where one truth value is needed."""
    node, parent = _find_condition(scene)
    if node is None:
        return Finding(
            "shape",
            f"{scene.code} needs one truth value, and a tensor of several elements has one for each.",
            fix="Test whether any() or all() of them are true.",
        )
    text, shape = source_of(node), scene.shape(node)
    of = f" has shape {shape}, so it" if shape is not None else ""
    code = ""
    if isinstance(parent, ast.BoolOp) and all(prod(scene.shape(value) or []) > 1 for value in parent.values):
        sign = " & " if isinstance(parent.op, ast.And) else " | "
        extended = sign.join(f"({source_of(value)})" for value in parent.values)
        bare = not isinstance(_parents(scene).get(id(parent)), (ast.If, ast.While, ast.Assert, ast.IfExp))
        code = scene.replace(extended if bare else f"({extended}).all()", parent)
        fix = f"Combine element by element: {code}." if code else ""
    elif isinstance(node, ast.Compare) and len(node.ops) > 1:
        terms = [node.left, *node.comparators]
        pairs = [source_of(ast.Compare(a, [op], [b])) for a, op, b in zip(terms, node.ops, terms[1:], strict=False)]
        extended = " & ".join(f"({pair})" for pair in pairs)
        bare = not isinstance(parent, (ast.If, ast.While, ast.Assert, ast.IfExp))
        code = scene.replace(extended if bare else f"({extended}).all()", node)
        fix = f"Combine element by element: {code}." if code else ""
    else:
        every = [scene.replace(f"{parenthesize(text)}.{how}()", node) for how in ("any", "all")]
        fix = f"Choose whether any or all of them must be true: {every[0]}, or {every[1]}." if all(every) else ""
    return Finding(
        "shape",
        f"{scene.code} needs one truth value, and `{text}`{of} has one for each element.",
        fix=fix or "Test whether any() or all() of them are true.",
        evidence={"shape": shape} if shape is not None else {},
    )


def _parents(scene: Scene) -> dict[int, Any]:
    return {id(child): parent for parent in ast.walk(scene.statement or ast.Pass()) for child in ast.iter_child_nodes(parent)}


def _find_condition(scene: Scene) -> tuple[Any, Any]:
    """Return the expression that is used as a condition, and the node that contains it."""
    statement, node = scene.statement, scene.node
    parents = _parents(scene)
    if node is not None:
        parent = parents.get(id(node))
        if isinstance(node, ast.BoolOp):
            several = [value for value in node.values if prod(scene.shape(value) or []) > 1]
            return (several or node.values)[0], node
        if isinstance(node, ast.Compare) or isinstance(parent, (ast.If, ast.While, ast.Assert, ast.IfExp, ast.BoolOp)):
            return node, parent
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return node.operand, node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "bool" and node.args:
            return node.args[0], node
        if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.BinOp)) and isinstance(parent, ast.comprehension):
            return node, parent
    if isinstance(statement, (ast.If, ast.While, ast.Assert)):
        test: Any = statement.test
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return test.operand, test
        if not isinstance(test, ast.BoolOp):
            return test, statement
    return None, None


Rule = tuple[str, Callable[[Scene, re.Match[str]], Finding | None]]
JOINING_RULES: list[Rule] = [
    (
        r"Sizes of tensors must match except in dimension (\d+)\. Expected size (\d+) but got size (\d+) for tensor number (\d+)",
        _explain_cat,
    ),
    (r"Tensors must have same number of dimensions", _explain_numbers_of_axes),
    (
        r"expects each tensor to be equal size, but got (\[[\d, ]*\]) at entry (\d+) and (\[[\d, ]*\]) at entry (\d+)",
        _explain_stack,
    ),
    (r"shape '(\[[-\d, ]*\])' is invalid for input of size (\d+)", _explain_view),
    (r"view size is not compatible with input tensor's size and stride", _explain_strides),
    (
        r"The expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\) at non-singleton dimension (\d+)",
        _explain_expand,
    ),
    (
        r"einsum\(\): subscript (\w) has size (\d+) for operand (\d+) which does not broadcast with previously seen size (\d+)",
        _explain_einsum,
    ),
    (r"expected sequence of length (\d+) at dim (\d+) \(got (\d+)\)", _explain_ragged_list),
    (
        r"only one element tensors can be converted|a Tensor with \d+ elements cannot be converted to Scalar",
        _explain_list_of_tensors,
    ),
    (r"Boolean value of Tensor with more than one value is ambiguous", _explain_condition),
]
