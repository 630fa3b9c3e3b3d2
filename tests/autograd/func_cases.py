"""Expressions that call `func`. They are evaluated with the names of gradlab and with those of torch."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from functools import partial
from typing import Any

Pair = namedtuple("Pair", "a b")

EXPRESSIONS = """
grad(lambda x: (x * x).sum())(x) | grad(lambda x: (x * x).sum())(r) | grad(lambda x: (w * x).sum())(x) | grad(lambda x: x)(x)
grad(lambda x: (x.sum(),))(x) | grad(lambda x: x.sum(), has_aux=True)(x) | grad(lambda x: (x.sum(), [x, w * 1]), has_aux=True)(x)
grad(lambda x: (x.sum(), 3), has_aux=True)(x) | grad(lambda x: x.sum())(3.) | grad(lambda x: x.sum(), argnums=1)(x)
grad(lambda x: x.sum(), argnums=(0, 0))(x) | grad(lambda x: x.sum(), argnums=())(x) | grad(lambda x: x.sum(), argnums="a")(x)
grad(lambda x: x.sum(), argnums=("a",))(x) | grad(lambda x, y: (x * y).sum(), argnums=(1, 0))(x, r)
grad(lambda x, y: (x * y).sum(), argnums=-1)(x, r) | grad(lambda x, k: (x * k).sum())(x, k=2.) | grad(lambda x: x.sum())(i)
grad(lambda x: (x > 0).sum())(x) | grad(lambda x: lib.tensor(1.))(x) | grad(lambda x: 3.)(x) | grad(written)(x)
grad(lambda x: written(x * 1))(x) | grad(lambda x: (unrecorded(x) * x).sum())(x)
grad(lambda p: (p["a"] * p["b"][0]).sum())(tree) | grad(lambda p: (p.a * p.b).sum())(Pair(x, x))
grad(lambda p: p[0].sum())((x, x)) | grad(lambda p: p[0].sum())([x, 2.]) | grad(lambda p: (p["a"] ** 2).sum())(OrderedDict(a=x))
grad(grad(grad(lambda s: s ** 5)))(s) | grad(lambda s: s)(s) | grad(lambda s: s * grad(lambda t: s + t)(s))(s)
grad(lambda s: s * jvp(lambda t: s * t, (s,), (s,))[1])(s) | grad(lambda s: vjp(lambda t: t ** 3, s)[1](s)[0])(s)
grad(lambda s: unrecorded(s) * s)(s) | grad_and_value(lambda s: s ** 2)(s)
grad_and_value(lambda s: (s ** 2, s), has_aux=True)(s) | grad_and_value(lambda x: (x * w).sum())(x)
in_no_grad(lambda: grad(lambda x: (x * w).sum())(r)) | grad(lambda s: in_no_grad(lambda: grad(lambda t: t ** 3)(s)) * s)(s)

vjp(lambda x: x * w, x)[0] | vjp(lambda x: x, r)[0] | vjp(lambda x: x * x, x)[1](x) | vjp(lambda x: x * x, x)[1]((x,))
vjp(lambda x: (x, x), x)[1]((x,)) | vjp(lambda x: {"a": x}, x)[1]({"a": x}) | vjp(lambda x: x * x, x)[1](r)
vjp(lambda x: x * x, x)[1](lib.ones(7)) | vjp(lambda x: 3, x) | vjp(lambda x: None, x) | vjp(lambda x: (), x)
vjp(lambda x: x > 0, x) | vjp(lambda x: x, 3.) | vjp(lambda x: x, x, has_aux=True)
vjp(lambda x: (x, {"a": x}), x, has_aux=True)[2] | vjp(lambda x, y: x @ y, x, r)[1](s) | vjp(lambda x: x * w, x)[1](x)
vjp(lambda x: x * x, x)[1](x, create_graph=False) | vjp(lambda x, y: (x * 2, [y]), x, x)[1]((x, [x]))
vjp(lambda x: (x * w, w * 2), x)[1]((x, x))

