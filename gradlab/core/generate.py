"""The functions that are generated from the declarations, and nothing else is generated anywhere.

Each primitive gets one recording function and callers of its rules, when they are first needed. They are written as source, the
way `dataclasses` does it, because what differs between primitives (how many arguments, what is saved, metadata, views) is
then settled when the module loads: no loop over arguments, no `*args`, no dictionary on the hot path. That is three to
four times quicker than one general function. The source is registered with `linecache`, so a traceback shows it.
"""
from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.destination import into
from gradlab.core.errors import forward_failed
from gradlab.core.modes import mode
from gradlab.core.promotion import PROMOTIONS
from gradlab.core.storage import FRESH, remember_view, tick
from gradlab.core.tensor import Tensor, constant

if TYPE_CHECKING:
    from gradlab.core.primitive import Primitive

GENERATED = "record", "vjp", "scalar_vjp", "traced_vjp", "jvp", "traced_jvp"
PROMOTE_GUARDS = {"same": None, "number": "{0}.array.dtype.kind == 'b'", "float": "{0}.array.dtype.kind != 'f'",
                  "sum": "{0}.array.dtype.kind in 'bui'"}


def as_output(array: Any, node: Any) -> Tensor:
    """A saved `out` as the Tensor it was. (A node must not hold its own output: that would be a cycle.)"""
    out = constant(array)
    out.node, out.storage = node, node.storage
    return out


def shares_memory(array: Any, source: Any) -> bool:
    """Whether the library made `array` a view of `source` (bases are never nested in NumPy and CuPy)."""
    base = array.base
    return base is not None and (base is source or base is source.base)


def zeros_for(node: Any, edges: Any, lead: tuple[int, ...], shapes: Any) -> list[Any]:
    """The tangents of a variadic op with zeros where there is none."""
    like = next(t for t in edges if t is not None)
    xp = namespace_of[type(like)]
    return [xp.zeros(lead + shape, dtype=node.dtype) if t is None else t for t, shape in zip(edges, shapes, strict=True)]


SCOPE: dict[str, Any] = {
    "Tensor": Tensor, "FRESH": FRESH, "mode": mode, "tick": tick, "new": object.__new__,
    "ndarray": np.ndarray, "namespace_of": namespace_of, "wrap": wrap, "shares_memory": shares_memory,
    "remember_view": remember_view, "multiply": np.multiply, "as_output": as_output, "forward_failed": forward_failed,
    "zeros_for": zeros_for, "into": into,
}


def compiled(op: Primitive, name: str, source: str, **scope: Any) -> Callable[..., Any]:
    """The function `name` of `source`, known to tracebacks."""
    filename = f"<gradlab: {name} of {op.name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    scope = SCOPE | {"op": op, "batch": op.batch, "forward": op.forward, "__name__": "gradlab.core.generated"} | scope
    exec(compile(source, filename, "exec"), scope)  # noqa: S102  (our own text, made of our own declarations)
    return scope[name]


def recording_function(op: Primitive) -> Callable[..., Any]:
    """`op.record`: promote, run the forward, wrap the result, and note the call if a gradient is wanted."""
    return compiled(op, op.name, variadic_source(op) if op.variadic else record_source(op), Node=op.node_class,
                    promote=PROMOTIONS[op.promote])


def record_source(op: Primitive) -> str:
    args, wrt = op.args, list(op.rules)
    odd = [f"type({a}) is not Tensor" for a in wrt] + [f"{a}.array.dtype is not {wrt[0]}.array.dtype" for a in wrt[1:]]
    if guard := PROMOTE_GUARDS[op.promote]:
        odd.append(guard.format(wrt[0]))
    value = {"xp": f"namespace_of[type(x_{args[0]})]", **{a: f"x_{a}" for a in args}}
    call = ", ".join([value[p] for p in op.call] + [f"{k}={k}" for k in op.meta])
    saved = []
    for name in op.saves:                                   # an array is kept only if the gradient that needs it is wanted
        needed_by = [a for a in wrt if name in op.needs[a]]
        keep = "r" if name == "out" else name
        saved.append(keep if needed_by == wrt else f"{keep} if {' or '.join(f'e_{a} is not None' for a in needed_by)} else None")
    view = f"""
    if shares_memory(r, x_{args[0]}):
        remember_view(made, {args[0]}, op, {{{', '.join(f'{k!r}: {k}' for k in op.meta)}}}, mode.grad)""" if op.view else ""
    return f"""
def {op.name}({', '.join([*args, '*', *op.meta])}, out=None):
    if {' or '.join(odd)}:
        promoted = promote(op, {', '.join(wrt)})
        if promoted is NotImplemented:
            return promoted
        {', '.join(wrt)}, = promoted
    {'; '.join(f'x_{a} = {a}.array' for a in args)}
    try:
        r = forward({call})
    except Exception as error:
        raise forward_failed(op, error, ({''.join(f'x_{a}, ' for a in args)})) from error
    if type(r) is not ndarray:
        r = wrap(r)
    made = new(Tensor)
    made.array = r
    made.grad_slot = None
    made.storage = FRESH
    {'; '.join(f'e_{a} = {a}.node' for a in wrt)}
    if ({' or '.join(f'e_{a} is not None' for a in wrt)}) and mode.grad:
        made.node = node = new(Node)
        node.edges = ({''.join(f'e_{a}, ' for a in wrt)})
        node.saved = ({''.join(f'{s}, ' for s in saved)})
        {f"node.meta = ({''.join(f'{k}, ' for k in op.meta)})" if op.meta else ''}
        node.shape = r.shape
        node.dtype = r.dtype
        node.storage = FRESH
        node.hooks = None
        node.order = tick()
    else:
        made.node = None{view}
    return made if out is None else into({op.name.strip('_')!r}, out, made)
"""


