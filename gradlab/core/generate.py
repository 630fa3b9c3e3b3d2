"""The functions that are generated from the declarations, and nothing else is generated anywhere.

Each primitive gets one recording function and callers of its rules, when they are first needed. They are written as source, the
way `dataclasses` does it, because what differs between primitives (how many arguments, what is saved, metadata, views) is
then settled when the module loads: no loop over arguments, no `*args`, no dictionary on the hot path. That is three to
four times quicker than one general function. The source is registered with `linecache`, so a traceback shows it.
"""

from __future__ import annotations

import functools
import linecache
import weakref
from collections import defaultdict
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from gradlab.backend.namespaces import SCALARS, cuda, namespace_of
from gradlab.backend.pieces import COSTLY, SHARED, spread
from gradlab.core.devices import together
from gradlab.core.engine import LARGE
from gradlab.core.errors import forward_failed
from gradlab.core.modes import mode
from gradlab.core.numpy_warnings import silence
from gradlab.core.observers import OBSERVERS, notify_record
from gradlab.core.out_argument import into
from gradlab.core.promotion import GUARDS, HALF, PROMOTIONS, SINGLE, WIDENING, cast
from gradlab.core.registry import used
from gradlab.core.storage import FRESH, NUMBER, forget_dead, own_storage, tick
from gradlab.core.tensor import Tensor, as_output

Primitive = Any  # a declaration: `core.primitive` is made on top of this module

GENERATED = "record", "apply", "vjp", "scalar_vjp", "traced_vjp", "jvp", "traced_jvp", "half"


def number(value: float, like: Any) -> Tensor:
    """A Python number as a constant to compute with a floating point array. There is one for each number, so that long graphs do
    not hold thousands of them, and a GPU is not sent them again and again; it cannot be written to."""
    host = type(like) is np.ndarray
    known = (KNOWN[like.dtype.char] if host else kept_beside(like)) if value else None  # 0. and -0. are equal, but not the same
    before = None if known is None else known.get(value)
    if before is not None:
        return before
    tensor: Tensor = object.__new__(Tensor)
    array = np.array if host else namespace_of[type(like)].array
    try:
        tensor.array = array(value, like.dtype)
    except RuntimeWarning:  # too large for the dtype
        with silence():
            tensor.array = array(value, like.dtype)
    tensor.node = tensor.grad_slot = None
    tensor.storage = NUMBER
    if known is not None:
        if host:
            tensor.array.flags.writeable = False
        if len(known) >= MANY:  # several threads may have stepped over it
            known.clear()
        known[value] = tensor
    return tensor


def kept_beside(like: Any) -> dict[float, Tensor] | None:
    """The numbers kept on the GPU of an array, while work is given to the default stream: it was given them before whatever
    reads them. Of another stream nobody says that."""
    cupy = cuda.cupy
    if cupy is None or type(like) is not cupy.ndarray or cupy.cuda.get_current_stream().ptr:
        return None
    return KNOWN[cupy.ndarray, like.dtype.char, like.device.id]


MANY = 256  # numbers of a dtype that are kept
KNOWN: dict[Any, dict[float, Tensor]] = defaultdict(dict)


def still_of(result: Any, *saved: Any) -> Any:
    """A recorded cotangent; where it has no history although what it was computed from has, with the history that its
    derivative is 0 (see rules.zero_derivative)."""
    if result.node is None:
        for x in saved:
            if x is not None and x.node is not None:
                return used.zero_derivative.record(result, x)
    return result


def scaled(g: Any, partial: Any, held: tuple[Any, ...]) -> Any:
    """g · partial, in the memory of the partial derivative if that is the rule's own, and none that the node holds: large arrays
    are bound by memory."""
    if partial.base is None and partial.shape == g.shape and partial.dtype == g.dtype and all(partial is not h for h in held):
        return np.multiply(g, partial, out=partial)
    return np.multiply(g, partial)


def all_tensors(xs: Any) -> Any:
    """The operands of a variadic op, where a number is not taken for a tensor."""
    for i, x in enumerate(xs):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}")
    return xs


