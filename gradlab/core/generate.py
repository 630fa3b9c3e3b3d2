"""Generate the functions of a primitive from its declaration: one that records it, and callers of its rules.

They are compiled from source on first use, as in `dataclasses`. The differences between primitives (number of arguments, saved
values, metadata, views) are then resolved once: the hot path has no loop over arguments, no `*args` and no dictionary. This is
three to four times faster than one general function. The source is registered with `linecache`, so that tracebacks show it.
docs/explanation/generated.md prints the functions of `exp`, `add` and `matmul`. No other code of gradlab is generated.
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
from gradlab.backend.pieces import MIN_SIZE_SHARED, run_in_pieces
from gradlab.core.devices import move_to_one_device
from gradlab.core.engine import MIN_SIZE_IN_PLACE
from gradlab.core.errors import forward_failed
from gradlab.core.modes import mode
from gradlab.core.numpy_warnings import silence
from gradlab.core.observers import OBSERVERS, notify_record
from gradlab.core.out_argument import copy_to_out
from gradlab.core.promotion import GUARDS, HALF, PROMOTIONS, SINGLE, WIDENING_RULES, cast
from gradlab.core.registry import core_primitives
from gradlab.core.storage import FRESH, NUMBER_STORAGE, drop_dead_views, own_storage, tick
from gradlab.core.tensor import Tensor, as_output

Primitive = Any  # core.primitive imports this module


def number_tensor(value: float, like: Any) -> Tensor:
    """Return a Python number as a constant tensor with the dtype and device of the floating point array `like`.

    Equal numbers, except 0, share one tensor, which is read-only on the host. Long graphs then do not hold thousands of them, and
    a number is not sent to a GPU repeatedly.
    """
    host = type(like) is np.ndarray
    if host and like.dtype is SINGLE and (found := SINGLE_NUMBERS.get(value)) is not None:  # the most frequent case
        return found
    cache = None
    if value:  # 0.0 and -0.0 would share a key
        cache = NUMBER_CACHE[like.dtype.char] if host else gpu_number_cache(like)
    cached = None if cache is None else cache.get(value)
    if cached is not None:
        return cached
    tensor: Tensor = object.__new__(Tensor)
    array = np.array if host else namespace_of[type(like)].array
    try:
        tensor.array = array(value, like.dtype)
    except RuntimeWarning:  # too large for the dtype
        with silence():
            tensor.array = array(value, like.dtype)
    tensor.node = tensor.grad_slot = None
    tensor.storage = NUMBER_STORAGE
    if cache is not None:
        if host:
            tensor.array.flags.writeable = False
        if len(cache) >= MAX_CACHED_NUMBERS:  # not `==`: several threads may add at once
            cache.clear()
        cache[value] = tensor
    return tensor


def gpu_number_cache(like: Any) -> dict[float, Tensor] | None:
    """Return the cache for the GPU of an array, or None if the current stream is not the default one.

    The default stream copies a number to the GPU before it runs an operation that reads it. Another stream may not.
    """
    cupy = cuda.cupy
    if cupy is None or type(like) is not cupy.ndarray or cupy.cuda.get_current_stream().ptr:
        return None
    return NUMBER_CACHE[cupy.ndarray, like.dtype.char, like.device.id]


MAX_CACHED_NUMBERS = 256  # per dtype and device
NUMBER_CACHE: dict[Any, dict[float, Tensor]] = defaultdict(dict)
SINGLE_NUMBERS = NUMBER_CACHE[SINGLE.char]


def with_zero_derivative(result: Any, *saved: Any) -> Any:
    """Return a traced cotangent. If it has no history but a tensor that it was computed from does, give it a derivative of 0.

    See rules.zero_derivative.
    """
    if result.node is None:
        for x in saved:
            if x is not None and x.node is not None:
                return core_primitives.zero_derivative.record(result, x)
    return result


def multiply_into_partial(g: Any, partial: Any, held: tuple[Any, ...]) -> Any:
    """Compute g · partial in the memory of the partial derivative, unless the node still holds that memory.

    Operations on large arrays are bound by memory bandwidth.
    """
    if partial.base is None and partial.shape == g.shape and partial.dtype == g.dtype and all(partial is not h for h in held):
        return np.multiply(g, partial, out=partial)
    return np.multiply(g, partial)


def require_operands(xs: Any) -> Any:
    """Check that the operands of a variadic op are Tensors, and return them."""
    for i, x in enumerate(xs):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}")
    return xs


def unwrap_number(number: Any) -> Any:
    """Convert a one-element tensor, which PyTorch accepts as a number, to a number. Return other values unchanged."""
    return number.item() if type(number) is Tensor else number


def to_float32(x: Any) -> Any:
    """Convert a float16 array, or a Tensor with its node, to float32, in which the rules of a half primitive compute."""
    if type(x) is Tensor:
        return cast(x, SINGLE) if x.array.dtype.char == "e" else x
    return x if x is None or x.dtype.char != "e" else x.astype(SINGLE)


def to_float16(x: Any) -> Any:
    """Round a float32 array to float16."""
    if x.dtype.char != "f":
        return x
    with np.errstate(over="ignore"):
        return x.astype(HALF)


def fill_missing_tangents(node: Any, edges: Any, lead: tuple[int, ...], shapes: Any) -> list[Any]:
    """Replace the missing tangents of a variadic op by zeros."""
    like = next(t for t in edges if t is not None)
    xp = namespace_of[type(like)]
    return [xp.zeros(lead + shape, dtype=node.dtype) if t is None else t for t, shape in zip(edges, shapes, strict=True)]


# fmt: off
GENERATED_GLOBALS: dict[str, Any] = {
    "Tensor": Tensor, "FRESH": FRESH, "mode": mode, "tick": tick, "new": object.__new__, "NUMBERS": frozenset((float, int)),
    "FLOATS": (SINGLE, np.dtype(np.float64)), "number_tensor": number_tensor, "ndarray": np.ndarray,
    "namespace_of": namespace_of, "SCALARS": frozenset(SCALARS),
    "asarray": np.asarray, "own_storage": own_storage, "drop_dead_views": drop_dead_views, "ref": weakref.ref,
    "multiply": np.multiply, "as_output": as_output, "forward_failed": forward_failed, "move_to_one_device": move_to_one_device,
    "fill_missing_tangents": fill_missing_tangents, "require_operands": require_operands,
    "multiply_into_partial": multiply_into_partial, "MIN_SIZE_IN_PLACE": MIN_SIZE_IN_PLACE, "run_in_pieces": run_in_pieces,
    "MIN_SIZE_SHARED": MIN_SIZE_SHARED, "copy_to_out": copy_to_out, "with_zero_derivative": with_zero_derivative,
    "OBSERVERS": OBSERVERS, "notify_record": notify_record, "silence": silence, "to_float32": to_float32,
    "to_float16": to_float16, "unwrap_number": unwrap_number,
}
# fmt: on


def compile_function(op: Primitive, name: str, source: str, **scope: Any) -> Callable[..., Any]:
    """Compile the function that `source` defines, name it `name`, and register its source for tracebacks."""
    filename = register_source(f"{name} of {op.name}", source)
    scope = GENERATED_GLOBALS | {"op": op, "batch": op.batch, "forward": op.forward, "__name__": "gradlab.core.generated"} | scope
    exec(compile_source(source), scope)  # noqa: S102  (generated from declarations)
    function: Callable[..., Any] = scope["generated"]
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name, co_filename=filename)
    function.__name__ = function.__qualname__ = name
    return function


def register_source(label: str, source: str) -> str:
    """Add a source to `linecache`, for tracebacks, and return its file name.

    Variants of a primitive, such as the one for float16, share a label. If their sources differ, they are numbered.
    """
    lines = source.splitlines(keepends=True)
    filename, number = f"<gradlab: {label}>", 1
    while linecache.getlines(filename) not in ([], lines):
        number += 1
        filename = f"<gradlab: {label}, {number}>"
    linecache.cache[filename] = (len(source), None, lines, filename)
    return filename


@functools.cache
def compile_source(source: str) -> CodeType:
    """Compile a source once. Primitives of the same form share it, and a compilation takes about 0.4 ms."""
    return compile(source, "<gradlab>", "exec")


def recording_function(op: Primitive) -> Callable[..., Any]:
    """Generate `op.record`: promote, run the forward, wrap the result, and add a node if a gradient is required."""
    return compile_function(
        op, op.name, variadic_source(op) if op.variadic else record_source(op), Node=op.node_class, promote=PROMOTIONS[op.promote]
    )


def applying_function(op: Primitive) -> Callable[..., Any]:
    """Generate `op.apply`: record if an argument is a Tensor, otherwise run the forward on the arrays."""
    xs, keywords = op.variadic, [f"{k}={k}" for k in op.meta]
    first, args = (f"{xs}[0]", [f"*{xs}"]) if xs else (op.args[0], op.args)
    head = ", ".join([*args, *(["*"] if op.meta and not xs else []), *op.meta])
    tensors = f"any([type(x) is Tensor for x in {xs}])" if xs else " or ".join(f"type({a}) is Tensor" for a in args)
    arguments = [f"namespace_of[type({first})]" if p == "xp" else p for p in op.call] + args[:1] * bool(xs)
    return compile_function(
        op,
        "apply",
        f"""
