"""Explanations of errors about gradients: the operation, the line, and the shortest fix.

An error begins with PyTorch's sentence, unchanged, so that a web search finds it. The facts after it come only from the graph,
from the records of `diagnose.sites`, and from the source of the current line. If sites were not recorded, one sentence says how
to record them. This module is loaded when the first error is raised.
"""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from gradlab.core.errors import modification_sentence
from gradlab.core.fixes import fix_setting, offer_fix
from gradlab.core.node import walk_graph
from gradlab.core.observers import notify_backward_refused
from gradlab.core.tensor import Tensor
from gradlab.diagnose.history_loss import HISTORY_LOSSES
from gradlab.diagnose.out_of_memory import out_of_memory_error
from gradlab.diagnose.requires_grad_calls import FIX_EARLY_REQUEST, FIX_REBOUND_NAME, find_rebound_leaf, move_request_last
from gradlab.diagnose.sites import Freed, Loss, Write, active_recorder, site_here
from gradlab.diagnose.source_locations import (
    SourceLocation,
    callees_in,
    feeds_into,
    find_rebinding,
    location_of,
    names_in,
    operands,
    quote_site,
    receiver,
    root_name,
    source_of,
)
from gradlab.diagnose.user_spelling import is_module, library_name, spell_code, spell_text, value_of

MAX_LINE_WIDTH = 100
LABEL_WIDTH = 11  # column of the text beside a label
MAX_VISITED_NODES = 20_000  # per message
RECORDING_HINT = " To see the lines, run it inside `with gradlab.record_sites():` or in a %%grad cell."


