"""What the live explorer shows of a graph: plain data that its view opens with, and short answers to what it asks later.

The view has every node and edge in columns, and the first picture of each level, so it searches and colours without the kernel.
It asks for a picture in another state of its folds, and for all that is known of one node, for which the graph itself is held
until `close`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradlab.explore.explorer.columns import Texts, columns, members_of
from gradlab.explore.explorer.fold_panel import fold_panel
from gradlab.explore.explorer.folds import GLANCE, Folds
from gradlab.explore.explorer.live import Live
from gradlab.explore.explorer.outline import code_outline, module_outline
from gradlab.explore.explorer.panel import panel
from gradlab.explore.explorer.row_folds import WIDTH, RowFolds
from gradlab.explore.graph import Graph
from gradlab.explore.graph.ports import elements
from gradlab.explore.libraries import library_of
from gradlab.explore.markup import count, grouped, size_text, to_text
from gradlab.explore.names import names_in
from gradlab.explore.source_lines import said_of, sources
from gradlab.explore.terms import TERMS
from gradlab.explore.trace.data import Line, Trace
from gradlab.explore.trace.making import MAX_NODES
from gradlab.explore.trace.reading import trace_of
from gradlab.explore.trace.recorder import Recorder

LISTED = 4  # names in the head
LEAST, WIDEST = 300.0, 4_000.0  # px of rows
STEPS = 2_000  # nodes of a graph that is stepped through, and whose paths are shown
CHOICES = 300  # leaves to choose from

Answer = dict[str, Any]


class Explorer:
    """A trace, and the graph that it is of as long as it is held.

    Parameters
    ----------
    trace : Trace
    live : Live, optional
        The graph.
    said : sequence of str
        What is to be said of how it was differentiated.
    weights : str
        The code of the weights, of an output that is no scalar.
    level : str, optional
        What is shown first: "code", "modules" or "operations". By default what a picture of it would show.
    out : str
        What the output is called in code; by default its name.
    """

    def __init__(
        self,
        trace: Trace,
        live: Live | None = None,
        *,
        said: Sequence[str] = (),
        weights: str = "",
        level: str | None = None,
        out: str = "",
    ) -> None:
        self.trace, self.live = trace, live
        code = code_outline(trace)
        modules = module_outline(trace) if any(node.layer for node in trace.nodes) else []
        if level is None and len(trace.nodes) > GLANCE:
            level = "modules" if modules else "code" if len(code) > 1 else "operations"
        self.graph = Graph(trace, level=level or "operations")
        self._said, self._weights = list(said), weights
        outputs = [trace.nodes[i] for i in trace.outputs]
        self._out = [out] if out else [node.name or node.label for node in outputs]
        self._rows = {
            name: RowFolds(trace, outline, name == "modules")
            for name, outline in (("code", code), ("modules", modules))
            if outline
        }
        self._folds = Folds(trace, max(GLANCE, len(trace.nodes) if len(trace.nodes) <= GLANCE else 0))

    @classmethod
    def of(
        cls, outputs: Sequence[Any], space: Mapping[str, Any], names: Mapping[str, Any], *, most: int = MAX_NODES, **more: Any
    ) -> Explorer:
        """Look at the graph behind some tensors of one library, with one sweep of its own that writes no `.grad`.

        Parameters
        ----------
        outputs : sequence of Tensor
            That require grad.
        space : mapping of str to object
            The user's names.
        names : mapping of str to Tensor
            What tensors are called, before those of `space`.
        most : int
            Nodes that are read at most.
        """
        library = library_of(outputs[0])
        assert library is not None
        starts = [library.tensor(np.ones(tuple(out.shape)), like=out) for out in outputs]
        said: list[str] = []
        if len(outputs) > 1:
            said.append("the gradients are those of the sum of all outputs")
        elif outputs[0].numel() != 1:
            said.append(f"the gradients are those of the sum of its {outputs[0].numel():,} elements")
        live = Live(library, outputs, starts, most, names)
        trace, freed = _swept(live, space, names, most)
        if freed:
            said.append(freed)
        return cls(trace, None if freed else live, said=said, **more)

    @classmethod
    def around(
        cls,
        graph: Graph,
        outputs: Sequence[Any],
        space: Mapping[str, Any],
        names: Mapping[str, Any],
        starts: Sequence[Any] = (),
        **more: Any,
    ) -> Explorer:
        """That of a graph: of the sweep that it was recorded with, else of one of its own.

        Parameters
        ----------
        graph : Graph
        outputs : sequence of Tensor
            The tensors that it is of; none where they are gone.
        space, names
            See `of`.
        starts : sequence of Tensor, optional
            What the sweep started with; ones by default.
        """
        trace = graph.trace
        more.setdefault("level", graph.level)
        if not outputs:
            return cls(trace, said=["what was recorded; the graph itself is not held"], **more)
        if not trace.sweep:
            return cls.of(outputs, space, names, most=max(len(trace.nodes), MAX_NODES), **more)
        library = library_of(outputs[0])
        assert library is not None
        starts = starts or [library.tensor(np.ones(tuple(out.shape)), like=out) for out in outputs]
        live = Live(library, outputs, starts, MAX_NODES, names)
        if live.freed:
            return cls(trace, said=["what was recorded: backward() has freed the graph"], **more)
        whole = len(live.nodes) + len(outputs) == len(trace.nodes)
        return cls(trace, live if whole else None, **more)

    # ------------------------------------------------------------------------------------------------------ what is shown
    def about(self) -> dict[str, Any]:
        """What the view opens with; it never changes."""
        trace = self.trace
        texts, places = Texts(), dict[Line, int]()
        table = columns(trace, texts, places)
        shown, spans = sources(trace, places)
        return {
            "head": self.head(),
            "library": trace.library,
            "level": self.graph.level,
            "levels": [*self._rows, "operations"],
            "nodes": table,
            "texts": texts.table,
            "rows": {name: rows.figure() for name, rows in self._rows.items()},
            "sources": shown,
            "spans": spans,
            "wheres": [place.where for place in places],
            "unrecorded": said_of(trace),
            "figure": self._folds.figure(),
            "whole": fold_panel(trace, range(len(trace.nodes))),
            "terms": {name: TERMS[name] for name in ("leaf", "norm", "ratio")},
            "sweep": bool(trace.sweep),
            "steps": self.live is not None and len(self.live.outputs) == 1 and len(trace.nodes) <= STEPS,
            "leaves": self._leaves() if self.live is not None else [],
        }

    def _leaves(self) -> list[list[Any]]:
        """The leaves to which paths can be asked for, as [node, label]."""
        leaves = [[i, node.label] for i, node in enumerate(self.trace.nodes) if node.kind == "leaf"]
        return leaves[:CHOICES] if len(self.trace.nodes) <= STEPS else []

    def head(self) -> dict[str, Any]:
        """The sentence above all: what, with respect to what, how many operations, what is held."""
        trace = self.trace
        outputs = [trace.nodes[i] for i in trace.outputs]
        numbers = elements(outputs[0].value) if len(outputs) == 1 else ()
        leaves = [node.name or node.label for node in trace.nodes if node.kind == "leaf"]
        operations = sum(node.kind == "operation" for node in trace.nodes)
        parts = [count(operations, "operation"), *self._said]
        if trace.cut_off:
            parts.append("the graph has more, further away from the output")
        return {
            "out": ", ".join(self._out[:LISTED]) + (", …" if len(self._out) > LISTED else ""),
            "value": numbers[0] if len(numbers) == 1 else "",
            "by": leaves if len(leaves) <= LISTED else [],
            "many": grouped(len(leaves)),
            "parts": parts,
            "held": size_text(self.live.bytes()) if self.live is not None else "",
        }

    # ---------------------------------------------------------------------------------------------------------- answers
    def answer(self, ask: str, message: Mapping[str, Any]) -> Answer:
        """What a view asks for.

        Parameters
        ----------
        ask : str
            "fold": the picture with the folds of `open` open; with those around `node` too, or with all down to `depth`. "rows":
            the same of the rows of a `level`, with `more` nodes of some, and of the row `extend` more than that, `width` pixels
            wide. "node": all that is known of `node`, and of the nodes of `members` (stretches, see `columns.members_of`)
            together, whose last it is. "steps": those of backward, from `numbers` if there are any. "paths": what each edge
            contributed to the gradient of the leaf `node`.
        message : mapping of str to object
            What it says besides, checked here.

        Raises
        ------
        ValueError
            For another question, or a node that there is none of.
        """
        if ask == "fold":
            wanted = {str(address) for address in message.get("open", ())}
            if message.get("depth") is not None:
                wanted = self._folds.to_depth(min(int(message["depth"]), 12))
            if message.get("node") is not None:
                wanted |= set(self._folds.around(self._node(message)))
            return {"figure": self._folds.figure(wanted)}
        if ask == "rows":
            return {"rows": {"level": message.get("level"), **self._row_figure(message)}}
        if ask == "node":
            names = {"alias": "gl", "package": "gradlab", "weights": self._weights}
            if self.live is not None:
                names |= {"alias": self.live.library.alias, "package": self.live.library.name}
            elif self.trace.library != "gradlab":
                names |= {"alias": self.trace.library, "package": self.trace.library}
            said = panel(self.trace, self._node(message), self.live, self._out, names)
            members = self._members(message)
            return {"panel": {**said, "fold": fold_panel(self.trace, members)} if members else said}
        if ask in ("steps", "paths"):
            if self.live is None:
                raise RuntimeError("this takes a sweep of its own, and the graph is not held: run the cell again")
            return {"steps": self._steps(message.get("numbers"))} if ask == "steps" else {"paths": self._paths(message)}
        raise ValueError(f"the explorer is asked for 'fold', 'rows', 'node', 'steps' or 'paths', and not for {ask!r}")

    def _row_figure(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The rows of a level in another state."""
        rows = self._rows.get(str(message.get("level")))
        if rows is None:
            raise ValueError(f"rows are of {' or '.join(map(repr, self._rows))}, and not of {message.get('level')!r}")
        wanted = None if message.get("open") is None else {str(address) for address in message["open"]}
        if message.get("depth") is not None:
            wanted = rows.to_depth(int(message["depth"]))
        more = {str(address): int(many) for address, many in dict(message.get("more") or {}).items()}
        if message.get("extend") is not None:
            more = rows.extended(more, str(message["extend"]))
        if message.get("node") is not None:
            around, needed = rows.around(self._node(message))
            wanted = (wanted or set()) | around
            more |= {key: max(many, more.get(key, 0)) for key, many in needed.items()}
        return rows.figure(wanted, more, min(max(float(message.get("width") or WIDTH), LEAST), WIDEST))

    def _steps(self, numbers: Any) -> dict[str, Any]:
        """The steps of backward, for the stepper; from another start if there are numbers."""
        from gradlab.explore.steps.stepping import stepped

        assert self.live is not None
        out, start = self.live.outputs[0], self.live.starts[0]
        if numbers is not None:
            if not isinstance(numbers, list) or not all(isinstance(x, (int, float)) for x in numbers):
                raise TypeError(f"a start is a list of numbers, and this is {numbers!r:.80}")
            start = np.asarray(numbers, float).reshape(tuple(out.shape))
        return stepped(out, start, {**self.live.names, self._out[0]: out}).view()

    def _paths(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Through which paths the gradient of a leaf came: each edge's signed contribution."""
        from gradlab.explore.graph.contributions import swept
        from gradlab.explore.graph.paths import Paths

        assert self.live is not None
        leaf = self._node(message)
        if self.trace.nodes[leaf].kind != "leaf":
            raise ValueError(f"paths lead to a leaf, and node {leaf} is {self.trace.nodes[leaf].label}")
        with self.live.keeping():
            paths = Paths(self.trace, leaf, swept(self.trace, leaf, self.live.outputs, self.live.starts))
        return {**paths.to_dict(), "head": [to_text(sentence) for sentence in paths.head]}

    def _node(self, message: Mapping[str, Any]) -> int:
        node = message.get("node")
        if not isinstance(node, int) or not 0 <= node < len(self.trace.nodes):
            raise ValueError(f"the graph has nodes 0 to {len(self.trace.nodes) - 1}, and no node {node!r}")
        return node

    def _members(self, message: Mapping[str, Any]) -> list[int]:
        stretches = message.get("members") or []
        many = len(self.trace.nodes)
        if not all(isinstance(n, int) and 0 <= n <= many for n in stretches) or len(stretches) % 2:
            raise ValueError(f"members are stretches [first, length, …] of nodes 0 to {many - 1}, and not {stretches!r:.80}")
        return [i for i in members_of(stretches) if i < many]

    def close(self) -> None:
        """Let the graph go; the trace stays."""
        self.live = None


def _swept(live: Live, space: Mapping[str, Any], names: Mapping[str, Any], most: int) -> tuple[Trace, str]:
    """The trace of one private sweep; where the graph was freed, of its structure, and a sentence."""
    library, outputs = live.library, live.outputs
    recorder = Recorder(lambda: space, called=names)
    roots = [(library.node(out), start) for out, start in zip(outputs, live.starts, strict=True)]
    leaves = list(live.leaves.values())
    try:
        with live.keeping(), recorder.sweeping(library, roots, outputs, None, (), private=True, retains=True):
            gradients = library.grad(outputs, leaves, live.starts)
    except RuntimeError as error:
        why = "backward has freed it" if "second time" in str(error) else str(error).partition("\n")[0]
        return trace_of(outputs, {**names_in(space), **names}, most), f"without gradients: {why}"
    for tensor, gradient in zip(leaves, gradients, strict=True):
        recorder.add_gradient(tensor, gradient)
    return recorder.trace(), ""
