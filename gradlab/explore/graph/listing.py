"""The graph as text: an indented listing for terminals, diffs and screen readers, and Graphviz's language.

The listing goes from each output back to the leaves, as gradients flow. Inputs are listed below a node: a single input at the
same indentation, several behind `├─` and `└─`. If all inputs except one are mere parameters, these branch off to the side and the
main line continues with the other, so a deep network is a column rather than a staircase. A node that is used more than once is
listed once, as its own section, and referred to as `[1]`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gradlab.explore.drawing import INK, LINE, PANEL, PAPER, VALUE, VALUE_PANEL, clean
from gradlab.explore.graph.chips import operand_text
from gradlab.explore.graph.ports import elements, short_number
from gradlab.explore.graph.rails import came_text, gradient_text
from gradlab.explore.graph.rows import GraphRow
from gradlab.explore.graph.torn_edges import cut_words
from gradlab.explore.labels import shorten
from gradlab.explore.markup import count, shape_text
from gradlab.explore.theme import hex_of
from gradlab.explore.trace.data import GraphEdge, GraphNode, Operand

DEEP = 12  # levels of indentation beyond which a section begins
SIDE = 4  # lines of an input that may branch off to the side
LONGEST = 60  # characters of a column
NAMED = 6  # leaves in the heading


def heading(nodes: Sequence[GraphNode]) -> str:
    """Return for example "loss (scalar −0.2749): 15 operations on 2 leaves, a and b"."""
    outputs = [node for node in nodes if node.kind == "output"]
    leaves = [node for node in nodes if node.kind == "leaf"]
    operations = sum(node.kind == "operation" for node in nodes)
    ends = ", ".join(f"{node.label} ({node.detail})" for node in outputs[:NAMED])
    ends += f" and {len(outputs) - NAMED} more" if len(outputs) > NAMED else ""
    many = count(len(leaves), "leaf", "leaves")
    begins = f"{ends}: " if ends else ""
    return clean(f"{begins}{count(operations, 'operation')} on {many}, {join_names([node.label for node in leaves])}")


def join_names(names: Sequence[str]) -> str:
    """Return "a, b and c"; of many names the first ones and the number of the rest."""
    if len(names) > NAMED:
        return f"{', '.join(names[: NAMED - 1])} and {len(names) - NAMED + 1} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def listing(nodes: Sequence[GraphNode], edges: Sequence[GraphEdge]) -> str:
    """Return the complete graph, one line for each use of a node."""
    inputs: list[list[int]] = [[] for _ in nodes]
    for edge in sorted(edges, key=lambda edge: (edge.target, edge.argument)):
        inputs[edge.target].append(edge.source)
    uses = Counter(edge.source for edge in edges)
    marks: dict[int, int] = {}
    sections = [i for i, node in enumerate(nodes) if node.kind == "output"]
    sections = sections or [i for i in range(len(nodes)) if not uses[i]]  # a program that failed has no outputs

    def is_shared(node: int) -> bool:
        return bool(inputs[node]) and (uses[node] > 1 or node in marks)

    size: list[int] = []  # lines of a node and everything below it
    for i in range(len(nodes)):  # in topological order
        size.append(1 if is_shared(i) else 1 + sum(1 if is_shared(source) else size[source] for source in inputs[i]))

    def is_small(node: int) -> bool:
        return is_shared(node) or size[node] <= SIDE

    lines = []
    for head in sections:  # grows while it is read
        lines.append("")
        waiting = [(head, "", "", 0)]
        while waiting:
            node, first, rest, level = waiting.pop()
            if node != head and (is_shared(node) or (level > DEEP and not is_small(node))):
                if node not in marks:
                    marks[node] = len(marks) + 1
                    sections.append(node)
                lines.append(f"{first}[{marks[node]}] {_title(nodes[node])}, see below")
                continue
            lines.append(first + (f"[{marks[node]}] " if node in marks else "") + _line(nodes[node]))
            weighty = [source for source in inputs[node] if not is_small(source)]
            onward = inputs[node] if len(inputs[node]) == 1 else weighty if len(weighty) == 1 else []
            below = [(source, f"{rest}├─ ", f"{rest}│  ", level + 1) for source in inputs[node] if source not in onward]
            if onward:
                below.append((onward[0], rest, rest, level))
            elif below:
                below[-1] = (below[-1][0], f"{rest}└─ ", f"{rest}   ", level + 1)
            waiting += reversed(below)
    return clean(heading(nodes) + "\n" + "\n".join(lines))


def _title(node: GraphNode) -> str:
    return f"{node.name} = {node.label}" if node.kind == "operation" and node.name else node.label


def _line(node: GraphNode) -> str:
    facts = (
        _title(node),
        node.operation if node.kind == "operation" else "",
        node.detail,
        shape_text(node.shape) if node.shape is not None and node.kind != "output" else "",
        *numbers(node),
        *map(_operand_note, node.operands),
        "" if node.place is None else node.place.where,
    )
    return "  ".join(fact for fact in facts if fact)


def numbers(node: GraphNode) -> list[str]:
    """Return "= −6" and "gradient 2", or "‖gradient‖ 0.0182" if there are too many elements for a picture."""
    numbers = []
    values, gradients = elements(node.value), elements(node.gradient)
    if values and node.kind != "output":
        numbers.append(f"= {_row(values)}")
    if gradients:
        numbers.append(f"gradient {_row(gradients)}")
    elif node.norms:
        numbers.append(f"‖gradient‖ {short_number(min(node.norms))} … {short_number(max(node.norms))}")
    elif node.gradient is not None:
        numbers.append(f"‖gradient‖ {short_number(node.gradient.norm)}")
    return numbers


def _row(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _operand_note(operand: Operand) -> str:
    """Return the text of a constant, a data input or a cut."""
    if operand.cut is not None:
        return f"({f'{operand.text}: ' if operand.text else ''}{cut_words(operand.cut)})"
    text = operand_text(operand)
    return f"({text})" if text else ""


def table(rows: Sequence[GraphRow]) -> str:
    """Return rows as columns: line, label, result, gradient and where it came from, parameters."""
    lines = []
    for here, row in enumerate(rows):
        arrived = gradient_text(row)
        chips = [f"{p.name} {short_number(p.gradient)}" if p.gradient is not None else p.name for p in row.parameters[:SIDE]]
        lines.append((row.line, row.label, row.made, arrived, came_text(rows, here), ", ".join((*chips, *row.data))))
    widths = [max((len(shorten(line[k], LONGEST)) for line in lines), default=0) for k in range(6)]
    texts = [
        "  ".join(shorten(text, LONGEST).ljust(wide) for text, wide in zip(line, widths, strict=True) if wide) for line in lines
    ]
    return clean("\n".join(text.rstrip() for text in texts))


def first_lines(text: str, characters: int) -> str:
    """Return the first lines of `text`, and how many more there are."""
    if len(text) <= characters:
        return text
    lines = text.split("\n")
    kept = text[:characters].count("\n")
    return "\n".join([*lines[:kept], f"… and {count(len(lines) - kept, 'more line')}"])


# ------------------------------------------------------------------------------------------------------------- Graphviz
def dot(nodes: Sequence[GraphNode], edges: Sequence[GraphEdge]) -> str:
    """Return the graph in Graphviz's DOT language."""
    looks = {
        "leaf": f'style="rounded,filled" color="{hex_of(VALUE)}" fillcolor="{hex_of(VALUE_PANEL)}"',
        "output": f'style="rounded,filled" color="{hex_of(INK)}" fillcolor="{hex_of(INK)}" fontcolor="{hex_of(PAPER)}"',
    }
    lines = [
        "digraph {",
        f'  node [shape=box style=filled color="{hex_of(LINE)}" fillcolor="{hex_of(PANEL)}" fontcolor="{hex_of(INK)}"]',
    ]
    for i, node in enumerate(nodes):
        small = (
            node.operation
            if node.kind == "operation"
            else node.detail or (shape_text(node.shape) if node.shape is not None else "")
        )
        operands = [text for operand in node.operands if (text := _operand_note(operand))]
        look = " " + looks[node.kind] if node.kind in looks else ""
        lines.append(f"  n{i} [label={_quote(_title(node), small, *numbers(node), *operands)}{look}]")
    for edge in edges:
        shape = f" [label={_quote(shape_text(edge.shape))}]" if edge.shape is not None else ""
        lines.append(f"  n{edge.source} -> n{edge.target}{shape}")
    return "\n".join([*lines, "}"]) + "\n"


def _quote(*lines: str) -> str:
    """Return lines as a DOT string, with special characters escaped."""
    plain = (shorten(clean(line).replace("\n", " "), 200) for line in lines if line)
    return '"' + "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in plain) + '"'