def compose_message(first: str, *facts: tuple[str, str]) -> str:
    """Return a first paragraph followed by facts, pairs (label, text), one entry each. The fix is left out if it is not shown."""
    lines = [spell_code(first)]
    for label, text in facts:
        if label == "fix" and not fix_setting.shown:
            continue
        text = spell_code(text) if label in ("fix", "why") else text
        lines += textwrap.wrap(
            text,
            MAX_LINE_WIDTH,
            initial_indent=f"  {label}".ljust(LABEL_WIDTH),
            subsequent_indent=" " * LABEL_WIDTH,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def recording_hint() -> str:
    """Return how to see the lines, or "" if they are being recorded."""
    return spell_code(RECORDING_HINT) if active_recorder() is None else ""


def nodes_behind(roots: Iterable[Any]) -> Iterator[Any]:
    """Yield the given nodes and those behind them, at most `MAX_VISITED_NODES`."""
    return islice(walk_graph(roots), MAX_VISITED_NODES)


def quote_origin(node: Any) -> str:
    """Return the quoted line where a node was recorded, or "" if it is unknown."""
    return quote_site(getattr(node, "site", None))


# ------------------------------------------------------------------------------------------------ saved, then overwritten
def saved_tensor_modified(
    plain: RuntimeError,
    type_name: str,
    shape: tuple[int, ...],
    producer: str | None,
    version: int,
    user: str,
    node: Any = None,
    argument: str = "",
    storage: Any = None,
) -> RuntimeError:
    """Explain that a saved tensor was modified: which operation saved it, which line wrote, what to write instead."""
    writes = list(getattr(storage, "writes", ()))
    since = [] if node is None else [write for write in writes if write.tick < node.order]
    before = writes[-len(since) - 1] if len(writes) > len(since) else None
    first = since[0] if since else None
    complete = first is not None and (
        first.version == 1 or node.order < first.began or (before is not None and before.version + 1 == first.version)
    )
    then = first.version - 1 if first is not None and complete else 0 if version == 1 else None
    saving, writing = location_of(getattr(node, "site", None)), location_of(first.site if first is not None else None)
    what = "it"
    if argument == "out":
        what = "its result"
    elif argument:
        names = operands(saving, [a for a in node.op.public if a in node.op.public[:2]])
        public = dict(zip(node.op.args, node.op.public, strict=True)).get(argument, argument)
        what = f"`{names[public]}`" if public in names else f"its argument `{public}`"
    wanted = "an earlier version" if then is None else f"version {then}"
    sentence = modification_sentence(type_name, shape, producer, version, wanted, user)
    if saving is None and writing is None:
        return RuntimeError(
            f"{sentence}{'' if what == 'it' else f' ({what})'}."
            f"{offer_fix(' Write to a copy (x = x + 1 instead of x += 1), or after backward().')}{recording_hint()}"
        )
    facts = []
    if saving is not None:
        known = [what] * (what != "it") + [f"at version {then}"] * (then is not None)
        facts.append(("saved", f"{saving.quote()} ({', '.join(known)})" if known else saving.quote()))
    if writing is not None and first is not None:
        to = f"version {first.version}" + (f", the first of {len(since)} writes" if len(since) > 1 else "")
        facts.append(("modified", f"{writing.quote(whole=True)} ({name_of_write(first, writing)}, to {to})"))
    facts.append(
        (
            "fix",
            fix_for_write(first, writing)
            if first is not None
            else "write to a copy (x = x + 1 instead of x += 1), or after backward()",
        )
    )
    return RuntimeError(compose_message(f"{sentence}.", *facts))


def name_of_write(write: Write, location: SourceLocation) -> str:
    """Return the name of a write: "+=", "add_", "item assignment", "step() of an optimizer"."""
    statement, call = location.statement, location.node
    if write.entry == "step":
        return "step() of an optimizer"
    if isinstance(statement, ast.AugAssign):
        return f"`{source_of(ast.AugAssign(ast.Name('x'), statement.op, ast.Name('y')))[2:-2]}`"
    if isinstance(call, ast.Call) and isinstance(call.func, (ast.Attribute, ast.Name)):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
        return name if name.endswith("_") or write.function in ("", "method") else write.function
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return "item assignment"
    return write.function if write.function not in ("", "method", "set") else "in place"


FIX_EARLY_STEP = "run every backward() before step(){at}, or compute the loss again after it"


def fix_for_write(write: Write, location: SourceLocation | None) -> str:
    """Return the shortest fix for a write to a saved tensor."""
    at = "" if location is None else f" on {location.short}"
    if write.entry == "step":
        return FIX_EARLY_STEP.format(at=at)
    if write.leaf or not write.graded:
        alias = next((loss for loss in write.lost if loss.how == "detach"), None)
        if alias is None or write.leaf:
            return f"run backward() before the write{at}, or compute the loss again after it"
    if write.lost and write.lost[0].how == "detach":
        where = location_of(write.lost[0].site)
        return f"detach() shares the memory: write detach().clone(){'' if where is None else f' on {where.short}'}"
    if location is None:
        return "write to a copy (x = x + 1 instead of x += 1), or after backward()"
    return suggest_replacement(location, write.function)


def suggest_replacement(location: SourceLocation, function_name: str = "") -> str:
    """Return what to write instead of a statement that modifies a saved tensor, by `function_name` if that is known."""
    statement, call, at = location.statement, location.node, f" on {location.short}"
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, (ast.Name, ast.Attribute)):
        target = source_of(statement.target)
        value: Any = ast.BinOp(statement.target, statement.op, statement.value)
        return f"write `{target} = {source_of(value)}` instead of `{source_of(statement)}`{at}"
    if isinstance(call, ast.Call):
        if any(keyword.arg == "inplace" and isinstance(keyword.value, ast.Constant) for keyword in call.keywords):
            return f"remove `inplace=True`{at}"
        function = call.func
        if (
            isinstance(function, ast.Attribute)
            and function.attr.endswith("_")
            and isinstance(function.value, ast.Name)
            and (isinstance(statement, ast.Expr) and statement.value is call and hasattr(Tensor, function.attr[:-1]))
        ):
            out = ast.Call(ast.Attribute(function.value, function.attr[:-1]), call.args, call.keywords)
            return f"write `{function.value.id} = {source_of(out)}` instead of `{source_of(call)}`{at}"
        if not (isinstance(function, ast.Attribute) and function.attr.endswith("_")) and function_name not in ("", "method"):
            return f"{function_name} wrote in place{at}: remove inplace=True, or pass it a clone()"
    written = (
        statement.targets[0]
        if isinstance(statement, ast.Assign)
        else statement.target
        if isinstance(statement, ast.AugAssign)
        else call
    )
    if name := root_name(written):
        return f"add `{name} = {name}.clone()` before {location.short}, so that the saved values are not changed"
    return f"write to a clone(){at}, or after backward()"


