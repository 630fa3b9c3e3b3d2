"""Programs with modules, containers, initialisation and nn.utils, run with torch to record results and with gradlab.

A case is a function of `lib`, the library, that returns plain data.
"""

from __future__ import annotations

import copy
import pickle
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

CASES: dict[str, Callable[[Any], Any]] = {}


def case(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Register a case with the name of its function."""
    CASES[function.__name__] = function
    return function


def error_of(do: Callable[[], Any]) -> Any:
    """Return the type and text of the error that `do` raises."""
    try:
        return do()
    except Exception as error:  # noqa: BLE001  (any error is compared)
        return {"raised": [type(error).__name__, str(error)]}


def layer(lib: Any, rows: int, columns: int, start: float = 0.0) -> Any:
    """Return a user-defined module: an affine map with known numbers."""

    class Affine(lib.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            count = rows * columns
            self.weight = lib.nn.Parameter(lib.arange(count).reshape(columns, rows) / count + start)
            self.bias = lib.nn.Parameter(lib.zeros(columns))

        def forward(self, x: Any) -> Any:
            return x @ self.weight.T + self.bias

        def extra_repr(self) -> str:
            return f"{rows} -> {columns}"

    return Affine()


def net(lib: Any) -> Any:
    """Return a module with children, both kinds of buffers, a parameter and a None."""

    class Net(lib.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = layer(lib, 2, 3)
            self.second = lib.nn.Sequential(layer(lib, 3, 3, -0.5), layer(lib, 3, 1))
            self.scale = lib.nn.Parameter(lib.tensor([2.0]))
            self.register_buffer("count", lib.tensor(3))
            self.register_buffer("scratch", lib.zeros(2), persistent=False)
            self.register_buffer("empty", None)
            self.register_parameter("nothing", None)
            self.absent = None

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x).relu()) * self.scale

    return Net()


def name_pairs(pairs: Any) -> list[Any]:
    return [[name, value.tolist()] for name, value in pairs]


# ------------------------------------------------------------------------------------------------------------------ members
@case
def text(lib: Any) -> Any:
    model = net(lib)
    return [repr(model), repr(model.first), repr(model.second), repr(lib.nn.Module()), repr(lib.nn.Sequential())]


@case
def text_of_several_lines(lib: Any) -> Any:
    class Wordy(lib.nn.Module):  # type: ignore[name-defined,misc]
        def extra_repr(self) -> str:
            return "one\ntwo"

    wordy = Wordy()
    outer = lib.nn.Sequential(OrderedDict(inner=wordy, last=lib.nn.Module()))
    return [repr(wordy), repr(outer), repr(lib.nn.ModuleDict({"a": outer}))]


@case
def parameters(lib: Any) -> Any:
    model = net(lib)
    return [
        name_pairs(model.named_parameters()),
        name_pairs(model.named_parameters("net")),
        name_pairs(model.named_parameters(recurse=False)),
        [list(p.shape) for p in model.parameters()],
        name_pairs(model.named_buffers()),
        [b.tolist() for b in model.buffers()],
        sum(p.numel() for p in model.parameters()),
    ]


@case
def modules(lib: Any) -> Any:
    model = net(lib)
    return [
        [[name, type(m).__name__] for name, m in model.named_modules()],
        [[name, type(m).__name__] for name, m in model.named_modules(prefix="net")],
        [[name, type(m).__name__] for name, m in model.named_children()],
        [type(m).__name__ for m in model.children()],
        len(list(model.modules())),
    ]


@case
def by_path(lib: Any) -> Any:
    model = net(lib)
    return [
        model.get_submodule("second.1") is model.second[1],
        model.get_submodule("") is model,
        model.get_parameter("second.0.bias").tolist(),
        model.get_buffer("count").tolist(),
        *(
            error_of(lambda f=f, name=name: f(name))
            for f, name in (
                (model.get_submodule, "third"),
                (model.get_submodule, "scale"),
                (model.get_parameter, "second.0.none"),
                (model.get_parameter, "count"),
                (model.get_buffer, "scale"),
            )
        ),
    ]


@case
def shared_parameter(lib: Any) -> Any:
    model = net(lib)
    model.second[0].bias = model.first.bias
    model.again = model.first
    return [
        [name for name, _ in model.named_parameters()],
        [name for name, _ in model.named_parameters(remove_duplicate=False)],
        [name for name, _ in model.named_modules()],
        [name for name, _ in model.named_modules(remove_duplicate=False)],
        list(model.state_dict()),
    ]


@case
def parameter(lib: Any) -> Any:
    p, still = lib.nn.Parameter(lib.tensor([1.0, 2.0])), lib.nn.Parameter(lib.tensor([1, 2]), requires_grad=False)
    view = lib.ones(2, 2)
    of_view = lib.nn.Parameter(view[0])
    with lib.no_grad():
        of_view.mul_(3)
    grown = (p * 2).sum()
    grown.backward()
    twin, thawed = copy.deepcopy(p), pickle.loads(pickle.dumps(p))
    return [
        repr(p),
        repr(still),
        str(p),
        repr(p * 2),
        repr(p.data),
        repr(p.detach()),
        repr(p.grad),
        view.tolist(),
        p.is_leaf,
        isinstance(p, lib.nn.Parameter),
        isinstance(p, lib.Tensor),
        isinstance(p * 2, lib.nn.Parameter),
        isinstance(p.data, lib.nn.Parameter),
        isinstance(lib.ones(1), lib.nn.Parameter),
        repr(twin),
        repr(twin.grad),
        repr(thawed),
        isinstance(twin, lib.nn.Parameter),
        isinstance(thawed, lib.nn.Parameter),
        repr(lib.nn.Parameter()),
        repr([p]),
        f"{p}",
        p.requires_grad_(False).requires_grad,
        isinstance(p, lib.nn.Parameter),
        error_of(lambda: lib.nn.Parameter(lib.tensor([1, 2]))),
    ]


@case
def buffers_assigned(lib: Any) -> Any:
    m = lib.nn.Module()
    m.kept, m.passing = lib.nn.Buffer(lib.ones(2)), lib.nn.Buffer(lib.ones(1), persistent=False)
    m.kept = lib.zeros(3)
    return [list(m.state_dict()), name_pairs(m.named_buffers()), isinstance(m.passing, lib.nn.Buffer), repr(m.passing)]


@case
def assignment(lib: Any) -> Any:
    model = net(lib)
    model.first = layer(lib, 1, 1)
    model.scale = None
    before = [list(model.state_dict()), repr(model)]
    model.scale = lib.nn.Parameter(lib.ones(1))
    model.count = lib.nn.Parameter(lib.ones(1))
    model.absent = layer(lib, 1, 1)
    del model.first
    del model.scratch
    return [
        *before,
        list(model.state_dict()),
        [name for name, _ in model.named_buffers()],
        hasattr(model, "first"),
        "weight" in dir(layer(lib, 1, 1)),
        "training" in dir(model),
        "0" in dir(model.second),
    ]


@case
def assignment_errors(lib: Any) -> Any:
    model = net(lib)

    class Hasty(lib.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self, what: Any) -> None:
            self.part = what

    class Idle(lib.nn.Module):  # type: ignore[name-defined,misc]
        pass

    leaf = lib.ones(2, requires_grad=True)
    return [
        error_of(do)
        for do in (
            lambda: model.missing,
            lambda: setattr(model, "scale", lib.ones(1)),
            lambda: setattr(model, "scale", 3.0),
            lambda: setattr(model, "first", 3),
            lambda: setattr(model, "count", 3),
            lambda: Hasty(layer(lib, 1, 1)),
            lambda: Hasty(lib.nn.Parameter(lib.ones(1))),
            lambda: Hasty(3).part,
            lambda: Hasty(3).register_buffer("b", None),
            lambda: Idle()(lib.ones(1)),
            lambda: Idle(3),
            lambda: Idle(width=3),
            lambda: model.register_buffer("a.b", None),
            lambda: model.register_buffer("", None),
            lambda: model.register_buffer("first", None),
            lambda: model.register_buffer("new", 3),
            lambda: model.register_buffer(3, None),
            lambda: model.register_parameter("new", lib.ones(1)),
            lambda: model.register_parameter("a.b", None),
            lambda: model.register_parameter("first", None),
            lambda: model.register_parameter("new", leaf * 2),
            lambda: model.add_module("a.b", None),
            lambda: model.add_module("", None),
            lambda: model.add_module("scale", None),
            lambda: model.add_module("new", lib.ones(1)),
            lambda: model.add_module(3, None),
            lambda: model.train(3),
            lambda: delattr(model, "missing"),
            lambda: model.to(lib.int64),
            lambda: lib.nn.Sequential(3),
            lambda: lib.nn.Sequential(lib.ones(1)),
        )
    ]


# ----------------------------------------------------------------------------------------------------------- state_dict
@case
def state(lib: Any) -> Any:
    model = net(lib)
    found = model.state_dict()
    kept = model.state_dict(keep_vars=True, prefix="net.")
    given: dict[str, Any] = {}
    model.state_dict(destination=given)
    return [
        [[name, repr(value)] for name, value in found.items()],
        type(found).__name__,
        list(kept),
        list(given),
        kept["net.scale"] is model.scale,
        found["scale"].data_ptr() == model.scale.data_ptr(),
        list(found._metadata),
        [dict(m) for m in found._metadata.values()],
    ]


@case
def load(lib: Any) -> Any:
    model, other = net(lib), net(lib)
    with lib.no_grad():
        for p in other.parameters():
            p.add_(1)
    before = model.first.weight
    answer = model.load_state_dict(other.state_dict())
    assigned = net(lib)
    source = other.state_dict()
    assigned.load_state_dict(source, assign=True)
    return [
        repr(answer),
        str(answer),
        name_pairs(model.named_parameters()),
        model.first.weight is before,
        assigned.first.weight.data_ptr() == source["first.weight"].data_ptr(),
        assigned.first.weight.requires_grad,
        isinstance(assigned.first.weight, lib.nn.Parameter),
    ]


@case
def load_partly(lib: Any) -> Any:
    model = net(lib)
    found = model.state_dict()
    del found["first.weight"], found["count"]
    found["more"] = lib.ones(1)
    found["second.7.bias"] = lib.ones(1)
    loose = model.load_state_dict(found, strict=False)
    return [repr(loose), loose.missing_keys, loose.unexpected_keys, error_of(lambda: model.load_state_dict(found))]


@case
def load_wrong(lib: Any) -> Any:
    model = net(lib)
    found = model.state_dict()
    found["first.bias"], found["scale"] = lib.ones(4), lib.ones(2, 1)
    listed = OrderedDict(model.state_dict(), scale=3)
    return [
        error_of(lambda: model.load_state_dict(found)),
        error_of(lambda: model.load_state_dict({})),
        error_of(lambda: model.load_state_dict([1])),
        error_of(lambda: lib.nn.Sequential(model).load_state_dict(found)),
        error_of(lambda: model.load_state_dict(found, strict=False)),
        error_of(lambda: model.load_state_dict(listed)),
    ]


@case
def extra_state(lib: Any) -> Any:
    class Counting(lib.nn.Module):  # type: ignore[name-defined,misc]
        calls = 0

        def get_extra_state(self) -> Any:
            return {"calls": self.calls}

        def set_extra_state(self, state: Any) -> None:
            self.calls = state["calls"]

    one, other = Counting(), lib.nn.Sequential(Counting())
    one.calls = 5
    other.load_state_dict(lib.nn.Sequential(one).state_dict())
    return [
        list(one.state_dict().items()),
        other[0].calls,
        error_of(lambda: one.load_state_dict({})),
        error_of(lambda: layer(lib, 1, 1).load_state_dict({**layer(lib, 1, 1).state_dict(), "_extra_state": 1})),
    ]


@case
def hooks_of_state(lib: Any) -> Any:
    model, seen = layer(lib, 1, 1), []
    model.register_state_dict_post_hook(lambda m, d, prefix, meta: d.update(more=lib.ones(1)))
    model.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append([prefix, keep]))
    model.register_load_state_dict_pre_hook(lambda m, d, *rest: d.pop("more", None) and None)
    model.register_load_state_dict_post_hook(lambda m, keys: seen.append([keys.missing_keys, keys.unexpected_keys]))
    found = model.state_dict()
    return [list(found), repr(model.load_state_dict(found)), seen]


# --------------------------------------------------------------------------------------------- changes of the whole module
@case
def modes(lib: Any) -> Any:
    model = net(lib)
    start = model.training
    off = model.eval() is model and [m.training for m in model.modules()]
    model.second.train()
    return [start, off, [m.training for m in model.modules()], model.train(False).training]


@case
def apply(lib: Any) -> Any:
    seen: list[str] = []
    model = net(lib)
    answer = model.apply(lambda m: seen.append(type(m).__name__))
    return [seen, answer is model]


@case
def gradients(lib: Any) -> Any:
    model = net(lib)
    model(lib.tensor([[1.0, 2.0]])).sum().backward()
    found = [[name, repr(p.grad)] for name, p in model.named_parameters()]
    model.zero_grad(set_to_none=False)
    zero = [repr(p.grad) for p in model.parameters()]
    model.zero_grad()
    none = [repr(p.grad) for p in model.parameters()]
    model.first.requires_grad_(False)
    return [found, zero, none, [p.requires_grad for p in model.parameters()], repr(model.first.bias)]


@case
def conversions(lib: Any) -> Any:
    model = net(lib)
    weight = model.first.weight
    model(lib.ones(1, 2)).sum().backward()
    dtypes = lambda: [str(v.dtype) for v in model.state_dict().values()]  # noqa: E731
    start, double = dtypes(), model.double() is model and dtypes()
    same = model.first.weight is weight
    return [
        start,
        double,
        same,
        repr(weight.grad),
        [str(p.grad.dtype) for p in model.parameters()],
        model.half() and dtypes(),
        model.float() and dtypes(),
        model.to(lib.float64) and dtypes(),
        model.to("cpu") and dtypes(),
        model.to("cpu", lib.float32) and dtypes(),
        model.to(dtype=lib.float16) and dtypes(),
        model.to(lib.ones(1)) and dtypes(),
        model.cpu() is model,
        model.type(lib.float64) and dtypes(),
    ]


@case
def copies(lib: Any) -> Any:
    model = net(lib)
    twin = copy.deepcopy(model)
    with lib.no_grad():
        model.scale.fill_(9)
    shared = lib.nn.Sequential(model.first, model.first)
    both = copy.deepcopy(shared)
    return [
        twin.scale.tolist(),
        list(twin.state_dict()),
        repr(twin) == repr(model),
        both[0] is both[1],
        len(list(both.parameters())),
        copy.copy(model).scale is model.scale,
    ]


# ------------------------------------------------------------------------------------------------------------------- hooks
@case
def forward_hooks(lib: Any) -> Any:
    model, seen = layer(lib, 2, 1), []
    x = lib.ones(1, 2)
    one = model.register_forward_pre_hook(lambda m, args: seen.append(["before", type(m).__name__, len(args)]))
    two = model.register_forward_hook(lambda m, args, out: seen.append(["after", args[0].tolist(), out.tolist()]))
    first = model(x).tolist()
    one.remove()
    two.remove()
    quiet = model(x).tolist()
    with model.register_forward_pre_hook(lambda m, args: args[0] * 2), model.register_forward_hook(lambda m, args, out: out + 10):
        changed = model(x).tolist()
    model.register_forward_hook(lambda m, args, out: seen.append("late"))
    model.register_forward_hook(lambda m, args, out: seen.append("early"), prepend=True)
    model(x)
    return [seen, first, quiet, changed]


@case
def hooks_with_kwargs(lib: Any) -> Any:
    class Scaled(lib.nn.Module):  # type: ignore[name-defined,misc]
        def forward(self, x: Any, scale: float = 1.0) -> Any:
            if scale < 0:
                raise ValueError("negative")
            return x * scale

    model, seen = Scaled(), []
    x = lib.ones(1)
    plain = model(x, scale=3.0).tolist()
    model.register_forward_pre_hook(lambda m, args, kwargs: (args, {"scale": kwargs["scale"] + 1}), with_kwargs=True)
    model.register_forward_hook(lambda m, args, kwargs, out: seen.append([kwargs, out.tolist()]), with_kwargs=True)
    more = model(x, scale=3.0).tolist()
    model.register_forward_hook(lambda m, args, out: seen.append(["always", out]), always_call=True)
    failed = error_of(lambda: model(x, scale=-3.0))
    model.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    return [plain, more, failed, seen, error_of(lambda: model(x, scale=3.0))]


@case
def backward_hooks(lib: Any) -> Any:
    model, seen = layer(lib, 2, 1), []
    show = lambda grads: [None if g is None else g.tolist() for g in grads]  # noqa: E731
    handle = model.register_full_backward_hook(lambda m, gi, go: seen.append([type(m).__name__, show(gi), show(go)]))
    x = lib.tensor([[1.0, 2.0]], requires_grad=True)
    y = model(x)
    name = y.grad_fn.name()
    (y * 3).sum().backward()
    handle.remove()
    (model(x) * 3).sum().backward()
    once = len(seen)
    model.register_full_backward_pre_hook(lambda m, go: (go[0] * 10,))
    model.register_full_backward_hook(lambda m, gi, go: (gi[0] + 1,))
    x.grad = None
    model.zero_grad()
    model(x).sum().backward()
    return [seen, once, name, x.grad.tolist(), model.weight.grad.tolist()]


@case
def backward_hooks_of_several(lib: Any) -> Any:
    class Pair(lib.nn.Module):  # type: ignore[name-defined,misc]
        def forward(self, a: Any, b: Any, c: Any) -> Any:
            return a * b, a + c.sum()

    model, seen = Pair(), []
    show = lambda grads: [None if g is None else g.tolist() for g in grads]  # noqa: E731
    model.register_full_backward_hook(lambda m, gi, go: seen.append([show(gi), show(go)]))
    a, b = lib.tensor([1.0, 2.0], requires_grad=True), lib.tensor([3.0, 4.0], requires_grad=True)
    one, other = model(a, b, lib.ones(3))
    (one.sum() + 2 * other.sum()).backward()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        still = layer(lib, 2, 1)
        still.register_full_backward_hook(lambda m, gi, go: seen.append([show(gi), show(go)]))
        still(lib.ones(1, 2)).sum().backward()
    warned = [str(w.message).partition(". ")[0] for w in caught]
    return [seen, a.grad.tolist(), b.grad.tolist(), warned, still.weight.grad.tolist()]


# -------------------------------------------------------------------------------------------------------------- containers
@case
def sequential(lib: Any) -> Any:
    one, two, three = (layer(lib, n, n) for n in (1, 2, 3))
    s = lib.nn.Sequential(one, two)
    s.append(three)
    part, last = s[:2], s[-1]
    s.insert(1, layer(lib, 4, 4))
    text = repr(s)
    del s[0]
    s[0] = layer(lib, 5, 5)
    popped = s.pop(1)
    joined = s + part
    s += part
    named = lib.nn.Sequential(OrderedDict(a=one, b=two))
    return [
        repr(part),
        last is three,
        text,
        repr(s),
        popped is two,
        repr(joined),
        repr(joined * 2),
        len(s),
        [len(list(s))],
        repr(named),
        repr(named[1:]),
        named.a is one,
        list(joined.state_dict()),
        repr(s.extend([one])),
        error_of(lambda: s[9]),
        error_of(lambda: s["a"]),
        error_of(lambda: s.__add__([one])),
        error_of(lambda: s * 0),
        error_of(lambda: s.insert(77, one)),
        error_of(lambda: s.insert(0, 3)),
        error_of(lambda: lib.nn.Sequential(one)(3, 4)),
    ]


@case
def identity(lib: Any) -> Any:
    model = lib.nn.Identity(54, unused=0.1)
    return [repr(model), model(lib.ones(2)).tolist(), list(model.state_dict())]


@case
def module_list(lib: Any) -> Any:
    one, two = layer(lib, 1, 1), layer(lib, 2, 2)
    items = lib.nn.ModuleList([one, two])
    items.append(layer(lib, 2, 2))
    items.extend(layer(lib, 2, 2) for _ in range(3))
    text = repr(items)
    items.insert(0, two)
    items[1] = two
    del items[2:4]
    items += [one]
    return [
        text,
        repr(items),
        repr(items[1:3]),
        items[-1] is one,
        len(items),
        [type(m).__name__ for m in items],
        repr(items + iter([two])),
        items.pop(0) is two,
        list(items.state_dict()),
        repr(lib.nn.ModuleList()),
        error_of(lambda: items[17]),
        error_of(lambda: items.extend(3)),
        error_of(lambda: items.append(3)),
        error_of(lambda: items(lib.ones(1))),
    ]


@case
def module_dict(lib: Any) -> Any:
    one, two = layer(lib, 1, 1), layer(lib, 2, 2)
    d = lib.nn.ModuleDict({"one": one, "two": two})
    d["three"] = layer(lib, 3, 3)
    d.update([["four", layer(lib, 4, 4)]])
    text = repr(d)
    del d["three"]
    return [
        text,
        list(d),
        list(d.keys()),
        [k for k, _ in d.items()],
        len(list(d.values())),
        "one" in d,
        "three" in d,
        len(d),
        d["one"] is one,
        d.pop("two") is two,
        list(d.state_dict()),
        repr(lib.nn.ModuleDict()),
        error_of(lambda: d["none"]),
        error_of(lambda: d.update(3)),
        error_of(lambda: d.update([[1, 2, 3]])),
        d.clear(),
        len(d),
    ]


@case
def parameter_list(lib: Any) -> Any:
    items = lib.nn.ParameterList([lib.ones(2), lib.nn.Parameter(lib.zeros(1, 3))])
    items.append(lib.ones(()))
    items.extend([lib.ones(1)])
    items += [lib.zeros(2)]
    items[0] = lib.zeros(4)
    items.append("word")
    return [
        repr(items),
        len(items),
        list(items.state_dict()),
        items[-2].tolist(),
        [repr(p) for p in items],
        repr(items[1:3]),
        isinstance(items[0], lib.nn.Parameter),
        error_of(lambda: items[9]),
        error_of(lambda: items.extend(3)),
        repr(lib.nn.ParameterList()),
        error_of(lambda: items(3)),
    ]


@case
def parameter_dict(lib: Any) -> Any:
    d = lib.nn.ParameterDict({"a": lib.ones(2), "b": lib.nn.Parameter(lib.zeros(1, 3))})
    d["c"] = lib.ones(())
    d.update({"z": lib.ones(1)})
    text = repr(d)
    del d["z"]
    return [
        text,
        list(d),
        [k for k, _ in d.items()],
        [p.tolist() for p in d.values()],
        "a" in d,
        len(d),
        d.get("q"),
        list(d.state_dict()),
        d.pop("c").tolist(),
        d.popitem()[0],
        d.setdefault("s", lib.ones(1)).tolist(),
        repr(d | lib.nn.ParameterDict({"y": lib.ones(1)})),
        isinstance(d["a"], lib.nn.Parameter),
        error_of(lambda: d["none"]),
        error_of(lambda: d[3]),
        error_of(lambda: d(3)),
        list(reversed(d)),
        repr(d.copy()),
        d.clear(),
        len(d),
    ]


# ---------------------------------------------------------------------------------------------------------- initialisation
FILLS: dict[str, Callable[[Any, Any], Any]] = {
    "uniform": lambda init, t: init.uniform_(t, -1, 2),
    "normal": lambda init, t: init.normal_(t, 1.0, 0.5),
    "trunc": lambda init, t: init.trunc_normal_(t),
    "trunc narrow": lambda init, t: init.trunc_normal_(t, std=0.02),
    "trunc tail": lambda init, t: init.trunc_normal_(t, 0.0, 1.0, 1.0, 2.0),
    "trunc cut": lambda init, t: init.trunc_normal_(t, 0.0, 1.0, -0.5, 1.5),
    "constant": lambda init, t: init.constant_(t, 0.3),
    "ones": lambda init, t: init.ones_(t),
    "zeros": lambda init, t: init.zeros_(t),
    "eye": lambda init, t: init.eye_(t),
    "dirac": lambda init, t: init.dirac_(t),
    "dirac groups": lambda init, t: init.dirac_(t, 2),
    "xavier_uniform": lambda init, t: init.xavier_uniform_(t, gain=1.5),
    "xavier_normal": lambda init, t: init.xavier_normal_(t),
    "kaiming_uniform": lambda init, t: init.kaiming_uniform_(t, a=5**0.5),
    "kaiming_uniform relu": lambda init, t: init.kaiming_uniform_(t, mode="fan_out", nonlinearity="relu"),
    "kaiming_normal": lambda init, t: init.kaiming_normal_(t, nonlinearity="relu"),
    "kaiming_normal out": lambda init, t: init.kaiming_normal_(t, 0.2, "fan_out"),
    "orthogonal": lambda init, t: init.orthogonal_(t, 2.0),
    "sparse": lambda init, t: init.sparse_(t, 0.4),
    "bad mode": lambda init, t: init.kaiming_normal_(t, mode="fan"),
    "bad nonlinearity": lambda init, t: init.kaiming_uniform_(t, nonlinearity="gelu"),
}
SHAPES = [[4, 6], [5, 3], [4, 2, 3], [17]]


@case
def initial_values(lib: Any) -> Any:
    found = {}
    for name, fill in FILLS.items():
        for shape in SHAPES:
            lib.manual_seed(3)
            made = error_of(lambda shape=shape, fill=fill: fill(lib.nn.init, lib.nn.Parameter(lib.zeros(shape))))
            found[f"{name} {shape}"] = (
                made if isinstance(made, dict) else [made.tolist(), made.requires_grad, made.is_leaf, lib.rand(1).item()]
            )
    return found


@case
def initial_values_of_a_generator(lib: Any) -> Any:
    own = lib.Generator().manual_seed(5)
    init, double = lib.nn.init, lib.empty(2, 3, dtype=lib.float64)
    made = (
        init.normal_(lib.empty(3), generator=own),
        init.xavier_uniform_(lib.empty(2, 3), generator=own),
        init.kaiming_uniform_(double, generator=own),
        init.trunc_normal_(lib.empty(4), generator=own),
        init.uniform_(lib.empty(2), generator=own),
    )
    return [x.tolist() for x in made]


@case
def older_names(lib: Any) -> Any:
    found = []
    for name in ("xavier_uniform", "kaiming_normal", "normal", "constant", "uniform"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lib.manual_seed(1)
            made = getattr(lib.nn.init, name)(lib.zeros(2, 2), *((0.5,) if name == "constant" else ()))
            found.append([made.tolist(), [[w.category.__name__, str(w.message)] for w in caught]])
    return found


@case
def gains(lib: Any) -> Any:
    gain = lib.nn.init.calculate_gain
    return [gain(n) for n in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu")] + [
        gain("leaky_relu", 0.2),
        gain("leaky_relu", 1),
        error_of(lambda: gain("gelu")),
        error_of(lambda: gain("leaky_relu", "a")),
        error_of(lambda: gain("leaky_relu", True)),
    ]


# ----------------------------------------------------------------------------------------------------------------- nn.utils
def with_gradients(lib: Any) -> Any:
    model = net(lib)
    (model(lib.tensor([[1.0, 2.0], [3.0, -1.0]])) * 4).sum().backward()
    return model


@case
def clipped_norms(lib: Any) -> Any:
    found = []
    for bound, kind in ((1.0, 2.0), (1000.0, 2), (0.5, 1.0), (2.0, float("inf")), (0.1, 3)):
        model = with_gradients(lib)
        total = lib.nn.utils.clip_grad_norm_(model.parameters(), bound, kind)
        found.append([repr(total), [p.grad.tolist() for p in model.parameters()]])
    model = with_gradients(lib)
    model.scale.grad = lib.tensor([float("inf")])
    return [
        found,
        error_of(lambda: lib.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)),
        repr(lib.nn.utils.clip_grad_norm_([], 1.0)),
        repr(lib.nn.utils.clip_grad_norm_(lib.ones(2, requires_grad=True), 1.0)),
        repr(lib.nn.utils.clip_grad_norm_(with_gradients(lib).scale, 1.0)),
        repr(lib.nn.utils.get_total_norm([lib.ones(2), lib.ones(3)])),
    ]


@case
def clipped_values(lib: Any) -> Any:
    model = with_gradients(lib)
    return [lib.nn.utils.clip_grad_value_(model.parameters(), 0.75), [p.grad.tolist() for p in model.parameters()]]


@case
def vectors(lib: Any) -> Any:
    model = net(lib)
    vector = lib.nn.utils.parameters_to_vector(model.parameters())
    lib.nn.utils.vector_to_parameters(vector.detach() + 1, model.parameters())
    return [
        vector.tolist(),
        vector.requires_grad,
        name_pairs(model.named_parameters()),
        isinstance(model.scale, lib.nn.Parameter),
        error_of(lambda: lib.nn.utils.vector_to_parameters([1], model.parameters())),
    ]


@case
def padded_sequences(lib: Any) -> Any:
    pad = lib.nn.utils.rnn.pad_sequence
    parts = [lib.ones(2), lib.arange(3.0), lib.zeros(1)]
    wide = [lib.ones(2, 2), lib.zeros(1, 2)]
    return [
        pad(parts).tolist(),
        pad(parts, batch_first=True).tolist(),
        pad(parts, True, -1.0).tolist(),
        pad(parts, batch_first=True, padding_side="left").tolist(),
        pad(wide).tolist(),
        pad(wide, True).tolist(),
        [x.tolist() for x in lib.nn.utils.rnn.unpad_sequence(pad(parts), lib.tensor([2, 3, 1]))],
    ]


TOPICS = {"modules": CASES}