def plain(number: Any) -> Any:
    """The number in a tensor that was given for one, as torch takes it."""
    return number.item() if type(number) is Tensor else number


def widened(x: Any) -> Any:
    """float16 as float32, of an array or a Tensor, whose node it keeps: what the rules of a half primitive compute with."""
    if type(x) is Tensor:
        return cast(x, SINGLE) if x.array.dtype.char == "e" else x
    return x if x is None or x.dtype.char != "e" else x.astype(SINGLE)


def narrowed(x: Any) -> Any:
    """What was computed in float32, rounded to float16."""
    if x.dtype.char != "f":
        return x
    with np.errstate(over="ignore"):
        return x.astype(HALF)


def zeros_for(node: Any, edges: Any, lead: tuple[int, ...], shapes: Any) -> list[Any]:
    """The tangents of a variadic op with zeros where there is none."""
    like = next(t for t in edges if t is not None)
    xp = namespace_of[type(like)]
    return [xp.zeros(lead + shape, dtype=node.dtype) if t is None else t for t, shape in zip(edges, shapes, strict=True)]


# fmt: off
SCOPE: dict[str, Any] = {
    "Tensor": Tensor, "FRESH": FRESH, "mode": mode, "tick": tick, "new": object.__new__, "NUMBERS": frozenset((float, int)),
    "number": number, "ndarray": np.ndarray, "namespace_of": namespace_of, "SCALARS": frozenset(SCALARS), "asarray": np.asarray,
    "own_storage": own_storage, "forget_dead": forget_dead, "ref": weakref.ref, "multiply": np.multiply, "as_output": as_output,
    "forward_failed": forward_failed, "together": together, "zeros_for": zeros_for, "all_tensors": all_tensors,
    "scaled": scaled, "LARGE": LARGE, "spread": spread, "SHARED": SHARED,
    "into": into, "still_of": still_of, "OBSERVERS": OBSERVERS, "seen": notify_record,
    "silence": silence, "widened": widened, "narrowed": narrowed, "plain": plain,
}
# fmt: on


def compiled(op: Primitive, name: str, source: str, **scope: Any) -> Callable[..., Any]:
    """The function that `source` defines, under the name `name`, known to tracebacks."""
    filename = register_source(f"{name} of {op.name}", source)
    scope = SCOPE | {"op": op, "batch": op.batch, "forward": op.forward, "__name__": "gradlab.core.generated"} | scope
    exec(code_of(source), scope)  # noqa: S102  (our own text, made of our own declarations)
    function: Callable[..., Any] = scope["generated"]
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name, co_filename=filename)
    function.__name__ = function.__qualname__ = name
    return function


def register_source(label: str, source: str) -> str:
    """Add a source to `linecache`, for tracebacks, and return its file name.

    Variants of one primitive share a label, such as the one for float16. They are numbered if their sources differ.
    """
    lines = source.splitlines(keepends=True)
    filename, number = f"<gradlab: {label}>", 1
    while linecache.getlines(filename) not in ([], lines):
        number += 1
        filename = f"<gradlab: {label}, {number}>"
    linecache.cache[filename] = (len(source), None, lines, filename)
    return filename


@functools.cache
def code_of(source: str) -> CodeType:
    """Primitives of the same form have the same source, whose compilation is most of what an import of this library costs."""
    return compile(source, "<gradlab>", "exec")


def recording_function(op: Primitive) -> Callable[..., Any]:
    """`op.record`: promote, run the forward, wrap the result, and note the call if a gradient is wanted."""
    return compiled(
        op, op.name, variadic_source(op) if op.variadic else record_source(op), Node=op.node_class, promote=PROMOTIONS[op.promote]
    )


def applying_function(op: Primitive) -> Callable[..., Any]:
    """`op.apply`: record if one of the arguments is a Tensor, else run the forward on the arrays."""
    xs, keywords = op.variadic, [f"{k}={k}" for k in op.meta]
    first, args = (f"{xs}[0]", [f"*{xs}"]) if xs else (op.args[0], op.args)
    head = ", ".join([*args, *(["*"] if op.meta and not xs else []), *op.meta])
    tensors = f"any([type(x) is Tensor for x in {xs}])" if xs else " or ".join(f"type({a}) is Tensor" for a in args)
    arguments = [f"namespace_of[type({first})]" if p == "xp" else p for p in op.call] + args[:1] * bool(xs)
    return compiled(
        op,
        "apply",
        f"""
def generated({head}):
    if {tensors}:
        return op.record({", ".join([*args, *keywords])})
    return forward({", ".join([*arguments, *keywords])})
""",
    )