def generated({head}):
    if {tensors}:
        return op.record({", ".join([*args, *keywords])})
    return forward({", ".join([*arguments, *keywords])})
""",
    )


# The most frequent promotion: a Python number and a floating point tensor.
PROMOTE_NUMBER = """if type({a}) is Tensor and type({b}) in NUMBERS and {a}.array.dtype in FLOATS:
            {b} = number_tensor({b}, {a}.array)
        elif type({b}) is Tensor and type({a}) in NUMBERS and {b}.array.dtype in FLOATS:
            {a} = number_tensor({a}, {b}.array)
        else:"""


def record_source(op: Primitive) -> str:
    # In the generated source, `x_a` is the array of the argument `a`, `e_a` its node, `r` the result and `made` its Tensor.
    public = dict(zip(op.args, op.public, strict=True))  # users' names of the arguments
    args, wrt = op.public, [public[a] for a in op.rules]
    mismatches = [f"type({a}) is not Tensor" for a in wrt] + [f"{a}.array.dtype is not {wrt[0]}.array.dtype" for a in wrt[1:]]
    if guard := GUARDS[op.promote]:
        mismatches.append(guard.format(wrt[0]))
    numbers = op.kind == "elementwise" and len(wrt) == len(args) == 2 and "tensors" not in op.promote
    value = {"xp": f"namespace_of[type(x_{args[0]})]", **{a: f"x_{p}" for a, p in public.items()}}
    if op.is_half:
        mismatches, value = [], {k: v if k == "xp" else f"to_float32({v})" for k, v in value.items()}
    arguments = ", ".join([value[p] for p in op.call] + [f"{k}={k}" for k in op.meta])
    call = f"forward({arguments})"
    if op.properties.costly:
        call = f"({call} if x_{args[0]}.size < MIN_SIZE_SHARED else run_in_pieces(forward, {arguments}))"
    saved = []
    for name in op.saves:  # a value is saved only if a gradient that needs it is required
        needed_by = [public[a] for a in op.rules if name in op.needs[a]]
        keep = "r" if name == "out" else public[name]
        saved.append(keep if needed_by == wrt else f"{keep} if {' or '.join(f'e_{a} is not None' for a in needed_by)} else None")
    beside = f", ({''.join(f'{a}, ' for a in args)})" if op.kind == "elementwise" else ""
    view = RECORD_VIEW.format(x=args[0], meta="".join(f"{k}, " for k in op.meta)) if op.view else ""
    promoted = f"""
    if {" or ".join(mismatches)}:
        {PROMOTE_NUMBER.format(a=wrt[0], b=wrt[1]) if numbers else "if True:"}
            promoted = promote(op, {", ".join(wrt)})
            if promoted is NotImplemented:
                return promoted
            {", ".join(wrt)}, = promoted{
        RECORD_HALF.format(
            some=" or ".join(f"{a}.array.dtype.char == 'e'" for a in wrt),
            given=", ".join([*args, *(f"{k}={k}" for k in (*op.meta, "out"))]),
        )
        if op.promote in WIDENING_RULES
        else ""
    }"""
    return f"""