jvp(lambda x: x, x, x) | jvp(lambda x: x, (x,), x) | jvp(lambda x: x, (x,), (lib.ones(7),)) | jvp(lambda x: x, (x,), (3,))
jvp(lambda x: x, (3.,), (3.,)) | jvp(lambda x: x, (), ()) | jvp(lambda x: 3, (x,), (x,)) | jvp(lambda x: w * 1, (x,), (x,))
jvp(lambda x: w * 1, (x,), (x,), strict=True) | jvp(lambda x: (x, [x * w]), (x,), (x,)) | jvp(lambda x: x > 0, (x,), (x,))
jvp(lambda x: x * x, (r,), (x,)) | jvp(lambda x: x * x, (x,), (r,)) | jvp(lambda x: x * x.detach(), (x,), (x,))
jvp(lambda x: x, (i,), (i,)) | jvp(lambda p: p["a"] * p["b"][0], (tree,), (tree,))
jvp(lambda x: (x * x, x), (x,), (x,), has_aux=True) | jvp(lambda x: x, (x,), (x,), has_aux=True)
jvp(grad(lambda x: (x ** 3).sum()), (x,), (x,)) | jvp(lambda s: jvp(lambda t: t ** 4, (s,), (s,))[1], (s,), (s,))
in_no_grad(lambda: jvp(lambda x: x * x, (r,), (r,)))

jacrev(lambda x: x * x)(x) | jacrev(lambda x: x * x)(r) | jacrev(lambda x: w * x)(x)
jacrev(lambda x: x["a"] * 2)({"a": x, "b": x}) | jacrev(lambda x, y: (x * x, {"a": y}), argnums=(0, 1))(x, x)
jacrev(lambda x: 3)(x) | jacrev(lambda x: x, chunk_size=0)(x) | jacrev(lambda x: x, argnums=3)(x)
jacrev(lambda x, y: x * x, argnums=(-1,))(x, x) | jacrev(lambda x, y: x * x, argnums=None)(x, x)
jacrev(lambda x: x.outer(x), chunk_size=2)(x) | jacrev(lambda x: x.outer(x), chunk_size=1)(x)
jacrev(lambda x: (x * 2, x), has_aux=True)(x) | jacrev(jacrev(lambda x: x ** 3))(x) | jacrev(jacfwd(lambda x: x ** 3))(x)
jacfwd(jacrev(lambda x: x ** 3))(x) | jacrev(lambda s: s ** 2)(s) | jacfwd(lambda x: x * x)(x)
jacfwd(lambda x, y: x * y, argnums=None)(x, x) | jacfwd(lambda x: x * x)(r) | jacfwd(lambda x: w * x)(x)
jacfwd(lambda x: (w * x, [x]))(x) | jacfwd(lambda x: 3)(x) | jacfwd(lambda x: (x, 3))(x)
jacfwd(lambda x: (x * 2, x), has_aux=True)(x) | jacfwd(lambda x: w * 1)(x)
jacfwd(lambda x, y: (x * y, {"a": y}), argnums=(0, 1))(x, x) | jacfwd(lambda s: s * x)(s) | hessian(lambda x: x ** 3)(x)
hessian(lambda x, y: (x * y).sum(), argnums=(0, 1))(x, x) | hessian(lambda x: (x["a"] ** 2).sum())({"a": x})
hessian(lambda x: (x ** 3 * w).sum())(x) | hessian(lambda x: (x ** 3).sum())(r) | jacfwd(hessian(lambda x: (x ** 4).sum()))(x)
grad(lambda x: (jacrev(lambda y: y ** 3)(x) * jacfwd(lambda y: y ** 2)(x)).sum())(x)