# ------------------------------------------------------------------------------------------------------------ freed, then used
def graph_freed(plain: RuntimeError, node: Any, roots: Iterable[Any] = ()) -> RuntimeError:
    """Explain that an earlier backward pass freed a node: which node, which call, and what to write."""
    freed = node.saved if type(node.saved) is Freed else None
    recorded_at, by = quote_origin(node), location_of(freed.site if freed is not None else None)
    first = str(plain).removesuffix(".")
    if not recorded_at and by is None:
        return RuntimeError(
            first
            + offer_fix(
                ": pass retain_graph=True to the earlier backward() or autograd.grad(), or add the losses and call it once"
            )
            + f".{recording_hint()}"
        )
    facts = [("freed", f"{recorded_at} ({node.title})")] if recorded_at else []
    facts.append(("by", "an earlier backward() or autograd.grad()" if by is None else by.quote()))
    carried = None if freed is None else find_carried_state(freed, [root for root, _ in roots])
    if carried is not None:
        older = "this result is older than that call, and the tensor differentiated here was computed from it afterwards"
        facts.append(("carried", f"{quote_origin(carried)}: {older}"))
        facts.append(("fix", FIX_CARRIED_STATE))
    else:
        facts.append(("fix", FIX_FREED_GRAPH.format(way=suggest_retain_graph(by))))
    return RuntimeError(compose_message(f"{first}.", *facts))


FIX_CARRIED_STATE = "detach what one step passes to the next (h = h.detach()), or compute it again in each step"
FIX_FREED_GRAPH = "{way}, or add the losses and call backward() once"


def find_carried_state(freed: Freed, roots: list[Any]) -> Any:
    """Find the state that a loop carries from one step to the next past a backward pass that freed the graph.

    Return the newest node that was recorded before that pass, on a line that ran again after it, or None.
    """
    graph = [node for node in nodes_behind(roots) if node.op is not None and hasattr(node, "site")]
    again = {node.site[:2] for node in graph if node.order < freed.tick}
    older = [node for node in graph if node.order > freed.tick and node.site[:2] in again]
    return min(older, key=lambda node: node.order, default=None)


def suggest_retain_graph(location: SourceLocation | None) -> str:
    """Return how to pass retain_graph=True in a call."""
    node = None if location is None else location.node
    if isinstance(node, ast.Call) and location is not None:
        more = [keyword for keyword in node.keywords if keyword.arg != "retain_graph"]
        call = ast.Call(node.func, node.args, [*more, ast.keyword("retain_graph", ast.Constant(True))])
        return f"write `{source_of(call)}` on {location.short}"
    return "pass retain_graph=True to the earlier call"


# ---------------------------------------------------------------------------------------------------------- without history
def without_history(plain: RuntimeError, index: int, output: Any) -> RuntimeError:
    """Explain that a tensor has no graph: which of its inputs lost its history, how and where."""
    tensor = output if isinstance(output, Tensor) else None
    if tensor is not None:
        notify_backward_refused(tensor)
    first, facts = str(plain), history_loss_facts(tensor)
    if facts:
        return RuntimeError(compose_message(first, *facts))
    if getattr(output, "dtype", output).is_floating_point:
        first += (
            " No tensor that it was computed from requires grad, or it was computed under no_grad(), or detach(), .data or "
            f".item() removed its history{offer_fix(': set requires_grad=True on the input before computing')}."
        )
    return RuntimeError(first + recording_hint())


def history_loss_facts(tensor: Any) -> list[tuple[str, str]]:
    """Return why a tensor has no history, as facts (label, text). Empty if nothing was recorded."""
    losses: tuple[Loss, ...] = getattr(tensor, "lost", ())
    facts: list[tuple[str, str]] = []
    fix = ""
    for loss in losses:
        location = location_of(loss.site)
        if location is None:
            continue
        if loss.how == "constant":
            if loss.after is not None:
                before = location_of(loss.after.site)
                *more, (_, advice) = facts_of_loss(loss.after)
                if feeds_into(before, location):
                    facts, fix = [*facts, *more], advice
                elif before is not None:
                    facts.append(("perhaps", f"its values may come from {before.quote()}, where {more[-1][1]}"))
                    fix = fix or f"if so, {advice}; if not, {suggest_requires_grad(location, bool(loss.what), named=False)}"
            kind = f": they have dtype {loss.what}, and integers and bools have no gradient" if loss.what else ""
            facts += [("made", location.quote()), ("why", f"none of its inputs requires grad{kind}")]
            fix = fix or suggest_requires_grad(location, bool(loss.what))
        else:
            *more, (_, advice) = facts_of_loss(loss)
            facts += more
            fix = fix or advice
    if not losses and tensor is not None:
        away = None if (sites := active_recorder()) is None else sites.last_export
        before = location_of(away.site) if away is not None else None
        if away is not None and before is not None:
            *more, (_, fix) = facts_of_loss(away)
            facts = [("perhaps", f"its values may come from {before.quote()}, where {more[-1][1]}")]
    return [*facts[:6], ("fix", fix)] if facts else []


