"""The rows of a report, from a trace's leaves and from tensors that no sweep reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradlab.explore.libraries import library_of
from gradlab.explore.markup import code, group_digits, number, say
from gradlab.explore.report.table import TableNote, TensorRow
from gradlab.explore.sources import Source
from gradlab.explore.statistics import Statistics
from gradlab.explore.trace.data import Leaf
from gradlab.explore.trace.lines import Lines
from gradlab.explore.trace.values import Value


@dataclass(frozen=True)
class Facts:
    """The data of a row."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    value: Value | None
    gradient: Value | None
    before: Value | None = None
    arrived: Value | None = None
    is_leaf: bool = True
    form: str = ""
    gradient_form: str = ""


def rows_of(
    leaves: Sequence[Leaf],
    sources: Sequence[Source],
    extra: Mapping[str, Sequence[TableNote]],
    *,
    jacobian_only: bool = False,
    expected: frozenset[int] | None = None,
) -> list[TensorRow]:
    """Return the rows, in the order of the sources.

    Values and gradients are those in the trace, at the time of its sweep. A source that is not a leaf of the trace (because it is
    not used, requires no gradient, or is an intermediate tensor) is read now, and so is a gradient that a source holds itself.
    Without sources, there is a row for each leaf. `expected` are the ids of the tensors that should get a gradient, or None if
    unknown; for other tensors, such as those of a target network, a missing gradient is not a warning.
    """
    named = {leaf.name: leaf for leaf in leaves if leaf.name}
    unnamed = [leaf for leaf in leaves if not leaf.name]
    by_key = {leaf.key: leaf for leaf in unnamed}
    rows: list[TensorRow] = []
    seen = {source.name: named.get(source.name) or by_key.get(id(source.tensor)) for source in sources}
    known = _read([source for source in sources if seen[source.name] is None], [s for s in sources if s.gradient is not None])
    for source in sources:
        leaf = seen[source.name]
        gradient = known.get((source.name, "gradient"))
        if leaf is not None:
            facts = _facts_of_leaf(leaf) if leaf.name else replace(_facts_of_leaf(leaf), name=source.name)
            if gradient is not None:  # from a sweep that did not accumulate into `.grad`
                facts = replace(facts, gradient=gradient, gradient_form=_form(source.gradient), before=None)
        else:
            facts = _current_facts(source, known[source.name, "value"], gradient)
        notes = (*extra.get(source.name, ()), *_made_at(source))
        serious = expected is None or id(source.tensor) in expected
        rows.append(row_of(facts, _missing_reason(source, facts, jacobian_only), notes, expected=serious))
    for at, leaf in enumerate([] if sources else [*named.values(), *unnamed], start=1):
        facts = _facts_of_leaf(leaf)
        facts = facts if leaf.name else replace(facts, name=f"(unnamed {at})")
        missing = facts.gradient is None and not facts.gradient_form and not jacobian_only
        why = "the gradient is None: the backward pass did not reach it" if missing else ""
        rows.append(row_of(facts, why, extra.get(facts.name, ())))
    return rows


def row_of(facts: Facts, why: str, extra: Sequence[TableNote], *, expected: bool = True) -> TensorRow:
    """Return the row of a tensor. `why` is the reason if it has no gradient; `expected` is True if it should have one."""
    notes = list(extra)
    for what, form in (("value", facts.form), ("gradient", facts.gradient_form)):
        if form:
            notes.append(TableNote(say(f"the {what} is {form}")))
    value = statistics_of(facts.value)
    gradient = statistics_of(facts.gradient)
    if value is not None and (value.nans or value.infs):
        notes.append(TableNote(say("the value has ", _nonfinite_text(value)), serious=True))
    if why:
        notes.append(TableNote(say(why), serious=expected))
    if gradient is not None:
        if gradient.nans or gradient.infs:
            notes.append(TableNote(say("the gradient has ", _nonfinite_text(gradient)), serious=True))
        if gradient.all_zero:
            notes.append(
                TableNote(
                    say("the gradient is exactly 0" if gradient.size == 1 else "every element of the gradient is exactly 0"),
                    serious=True,
                )
            )
    if facts.before is not None and facts.arrived is not None and not extra:
        before, arrived = number(facts.before.norm), number(facts.arrived.norm)
        notes.append(
            TableNote(say(f"added to the gradient already in .grad: ‖gradient‖ was {before}, this backward pass added {arrived}"))
        )
    return TensorRow(
        facts.name,
        facts.shape,
        facts.dtype,
        facts.device,
        value,
        gradient,
        tuple(notes),
        facts.is_leaf,
        None if facts.value is None else facts.value.numbers,
        None if facts.gradient is None else facts.gradient.numbers,
    )


def statistics_of(value: Value | None) -> Statistics | None:
    """Return the statistics of a recorded array, with the norm of all elements, which is NaN if any element is NaN."""
    return None if value is None else replace(value.statistics, norm=value.norm)


def _facts_of_leaf(leaf: Leaf) -> Facts:
    return Facts(
        leaf.name,
        leaf.shape,
        leaf.dtype,
        leaf.device,
        leaf.value,
        leaf.gradient,
        leaf.before,
        leaf.arrived,
        form=leaf.form,
        gradient_form=leaf.gradient_form,
    )


def _read(values: Sequence[Source], gradients: Sequence[Source]) -> dict[tuple[str, str], Value]:
    """Return the values of some sources and the gradients of others. They are reduced on their device and read in one
    transfer."""
    if not values and not gradients:
        return {}
    keys = [(source.name, "value") for source in values] + [(source.name, "gradient") for source in gradients]
    tensors = [source.tensor for source in values] + [source.gradient for source in gradients]
    library = library_of(tensors[0])
    assert library is not None
    return dict(zip(keys, library.values(tensors, histograms=True), strict=True))


def _current_facts(source: Source, value: Value, gradient: Value | None) -> Facts:
    """Return the current data of a source."""
    library, tensor = library_of(source.tensor), source.tensor
    assert library is not None
    return Facts(
        source.name,
        library.shape_of(tensor) or (),
        library.dtype_name(tensor),
        str(tensor.device),
        value,
        gradient,
        is_leaf=source.is_leaf,
        form=library.form(tensor),
        gradient_form=_form(source.gradient),
    )


def _form(tensor: Any) -> str:
    library = library_of(tensor)
    return "" if library is None else library.form(tensor)


def _missing_reason(source: Source, facts: Facts, jacobian_only: bool) -> str:
    """Return the reason why there is no gradient, or "" if there is one."""
    if facts.gradient is not None or facts.gradient_form:
        return ""
    if not source.wanted:
        floating = facts.dtype.startswith(("float", "bfloat", "complex"))
        why = "requires_grad is False" if floating else f"{facts.dtype} is not a floating-point dtype"
        return f"no gradient: {why}"
    if not source.used:
        return "not in the graph of the result, so the gradient is None"
    return "" if jacobian_only else "the gradient is None: the backward pass did not reach it"


def _nonfinite_text(statistics: Statistics) -> str:
    return " and ".join(f"{group_digits(n)} {what}" for n, what in ((statistics.nans, "NaN"), (statistics.infs, "infinite")) if n)


def _made_at(source: Source) -> tuple[TableNote, ...]:
    """Return a note with the line that computed a tensor; nothing for a leaf."""
    library = library_of(source.tensor)
    if source.is_leaf or library is None:
        return ()
    place = Lines().line(library.site(library.node(source.tensor)))
    return (TableNote(say(f"computed at {place.where}: ", code(place.statement))),) if place is not None else ()
