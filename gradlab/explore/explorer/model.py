"""The model of the live explorer: the plain data with which its view opens, and short answers to later requests.

The view has all nodes and edges in columns, and the first picture of each level, so it can search and colour without the kernel.
It requests pictures with other open folds, and details of a node, for which the graph itself is held until `close`.
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
from gradlab.explore.markup import count, group_digits, size_text, to_text
from gradlab.explore.names import names_in
from gradlab.explore.source_lines import said_of, sources
from gradlab.explore.terms import TERMS
from gradlab.explore.trace.data import Line, Trace
from gradlab.explore.trace.making import MAX_NODES
from gradlab.explore.trace.reading import trace_of
from gradlab.explore.trace.recorder import Recorder

LISTED = 4  # names in the head
LEAST, WIDEST = 300.0, 4_000.0  # width of rows in pixels
STEPS = 2_000  # nodes of a graph with steps and paths
CHOICES = 300  # leaves in the list of choices

Answer = dict[str, Any]


class Explorer:
    """A trace, with its graph while that is held.

    Parameters
    ----------
    trace : Trace
    live : Live, optional
        The graph.
    said : sequence of str
        Remarks on how it was differentiated.
    weights : str
        The code of the weights if the output is not a scalar.
    level : str, optional
        The first level: "code", "modules" or "operations". Default: the level of a static picture.
    out : str
        The output in code. Default: its name.
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
        """Explore the graph behind some tensors of one library, by one sweep that writes no `.grad`.

        Parameters
        ----------
        outputs : sequence of Tensor
            Tensors that require grad.
        space : mapping of str to object
            The user's names.
        names : mapping of str to Tensor
            Names of tensors, with priority over `space`.
        most : int
            The maximal number of nodes.
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
        trace, freed = _run_sweep(live, space, names, most)
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
        """Explore a graph with the sweep that was recorded with it, or else with a new sweep.

        Parameters
        ----------
        graph : Graph
        outputs : sequence of Tensor
            The outputs of the graph; empty if they were deleted.
        space, names
            See `of`.
        starts : sequence of Tensor, optional
            The cotangents with which the sweep started. Default: ones.
        """
        trace = graph.trace
        more.setdefault("level", graph.level)
        if not outputs:
            return cls(trace, said=["recorded data only; the graph itself is not held"], **more)
        if not trace.sweep:
            return cls.of(outputs, space, names, most=max(len(trace.nodes), MAX_NODES), **more)
        library = library_of(outputs[0])
        assert library is not None
        starts = starts or [library.tensor(np.ones(tuple(out.shape)), like=out) for out in outputs]
        live = Live(library, outputs, starts, MAX_NODES, names)
        if live.is_freed:
            return cls(trace, said=["recorded data only: backward() has freed the graph"], **more)
        whole = len(live.nodes) + len(outputs) == len(trace.nodes)
        return cls(trace, live if whole else None, **more)

    # ------------------------------------------------------------------------------------------------------- first data
    def about(self) -> dict[str, Any]:
        """Return the data with which the view opens. It never changes."""
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
        """Return the leaves for which paths can be requested, as [node, label]."""
        leaves = [[i, node.label] for i, node in enumerate(self.trace.nodes) if node.kind == "leaf"]
        return leaves[:CHOICES] if len(self.trace.nodes) <= STEPS else []

    def head(self) -> dict[str, Any]:
        """Return the parts of the heading: output, leaves, number of operations, memory."""
        trace = self.trace
        outputs = [trace.nodes[i] for i in trace.outputs]
        numbers = elements(outputs[0].value) if len(outputs) == 1 else ()
        leaves = [node.name or node.label for node in trace.nodes if node.kind == "leaf"]
        operations = sum(node.kind == "operation" for node in trace.nodes)
        parts = [count(operations, "operation"), *self._said]
        if trace.cut_off:
            parts.append("the graph has more nodes, further away from the output")
        return {
            "out": ", ".join(self._out[:LISTED]) + (", …" if len(self._out) > LISTED else ""),
            "value": numbers[0] if len(numbers) == 1 else "",
            "by": leaves if len(leaves) <= LISTED else [],
            "many": group_digits(len(leaves)),
            "parts": parts,
            "held": size_text(self.live.bytes()) if self.live is not None else "",
        }

    # ---------------------------------------------------------------------------------------------------------- answers
    def answer(self, ask: str, message: Mapping[str, Any]) -> Answer:
        """Answer a request of a view.

        Parameters
        ----------
        ask : str
            "fold": the picture with the folds `open`, and those around `node`, or with all down to `depth`. "rows": the same for
            the rows of a `level`, with `more` nodes for some rows, additional nodes for the row `extend`, and a `width` in
            pixels. "node": details of `node`, and of the group of nodes `members` (ranges, see `columns.members_of`), whose last
            node it is. "steps": the steps of backward, from the start `numbers` if given. "paths": the contribution of each edge
            to the gradient of the leaf `node`.
        message : mapping of str to object
            The arguments, which are checked here.

        Raises
        ------
        ValueError
            If the request or the node is unknown.
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
                raise RuntimeError("this requires another sweep, but the graph is not held. Run the cell again.")
            return {"steps": self._steps(message.get("numbers"))} if ask == "steps" else {"paths": self._paths(message)}
        raise ValueError(f"a request must be 'fold', 'rows', 'node', 'steps' or 'paths', got {ask!r}")

    def _row_figure(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the rows of a level with other open rows."""
        rows = self._rows.get(str(message.get("level")))
        if rows is None:
            raise ValueError(f"the level of rows must be {' or '.join(map(repr, self._rows))}, got {message.get('level')!r}")
        wanted = None if message.get("open") is None else {str(address) for address in message["open"]}
        if message.get("depth") is not None:
            wanted = rows.to_depth(int(message["depth"]))
        more = {str(address): int(many) for address, many in dict(message.get("more") or {}).items()}
        if message.get("extend") is not None:
            more = rows.extend(more, str(message["extend"]))
        if message.get("node") is not None:
            around, needed = rows.around(self._node(message))
            wanted = (wanted or set()) | around
            more |= {key: max(many, more.get(key, 0)) for key, many in needed.items()}
        return rows.figure(wanted, more, min(max(float(message.get("width") or WIDTH), LEAST), WIDEST))

    def _steps(self, numbers: Any) -> dict[str, Any]:
        """Return the steps of backward for the stepper, from another start if `numbers` is not None."""
        from gradlab.explore.steps.stepping import step_through_with_names

        assert self.live is not None
        out, start = self.live.outputs[0], self.live.starts[0]
        if numbers is not None:
            if not isinstance(numbers, list) or not all(isinstance(x, (int, float)) for x in numbers):
                raise TypeError(f"a start must be a list of numbers, got {numbers!r:.80}")
            start = np.asarray(numbers, float).reshape(tuple(out.shape))
        return step_through_with_names(out, start, {**self.live.names, self._out[0]: out}).view()

    def _paths(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the paths of the gradient of a leaf, with the signed contribution of each edge."""
        from gradlab.explore.graph.contributions import measure_flow
        from gradlab.explore.graph.paths import Paths

        assert self.live is not None
        leaf = self._node(message)
        if self.trace.nodes[leaf].kind != "leaf":
            raise ValueError(f"paths lead to a leaf, but node {leaf} is {self.trace.nodes[leaf].label}")
        with self.live.keeping():
            paths = Paths(self.trace, leaf, measure_flow(self.trace, leaf, self.live.outputs, self.live.starts))
        return {**paths.to_dict(), "head": [to_text(sentence) for sentence in paths.head]}

    def _node(self, message: Mapping[str, Any]) -> int:
        node = message.get("node")
        if not isinstance(node, int) or not 0 <= node < len(self.trace.nodes):
            raise ValueError(f"node must be from 0 to {len(self.trace.nodes) - 1}, got {node!r}")
        return node

    def _members(self, message: Mapping[str, Any]) -> list[int]:
        numbers = message.get("members") or []
        many = len(self.trace.nodes)
        if not all(isinstance(n, int) and 0 <= n <= many for n in numbers) or len(numbers) % 2:
            raise ValueError(f"members must be ranges [first, length, …] of nodes 0 to {many - 1}, got {numbers!r:.80}")
        return [i for i in members_of(numbers) if i < many]

    def close(self) -> None:
        """Release the graph. The trace remains."""
        self.live = None


def _run_sweep(live: Live, space: Mapping[str, Any], names: Mapping[str, Any], most: int) -> tuple[Trace, str]:
    """Return the trace of one internal sweep, or of the structure with the reason if the graph was freed."""
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