# Nearly always what is odd is a Python number beside a floating point tensor.
WITH_NUMBER = """if type({a}) is Tensor and type({b}) in NUMBERS and {a}.array.dtype.char in 'fd':
            {b} = number({b}, {a}.array)
        elif type({b}) is Tensor and type({a}) in NUMBERS and {b}.array.dtype.char in 'fd':
            {a} = number({a}, {b}.array)
        else:"""


def record_source(op: Primitive) -> str:
    public = dict(zip(op.args, op.public, strict=True))  # the arguments, as users call them
    args, wrt = op.public, [public[a] for a in op.rules]
    odd = [f"type({a}) is not Tensor" for a in wrt] + [f"{a}.array.dtype is not {wrt[0]}.array.dtype" for a in wrt[1:]]
    if guard := GUARDS[op.promote]:
        odd.append(guard.format(wrt[0]))
    numbers = op.kind == "elementwise" and len(wrt) == len(args) == 2 and "tensors" not in op.promote
    value = {"xp": f"namespace_of[type(x_{args[0]})]", **{a: f"x_{p}" for a, p in public.items()}}
    if op.is_half:
        odd, value = [], {k: v if k == "xp" else f"widened({v})" for k, v in value.items()}
    arguments = ", ".join([value[p] for p in op.call] + [f"{k}={k}" for k in op.meta])
    call = f"forward({arguments})"
    if op.forward in COSTLY:
        call = f"({call} if x_{args[0]}.size < SHARED else spread(forward, {arguments}))"
    saved = []
    for name in op.saves:  # an array is kept only if the gradient that needs it is wanted
        needed_by = [public[a] for a in op.rules if name in op.needs[a]]
        keep = "r" if name == "out" else public[name]
        saved.append(keep if needed_by == wrt else f"{keep} if {' or '.join(f'e_{a} is not None' for a in needed_by)} else None")
    beside = f", ({''.join(f'{a}, ' for a in args)})" if op.kind == "elementwise" else ""
    view = VIEW.format(x=args[0], meta="".join(f"{k}, " for k in op.meta)) if op.view else ""
    promoted = f"""
    if {" or ".join(odd)}:
        {WITH_NUMBER.format(a=wrt[0], b=wrt[1]) if numbers else "if True:"}
            promoted = promote(op, {", ".join(wrt)})
            if promoted is NotImplemented:
                return promoted
            {", ".join(wrt)}, = promoted{
        HALVES.format(
            some=" or ".join(f"{a}.array.dtype.char == 'e'" for a in wrt),
            given=", ".join([*args, *(f"{k}={k}" for k in (*op.meta, "out"))]),
        )
        if op.promote in WIDENING
        else ""
    }"""
    return f"""
def generated({", ".join([*args, "*", *op.meta])}, out=None):{promoted if odd else ""}
    {"; ".join(f"x_{a} = {a}.array" for a in args)}
    try:
        r = {f"narrowed({call})" if op.is_half else call}
    except RuntimeWarning:
        with silence():
            r = {f"narrowed({call})" if op.is_half else call}
    except Exception as error:
        joined = together(op, ({"".join(f"{a}, " for a in args)}), ({"".join(f"{k}, " for k in op.meta)}))
        if joined is not None:
            return op.record(*joined, {"".join(f"{k}={k}, " for k in op.meta)}out=out)
        raise forward_failed(op, error, ({"".join(f"x_{a}, " for a in args)}), ({"".join(f"{a}.node, " for a in args)}))
    if type(r) is not ndarray:
        if type(r) in SCALARS:
            r = asarray(r){
        TENSOR_FOR_NUMBER.format(given=", ".join([*args, *(f"{k}=plain({k})" for k in op.meta), "out=out"])) if op.meta else ""
    }
    made = new(Tensor)
    made.array = r
    made.grad_slot = None
    made.storage = FRESH
    {"; ".join(f"e_{a} = {a}.node" for a in wrt)}
    if ({" or ".join(f"e_{a} is not None" for a in wrt)}) and mode.grad:
        made.node = node = new(Node)
        node.edges = ({"".join(f"e_{a}, " for a in wrt)})
        node.saved = ({"".join(f"{s}, " for s in saved)})
        {f"node.meta = ({''.join(f'{k}, ' for k in op.meta)})" if op.meta else ""}
        node.shape = r.shape
        node.dtype = r.dtype
        node.storage = FRESH
        node.hooks = None
        node.order = tick()
    else:
        made.node = None{view}
    if OBSERVERS:
        seen(op, made, ({"".join(f"{a}, " for a in args)}), ({"".join(f"{k}, " for k in op.meta)}))
    return made if out is None else into(op.name.strip("_"), out, made{beside})
"""


