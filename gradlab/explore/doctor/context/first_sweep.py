"""The first backward call of a training: whether the weights are as they were drawn, and why the output of a layer is large."""

from __future__ import annotations

import ast
import copy
import linecache
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import instead, parse_expression
from gradlab.explore.doctor.context.cross_entropies import spread_of
from gradlab.explore.doctor.context.definitions import find_attribute_definition, find_definition
from gradlab.explore.doctor.context.flow import Flow, flow_of, has_gradients, root_mean_square
from gradlab.explore.doctor.context.program import Program
from gradlab.explore.doctor.context.step_history import large_operand
from gradlab.explore.trace.data import Operand

# In the source of a program that starts from weights of another training.
LOADING = re.compile(
    r"from_pretrained|pretrained=True|\bweights=|\b(torch|gl|gradlab|hub)\.load\(|\bload_(state_dict|checkpoint|weights|model)|restore\("
)
# Writes to a leaf: those of several initialisations are fewer, and each step of an optimizer is one.
MAX_WRITES = 20
# Times 1 / √(number of inputs): the scale of He et al. (2015) is √2, that of Xavier with the gain of tanh 5/3.
LARGE_WEIGHTS = 2.5
LARGE_INPUT = 3.0  # the root mean square of the input of a layer; after a normalisation it is 1
LARGE_FACTOR = 3.0
LARGE_BIAS = 0.5  # the default of layers, at most 1 / √(number of inputs), is smaller
RANDOM = ("randn", "normal")
BLOCKS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def first_flow(case: Case) -> Flow | None:
    """Return the graph of the first backward call of the training, with the weights as they were drawn.

    None if that call was not recorded, or if the weights may have been trained before or come from another training.
    """
    if not has_gradients(case.trace) or case.first is None or not case.first.recorded:
        return None
    flow = flow_of(case).first
    return flow if flow is not None and not _is_trained(flow) else None


def _is_trained(flow: Flow) -> bool:
    """Return whether weights have a gradient already, were written to often, or were reached by a sweep of an earlier cell."""
    leaves = flow.trace.leaves
    past = flow.case.past.leaves
    return any(
        leaf.key in past or leaf.version > MAX_WRITES or (leaf.before is not None and not leaf.before.all_zero) for leaf in leaves
    )


def starts_from_other_weights(flow: Flow) -> bool:
    """Return whether the program loads weights, or a cell has trained since the one that made the leaves of the graph."""
    files = {place.file for node in flow.nodes if (place := node.place) is not None and not place.in_cell}
    if any(LOADING.search("".join(linecache.getlines(name))) for name in files):
        return True
    names = {leaf.name.partition(".")[0].partition("[")[0] for leaf in flow.trace.leaves if leaf.name}
    functions: set[str] = set()
    for program in flow.case.programs:
        functions |= _training_functions(program)
    made = False
    for k, program in enumerate(flow.case.programs):
        if LOADING.search(_text_of_functions(program) if made else "\n".join(program.lines)):
            return True
        made = made or any(names & _assigned_names(statement) for statement in program.statements)
        if k and not made and any(_trains(statement, functions) for statement in program.outer):
            return True
    return False


def _text_of_functions(program: Program) -> str:
    """Return the source of the functions and classes of a cell, which newer cells may call."""
    blocks = [node for node in program.statements if isinstance(node, BLOCKS)]
    return "\n".join(line for node in blocks for line in program.lines[node.lineno - 1 : node.end_lineno])


def _assigned_names(statement: ast.stmt) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def _training_functions(program: Program) -> set[str]:
    """Return the names of the functions and classes of a cell that call backward()."""
    blocks = [node for node in program.statements if isinstance(node, BLOCKS)]
    return {node.name for node in blocks if any(map(_is_backward, ast.walk(node)))}


def _trains(statement: ast.stmt, functions: set[str]) -> bool:
    """Return whether a statement calls backward(), or a function that does."""
    if isinstance(statement, BLOCKS):
        return False
    names = {ast.unparse(node.func) for node in ast.walk(statement) if isinstance(node, ast.Call)}
    return bool(names & functions) or any(map(_is_backward, ast.walk(statement)))