def variadic_source(op: Primitive) -> str:
    """The same for an op on a sequence of tensors, all differentiable and saved by none of its rules."""
    xs, keywords = op.variadic, op.meta
    call = ", ".join(["namespace_of[type(arrays[0])]"] * ("xp" in op.call) + ["*arrays"] + [f"{k}={k}" for k in keywords])
    return f"""
def {op.name}(*{xs}{', ' + ', '.join(keywords) if keywords else ''}):
    if any([type(x) is not Tensor or x.array.dtype is not {xs}[0].array.dtype for x in {xs}]):
        {xs} = promote(op, *{xs})
    arrays = [x.array for x in {xs}]
    try:
        r = forward({call})
    except Exception as error:
        raise forward_failed(op, error, tuple(arrays)) from error
    made = new(Tensor)
    made.array = r
    made.grad_slot = None
    made.storage = FRESH
    made.node = None
    if mode.grad:
        edges = tuple([x.node for x in {xs}])
        if any([edge is not None for edge in edges]):
            made.node = node = new(Node)
            node.edges = edges
            node.saved = ()
            node.meta = (tuple([x.shape for x in arrays]), {''.join(f'{k}, ' for k in keywords)})
            node.shape = r.shape
            node.dtype = r.dtype
            node.storage = FRESH
            node.hooks = None
            node.order = tick()
    return made
"""


def returns_its_argument(rule: Callable[..., Any]) -> bool:
    """Whether a rule is `lambda b: b`, which need not be called."""
    code = rule.__code__
    return code.co_argcount == 1 and code.co_code == IDENTITY.co_code


IDENTITY = (lambda b: b).__code__


def rule_caller(op: Primitive, name: str) -> Callable[..., Any]:
    """`op.vjp` and its like: all rules of a node in one call."""
    rules = op.tangents if "jvp" in name else op.rules
    source = variadic_caller_source(op, name) if op.variadic else caller_source(op, name, rules)
    return compiled(op, name, source, **{f"rule_{arg}": rule for arg, rule in rules.items()})


def caller_source(op: Primitive, name: str, rules: dict[str, Any]) -> str:
    """`f(node, edges, g, lead)`, one result per edge; for a jvp the "edges" are the tangents. Saves are unpacked to arrays;
    to NumPy scalars if the output is 0-d, whose arithmetic is ten times quicker; or, traced, stay the Tensors they are."""
    from gradlab.core.primitive import parameters

    traced, scalar, tangent = name.startswith("traced"), name.startswith("scalar"), "jvp" in name
    calls = []
    for i, (arg, rule) in enumerate(rules.items()):
        given = f"e_{arg}" if tangent else "g"
        value = {"g": given, "t": given, "lead": "lead", "xp": f"namespace_of[type({given})]", "out_shape": "node.shape",
                 f"{arg}_shape": f"node.edges[{i}].shape",
                 "out": "as_output(s_out, node)" if traced else "s_out", **{k: k for k in op.meta}}
        value |= {a: f"s_{a}" if traced else f"s_{a}.array" for a in op.args}
        if scalar:
            value |= {n: f"{value[n]}[()]" for n in op.saves}
        if rule is op.forward:                                          # linear, bilinear: the op with this side swapped
            value[arg] = given
            meta = f"**batch(lead, {', '.join(op.meta)})" if op.batch else ", ".join(f"{k}={k}" for k in op.meta)
            call = f"op({', '.join(value[a] for a in op.args)}, {meta})"
        else:
            names = parameters(rule)[0]
            given_to_it = ", ".join(value[p] for p in names)
            call = given_to_it if returns_its_argument(rule) else f"rule_{arg}({given_to_it})"
            if op.kind == "elementwise" and "g" not in names:                # a partial derivative. The ufunc beats `*` on arrays
                call = f"{given} * {call}" if traced or scalar else f"multiply({given}, {call})"
        calls.append(f"None if e_{arg} is None else {call}")
    unpack = [f"{''.join(f'e_{a}, ' for a in rules)}= edges"]
    unpack += [f"{''.join(f's_{n}, ' for n in op.saves)}= node.saved"] if op.saves else []
    unpack += [f"{''.join(f'{k}, ' for k in op.meta)}= node.meta"] if op.meta else []
    return f"def {name}(node, edges, g, lead):\n    {'; '.join(unpack)}\n    return {', '.join(calls)},\n"


def variadic_caller_source(op: Primitive, name: str) -> str:
    from gradlab.core.primitive import parameters

    xs = op.variadic or ""
    unpack = f"shapes, {''.join(f'{k}, ' for k in op.meta)}= node.meta"
    if "jvp" in name:
        meta = f"**batch(lead, {', '.join(op.meta)})" if op.batch else ", ".join(f"{k}={k}" for k in op.meta)
        return (f"def {name}(node, edges, g, lead):\n    {unpack}\n"
                f"    return op(*zeros_for(node, edges, lead, shapes), {meta}),\n")
    value = {"g": "g", "lead": "lead", "xp": "namespace_of[type(g)]", f"{xs}_shape": "shapes", "position": "position",
             **{k: k for k in op.meta}}
    call = ", ".join(value[p] for p in parameters(op.rules[xs])[0])
    return (f"def {name}(node, edges, g, lead):\n    {unpack}\n    return [None if edge is None else rule_{xs}({call})\n"
            f"            for position, edge in enumerate(edges)]\n")
