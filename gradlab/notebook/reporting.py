"""Choose the subject of the report on a `%%grad` cell or a `%grad` line, from its end and its options.

The report on a cell that called `backward` shows that recorded call. Other cells are differentiated here: the value of the last
expression, several values together, the name that the last statement assigns, or else the last scalar that the cell assigned.
If there is nothing to differentiate, a sentence says why, and what to type.
"""

from __future__ import annotations

import ast
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from IPython.core.error import UsageError

from gradlab.diagnose.faults import Faults
from gradlab.diagnose.sites import is_user_file
from gradlab.explore.equivalent_code import EquivalentCode
from gradlab.explore.libraries import Library, library_of
from gradlab.explore.markup import Sentence, Span, code, join_items, number, say, term
from gradlab.explore.names import modules_in
from gradlab.explore.report import Subject, differentiate, jacobian_of, make_report
from gradlab.explore.report.models import calls_said
from gradlab.explore.report.parts import Remark
from gradlab.explore.report.table import TableNote
from gradlab.explore.report.tree import grads_of
from gradlab.explore.sources import Source, sources_of, weights_for, weights_needed, why_not
from gradlab.explore.statistics import statistics
from gradlab.explore.trace.data import Leaf
from gradlab.explore.trace.recorder import Recorder
from gradlab.notebook.backward import Written, backward
from gradlab.notebook.options import CELL, LINE, Request
from gradlab.notebook.transform import Ending

Made = tuple[Any, Any]  # a report or a remark, and a Jacobian or None