# Of float16, most operations are computed in float32 and rounded once, by a primitive of the same rules: see `Primitive.half`.
HALVES = """
            if {some}:
                return op.half.record({given})"""


TENSOR_FOR_NUMBER = """
        elif type(r) is Tensor:
            return op.record({given})"""


# What is noted of a result that the library made a view of its source (bases are never nested in NumPy and CuPy). This is most
# of what a view costs, so it stands in the function itself; `storage.view_of` reads it.
VIEW = """
    base = r.base
    if base is not None and (base is x_{x} or base is x_{x}.base):
        made.storage = storage = {x}.storage if {x}.storage is not FRESH else own_storage({x})
        if made.node is not None:
            node.storage = storage
        made.view_record = {x}, op, ({meta}), "" if made.node is not None or mode.grad else "no_grad"
        views = storage.views
        views.append(ref(made))
        if len(views) > storage.limit:
            forget_dead(storage)"""


def variadic_source(op: Primitive) -> str:
    """The same for an op on a sequence of tensors, all differentiable and saved by none of its rules."""
    xs, keywords = op.variadic, op.meta
    call = ", ".join(["namespace_of[type(arrays[0])]"] * ("xp" in op.call) + ["*arrays"] + [f"{k}={k}" for k in keywords])
    return f"""
def generated(*{xs}{", " + ", ".join(keywords) if keywords else ""}):
    arrays, edges, recorded = [], [], False                         # one plain loop: each comprehension would cost 0.2 µs
    for x in {xs}:
        if type(x) is not Tensor or x.array.dtype is not {xs}[0].array.dtype:
            {xs} = promote(op, *all_tensors({xs}))
            arrays = [x.array for x in {xs}]
            edges = [x.node for x in {xs}]
            recorded = any(edges)
            break
        arrays.append(x.array)
        edges.append(x.node)
        if x.node is not None:
            recorded = True
    try:
        r = forward({call})
    except Exception as error:
        joined = together(op, tuple({xs}))
        if joined is not None:
            return op.record(*joined, {"".join(f"{k}={k}, " for k in keywords)})
        raise forward_failed(op, error, tuple(arrays), tuple([x.node for x in {xs}]))
    made = new(Tensor)
    made.array = r
    made.grad_slot = None
    made.storage = FRESH
    if recorded and mode.grad:
        made.node = node = new(Node)
        node.edges = tuple(edges)
        node.saved = ()
        node.meta = (tuple([x.shape for x in arrays]), {"".join(f"{k}, " for k in keywords)})
        node.shape = r.shape
        node.dtype = r.dtype
        node.storage = FRESH
        node.hooks = None
        node.order = tick()
    else:
        made.node = None
    if OBSERVERS:
        seen(op, made, tuple({xs}), ({"".join(f"{k}, " for k in keywords)}))
    return made
"""


VARIADIC = 0x04  # CO_VARARGS, as inspect calls it