def suggest_requires_grad(location: SourceLocation, whole_numbers: bool, *, named: bool = True) -> str:
    """Return on which objects to call requires_grad_(), for an operation without an input that requires grad.

    These are the frozen modules that the line calls, or else the variables that it reads. With `named=False`, the variables are
    not named, because they may be copies of the tensor to differentiate.
    """
    frozen = [name for name in callees_in(location) if is_frozen(value_of(name))]
    if frozen:
        calls = " and ".join(f"`{name}.requires_grad_()`" for name in frozen)
        return f"the parameters of {' and '.join(frozen)} are frozen: call {calls} before {location.short} to train them"
    names = [name for name in names_in(location) if not is_module(name)][:4] or ["x"]
    if not named:
        return f"call requires_grad_() before {location.short} on the tensor whose gradient you need"
    if len(names) == 1:
        ask = f"call {names[0]}.requires_grad_() before {location.short}"
        return (
            f"use floating-point data (1. instead of 1), and {ask}"
            if whole_numbers
            else (f"{ask} if you need the gradient of {names[0]}")
        )
    which = f"{', '.join(names[:-1])} or {names[-1]}"
    return f"call requires_grad_() on the tensor whose gradient you need ({which}) before {location.short}" + (
        ", and use floating-point data (1. instead of 1)" if whole_numbers else ""
    )


def is_frozen(value: Any) -> bool:
    """Return True for a module with parameters of which none requires grad."""
    try:
        parameters = list(value.parameters()) if hasattr(type(value), "requires_grad_") else []
        return bool(parameters) and not any(getattr(one, "requires_grad", True) for one in parameters)
    except Exception:  # noqa: BLE001  (the class is the user's)
        return False


def why_lost(tensor: Any) -> str:
    """Return why a tensor has no history as one or two sentences without the final stop; "" if nothing was recorded."""
    facts = history_loss_facts(tensor)
    if not facts:
        return ""
    words = {"lost": "its history was lost at ", "made": "it was computed at ", "perhaps": ""}
    return "; ".join(words.get(label, "") + text for label, text in facts[:-1]) + offer_fix(f". Fix: {facts[-1][1]}")


def facts_of_loss(loss: Loss) -> list[tuple[str, str]]:
    """Return where and why a history was lost, and what to do."""
    location = location_of(loss.site)
    at = "" if location is None else f" on {location.short}"
    unknown = f"{loss.how} returns the values of {{what}} without their history", "differentiate the values before it"
    why, fix = HISTORY_LOSSES.get(loss.how.rpartition(", then ")[2].removesuffix("_"), unknown)
    what = f"{loss.what} (shape {list(loss.shape)})"
    return [
        ("lost", location.quote() if location is not None else "an unknown line"),
        ("why", why.format(what=what)),
        ("fix", fix.format(at=at)),
    ]


