"""Find the properties of an operation by the name of its node.

gradlab's nodes have PyTorch's names, so what a primitive declares holds for PyTorch's node of the same name. Nodes that only
PyTorch records are in `torch_nodes`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from gradlab.core.properties import ORDINARY, Properties
from gradlab.core.registry import PRIMITIVES
from gradlab.explore.operations.keras_losses import KERAS_LOSSES
from gradlab.explore.operations.torch_nodes import CPP_NODES, OTHER_NAMES, TORCH_NODES

# "SoftmaxBackward0", "SqueezeBackwardAutogradNestedTensor0", "ExpandBackward0_copy"; a user's Function has no number.
NUMBERED = re.compile(r"Backward(?:Autograd[A-Za-z]+)?\d+(?:_copy)?$")
# Of primitives with one name in the graph, but different properties, the one that users call most.
PRIMITIVE_OF_NAME = {"Convolution": "conv_bias", "Div": "div", "Gelu": "gelu", "Pow": "pow_scalar"}


def operation_name(node_name: str) -> str:
    """Return the name of a node without "Backward" and the number of the overload: "Sigmoid" for "SigmoidBackward0"."""
    return NUMBERED.sub("", node_name)


@cache
def lookup(node_name: str) -> Properties:
    """Return the properties of an operation.

    Parameters
    ----------
    node_name : str
        As `Library.name_of` and `GraphNode.operation` give it: "SigmoidBackward0".

    Returns
    -------
    Properties
        Without any fact if the name is unknown, or that of a user's Function.
    """
    match = NUMBERED.search(node_name)
    if match is None:
        of_node = (op.properties for op in PRIMITIVES.values() if op.node_name == node_name)
        return CPP_NODES.get(node_name) or KERAS_LOSSES.get(node_name) or next(of_node, ORDINARY)
    name = node_name[: match.start()]
    if name in TORCH_NODES:
        return TORCH_NODES[name]
    if name in PRIMITIVE_OF_NAME:
        properties: Properties = PRIMITIVES[PRIMITIVE_OF_NAME[name]].properties
        return properties
    of_name = (op.properties for op in PRIMITIVES.values() if operation_name(op.node_name) == name)
    return next(of_name, OTHER_NAMES.get(name, ORDINARY))


def operations() -> dict[str, Properties]:
    """Return the properties of all known operations by their names without "Backward" and number, in alphabetical order."""
    own = {operation_name(op.node_name): lookup(op.node_name) for op in PRIMITIVES.values()}
    return dict(sorted((OTHER_NAMES | own | TORCH_NODES | CPP_NODES).items()))


def names_where(condition: Callable[[Properties], bool]) -> frozenset[str]:
    """Return the names, without "Backward" and number, of the operations with a property."""
    return frozenset(name for name, properties in operations().items() if condition(properties))