class CellReporter:
    """A maker of the report on one cell or line.

    Parameters
    ----------
    magics : GradMagics
        The magics, with their defaults and shell.
    request : Request
        The options.
    space : mapping of str to object
        The user's current names.
    ending : Ending, optional
        How the cell ends; None for a line.
    recorder : Recorder, optional
        The recorder of the cell.
    """

    def __init__(
        self,
        magics: Any,
        request: Request,
        space: Mapping[str, Any],
        ending: Ending | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self.magics, self.request, self.space, self.ending, self.recorder = magics, request, space, ending, recorder
        mentions = ending.mentions if ending is not None else _mentioned_names(request.expression)
        self.mentions = () if ending is None else tuple(name for name in mentions if self._is_relevant(space.get(name)))
        self.names: dict[str, Any] = magics.names(space, mentions)
        self.faults = Faults("made a report")
        self.value: Any = None  # the value to differentiate, if the cell called no backward
        self.swept: list[tuple[Any, Any]] = []  # the roots of the sweep, and their cotangents (None for ones)

    def _is_relevant(self, value: Any) -> bool:
        """Return whether a mentioned value was used: of models, only those that were called."""
        if self.recorder is None:
            return True
        modules = {id(module) for _, module in modules_in("", value)}
        return not modules or any(id(call.module()) in modules for call in self.recorder.calls)

    # -------------------------------------------------------------------------------------------------------- which value
    def of_line(self, value: Any) -> Made:
        """Return the report on the value of a `%grad` line."""
        return self.on(value, self.request.expression, dry=True)

    def of_cell(self, value: Any) -> Made:
        """Return the report on a cell. `value` is that of its last expression, if it ends in one."""
        ending, recorder, request = self.ending, self.recorder, self.request
        assert ending is not None
        assert recorder is not None
        if recorder.sweeps:
            recorder.settle()
            if recorder.last is not None:
                return self.on_sweep()
        if not self.magics.auto_backward:
            called = (code("GradMagics.auto_backward"), " is False): there is no gradient to show.")
            return Remark(say("This cell called no ", code("backward()"), ", and none was called for you (", *called)), None
        if request.of is not None:
            return self.on(self.magics.evaluate(request.of, self.space), request.of)
        several = _tensors(value) if ending.kind == "value" else []
        if len(several) > 1:
            return self.on_several(several, ending.text)
        if len(several) == 1:
            value = several[0]
        elif ending.kind == "name":
            value = self.space.get(ending.text)
        if ending.kind != "none" and why_not(value, "") is None:
            return self.on(value, ending.text)
        for name in reversed(ending.assigned):
            target = self.space.get(name)
            if name == ending.text or target is None or why_not(target, "") is not None:
                continue
            if not target.is_leaf and _size(target) == 1:
                try:
                    return self.on(target, name, said=say(code(name), " is the last scalar that the cell assigned. "))
                except RuntimeError as error:
                    if "a second time" not in str(error):
                        raise
                    break  # the cell has differentiated it already, and freed the graph
        return self._nothing(value)

    def _nothing(self, value: Any) -> Made:
        """Return a remark that says why there is nothing to differentiate, and what to type."""
        ending = self.ending
        assert ending is not None
        hint = say("End the cell in a tensor that was computed from one with ", code("requires_grad=True"), ", or write ")
        hint = say(hint, code("%%grad --of NAME"), ".")
        if self.recorder is not None and self.recorder.asked:
            hint = say("The cell called ", code("torch.autograd.grad()"), ", whose sweeps are not recorded. ", hint)
        if ending.kind == "none":
            why = f"the cell ends in {ending.text}" if ending.text else "there is no statement in the cell"
            if ending.assigned:
                why += ", and no scalar that it assigned has a gradient to follow"
            return Remark(say(f"There was nothing to differentiate: {why}. ", hint)), None
        plain = ending.text.isidentifier()
        last = ending.kind == "value" and (value is None or not plain)
        reason = why_not(value, "the last expression" if last else code(ending.text) if plain else "the expression")
        assert reason is not None
        more = say(" ", hint) if library_of(value) is None else ()
        return Remark(say("There was nothing to differentiate: ", reason, ".", more)), None

    # ------------------------------------------------------------------------------------------------------ our own sweep
    def on(self, value: Any, text: str, *, dry: bool = False, said: Sentence = ()) -> Made:
        """Return the report on a value on which no backward was called."""
        request, magics, ending = self.request, self.magics, self.ending
        self.value = value
        plain = text.isidentifier()
        last = ending is not None and ending.kind == "value" and request.of is None
        called = "the last expression" if last and (value is None or not plain) else code(text) if plain or request.of else ""
        reason = why_not(value, called or "the expression")
        if reason is not None:
            return Remark(say("There was nothing to differentiate: ", reason, ".")), None
        dry = dry or request.dry
        library = library_of(value)
        assert library is not None
        subject = Subject(library, library.node(value), tuple(value.shape), text, value)
        asked = self._named_sources(library)
        sources = sources_of(library, [subject.root], self.names, asked, self.mentions)
        hand = EquivalentCode(library.alias, library.name, text)
        weights = self._weights(subject, hand, plain)
        self.swept = [(value, weights)]
        with_jacobian = request.jacobian
        if weights is None and subject.size != 1:
            if not subject.size or not (request.jacobian or subject.size <= magics.jacobian_rows):
                where = f"{CELL} -v {{}}" if ending is not None else f"{LINE} -v {{}} {text if plain else '…'}"
                raise weights_needed(library, value, text if plain else "out", where, magics.jacobian_rows)
            with_jacobian = True
        wanted = [source for source in sources if source.used and source.wanted]
        inputs = [source.name for source in wanted if source.named]
        previous: Mapping[str, np.ndarray] = {}
        notes: dict[str, Any] = {}
        trace = None
        if weights is None and subject.size != 1:
            deed = say(
                "The output is not a scalar and there are no weights (",
                code("-v"),
                "), so this is its Jacobian; ",
                code(".grad"),
                " was left alone.",
            )
        elif dry:
            trace = differentiate(subject, sources, weights, self.names, self.recorder)
            hand.gradients(inputs)
            deed = _describe_unwritten(request.dry)
        else:
            written, trace = self._backward(subject, sources, weights, asked is not None)
            leaves = [source.name for source in wanted if source.named and source.is_leaf]
            others = [source.name for source in wanted if source.named and not source.is_leaf]
            if leaves or asked is None:
                hand.backward(leaves, everything=asked is None, replace=not self._accumulates)
            hand.gradients(others)
            previous, notes = written.replaced, _notes(written)
            deed = _describe_backward(written, others)
        if with_jacobian:
            hand.jacobian(inputs)
        matrix = jacobian_of(subject, sources, self.names) if with_jacobian else None
        report = self._make_report(
            subject,
            sources,
            say(said, deed),
            names=self.names,
            by_hand=hand.text() if wanted else "",
            bounds=magics.bounds(),
            with_graph=magics.with_graph(request),
            jacobian=matrix,
            weights=weights,
            notes=notes,
            previous=previous,
            trace=trace,
        )
        return report, matrix

    def _make_report(self, *args: Any, **kwargs: Any) -> Any:
        """Return the report, or None after an internal error. Exceptions of the user's program (in a hook, say) are raised."""
        try:
            return make_report(*args, **kwargs)
        except Exception as error:
            if _is_users_error(error):
                raise
            self.faults.handle(error)
            return None

    def on_several(self, outputs: Sequence[Any], text: str) -> Made:
        """Return the report on several outputs: on the sum of all their elements."""
        first = library_of(outputs[0])
        assert first is not None
        if any(library_of(output) is not first for output in outputs):
            return Remark(say("There was nothing to differentiate: the outputs are of several libraries.")), None
        parts = [output if not output.shape else output.sum() for output in outputs]
        total = sum(parts[1:], parts[0])
        hint = say(
            f"The cell ends in {len(outputs)} outputs: these are the gradients of the sum of all their elements. ",
            code("%%grad --of NAME"),
            " takes one. ",
        )
        terms = _terms(text, outputs)
        return self.on(total, terms, said=hint)

    @property
    def _accumulates(self) -> bool:
        return bool(self.request.accumulate or self.magics.accumulate)

    def _backward(self, subject: Subject, sources: Sequence[Source], weights: Any, restricted: bool) -> tuple[Written, Any]:
        """Run and record one backward for the user. Return the changes of `.grad` and the trace."""
        if not any(source.used and source.wanted and source.is_leaf for source in sources):
            return Written(), differentiate(subject, sources, weights, self.names, self.recorder)
        assert self.recorder is not None
        with self.recorder.for_the_user():
            written = backward(subject, sources, weights, accumulate=self._accumulates, restricted=restricted)
        return written, self.recorder.trace() if self.recorder.last is not None else None

    def _weights(self, subject: Subject, hand: EquivalentCode, plain: bool) -> Any:
        """Return the requested weights as a tensor like the output, or None."""
        request, library = self.request, subject.library
        if request.weights is None:
            return None
        evaluated = self.magics.evaluate(request.weights, self.space)
        weights = weights_for(library, subject.out, evaluated, subject.called if plain else "the output")
        subject.weights = ast.unparse(ast.parse(request.weights, mode="eval"))
        hand.weights = subject.weights
        if library_of(evaluated) is None:
            hand.weights = f"{library.alias}.tensor({subject.weights}, dtype={hand.out}.dtype)"
        return weights

    def _named_sources(self, library: Library) -> dict[str, Any] | None:
        """Return the values of the NAMEs in the options."""
        if not self.request.names:
            return None
        asked = {name: self.magics.evaluate(name, self.space) for name in self.request.names}
        for name, value in asked.items():
            other = library_of(value)
            if other is not library:
                is_of = f"a {other.name} tensor, and the output is a {library.name} tensor" if other else None
                raise UsageError(f"{name} is {is_of or f'{type(value).__name__}, not a tensor'}.")
        return asked

    # -------------------------------------------------------------------------------------------------- the user's sweep
    def on_sweep(self) -> Made:
        """Return the report on the last recorded backward of the cell."""
        recorder, magics = self.recorder, self.magics
        assert recorder is not None
        sweep = recorder.shown_sweep
        assert sweep is not None
        library = sweep.library
        trace = recorder.trace()
        root, out = sweep.roots[0], sweep.outputs[0]() if sweep.outputs else None
        subject = Subject(library, root.node, root.shape, root.name or _receiver(self.ending), out, value=root.value)
        if out is not None and len(sweep.roots) == 1 and subject.size == 1:
            self.swept = [(out, None)]
        asked = self._named_sources(library)
        roots = [one.node for one in sweep.roots]
        sources = sources_of(library, roots, self.names, asked, self.mentions, sweep.names.by_node)
        notes: dict[str, list[TableNote]] = {}
        fresh: list[str] = []
        added: list[str] = []
        known = {leaf.name: leaf for leaf in trace.leaves}
        for source in sources:
            leaf = known.get(source.name)
            if leaf is None or leaf.gradient is None:
                continue
            (added if leaf.before is not None else fresh).append(source.name)
            if leaf.before is not None:
                notes[source.name] = [TableNote(say("accumulated"))]
        odd = sweep.training is not None and sweep is sweep.training.nonfinite_sweep
        held = any(source.is_leaf and source.tensor.grad is not None for source in sources)
        who = say("The cell called ", code("backward()"), " itself")
        deed = say(
            calls_said(who, trace, recorder.sweeps, recorder.trainings.label_of(sweep.training), odd=odd, held=held),
            " ",
            f"It was called on {len(sweep.roots)} tensors together, of which this is the first. " if len(sweep.roots) > 1 else "",
            _describe_written(fresh, "set"),
            _describe_written(added, "added to"),
            _describe_emptied(library, sources, known),
        )
        report = self._make_report(
            subject,
            sources,
            deed,
            names=self.names,
            by_hand="",
            bounds=magics.bounds(),
            with_graph=magics.with_graph(self.request),
            weights=root.gradient if subject.size != 1 else None,
            notes=notes,
            backward_calls=recorder.sweeps,
            trace=trace,
            maps=[(f"{name}.grad", matrix) for name, matrix in sweep.named_maps],
        )
        return report, None


# ---------------------------------------------------------------------------------------------------------------- pieces
ENGINES = ("gradlab.autograd", "gradlab.core", "torch.autograd", "torch._tensor")


def _is_users_error(error: Exception) -> bool:
    """Return whether an error came from the user's code, or from an engine that ran the user's graph."""
    return any(
        is_user_file(frame.f_code.co_filename) or frame.f_globals.get("__name__", "").startswith(ENGINES)
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def _tensors(value: Any) -> list[Any]:
    """Return the tensors that require grad in a tuple or list that has only tensors."""
    if type(value) not in (tuple, list) or not value or any(library_of(item) is None for item in value):
        return []
    return [item for item in value if item.requires_grad]


def _size(tensor: Any) -> int:
    return int(np.prod(tuple(tensor.shape), dtype=np.int64))


def _terms(text: str, outputs: Sequence[Any]) -> str:
    """Return the sum as code: `a + b` for `a, b`, or `a.sum() + b.sum()` if they are not scalars."""
    parsed = ast.parse(text, mode="eval").body
    items = parsed.elts if isinstance(parsed, (ast.Tuple, ast.List)) and len(parsed.elts) == len(outputs) else []
    if not items:
        return f"sum(t.sum() for t in {text} if t.requires_grad)"
    simple = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
    whole = [ast.unparse(item) if isinstance(item, simple) else f"({ast.unparse(item)})" for item in items]
    return " + ".join(
        name if _size(out) == 1 and not out.shape else f"{name}.sum()" for name, out in zip(whole, outputs, strict=True)
    )


def _mentioned_names(expression: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node.id for node in ast.walk(ast.parse(expression, mode="eval")) if isinstance(node, ast.Name)))


def _receiver(ending: Ending | None) -> str:
    """Return `t.pow(3).sum()` for a cell that ends in `t.pow(3).sum().backward()`."""
    if ending is None or ending.kind != "value":
        return ""
    call = ast.parse(ending.text, mode="eval").body
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
        return ast.unparse(call.func.value)
    return ""


def _describe_unwritten(asked: bool) -> Sentence:
    return say(code(".grad"), " was left alone (", code("--dry"), ").") if asked else say("No ", code(".grad"), " was written.")


def _describe_written(names: Sequence[str], verb: str) -> Sentence:
    if not names:
        return ()
    return say(grads_of(names), f" {'was' if len(names) == 1 else 'were'} {verb}. ")


def _describe_emptied(library: Library, sources: Sequence[Source], leaves: Mapping[str, Leaf]) -> Sentence:
    """Return a sentence on gradients that were cleared after the sweep, as by `zero_grad()`."""
    gone, zero = [], []
    for source in sources:
        leaf = leaves.get(source.name)
        if not source.is_leaf or leaf is None or leaf.gradient is None or leaf.gradient.all_zero:
            continue
        gradient = source.tensor.grad
        if gradient is None:
            gone.append(source.name)
        elif library.is_zero(gradient):
            zero.append(source.name)
    parts = [
        say(grads_of(names), " are " if len(names) > 1 else " is ", code(now))
        for names, now in ((gone, "None"), (zero, "0"))
        if names
    ]
    return say(join_items(parts), " now: cleared since, and shown as computed by backward. ") if parts else ()


def _describe_backward(written: Written, others: Sequence[str]) -> Sentence:
    """Return what the magic's own backward did to `.grad`, in words."""

    def with_norms(gradients: Mapping[str, np.ndarray]) -> Sentence:
        if len(gradients) > 6:
            return grads_of(list(gradients))
        return join_items(
            [say(code(f"{name}.grad"), f" (norm {number(statistics(old).norm)})") for name, old in gradients.items()]
        )

    parts: list[str | Span | Sentence] = []
    if written:
        parts += [code("backward()"), " was called for you. "]
    if written.fresh:
        hint = say(" (", code("--accumulate"), " would add)") if not written.replaced else ()
        parts += [grads_of(written.fresh), f" {_was(written.fresh)} set", hint, ". "]
    if written.replaced:
        parts += [with_norms(written.replaced), f" {_was(written.replaced)} replaced (", code("--accumulate"), " would add; "]
        parts += [code("report.previous"), " keeps the old). "]
    if written.added:
        parts += [with_norms(written.added), f" {_was(written.added)} added to. "]
    if others:
        parts += [
            "The gradient" if len(others) == 1 else "The gradients",
            " of ",
            join_items([code(name) for name in others]),
            f" {'is' if len(others) == 1 else 'are'} only shown: a tensor that is not a ",
            term("leaf", "leaf"),
            " has no ",
            code(".grad"),
            ".",
        ]
    return say(*parts) if parts else say("No ", code(".grad"), " was written.")


def _was(names: Any) -> str:
    return "was" if len(names) == 1 else "were"


def _notes(written: Written) -> dict[str, Any]:
    replaced = {name: [TableNote(say("replaced"))] for name in written.replaced}
    return replaced | {name: [TableNote(say("accumulated"))] for name in written.added}
