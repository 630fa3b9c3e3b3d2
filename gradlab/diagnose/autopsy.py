"""What went wrong with a gradient, told from the recorded graph: which operation, which line, and the shortest way out.

An error begins with torch's sentence, unchanged, so that a search finds help. What follows is said only if it follows from the
graph, from what `diagnose.sites` has noted, or from the source of the line at hand; where no sites were recorded, one sentence
says how to see the lines. Nothing here runs before something is wrong.
"""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from gradlab.core.errors import modified
from gradlab.core.node import behind
from gradlab.core.observers import notify_backward_refused
from gradlab.core.tensor import Tensor
from gradlab.diagnose.history_loss import WAYS
from gradlab.diagnose.out_of_memory import out_of_memory_error
from gradlab.diagnose.requires_grad_calls import EARLY, OTHERWISE, rebinds, request_last
from gradlab.diagnose.sites import Freed, Loss, Write, present, site_here
from gradlab.diagnose.source_locations import (
    SourceLocation,
    called_in,
    hands_on,
    location_of,
    names_in,
    operands,
    quoted,
    rebinding,
    receiver,
    root_name,
    source_of,
)
from gradlab.diagnose.user_spelling import in_users_spelling, is_module, library_name, spelled, value_of

COLUMNS = 100
LABEL = 11  # where the text beside a label begins
WALKED = 20_000  # nodes that are looked at for one message
HOW = " To see the lines, run it inside `with gradlab.record_sites():` or in a %%grad cell."


