"""Programs with optimizers, run with torch to record results and with gradlab to compare them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

Case = Callable[[Any], Any]

# fmt: off
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "SGD": [{"lr": 0.05}, {"lr": 0.02, "momentum": 0.9}, {"lr": 0.02, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
            {"lr": 0.05, "momentum": 0.5, "dampening": 0.3, "weight_decay": 0.1}, {"lr": 1e-4, "maximize": True},
            {"lr": 1e-4, "maximize": True, "momentum": 0.5, "weight_decay": 0.1}, {}],
    "Adam": [{}, {"lr": 0.02}, {"lr": 0.02, "amsgrad": True}, {"lr": 0.01, "betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.1},
             {"lr": 0.01, "maximize": True}, {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}],
    "AdamW": [{"lr": 0.02}, {"lr": 0.01, "weight_decay": 0.3, "amsgrad": True}, {"lr": 0.01, "maximize": True}],
    "RMSprop": [{"lr": 5e-4}, {"lr": 5e-4, "centered": True}, {"lr": 1e-4, "momentum": 0.8, "alpha": 0.9, "weight_decay": 0.1},
                {"lr": 1e-4, "momentum": 0.8, "centered": True}],
    "Adagrad": [{"lr": 0.1}, {"lr": 0.1, "lr_decay": 0.05, "weight_decay": 0.1, "initial_accumulator_value": 0.2}],
    "Adadelta": [{}, {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1}, {"maximize": True, "lr": 0.1}],
    "Adamax": [{"lr": 0.02}, {"betas": (0.8, 0.95), "weight_decay": 0.1}],
    "NAdam": [{}, {"lr": 0.001, "weight_decay": 0.1, "momentum_decay": 0.01},
              {"lr": 0.001, "weight_decay": 0.1, "decoupled_weight_decay": True}],
    "LBFGS": [{"lr": 0.5, "max_iter": 3, "history_size": 2}, {"line_search_fn": "strong_wolfe", "max_iter": 4},
              {"lr": 0.1, "max_iter": 2}],
}
# fmt: on


def leaf(lib: Any, *sizes: int, low: float = -1.0, dtype: str = "float32") -> Any:
    count = 1
    for n in sizes:
        count *= n
    steps = [((7 * i + 3) % 11) / 11 + low + 0.013 * i / count for i in range(count)]
    return lib.tensor(steps, dtype=getattr(lib, dtype)).reshape(*sizes).requires_grad_()


def problem(lib: Any, dtype: str = "float32") -> tuple[list[Any], Callable[[], Any]]:
    """Return the parameters of a small network, and a function that computes its loss."""
    kind = getattr(lib, dtype)
    x = leaf(lib, 12, 3, dtype=dtype).detach()
    y = lib.tensor([i % 3 for i in range(12)])
    parameters = [
        leaf(lib, 5, 3, low=-0.6, dtype=dtype),
        lib.zeros(5, dtype=kind, requires_grad=True),
        leaf(lib, 3, 5, low=-0.4, dtype=dtype),
        lib.zeros(3, dtype=kind, requires_grad=True),
    ]
    w1, b1, w2, b2 = parameters

    def loss() -> Any:
        functional = lib.nn.functional
        return functional.cross_entropy(functional.linear(lib.tanh(functional.linear(x, w1, b1)), w2, b2), y)

    return parameters, loss


def make_closure(optimizer: Any, loss: Callable[[], Any]) -> Callable[[], Any]:
    def closure() -> Any:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    return closure


def train(name: str, settings: dict[str, Any], dtype: str = "float32", steps: int = 100) -> Case:
    def case(lib: Any) -> Any:
        parameters, loss = problem(lib, dtype)
        optimizer = getattr(lib.optim, name)(parameters, **settings)
        return [optimizer.step(make_closure(optimizer, loss)).item() for _ in range(steps)]

    return case


def error_of(body: Callable[[Any], Any]) -> Case:
    """Return a case that returns the type and text of an error, or the texts of the warnings."""

    def case(lib: Any) -> Any:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                body(lib)
            except Exception as error:  # noqa: BLE001
                return {"raised": [type(error).__name__, str(error.args[0])]}
        return {"warned": [[w.category.__name__, str(w.message)] for w in seen]}

    return case


def plain(data: Any) -> Any:
    """Convert state to plain data: tensors to nested lists with their dtype."""
    if isinstance(data, dict):
        return {str(k): plain(v) for k, v in data.items()}
    if isinstance(data, (list, tuple)):
        return [plain(v) for v in data]
    return [str(data.dtype), data.tolist()] if hasattr(data, "tolist") else data


def states(name: str, settings: dict[str, Any]) -> Case:
    def case(lib: Any) -> Any:
        parameters, loss = problem(lib)
        w1, b1, w2, b2 = parameters
        optimizer = getattr(lib.optim, name)([{"params": [w1, b1]}, {"params": w2, "lr": 0.5}], **settings)
        before = plain(optimizer.state_dict())
        for _ in range(2):
            optimizer.step(make_closure(optimizer, loss))
        b1.grad = None
        optimizer.step()
        return [before, plain(optimizer.state_dict()), repr(optimizer)]

    return case


def resume(name: str, settings: dict[str, Any]) -> Case:
    """Return a case of fifteen steps. The last five use a new optimizer with the loaded state of the first."""

    def case(lib: Any) -> Any:
        parameters, loss = problem(lib, "float64")
        optimizer = getattr(lib.optim, name)(parameters, **settings)
        for _ in range(10):
            optimizer.step(make_closure(optimizer, loss))
        other = getattr(lib.optim, name)(parameters, lr=7.0)
        other.load_state_dict(optimizer.state_dict())
        return [[other.step(make_closure(other, loss)).item() for _ in range(5)], repr(other)]

    return case


def ones(lib: Any) -> Any:
    return lib.ones(2, requires_grad=True)


def twice(lib: Any) -> Any:
    w = ones(lib)
    return lib.optim.SGD([w, w])


def in_two_groups(lib: Any) -> Any:
    w = ones(lib)
    return lib.optim.SGD([{"params": w}, {"params": [w]}])


def load(lib: Any, ours: int, theirs: Any) -> Any:
    optimizer = lib.optim.SGD([ones(lib) for _ in range(ours)])
    optimizer.load_state_dict(lib.optim.SGD(theirs).state_dict())


ERRORS: dict[str, Callable[[Any], Any]] = {
    "no parameters": lambda lib: lib.optim.SGD([]),
    "a generator used up": lambda lib: lib.optim.Adam(p for p in ()),
    "a tensor": lambda lib: lib.optim.SGD(ones(lib), lr=0.1),
    "no leaf": lambda lib: lib.optim.SGD([ones(lib) * 2]),
    "a number": lambda lib: lib.optim.SGD([1.0]),
    "a string": lambda lib: lib.optim.SGD("ab"),
    "None": lambda lib: lib.optim.SGD(None),
    "twice": twice,
    "in two groups": in_two_groups,
    "a set in a group": lambda lib: lib.optim.SGD([{"params": {ones(lib)}}]),
    "a group without params": lambda lib: lib.optim.SGD([{"lr": 1}]),
    "a tensor after a group": lambda lib: lib.optim.SGD([{"params": [ones(lib)]}, ones(lib)]),
    "adding a list": lambda lib: lib.optim.SGD([ones(lib)]).add_param_group([ones(lib)]),
    "some names": lambda lib: lib.optim.SGD([("w", ones(lib)), ones(lib)]),
    "loading another number of groups": lambda lib: load(lib, 1, [{"params": ones(lib)}, {"params": ones(lib)}]),
    "loading a longer group": lambda lib: load(lib, 1, [ones(lib), ones(lib)]),
    "LBFGS with groups": lambda lib: lib.optim.LBFGS([{"params": ones(lib)}, {"params": ones(lib)}]),
    "LBFGS without closure": lambda lib: lib.optim.LBFGS([ones(lib)]).step(),
    "LBFGS, unknown search": train("LBFGS", {"line_search_fn": "armijo"}),
    "nesterov without momentum": lambda lib: lib.optim.SGD([ones(lib)], nesterov=True),
    "fused and foreach": lambda lib: lib.optim.Adam([ones(lib)], fused=True, foreach=True),
    "a rate for each element": lambda lib: lib.optim.Adam([ones(lib)], lr=lib.tensor([0.1, 0.2])),
    "rho": lambda lib: lib.optim.Adadelta([ones(lib)], rho=2.0),
    **{
        f"{name} {setting}": lambda lib, name=name, setting=setting: getattr(lib.optim, name)([ones(lib)], **setting)
        for name, settings in {
            "SGD": [{"lr": -1}, {"momentum": -1}, {"weight_decay": -1}],
            "Adam": [{"lr": -0.1}, {"eps": -1}, {"weight_decay": -1}, {"betas": (1.0, 0.9)}, {"betas": (0.9, 2.0)}],
            "RMSprop": [{"lr": -1}, {"eps": -1}, {"alpha": -1}, {"momentum": -1}, {"weight_decay": -1}],
            "Adagrad": [{"lr": -1}, {"lr_decay": -1}, {"initial_accumulator_value": -1}, {"eps": -1}],
            "Adadelta": [{"lr": -1}, {"eps": -1}],
            "Adamax": [{"lr": -1}, {"betas": (1.0, 0)}],
            "NAdam": [{"momentum_decay": -1}, {"eps": -1}],
            "LBFGS": [{"lr": -1}],
        }.items()
        for setting in settings
    },
}


def tensor_rate(lib: Any) -> Any:
    w = ones(lib)
    optimizer = lib.optim.SGD([w], lr=lib.tensor(0.5))
    schedule = lib.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    rate = optimizer.param_groups[0]["lr"]
    (w * w).sum().backward()
    for _ in range(2):
        optimizer.step()
        schedule.step()
    return [w.tolist(), rate.item(), rate is optimizer.param_groups[0]["lr"], repr(optimizer)]


def versions(lib: Any) -> Any:
    """A step is a write: backward raises if the parameter was saved before the step."""
    w = ones(lib)
    loss = (w * w * w).sum()
    w.grad = lib.ones(2)
    lib.optim.SGD([w], lr=0.1).step()
    return [w._version, error_of(lambda lib: loss.backward())(lib)["raised"][0]]


def zero_gradients(lib: Any) -> Any:
    w = ones(lib)
    optimizer = lib.optim.SGD([w])
    (w * w).sum().backward()
    kept = w.grad
    optimizer.zero_grad(set_to_none=False)
    same = w.grad is kept or w.grad.data_ptr() == kept.data_ptr()
    values = w.grad.tolist()
    optimizer.zero_grad()
    return [same, values, w.grad is None]


def name_parameters(lib: Any) -> Any:
    optimizer = lib.optim.SGD([("weight", ones(lib)), ("bias", ones(lib))], lr=0.1)
    return [repr(optimizer), plain(optimizer.state_dict())]


def run_hooks(lib: Any) -> Any:
    seen: list[str] = []
    optimizer = lib.optim.SGD([ones(lib)])
    before = optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    optimizer.register_step_post_hook(lambda *_: seen.append("after"))
    optimizer.step()
    before.remove()
    optimizer.step()
    return seen


def own_optimizer(lib: Any) -> Any:
    class Signs(lib.optim.Optimizer):
        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, {"lr": lr})

        @lib.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    state["count"] = state.get("count", 0) + 1
                    p.add_(p.grad.sign(), alpha=-group["lr"])

    w = ones(lib)
    optimizer = Signs([w], 0.25)
    schedule = lib.optim.lr_scheduler.StepLR(optimizer, 1)
    (w * w).sum().backward()
    optimizer.step()
    schedule.step()
    optimizer.step()
    return [w.tolist(), repr(optimizer), plain(optimizer.state_dict())]


def transpose_parameters(lib: Any) -> Any:
    """Parameters and gradients whose memory order is not that of their axes."""
    w = leaf(lib, 4, 6).detach().t().requires_grad_()
    optimizer = lib.optim.Adam([w], lr=0.1, weight_decay=0.1)
    for _ in range(5):
        w.grad = leaf(lib, 6, 4).detach() * 2
        optimizer.step()
    return w.tolist()


TRAINING = {
    f"{name} {settings}": train(name, settings)
    for name, all_settings in SETTINGS.items()
    for settings in all_settings
    if name != "LBFGS"
}
TRAINING |= {f"{name} in double": train(name, {"lr": 0.01}, "float64", 20) for name in SETTINGS if name != "LBFGS"}
# Both libraries do the same, but rounding errors grow a thousandfold in a few steps of this method.
TRAINING |= {f"LBFGS {settings}": train("LBFGS", settings, "float64", 10) for settings in SETTINGS["LBFGS"]}
STATES = {
    f"{name} {settings}": states(name, settings)
    for name, all_settings in SETTINGS.items()
    for settings in all_settings
    if name != "LBFGS"
}
RESUMED = {name: resume(name, all_settings[-1]) for name, all_settings in SETTINGS.items()}
OTHERS = {
    "tensor_rate": tensor_rate,
    "versions": versions,
    "zeroed": zero_gradients,
    "named": name_parameters,
    "hooked": run_hooks,
    "own_optimizer": own_optimizer,
    "transposed": transpose_parameters,
}
TOPICS: dict[str, dict[str, Case]] = {
    "training": TRAINING,
    "states": STATES,
    "resumed": RESUMED,
    "others": OTHERS,
    "errors": {name: error_of(body) for name, body in ERRORS.items()},
}