# ------------------------------------------------------------------------------------------------------- graph without input
def unused_input(plain: RuntimeError, index: int, x: Any = None, outputs: Iterable[Any] = ()) -> RuntimeError:
    """Explain why the outputs do not depend on an input."""
    if x is None:
        return plain
    first = str(plain)
    graph = list(nodes_behind([y.node for y in outputs]))
    own = set(graph)
    recorded_at = quote_origin(x.node)
    facts: list[tuple[str, str]] = []
    cut = find_cut(graph, x)
    if cut is not None:
        facts += facts_of_loss(cut)
    elif x.node.op is not None:
        shared = [node for node in nodes_behind([x.node]) if node in own]
        if shared:
            by = recorded_at or f"by {x.node.title}"
            facts += [
                ("why", f"it was computed from the same tensors as the outputs ({by}), but the outputs do not depend on it"),
                (
                    "fix",
                    (
                        "differentiate with respect to the tensor that was used, or use this one: after x = x + 0, "
                        "the name x means another tensor"
                    ),
                ),
            ]
        elif recorded_at:
            facts.append(("made", recorded_at))
    else:
        copied = next((loss for loss in getattr(x, "lost", ()) if loss.node is not None and loss.node() in own), None)
        use = ("fix", "differentiate with respect to the tensor that was used, or compute with the copy")
        if copied is not None:
            facts += [("why", f"it is a copy, and the outputs were computed from the original: {quote_site(copied.site)}"), use]
        elif any(share_memory(leaf, x) for node in graph if (leaf := getattr(node, "variable", None)) is not None):
            facts += [("why", "it shares its memory with a leaf that was used, but is another tensor (detach(), .data)"), use]
        else:
            shapes = [list(node.shape) for node in graph if node.op is None]
            has = f"{len(shapes)} {'leaf of shape' if len(shapes) == 1 else 'leaves of shapes'} {', '.join(map(str, shapes[:4]))}"
            facts.append(
                (
                    "why",
                    (
                        f"it is a leaf of shape {list(x.array.shape)} that no operation of the graph uses; the graph "
                        f"has {has}{' …' if len(shapes) > 4 else ''}"
                    ),
                )
            )
    known = recorded_at or any(hasattr(node, "site") for node in graph)
    return RuntimeError(compose_message(first + ("" if known else recording_hint()), *facts))


def find_cut(graph: list[Any], x: Any) -> Loss | None:
    """Find where an operation of the graph received values of `x`, or values computed from it, without history."""
    for node in graph:
        site = getattr(node, "site", None)
        losses: tuple[Loss, ...] = site[2] if site is not None and len(site) > 2 else ()
        for loss in losses:
            source = loss.node() if loss.node is not None else None
            if source is not None and any(other is x.node for other in nodes_behind([source])):
                return loss
    return None


def share_memory(one: Any, other: Any) -> bool:
    """Return True if two different tensors share memory."""
    return one is not other and type(one.array) is type(other.array) is np.ndarray and np.shares_memory(one.array, other.array)


# ------------------------------------------------------------------------------------------------------------- at this line
NON_LEAF_WARNINGS: dict[Any, tuple[Any, str]] = {}  # by line, because a line may run in a loop


def non_leaf_warning(plain: UserWarning, tensor: Any) -> UserWarning:
    """Explain PyTorch's warning about the `.grad` of a non-leaf tensor.

    The text is composed once for each pair of lines: the one that reads `.grad` and the one that computed the tensor.
    """
    here, origin = site_here(2), getattr(tensor.node, "site", None)
    lines = tuple(id(code) if i % 2 == 0 else code for i, code in enumerate((*(here or ())[:2], *(origin or ())[:2])))
    key = *lines, fix_setting.shown
    if key not in NON_LEAF_WARNINGS:
        if len(NON_LEAF_WARNINGS) >= 256:
            NON_LEAF_WARNINGS.clear()
        text = non_leaf_message(str(plain), tensor, location_of(here), location_of(origin))
        NON_LEAF_WARNINGS[key] = (here, origin), text  # the sites are kept, so that their ids are not reused
    return UserWarning(NON_LEAF_WARNINGS[key][1])


