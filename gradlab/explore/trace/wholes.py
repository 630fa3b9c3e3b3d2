"""Read a call that a framework computes in many operations, such as a loss of Keras, as one node.

The operations of a call form a group. If only one of them passes its result on, this node stands for the group: its inputs are
the tensors that the group got from outside. Otherwise all operations are nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradlab.explore.keras_layers import is_own_layer
from gradlab.explore.libraries import Library
from gradlab.explore.operations import lookup
from gradlab.explore.trace.notes import RecordedCall, RecordedWhole


@dataclass(frozen=True)
class Whole:
    """A call as one node.

    Attributes
    ----------
    call : RecordedWhole
    members : dict of node to None
        Its operations, which the node replaces.
    entries : dict of node to list of (node, int)
        For each node outside that it depends on, the operations of the call with the number of the argument.
    """

    call: RecordedWhole
    members: dict[Any, None]
    entries: dict[Any, list[tuple[Any, int]]]


def contract(
    library: Library, nodes: Sequence[Any], inputs: Sequence[list[Any]], roots: Sequence[Any]
) -> tuple[list[Any], list[list[Any]], dict[Any, Whole]]:
    """Replace the operations of each call by its last one.

    Parameters
    ----------
    library : Library
    nodes : sequence of nodes
        Each after its inputs.
    inputs : sequence of lists of nodes
        The inputs of each node.
    roots : sequence of nodes
        The nodes of the outputs.

    Returns
    -------
    nodes, inputs
        Without the operations that were replaced.
    wholes : dict of node to Whole
        Keys are the last nodes of the calls.
    """
    calls = _calls(library, nodes)
    groups: dict[RecordedWhole, dict[Any, None]] = {}
    for node, call in calls.items():
        groups.setdefault(call, {})[node] = None
    if not groups:
        return list(nodes), list(inputs), {}
    sources = dict(zip(nodes, inputs, strict=True))
    users: dict[Any, list[Any]] = {}
    for node in nodes:
        for source in sources[node]:
            users.setdefault(source, []).append(node)
    tops = set(roots)
    wholes: dict[Any, Whole] = {}
    for call, members in groups.items():
        last = _last(members, users, tops)
        if len(last) == 1 and call.keeps_activation and _is_activation(library.name_of(last[0])):
            del members[last[0]]
            last = _last(members, users, tops)
        if len(last) == 1 and not (call.is_layer and len(members) == 1 and _is_activation(library.name_of(last[0]))):
            wholes[last[0]] = Whole(call, members, _entries(members, sources))
    hidden = {node for last, one in wholes.items() for node in one.members if node is not last}
    kept = [node for node in nodes if node not in hidden]
    return kept, [list(wholes[node].entries) if node in wholes else sources[node] for node in kept], wholes


def _calls(library: Library, nodes: Sequence[Any]) -> dict[Any, RecordedWhole]:
    """Return the call that each operation is part of: one that was recorded as a whole, or the outermost of a layer of Keras."""
    of_layers: dict[RecordedCall, RecordedWhole] = {}
    calls: dict[Any, RecordedWhole] = {}
    for node in nodes:
        note = library.note(node)
        if note is None:
            continue
        if note.whole is not None:
            calls[node] = note.whole
        elif (layer := _layer_call(note.call)) is not None:
            if layer not in of_layers:
                module = layer.module()
                keeps = hasattr(module, "activation") and not hasattr(module, "recurrent_activation")
                of_layers[layer] = RecordedWhole(layer.kind, f"Keras {layer.kind}", is_layer=True, keeps_activation=keeps)
            calls[node] = of_layers[layer]
    return calls


def _layer_call(call: RecordedCall | None) -> RecordedCall | None:
    """Return the outermost call of a layer of Keras that a call is part of; None outside these, and for a dense layer, whose
    product, sum and activation are shown."""
    found = None
    while call is not None and is_own_layer(call.module()):
        found, call = call, call.outer
    return None if found is None or found.kind == "Dense" else found


def _last(members: dict[Any, None], users: dict[Any, list[Any]], tops: set[Any]) -> list[Any]:
    """Return the members of a group whose results are used outside."""
    return [node for node in members if node in tops or any(user not in members for user in users.get(node, ()))]


def _is_activation(name: str) -> bool:
    properties = lookup(name)
    return properties.rectifier or properties.leaky or properties.sigmoidal or name.startswith("SoftmaxBackward")


def _entries(members: dict[Any, None], sources: dict[Any, list[Any]]) -> dict[Any, list[tuple[Any, int]]]:
    """Return the nodes outside a group that its members depend on, with these members and the number of the argument."""
    entries: dict[Any, list[tuple[Any, int]]] = {}
    for node in members:
        for argument, source in enumerate(sources[node]):
            if source is not None and source not in members:
                entries.setdefault(source, []).append((node, argument))
    return entries