def _is_backward(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("backward", "fit")


# ------------------------------------------------------------------------------------------------- why an output is large
@dataclass(frozen=True)
class Cause:
    """A reason why the output of a layer is large.

    Attributes
    ----------
    how : str
        "weights", "data", "factor" or "input".
    layer : int
        The product with the weights.
    weight : int
        The node of the weights.
    inputs : int
        The number of inputs of each of its outputs.
    scale : float
        The standard deviation of the weights; of "factor" the factor, of "input" the root mean square of the input.
    operand : Operand or None
        Of "data": the input that is large.
    source : int
        Of "data" the layer that has it as its input; of "input" the node that is the input.
    bias : int or None
        The node of a bias of the layer, if it is large.
    """

    how: str
    layer: int
    weight: int
    inputs: int
    scale: float
    operand: Operand | None = None
    source: int = -1
    bias: int | None = None


def find_cause(flow: Flow, at: int) -> Cause | None:
    """Return why the output at a node is large; None if it was not computed by a layer, or for a reason that is not known."""
    factor, bias, layer = 1.0, None, None
    for i in _affine_path(flow, at):
        if flow.properties[i].product:
            layer = i
            break
        terms = _computed_inputs(flow, i)
        if flow.properties[i].adds and len(terms) > 1:  # of a recurrence
            return next((cause for term in terms[:2] if (cause := find_cause(flow, term)) is not None), None)
        if flow.properties[i].adds:
            bias = next((edge.source for edge in flow.inputs[i] if flow.leaf_of(edge.source) is not None), bias)
        if flow.properties[i].multiplies:
            numbers = [o.value.numbers[0] for o in flow.nodes[i].operands if o.value is not None and o.value.numbers]
            factor *= 1.0 if not numbers or not numbers[0] else 1 / numbers[0] if flow.ops[i] == "Div" else numbers[0]
    weight = None if layer is None else flow.weights[layer]
    if layer is None or weight is None or weight < 0 or flow.nodes[flow.origin_of(weight)].kind != "leaf":
        return None
    value, shape = flow.nodes[weight].value or flow.nodes[flow.origin_of(weight)].value, flow.nodes[layer].shape
    if value is None or value.odd or len(value.shape) < 2 or not shape:
        return None
    inputs = _inputs(flow, layer, value.shape)
    if not inputs:
        return None
    addend = flow.properties[layer].addend
    if addend is not None:
        bias = next((edge.source for edge in flow.inputs[layer] if edge.argument == addend), bias)
    held = None if bias is None else flow.nodes[bias].value
    bias = bias if held is not None and root_mean_square(held) > LARGE_BIAS else None
    data = _large_data(flow, layer)
    if data is not None:
        return Cause("data", layer, weight, inputs, root_mean_square_of(data[1]), data[1], data[0], bias)
    scale = spread_of(value)
    if scale * math.sqrt(inputs) > LARGE_WEIGHTS:
        return Cause("weights", layer, weight, inputs, scale, bias=bias)
    if abs(factor) >= LARGE_FACTOR:
        return Cause("factor", layer, weight, inputs, abs(factor), bias=bias)
    for edge in flow.inputs[layer]:
        given = flow.nodes[edge.source].value
        if flow.weight_of(edge.source) is None and given is not None and not given.odd:
            rms = root_mean_square(given)
            return Cause("input", layer, weight, inputs, rms, source=edge.source, bias=bias) if rms > LARGE_INPUT else None
    return None


def root_mean_square_of(operand: Operand) -> float:
    assert operand.value is not None
    return root_mean_square(operand.value)


def _affine_path(flow: Flow, at: int) -> Iterator[int]:
    """Yield the nodes from an output down to its layer: reshapes, biases and constant factors, then the product."""
    for _ in range(10):
        yield at
        properties = flow.properties[at]
        computed = _computed_inputs(flow, at)
        plain = properties.adds or properties.multiplies or properties.moves in ("layout", "part", "cast")
        if properties.product or not plain or len(computed) != 1:
            return
        at = computed[0]


def _computed_inputs(flow: Flow, i: int) -> list[int]:
    """Return the inputs of a node that are not leaves."""
    return [edge.source for edge in flow.inputs[i] if flow.leaf_of(edge.source) is None]


def _inputs(flow: Flow, layer: int, shape: tuple[int, ...]) -> int:
    """Return the number of inputs of each output of a layer; 0 if it is not known."""
    made = flow.nodes[layer].shape or ()
    outputs = made[1] if flow.properties[layer].channels_first and len(made) > 1 else made[-1]
    size = math.prod(shape)
    return size // outputs if outputs and outputs in (shape[0], shape[-1]) else 0


def _large_data(flow: Flow, layer: int) -> tuple[int, Operand] | None:
    """Return the first layer below a layer, or this one, whose input was not standardised, and this input."""
    seen, waiting = {layer}, [layer]
    while waiting:
        i = waiting.pop()
        operand = large_operand(flow, i) if flow.properties[i].product else None
        if operand is not None:
            return i, operand
        if flow.properties[i].normalises:
            continue
        for edge in flow.inputs[i]:
            if edge.source not in seen:
                seen.add(edge.source)
                waiting.append(edge.source)
    return None


# ------------------------------------------------------------------------------------------------------------------ advice
def scale_weights(flow: Flow, weight: int, factor: str) -> str:
    """Return code that draws weights with another scale, "`W = torch.randn(9, 3) * 0.01` in place of …"; "" if the source has no
    single call that draws them."""
    name = flow.nodes[weight].name.partition(", ")[0]
    case = flow.case
    definition = find_attribute_definition(case, name) if "." in name else find_definition(case, name)
    if not isinstance(definition, ast.Assign) or len(definition.targets) != 1:
        return ""
    drawn = [node for node in ast.walk(definition.value) if _is_random(node)]
    value = definition.value
    around = isinstance(value, ast.Call) and (value in drawn or value.args[:1] == drawn or _receiver(value) in drawn)
    if len(drawn) != 1 or not around:
        return ""
    call = copy.deepcopy(drawn[0])
    assert isinstance(call, ast.Call)
    learns = [keyword for keyword in call.keywords if keyword.arg == "requires_grad"]
    call.keywords = [keyword for keyword in call.keywords if keyword.arg != "requires_grad"]
    text = f"{ast.unparse(call)} * {factor}"
    text = f"({text}).requires_grad_()" if learns else text
    new = copy.deepcopy(definition, {id(drawn[0]): parse_expression(text)})
    return instead(ast.unparse(new), ast.unparse(definition))


def _is_random(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in RANDOM


def _receiver(call: ast.Call) -> ast.expr | None:
    """Return the object of a method."""
    return call.func.value if isinstance(call.func, ast.Attribute) else None