def generated({", ".join([*args, "*", *op.meta])}, out=None):{promoted if mismatches else ""}
    {"; ".join(f"x_{a} = {a}.array" for a in args)}
    try:
        r = {f"to_float16({call})" if op.is_half else call}
    except RuntimeWarning:
        with silence():
            r = {f"to_float16({call})" if op.is_half else call}
    except Exception as error:
        joined = move_to_one_device(op, ({"".join(f"{a}, " for a in args)}), ({"".join(f"{k}, " for k in op.meta)}))
        if joined is not None:
            return op.record(*joined, {"".join(f"{k}={k}, " for k in op.meta)}out=out)
        raise forward_failed(op, error, ({"".join(f"x_{a}, " for a in args)}), ({"".join(f"{a}.node, " for a in args)}))
    if type(r) is not ndarray:
        if type(r) in SCALARS:
            r = asarray(r){
        UNWRAP_NUMBERS.format(given=", ".join([*args, *(f"{k}=unwrap_number({k})" for k in op.meta), "out=out"]))
        if op.meta
        else ""
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
        notify_record(op, made, ({"".join(f"{a}, " for a in args)}), ({"".join(f"{k}, " for k in op.meta)}))
    return made if out is None else copy_to_out(op.name.strip("_"), out, made{beside})
"""


# Most operations on float16 are computed in float32 and rounded once, by a variant of the primitive: see `Primitive.half`.
RECORD_HALF = """
            if {some}:
                return op.half.record({given})"""


UNWRAP_NUMBERS = """
        elif type(r) is Tensor:
            return op.record({given})"""


# Record that the result is a view of its source. (In NumPy and CuPy, bases are not nested.) It is inlined because it takes most
# of the time of a view. `storage.view_of` reads the record.
RECORD_VIEW = """
    base = r.base
    if base is not None and (base is x_{x} or base is x_{x}.base):
        made.storage = storage = {x}.storage if {x}.storage is not FRESH else own_storage({x})
        if made.node is not None:
            node.storage = storage
        made.view_record = {x}, op, ({meta}), "" if made.node is not None or mode.grad else "no_grad"
        views = storage.views
        views.append(ref(made))
        if len(views) > storage.limit:
            drop_dead_views(storage)"""


def variadic_source(op: Primitive) -> str:
    """Write the recording function of an op on a sequence of tensors, which are all differentiable and not saved."""
    xs, keywords = op.variadic, op.meta
    call = ", ".join(["namespace_of[type(arrays[0])]"] * ("xp" in op.call) + ["*arrays"] + [f"{k}={k}" for k in keywords])
    return f"""
def generated(*{xs}{", " + ", ".join(keywords) if keywords else ""}):
    arrays, edges, recorded = [], [], False                         # one loop: each comprehension would take 0.2 µs
    for x in {xs}:
        if type(x) is not Tensor or x.array.dtype is not {xs}[0].array.dtype:
            {xs} = promote(op, *require_operands({xs}))
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
        joined = move_to_one_device(op, tuple({xs}))
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
        notify_record(op, made, tuple({xs}), ({"".join(f"{k}, " for k in keywords)}))
    return made
"""


CO_VARARGS = 0x04  # inspect.CO_VARARGS


def parameters(function: Callable[..., Any]) -> tuple[list[str], list[str], str | None]:
    """Return the names of a function's positional parameters, of its keyword-only ones, and of its `*args`.

    They are read from the code object, since `inspect.signature` takes 30 times as long and this runs at import.
    """
    code = function.__code__
    names, n, m = code.co_varnames, code.co_argcount, code.co_kwonlyargcount
    return list(names[:n]), list(names[n : n + m]), names[n + m] if code.co_flags & CO_VARARGS else None


def returns_its_argument(rule: Callable[..., Any]) -> bool:
    """Return True if a rule is `lambda b: b`, which need not be called."""
    code = rule.__code__
    return code.co_argcount == 1 and code.co_code == IDENTITY_CODE.co_code


IDENTITY_CODE = (lambda b: b).__code__


def rule_caller(op: Primitive, name: str) -> Callable[..., Any]:
    """Generate `op.vjp`, `op.jvp` or a variant, which applies all rules of a node in one call."""
    rules = op.tangents if "jvp" in name else op.rules
    source = variadic_caller_source(op, name) if op.variadic else caller_source(op, name, rules)
    return compile_function(op, name, source, **{f"rule_{arg}": rule for arg, rule in rules.items()})


def caller_source(op: Primitive, name: str, rules: dict[str, Any]) -> str:
    """Write `f(node, edges, g, lead)`, which returns one result per edge. For a jvp, `edges` are the tangents.

    Rules receive saved Tensors as they are if traced, as NumPy scalars if the output is 0-d (their arithmetic is ten times
    faster), and as arrays otherwise.
    """
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
            value |= {n: f"to_float32({value[n]})" for n in op.saves}
        if scalar:
            value |= {n: f"{value[n]}[()]" for n in op.saves}
        if rule is op.forward:  # linear, bilinear: the op with the tangent in place of this argument
            value[arg] = incoming
            meta = f"**batch(lead, {', '.join(op.meta)})" if op.batch else ", ".join(f"{k}={k}" for k in op.meta)
            call = f"op({', '.join(value[a] for a in op.args)}, {meta})"
        else:
            names = parameters(rule)[0]
            arguments = ", ".join(value[p] for p in names)
            call = arguments if returns_its_argument(rule) else f"rule_{arg}({arguments})"
            if op.kind == "elementwise" and "g" not in names:  # a partial derivative. The ufunc is faster than `*` on arrays
                fresh = not traced and not scalar and not returns_its_argument(rule)
                call = f"{incoming} * {call}" if traced or scalar else f"multiply({incoming}, {call})"
                if fresh:
                    held = "".join(f"{value[n]}, " for n in (*op.saves, *op.meta))
                    in_place = f"{call.replace('multiply', 'multiply_into_partial')[:-1]}, ({held}))"
                    call = f"{call} if {incoming}.size < MIN_SIZE_IN_PLACE else {in_place}"
            if traced and not tangent and not op.piecewise and (read := [value[n] for n in op.saves if n in names]):
                call = f"with_zero_derivative({call}, {', '.join(read)})"
        calls.append(f"None if e_{arg} is None else {call}")
    unpack = [f"{''.join(f'e_{a}, ' for a in rules)}= edges"]
    unpack += [f"{''.join(f's_{n}, ' for n in op.saves)}= node.saved"] if op.saves else []
    unpack += [f"{''.join(f'{k}, ' for k in op.meta)}= node.meta"] if op.meta else []
    if op.is_half:
        unpack += [f"{e} = to_float32({e})" for e in ([f"e_{a}" for a in rules] if tangent else ["g"])]
    return f"def generated(node, edges, g, lead):\n    {'; '.join(unpack)}\n    return {', '.join(calls)},\n"


def variadic_caller_source(op: Primitive, name: str) -> str:
    xs = op.variadic or ""
    unpack = f"shapes, {''.join(f'{k}, ' for k in op.meta)}= node.meta"
    if "jvp" in name:
        meta = f"**batch(lead, {', '.join(op.meta)})" if op.batch else ", ".join(f"{k}={k}" for k in op.meta)
        return (
            f"def generated(node, edges, g, lead):\n    {unpack}\n"
            f"    return op(*fill_missing_tangents(node, edges, lead, shapes), {meta}),\n"
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