def non_leaf_message(first: str, tensor: Any, here: SourceLocation | None, origin: SourceLocation | None) -> str:
    """Return the warning with the facts about a non-leaf tensor."""
    name = receiver(here, "grad")
    facts = [] if origin is None else [("made", f"{origin.quote()} ({tensor.node.title})")]
    if name or origin is not None:
        called = name if name.replace(".", "").isidentifier() else "y"
        if step := find_rebinding(origin, called) or find_rebinding(here, called):
            where, update = step
            facts += [
                ("why", f"on {where.short}, {called} is assigned a result, whose graph grows with each step"),
                ("fix", f"write `with gradlab.no_grad(): {update}` on {where.short}, which updates the leaf itself"),
            ]
            return compose_message(first, *facts)
        statement = None if origin is None else origin.statement
        lost = find_rebound_leaf(statement, called)
        if lost == "asked too early":
            facts.append(
                ("fix", FIX_EARLY_REQUEST.format(name=called, value=move_request_last(getattr(statement, "value", None))))
            )
        elif lost and _has_no_named_leaf(tensor):
            facts.append(("fix", FIX_REBOUND_NAME.format(name=called)))
        else:
            facts.append(("fix", f"call `{called}.retain_grad()` before backward()"))
    if leaves := names_of_leaves(tensor):
        facts.append(("leaves", f"{', '.join(leaves)} {'has a gradient' if len(leaves) == 1 else 'have gradients'}"))
    return compose_message(first, *facts)


def _has_no_named_leaf(tensor: Any) -> bool:
    """Return True if no leaf with a gradient behind a tensor has a name, for example because the name was assigned again."""
    return not names_of_leaves(tensor)


def names_of_leaves(tensor: Any) -> list[str]:
    """Return the user's names of the leaves behind a tensor that have a gradient, as "x.grad"."""
    frame: Any = sys._getframe(1)
    here = site_here()
    while frame is not None and (here is None or frame.f_code is not here[0]):
        frame = frame.f_back
    if frame is None:
        return []
    leaves = {
        id(leaf)
        for node in nodes_behind([tensor.node])
        if node.op is None and (leaf := getattr(node, "variable", None)) is not None and leaf.grad_slot is not None
    }
    return [f"{name}.grad" for name, value in frame.f_locals.items() if id(value) in leaves and str(name)[:1] != "_"][:4]


def add_current_line(plain: RuntimeError, *fixes: tuple[str, str]) -> RuntimeError:
    """Return an error with the current line, and the fix of the first pair (method, fix) whose method the line calls.

    An empty method fits every line.
    """
    location, first = location_of(site_here(2)), str(plain)
    if location is None or not location.text:
        return RuntimeError(spell_code(first))
    for method, fix in fixes:
        name = receiver(location, method) if method else location.text
        if name:
            ones = f"gradlab.ones_like({name})" if library_name() else f"{name}.new_ones({name}.shape)"
            return RuntimeError(
                compose_message(first, ("at", location.quote()), ("fix", fix.format(x=name, at=location.short, ones=ones)))
            )
    return RuntimeError(compose_message(first, ("at", location.quote())))


# ----------------------------------------------------------------------------------------------------------- the explainers
FIX_NOT_SCALAR = "write `{x}.sum().backward()`, or `{x}.backward({ones})`"
FIX_WEIGHT_SHAPE = "`{ones}` has the right shape and weights all elements equally"
FIX_LEAF_IN_PLACE = "`with gradlab.no_grad(): {x}`"


def wrong_weight_shape(plain: RuntimeError, index: int, weight: Any, output: Any, batched: bool = False) -> RuntimeError:
    """Explain that weights do not have the shape of their output."""
    return plain if batched else add_current_line(plain, ("backward", FIX_WEIGHT_SHAPE))


def leaf_modified(plain: RuntimeError) -> RuntimeError:
    """Explain an in-place write to a leaf or a view of a leaf."""
    return add_current_line(plain, ("", FIX_LEAF_IN_PLACE))


EXPLAINERS: dict[str, Callable[..., Any]] = {
    "advice": lambda text, _: spell_text(text),
    "not_scalar": lambda plain, shape: add_current_line(plain, ("backward", FIX_NOT_SCALAR)),
    "no_graph": without_history,
    "graph_freed": graph_freed,
    "saved_tensor_modified": saved_tensor_modified,
    "weight_shape": wrong_weight_shape,
    "unused_input": unused_input,
    "input_without_history": lambda plain, index, x: RuntimeError(compose_message(str(plain), *history_loss_facts(x))),
    "leaf_in_place": leaf_modified,
    "view_of_leaf_in_place": leaf_modified,
    "non_leaf_grad": non_leaf_warning,
    "out_of_memory": out_of_memory_error,
}


def explain(name: str, plain: Any, *about: Any) -> Any:
    """Return an error (or piece of advice) of `core.errors` with the facts from the graph, the sites and the source."""
    return EXPLAINERS[name](plain, *about)