vmap(lambda x: x)(3) | vmap(lambda x: x)() | vmap(lambda x: x, in_dims=(0, 0))(x) | vmap(lambda x: x, in_dims="a")(x)
vmap(lambda x: x, in_dims=[0])(x) | vmap(lambda x: x, in_dims=2)(x) | vmap(lambda x, y: x)(x, m)
vmap(lambda x: x, in_dims=None)(x) | vmap(lambda x: x, out_dims=None)(x) | vmap(lambda x: 3)(x)
vmap(lambda x: 3, out_dims=None)(x) | vmap(lambda x: x, out_dims=3)(x) | vmap(lambda x: (x, 3), out_dims=(0, None))(x)
vmap(lambda x: (x, x), out_dims=(0, 1, 2))(x) | vmap(lambda x: x, out_dims="a")(x) | vmap(lambda x: x, out_dims=(0, 0))(x)
vmap(lambda x: (x,), out_dims=(0,))(x) | vmap(lambda x: w, out_dims=None)(x) | vmap(lambda x: {"a": x, "b": [x]})(x)
vmap(lambda x: {"a": x, "b": [x]}, out_dims={"a": 0, "b": [0]})(x)
vmap(lambda x: {"a": x, "b": [x]}, out_dims={"a": 0, "b": 0})(x)
vmap(lambda d: d["a"] * d["b"], in_dims=({"a": 0, "b": None},))({"a": x, "b": x})
vmap(lambda d: d.a * d.b, in_dims=(Pair(0, None),))(Pair(x, x)) | vmap(lambda x: x + lib.randn(1))(x)
vmap(lambda x: x, randomness="foo")(x) | vmap(lambda x: x, chunk_size=0)(x) | vmap(lambda x, y: x * y, in_dims=(0, None))(x, y=x)
vmap(lambda x, y: x * y)(x, y=x) | vmap(lambda x: x.sum())(m[:0]) | vmap(lambda x: None, out_dims=None)(x)
vmap(lambda x: None)(x) | vmap(lambda x: (x, None), out_dims=(0, None))(x) | vmap(lambda x: x, in_dims=-1)(m)
vmap(lambda x: x, in_dims=1, out_dims=-1)(m) | vmap(lambda x: x)(s) | vmap(lambda x: x, in_dims=(.5,))(x)
vmap(partial(lambda x: x))(3) | vmap(lambda x: x * w, chunk_size=2)(m)
vmap(vmap(lambda a, b: a * b, in_dims=(None, 0)), in_dims=(0, None))(x, x) | vmap(grad(lambda x: (x * w).sum()))(m)
vmap(grad(lambda w_, a: (w_ * a).sum() ** 2), in_dims=(None, 0))(x, m) | vmap(lambda x: x.sum(), in_dims=0)(r.expand(2, 3))
vmap(lambda x: lib.zeros(2) + 1, randomness="same")(x) | jacrev(vmap(lambda x: x ** 2))(x) | vmap(jacfwd(lambda x: x ** 2))(m)
vmap(lambda v: vjp(lambda x: x ** 3, x)[1](v)[0])(lib.eye(3, dtype=lib.float64))

vmap(lambda p: p["a"] * p["b"], in_dims=({"b": 0, "a": None},))({"a": x, "b": x * 2})
vmap(lambda p: p["a"], in_dims=({"c": 0},))({"a": x}) | vjp(lambda x: {"a": x, "b": x * 2}, x)[1]({"b": x, "a": x})
vmap(lambda p: p["a"], in_dims=({"a": 0},))(OrderedDict(a=x))

linearize(lambda x: x * x, x)[1](x) | linearize(lambda x: x * x, x)[1](x, x) | linearize(lambda x: x * x, x)[1](lib.ones(7))
linearize(lambda x: x * x, x)[1](lib.ones(3)) | linearize(lambda x: (x, {"a": x * w}), x)[1](x)
linearize(lambda x: x * w, x)[0] | linearize(lambda x: 3 * x, r)[1](x) | linearize(lambda x: 3, x)[0]
linearize(lambda x, y: (x * y).sum(), x, r)[1](x, x) | functionalize(lambda x: x.add_(1))(x.clone())
functionalize(lambda x: x, remove="a") | debug_unwrap(x)