def parameters(function: Callable[..., Any]) -> tuple[list[str], list[str], str | None]:
    """The names of a function's positional parameters, of its keyword-only ones, and of its `*args`. (From its code object:
    `inspect.signature` takes 30 times as long, and this runs at import.)"""
    code = function.__code__
    names, n, m = code.co_varnames, code.co_argcount, code.co_kwonlyargcount
    return list(names[:n]), list(names[n : n + m]), names[n + m] if code.co_flags & VARIADIC else None


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
    traced, scalar, tangent = name.startswith("traced"), name.startswith("scalar"), "jvp" in name
    calls = []
    for i, (arg, rule) in enumerate(rules.items()):
        incoming = f"e_{arg}" if tangent else "g"
        value = {
            "g": incoming,
            "t": incoming,
            "lead": "lead",
            "xp": f"namespace_of[type({incoming})]",
            "out_shape": "node.shape",
            f"{arg}_shape": f"node.edges[{i}].shape",
            "out": "as_output(s_out, node)" if traced else "s_out",
            **{k: k for k in op.meta},
        }
        value |= {a: f"s_{a}" if traced else f"s_{a}.array" for a in op.args}
        if op.is_half:
            value |= {n: f"widened({value[n]})" for n in op.saves}
        if scalar:
            value |= {n: f"{value[n]}[()]" for n in op.saves}
        if rule is op.forward:  # linear, bilinear: the op with this side swapped
            value[arg] = incoming
            meta = f"**batch(lead, {', '.join(op.meta)})" if op.batch else ", ".join(f"{k}={k}" for k in op.meta)
            call = f"op({', '.join(value[a] for a in op.args)}, {meta})"
        else:
            names = parameters(rule)[0]
            given_to_it = ", ".join(value[p] for p in names)
            call = given_to_it if returns_its_argument(rule) else f"rule_{arg}({given_to_it})"
            if op.kind == "elementwise" and "g" not in names:  # a partial derivative. The ufunc beats `*` on arrays
                fresh = not traced and not scalar and not returns_its_argument(rule)
                call = f"{incoming} * {call}" if traced or scalar else f"multiply({incoming}, {call})"
                if fresh:
                    held = "".join(f"{value[n]}, " for n in (*op.saves, *op.meta))
                    call = f"{call} if {incoming}.size < LARGE else {call.replace('multiply', 'scaled')[:-1]}, ({held}))"
            if traced and not tangent and not op.piecewise and (read := [value[n] for n in op.saves if n in names]):
                call = f"still_of({call}, {', '.join(read)})"
        calls.append(f"None if e_{arg} is None else {call}")
    unpack = [f"{''.join(f'e_{a}, ' for a in rules)}= edges"]
    unpack += [f"{''.join(f's_{n}, ' for n in op.saves)}= node.saved"] if op.saves else []
    unpack += [f"{''.join(f'{k}, ' for k in op.meta)}= node.meta"] if op.meta else []
    if op.is_half:
        unpack += [f"{e} = widened({e})" for e in ([f"e_{a}" for a in rules] if tangent else ["g"])]
    return f"def generated(node, edges, g, lead):\n    {'; '.join(unpack)}\n    return {', '.join(calls)},\n"


def variadic_caller_source(op: Primitive, name: str) -> str:
    xs = op.variadic or ""
    unpack = f"shapes, {''.join(f'{k}, ' for k in op.meta)}= node.meta"
    if "jvp" in name:
        meta = f"**batch(lead, {', '.join(op.meta)})" if op.batch else ", ".join(f"{k}={k}" for k in op.meta)
        return (
            f"def generated(node, edges, g, lead):\n    {unpack}\n    return op(*zeros_for(node, edges, lead, shapes), {meta}),\n"
        )
    value = {
        "g": "g",
        "lead": "lead",
        "xp": "namespace_of[type(g)]",
        f"{xs}_shape": "shapes",
        "position": "position",
        **{k: k for k in op.meta},
    }
    call = ", ".join(value[p] for p in parameters(op.rules[xs])[0])
    return (
        f"def generated(node, edges, g, lead):\n    {unpack}\n    return [None if edge is None else rule_{xs}({call})\n"
        f"            for position, edge in enumerate(edges)]\n"
    )