def told(first: str, *facts: tuple[str, str]) -> str:
    """A first paragraph, and below it what is known, one labelled entry each."""
    lines = [spelled(first)]
    for label, text in ((label, spelled(text) if label in ("fix", "why") else text) for label, text in facts):
        lines += textwrap.wrap(
            text,
            COLUMNS,
            initial_indent=f"  {label}".ljust(LABEL),
            subsequent_indent=" " * LABEL,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def how_to_see() -> str:
    """How the lines can be seen, unless they are being recorded."""
    return spelled(HOW) if present() is None else ""


def below(roots: Iterable[Any]) -> Iterator[Any]:
    """The nodes behind some nodes, themselves included; so many of a large graph."""
    return islice(behind(roots), WALKED)


def made_at(node: Any) -> str:
    """Where a node was recorded, quoted; "" where that is not known."""
    return quoted(getattr(node, "site", None))


# ------------------------------------------------------------------------------------------------ saved, then overwritten
def written_to(
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
    """A saved tensor was written to: who saved it, who wrote, what to write instead."""
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
    sentence = modified(type_name, shape, producer, version, wanted, user)
    if saving is None and writing is None:
        return RuntimeError(
            f"{sentence}{'' if what == 'it' else f' ({what})'}. Write to a copy (x = x + 1 rather than x += 1), "
            f"or after backward().{how_to_see()}"
        )
    facts = []
    if saving is not None:
        known = [what] * (what != "it") + [f"at version {then}"] * (then is not None)
        facts.append(("saved", f"{saving.quoted()} ({', '.join(known)})" if known else saving.quoted()))
    if writing is not None and first is not None:
        to = f"version {first.version}" + (f", the first of {len(since)} writes" if len(since) > 1 else "")
        facts.append(("modified", f"{writing.quoted(whole=True)} ({operation(first, writing)}, to {to})"))
    facts.append(
        (
            "fix",
            remedy(first, writing)
            if first is not None
            else "write to a copy (x = x + 1 rather than x += 1), or after backward()",
        )
    )
    return RuntimeError(told(f"{sentence}.", *facts))


def operation(write: Write, location: SourceLocation) -> str:
    """What a write is called: "+=", "add_", "item assignment", "step()"."""
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


STEPPED = "run every backward() before step(){at}, or compute the loss again after it"


def remedy(write: Write, location: SourceLocation | None) -> str:
    """The shortest way out of a write to a saved tensor, chosen from what it was."""
    at = "" if location is None else f" on {location.short}"
    if write.entry == "step":
        return STEPPED.format(at=at)
    if write.leaf or not write.graded:
        alias = next((loss for loss in write.lost if loss.how == "detach"), None)
        if alias is None or write.leaf:
            return f"run backward() before the write{at}, or compute the loss again after it"
    if write.lost and write.lost[0].how == "detach":
        where = location_of(write.lost[0].site)
        return f"detach() shares the memory: write detach().clone(){'' if where is None else f' on {where.short}'}"
    if location is None:
        return "write to a copy (x = x + 1 rather than x += 1), or after backward()"
    return instead(location, write.function)


def instead(location: SourceLocation, function_name: str = "") -> str:
    """What to write in place of a statement that writes to a saved tensor, by a function of the library's if that is known."""
    statement, call, at = location.statement, location.node, f" on {location.short}"
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, (ast.Name, ast.Attribute)):
        target = source_of(statement.target)
        value: Any = ast.BinOp(statement.target, statement.op, statement.value)
        return f"write `{target} = {source_of(value)}` instead of `{source_of(statement)}`{at}"
    if isinstance(call, ast.Call):
        if any(keyword.arg == "inplace" and isinstance(keyword.value, ast.Constant) for keyword in call.keywords):
            return f"leave `inplace=True` out{at}"
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
            return f"{function_name} wrote in place{at}: leave inplace=True out where it was asked for, or give it a clone()"
    written = (
        statement.targets[0]
        if isinstance(statement, ast.Assign)
        else statement.target
        if isinstance(statement, ast.AugAssign)
        else call
    )
    if name := root_name(written):
        return f"put `{name} = {name}.clone()` before {location.short}, so that the saved values stay as they are"
    return f"write to a clone(){at}, or after backward()"


# ------------------------------------------------------------------------------------------------------------ freed, then used
def second_sweep(plain: RuntimeError, node: Any, roots: Iterable[Any] = ()) -> RuntimeError:
    """A node was freed by an earlier sweep: which, by what, and what to write."""
    freed = node.saved if type(node.saved) is Freed else None
    recorded_at, by = made_at(node), location_of(freed.site if freed is not None else None)
    first = str(plain).removesuffix(".")
    if not recorded_at and by is None:
        return RuntimeError(
            f"{first}: give retain_graph=True to the earlier backward() or autograd.grad(), or add the losses "
            f"and call it once.{how_to_see()}"
        )
    facts = [("freed", f"{recorded_at} ({node.title})")] if recorded_at else []
    facts.append(("by", "an earlier backward() or autograd.grad()" if by is None else by.quoted()))
    carried = None if freed is None else carried_over(freed, [root for root, _ in roots])
    if carried is not None:
        older = "this result is older than that call, and what is differentiated here was computed from it afterwards"
        facts.append(("carried", f"{made_at(carried)}: {older}"))
        facts.append(("fix", CARRIED))
    else:
        facts.append(("fix", RETAINED.format(way=retained(by))))
    return RuntimeError(told(f"{first}.", *facts))


CARRIED = "detach() what one step hands to the next (h = h.detach()), or compute it again in each step"
RETAINED = "{way}, or add the losses and call backward() once"


def carried_over(freed: Freed, roots: list[Any]) -> Any:
    """The newest node older than the sweep that freed, of a line that was run again after it for what is differentiated: a loop
    that carries its state. None if there is no such line."""
    graph = [node for node in below(roots) if node.op is not None and hasattr(node, "site")]
    again = {node.site[:2] for node in graph if node.order < freed.tick}
    older = [node for node in graph if node.order > freed.tick and node.site[:2] in again]
    return min(older, key=lambda node: node.order, default=None)


def retained(location: SourceLocation | None) -> str:
    """How to give retain_graph=True to a call."""
    node = None if location is None else location.node
    if isinstance(node, ast.Call) and location is not None:
        more = [keyword for keyword in node.keywords if keyword.arg != "retain_graph"]
        call = ast.Call(node.func, node.args, [*more, ast.keyword("retain_graph", ast.Constant(True))])
        return f"write `{source_of(call)}` on {location.short}"
    return "give retain_graph=True to the earlier call"


# ---------------------------------------------------------------------------------------------------------- without history
def without_history(plain: RuntimeError, index: int, output: Any) -> RuntimeError:
    """Something without a graph is to be differentiated: which of its inputs lost it, by what and where."""
    tensor = output if isinstance(output, Tensor) else None
    if tensor is not None:
        notify_backward_refused(tensor)
    first, facts = str(plain), reasons(tensor)
    if facts:
        return RuntimeError(told(first, *facts))
    if getattr(output, "dtype", output).is_floating_point:
        first += (
            " No tensor it was made from requires a gradient, or it was made under no_grad() or cut off by detach(), .data "
            "or .item(): set requires_grad=True on the input before computing."
        )
    return RuntimeError(first + how_to_see())


def reasons(tensor: Any) -> list[tuple[str, str]]:
    """Why a tensor has no history, as far as it was noted."""
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
                *more, (_, advice) = explained(loss.after)
                if hands_on(before, location):
                    facts, fix = [*facts, *more], advice
                elif before is not None:
                    facts.append(("perhaps", f"its numbers came through {before.quoted()}: there {more[-1][1]}"))
                    fix = fix or f"{advice}, if they did; if not, {asked(location, bool(loss.what), named=False)}"
            kind = f": they have dtype {loss.what}, and integers and bools carry no gradient" if loss.what else ""
            facts += [("made", location.quoted()), ("why", f"none of its inputs required grad{kind}")]
            fix = fix or asked(location, bool(loss.what))
        else:
            *more, (_, advice) = explained(loss)
            facts += more
            fix = fix or advice
    if not losses and tensor is not None:
        away = None if (sites := present()) is None else sites.away
        before = location_of(away.site) if away is not None else None
        if away is not None and before is not None:
            *more, (_, fix) = explained(away)
            facts = [("perhaps", f"its numbers came through {before.quoted()}: there {more[-1][1]}")]
    return [*facts[:6], ("fix", fix)] if facts else []


def asked(location: SourceLocation, whole_numbers: bool, *, named: bool = True) -> str:
    """What to ask requires_grad_() of, where an operation had no input that requires grad: the modules that it called and that
    are frozen; else the variables that it read, `named` where none of them can be a copy of what is to be differentiated by."""
    frozen = [name for name in called_in(location) if is_frozen(value_of(name))]
    if frozen:
        calls = " and ".join(f"`{name}.requires_grad_()`" for name in frozen)
        return f"the parameters of {' and '.join(frozen)} are frozen: call {calls} before {location.short} to train them"
    names = [name for name in names_in(location) if not is_module(name)][:4] or ["x"]
    if not named:
        return f"call requires_grad_() before {location.short} on what to differentiate by"
    if len(names) == 1:
        ask = f"call {names[0]}.requires_grad_() before {location.short}"
        return (
            f"make its data floating point (1. and not 1), and {ask}"
            if whole_numbers
            else (f"{ask}, if {names[0]} is what to differentiate by")
        )
    which = f"{', '.join(names[:-1])} or {names[-1]}"
    return f"call requires_grad_() on what to differentiate by ({which}) before {location.short}" + (
        ", and make its data floating point (1. and not 1)" if whole_numbers else ""
    )


def is_frozen(value: Any) -> bool:
    """Whether something is a module that has parameters, and none that requires grad."""
    try:
        parameters = list(value.parameters()) if hasattr(type(value), "requires_grad_") else []
        return bool(parameters) and not any(getattr(one, "requires_grad", True) for one in parameters)
    except Exception:  # noqa: BLE001  (of the user's own class)
        return False


def why_lost(tensor: Any) -> str:
    """The same in a sentence or two, without the full stop; "" where nothing was noted."""
    facts = reasons(tensor)
    if not facts:
        return ""
    words = {"lost": "its history was lost at ", "made": "it was made at ", "perhaps": "perhaps "}
    return f"{'; '.join(words.get(label, '') + text for label, text in facts[:-1])}. Fix: {facts[-1][1]}"


def explained(loss: Loss) -> list[tuple[str, str]]:
    """One loss: where, why, and what to do."""
    location = location_of(loss.site)
    at = "" if location is None else f" on {location.short}"
    unknown = f"{loss.how} gives the values of {{what}} without their history", "differentiate what comes before it"
    why, fix = WAYS.get(loss.how.rpartition(", then ")[2].removesuffix("_"), unknown)
    what = f"{loss.what} (shape {list(loss.shape)})"
    return [
        ("lost", location.quoted() if location is not None else "at a place that is not known"),
        ("why", why.format(what=what)),
        ("fix", fix.format(at=at)),
    ]


# ------------------------------------------------------------------------------------------------------- graph without input
def not_used(plain: RuntimeError, index: int, x: Any = None, outputs: Iterable[Any] = ()) -> RuntimeError:
    """An input that the outputs do not depend on: what can be told from the graph of why."""
    if x is None:
        return plain
    first = str(plain)
    graph = list(below([y.node for y in outputs]))
    own = set(graph)
    recorded_at = made_at(x.node)
    facts: list[tuple[str, str]] = []
    cut = cut_off(graph, x)
    if cut is not None:
        facts += explained(cut)
    elif x.node.op is not None:
        shared = [node for node in below([x.node]) if node in own]
        if shared:
            by = recorded_at or f"by {x.node.title}"
            facts += [
                ("why", f"it was computed from what the outputs were computed from ({by}), but they do not go through it"),
                (
                    "fix",
                    (
                        "differentiate by the tensor that was used, or use this one: a name that is bound again "
                        "(x = x + 0) is another tensor"
                    ),
                ),
            ]
        elif recorded_at:
            facts.append(("made", recorded_at))
    else:
        copied = next((loss for loss in getattr(x, "lost", ()) if loss.node is not None and loss.node() in own), None)
        use = ("fix", "differentiate by the tensor that was used, or compute with the copy")
        if copied is not None:
            facts += [("why", f"it is a copy, and the outputs were computed from what it copies: {quoted(copied.site)}"), use]
        elif any(shares(leaf, x) for node in graph if (leaf := getattr(node, "variable", None)) is not None):
            facts += [("why", "it shares the memory of a leaf that was used, but is another tensor (detach(), .data)"), use]
        else:
            shapes = [list(node.shape) for node in graph if node.op is None]
            has = f"{len(shapes)} {'leaf' if len(shapes) == 1 else 'leaves'}, of shapes {', '.join(map(str, shapes[:4]))}"
            facts.append(
                (
                    "why",
                    (
                        f"it is a leaf of shape {list(x.array.shape)} that no operation of the graph used; the graph "
                        f"has {has}{' …' if len(shapes) > 4 else ''}"
                    ),
                )
            )
    known = recorded_at or any(hasattr(node, "site") for node in graph)
    return RuntimeError(told(first + ("" if known else how_to_see()), *facts))


def cut_off(graph: list[Any], x: Any) -> Loss | None:
    """The place where an operation of the graph was given the values of `x`, or of what was made of it, without history."""
    for node in graph:
        site = getattr(node, "site", None)
        losses: tuple[Loss, ...] = site[2] if site is not None and len(site) > 2 else ()
        for loss in losses:
            source = loss.node() if loss.node is not None else None
            if source is not None and any(other is x.node for other in below([source])):
                return loss
    return None


def shares(one: Any, other: Any) -> bool:
    """Whether two tensors lie in the same memory."""
    return one is not other and type(one.array) is type(other.array) is np.ndarray and np.shares_memory(one.array, other.array)


# ------------------------------------------------------------------------------------------------------------- at this line
WORDED: dict[Any, tuple[Any, str]] = {}  # the warning of a line, which may run in a loop


def non_leaf(plain: UserWarning, tensor: Any) -> UserWarning:
    """Torch's warning of reading the `.grad` of a tensor that is no leaf, and what to write. Worded once for each pair of lines:
    where it is read, and where the tensor was made."""
    here, origin = site_here(2), getattr(tensor.node, "site", None)
    key = tuple(id(code) if i % 2 == 0 else code for i, code in enumerate((*(here or ())[:2], *(origin or ())[:2])))
    if key not in WORDED:
        if len(WORDED) >= 256:
            WORDED.clear()
        text = worded(str(plain), tensor, location_of(here), location_of(origin))
        WORDED[key] = (here, origin), text  # the sites, so that no id is used again
    return UserWarning(WORDED[key][1])


def worded(first: str, tensor: Any, here: SourceLocation | None, origin: SourceLocation | None) -> str:
    """The warning, and what is known."""
    name = receiver(here, "grad")
    facts = [] if origin is None else [("made", f"{origin.quoted()} ({tensor.node.title})")]
    if name or origin is not None:
        called = name if name.replace(".", "").isidentifier() else "y"
        if step := rebinding(origin, called) or rebinding(here, called):
            where, update = step
            facts += [
                ("why", f"on {where.short} {called} became the name of a result, whose graph grows with each step"),
                ("fix", f"write `with gradlab.no_grad(): {update}` on {where.short}, which updates the leaf itself"),
            ]
            return told(first, *facts)
        statement = None if origin is None else origin.statement
        lost = rebinds(statement, called)
        if lost == "asked too early":
            facts.append(("fix", EARLY.format(name=called, value=request_last(getattr(statement, "value", None)))))
        elif lost and _by_leaf_alone(tensor):
            facts.append(("fix", OTHERWISE.format(name=called)))
        else:
            facts.append(("fix", f"write `{called}.retain_grad()` before backward()"))
    if leaves := names_of_leaves(tensor):
        facts.append(("leaves", f"{', '.join(leaves)} {'has a gradient' if len(leaves) == 1 else 'have gradients'}"))
    return told(first, *facts)


def _by_leaf_alone(tensor: Any) -> bool:
    """Whether a tensor is computed from leaves that nobody has a name for: what had its name before."""
    return not names_of_leaves(tensor)


def names_of_leaves(tensor: Any) -> list[str]:
    """What the caller calls the leaves behind a tensor that have a gradient."""
    frame: Any = sys._getframe(1)
    here = site_here()
    while frame is not None and (here is None or frame.f_code is not here[0]):
        frame = frame.f_back
    if frame is None:
        return []
    leaves = {
        id(leaf)
        for node in below([tensor.node])
        if node.op is None and (leaf := getattr(node, "variable", None)) is not None and leaf.grad_slot is not None
    }
    return [f"{name}.grad" for name, value in frame.f_locals.items() if id(value) in leaves and str(name)[:1] != "_"][:4]


def this_line(plain: RuntimeError, *fixes: tuple[str, str]) -> RuntimeError:
    """An error with the line that is being run, and what to write there: the first of the (method, fix) pairs that fits."""
    location, first = location_of(site_here(2)), str(plain)
    if location is None or not location.text:
        return RuntimeError(spelled(first))
    for method, fix in fixes:
        name = receiver(location, method) if method else location.text
        if name:
            ones = f"gradlab.ones_like({name})" if library_name() else f"{name}.new_ones({name}.shape)"
            return RuntimeError(told(first, ("at", location.quoted()), ("fix", fix.format(x=name, at=location.short, ones=ones))))
    return RuntimeError(told(first, ("at", location.quoted())))


# --------------------------------------------------------------------------------------------------------- what is registered
REDUCED = "write `{x}.sum().backward()`, or `{x}.backward({ones})`"
ALIKE = "`{ones}` has the right shape: it weighs every element alike"
UNRECORDED = "`with gradlab.no_grad(): {x}`"


def weights(plain: RuntimeError, index: int, weight: Any, output: Any, batched: bool = False) -> RuntimeError:
    """Weights of another shape than their output."""
    return plain if batched else this_line(plain, ("backward", ALIKE))


def in_place(plain: RuntimeError) -> RuntimeError:
    """A leaf, or a view of one, is written to."""
    return this_line(plain, ("", UNRECORDED))


EXPLAINED: dict[str, Callable[..., Any]] = {
    "advice": lambda text, _: in_users_spelling(text),
    "not_scalar": lambda plain, shape: this_line(plain, ("backward", REDUCED)),
    "no_graph": without_history,
    "graph_freed": second_sweep,
    "overwritten": written_to,
    "weight_shape": weights,
    "unused": not_used,
    "unrecorded": lambda plain, index, x: RuntimeError(told(str(plain), *reasons(x))),
    "leaf_in_place": in_place,
    "view_of_leaf_in_place": in_place,
    "non_leaf_grad": non_leaf,
    "out_of_memory": out_of_memory_error,
}


def explain(name: str, plain: Any, *about: Any) -> Any:
    """The explainer of `core.errors`: an error of its, with what the graph, the sites and the source tell; or advice."""
    return EXPLAINED[name](plain, *about)