functional_call(layer, {"weight": m[:1], "bias": m[0, :1]}, x[:3]) | functional_call(layer, {"weight": m[:1]}, (x,))
functional_call(layer, {"weight": m[:1], "foo": x}, x) | functional_call(layer, {"weight": m[:1], "foo": x}, x, strict=True)
functional_call(layer, {"foo.bar": x}, x) | functional_call(layer, {"weight": 3}, x) | functional_call(layer, 3, x)
functional_call(layer, [3], x) | functional_call(layer, [{"a": x}, {"a": x}], x)
functional_call(layer, [{"weight": m[:1]}, {"bias": m[0, :1]}], x)
functional_call(layer, {"weight": m[:1]}, kwargs={"input": x}) | functional_call(tied, {"0.weight": m[:, :2]}, x[:2])
functional_call(tied, {"0.weight": m[:, :2], "1.weight": m[:, 1:]}, x[:2])
functional_call(tied, {"0.weight": m[:, :2]}, x[:2], tie_weights=False)
grad(lambda p: functional_call(layer, p, x).sum())(parameters(layer)) | stack_module_state([])
stack_module_state([layer, layer]) | stack_module_state([layer, lib.nn.ReLU()]) | stack_module_state([layer, linear(lib).eval()])
stack_module_state([normal, normal])
vmap(lambda p, a: functional_call(layer, p, a), in_dims=(0, None))(stack_module_state([layer, layer])[0], x)
replace_all_batch_norm_modules_(normal)(m).sum(0)
"""


def expressions() -> list[str]:
    return [e.strip() for e in EXPRESSIONS.replace("(\n", "(").replace("\n", " | ").split(" | ") if e.strip()]


def linear(lib: Any) -> Any:
    made = lib.nn.Linear(3, 1, dtype=lib.float64)
    with lib.no_grad():
        made.weight.copy_(lib.tensor([[1.0, -2.0, 0.5]])).requires_grad_()
        made.bias.fill_(0.25)
    return made


def names(lib: Any) -> dict[str, Any]:
    """Return the names that the expressions use."""

    def tensor(data: Any, requires_grad: bool = False) -> Any:
        return lib.tensor(data, dtype=lib.float64, requires_grad=requires_grad)

    def add_in_place(x: Any) -> Any:
        x.add_(1)
        return (x * x).sum()

    def double_without_grad(x: Any) -> Any:
        with lib.no_grad():
            return x * 2

    def in_no_grad(call: Any) -> Any:
        with lib.no_grad():
            return call()

    x = tensor([0.5, -1.25, 2.0])
    tied = lib.nn.Sequential(*[lib.nn.Linear(2, 2, bias=False, dtype=lib.float64) for _ in range(2)])
    with lib.no_grad():
        tied[0].weight.copy_(lib.tensor([[1.0, 2.0], [-0.5, 0.25]]))
    tied[1].weight = tied[0].weight
    return {
        "lib": lib,
        "x": x,
        "r": tensor([1.0, 2.0, 3.0], True),
        "w": tensor([3.0, 1.0, -2.0], True),
        "s": tensor(0.7),
        "m": tensor([[1.0, 0.5, -1.0], [-0.75, 2.0, 0.25]]),
        "i": lib.tensor([1, 2, 3]),
        "tree": {"a": x, "b": [x * 2]},
        "written": add_in_place,
        "unrecorded": double_without_grad,
        "in_no_grad": in_no_grad,
        "layer": linear(lib),
        "tied": tied,
        "normal": lib.nn.BatchNorm1d(3, dtype=lib.float64),
        "linear": linear,
        "parameters": lambda m: dict(m.named_parameters()),
        "Pair": Pair,
        "OrderedDict": OrderedDict,
        "partial": partial,
        **{n: getattr(lib.func, n) for n in lib.func.__all__},
    }
