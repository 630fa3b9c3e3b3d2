"""Schedules of the learning rate, run alike on torch (to record) and on gradlab (to compare)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optim_cases import Case, error_of, ones, plain


def optimizer_of(lib: Any, name: str = "SGD", **settings: Any) -> Any:
    if name == "SGD":
        settings = {"momentum": 0.9} | settings
    return getattr(lib.optim, name)([{"params": ones(lib)}, {"params": ones(lib), "lr": 0.02}], **{"lr": 0.1} | settings)


SCHEDULES: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "StepLR": [((7,), {}), ((1,), {"gamma": 0.9})],
    "MultiStepLR": [(([3, 3, 9, 20],), {"gamma": 0.5})],
    "ConstantLR": [((), {}), ((0.25, 9), {})],
    "LinearLR": [((), {}), ((0.1, 0.7, 12), {}), ((1.0, 0.0, 8), {})],
    "ExponentialLR": [((0.9,), {})],
    "PolynomialLR": [((), {}), ((20, 2.0), {})],
    "CosineAnnealingLR": [((30,), {}), ((8,), {"eta_min": 0.005})],
    "CosineAnnealingWarmRestarts": [((7,), {}), ((4, 2), {"eta_min": 0.001})],
    "OneCycleLR": [
        ((0.5, 30), {}),
        (([0.5, 0.2],), {"epochs": 5, "steps_per_epoch": 6, "pct_start": 0.2, "three_phase": True}),
        ((0.4, 32), {"anneal_strategy": "linear", "cycle_momentum": False, "div_factor": 10.0}),
    ],
    "CyclicLR": [
        ((0.01, 0.1), {"step_size_up": 4}),
        ((0.01, 0.1), {"step_size_up": 3, "step_size_down": 5, "mode": "triangular2"}),
        ((0.01, [0.1, 0.3]), {"step_size_up": 6, "mode": "exp_range", "gamma": 0.95, "cycle_momentum": False}),
    ],
}


def follow(name: str, args: tuple[Any, ...], settings: dict[str, Any], optimizer: str = "SGD") -> Case:
    """Return a case of 30 epochs: rates, momentum, the final state, and the rates of a schedule resumed from the state."""

    def case(lib: Any) -> Any:
        optimizer_ = optimizer_of(lib, optimizer)
        make = getattr(lib.optim.lr_scheduler, name)
        schedule = make(optimizer_, *args, **settings)
        rates, kept = [schedule.get_last_lr()], None
        momenta = []
        for epoch in range(30):
            optimizer_.step()
            schedule.step()
            rates.append([group["lr"] for group in optimizer_.param_groups])
            group = optimizer_.param_groups[0]
            momenta.append(group["momentum"] if "momentum" in group else group["betas"][0])
            if epoch == 9:
                kept = plain({k: v for k, v in schedule.state_dict().items() if k != "milestones"}), optimizer_.state_dict()
        other = optimizer_of(lib, optimizer)
        other.load_state_dict(kept[1])
        resumed = make(other, *args, **settings)
        resumed.load_state_dict(schedule.state_dict())
        return [
            rates,
            momenta,
            kept[0],
            schedule.get_last_lr(),
            schedule.last_epoch,
            resumed.last_epoch,
            resumed.get_last_lr(),
            sorted(optimizer_.param_groups[0]),
        ]

    return case


def by_functions(lib: Any) -> Any:
    found = []
    for name in ("LambdaLR", "MultiplicativeLR"):
        optimizer = optimizer_of(lib)
        schedule = getattr(lib.optim.lr_scheduler, name)(optimizer, [lambda epoch: 0.95**epoch, lambda epoch: 1 / (epoch + 1)])
        rates = []
        for _ in range(30):
            optimizer.step()
            schedule.step()
            rates.append(schedule.get_last_lr())
        found.append([rates, schedule.state_dict()])
    return found


def plateau(**settings: Any) -> Case:
    def case(lib: Any) -> Any:
        optimizer = optimizer_of(lib)
        schedule = lib.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **settings)
        metrics = [5.0, 4.0, 4.0, 3.9999, 4.1, 3.5, *[3.5] * 12, 3.0, 3.0, 2.0, *[2.5] * 9]
        rates = []
        for metric in metrics:
            schedule.step(lib.tensor(metric) if metric == 3.0 else metric)
            rates.append([schedule.get_last_lr(), schedule.num_bad_epochs, schedule.cooldown_counter, schedule.best])
        return [rates, {k: v for k, v in schedule.state_dict().items() if v not in (float("inf"), -float("inf"))}]

    return case


def sequence(lib: Any) -> Any:
    module, optimizer = lib.optim.lr_scheduler, optimizer_of(lib)
    schedule = module.SequentialLR(
        optimizer,
        [
            module.LinearLR(optimizer, 0.1, total_iters=5),
            module.ConstantLR(optimizer, 0.5, 4),
            module.CosineAnnealingLR(optimizer, 20),
        ],
        [5, 12],
    )
    rates = [schedule.get_last_lr()]
    for _ in range(30):
        optimizer.step()
        schedule.step()
        rates.append(schedule.get_last_lr())
    return [rates, plain(schedule.state_dict())]


def compose_schedules(lib: Any) -> Any:
    """Two schedules of one optimizer."""
    module, optimizer = lib.optim.lr_scheduler, optimizer_of(lib)
    schedules = [module.ExponentialLR(optimizer, 0.9), module.MultiStepLR(optimizer, [3, 6]), module.LinearLR(optimizer)]
    rates = []
    for _ in range(10):
        optimizer.step()
        for schedule in schedules:
            schedule.step()
        rates.append([group["lr"] for group in optimizer.param_groups])
    return rates


def continue_schedule(lib: Any) -> Any:
    """`last_epoch=` resumes the schedule of another program."""
    optimizer = optimizer_of(lib)
    for group in optimizer.param_groups:
        group["initial_lr"] = 0.3
    rates = []
    for schedule in (
        lib.optim.lr_scheduler.StepLR(optimizer, 3, last_epoch=4),
        lib.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10, last_epoch=4),
    ):
        for _ in range(5):
            optimizer.step()
            schedule.step()
            rates.append(schedule.get_last_lr())
    return rates


def fractions(lib: Any) -> Any:
    """Warm restarts with a step in each batch."""
    optimizer = optimizer_of(lib)
    schedule = lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2, 2)
    rates = []
    for epoch in range(7):
        for batch in range(3):
            optimizer.step()
            schedule.step(epoch + batch / 3)
            rates.append(schedule.get_last_lr())
    return rates


def jump_to_epoch(lib: Any) -> Any:
    module, rates = lib.optim.lr_scheduler, []
    for name, args in (
        ("StepLR", (2,)),
        ("MultiStepLR", ([2, 5],)),
        ("ConstantLR", ()),
        ("LinearLR", ()),
        ("ExponentialLR", (0.9,)),
        ("PolynomialLR", ()),
        ("CosineAnnealingLR", (10,)),
    ):
        optimizer = optimizer_of(lib)
        schedule = getattr(module, name)(optimizer, *args)
        optimizer.step()
        for epoch in (4, 9):
            error_of(lambda lib, schedule=schedule, epoch=epoch: schedule.step(epoch))(lib)
            rates.append(schedule.get_last_lr())
    return rates


def of(name: str, *args: Any, optimizer: str = "SGD", **settings: Any) -> Callable[[Any], Any]:
    return lambda lib: getattr(lib.optim.lr_scheduler, name)(optimizer_of(lib, optimizer), *args, **settings)


def too_many(lib: Any) -> None:
    schedule = of("OneCycleLR", 0.1, 2)(lib)
    for _ in range(4):
        schedule.optimizer.step()
        schedule.step()


ERRORS: dict[str, Callable[[Any], Any]] = {
    "step before the optimizer's": lambda lib: of("StepLR", 2)(lib).step(),
    "get_lr": lambda lib: of("StepLR", 2)(lib).get_lr(),
    "no optimizer": lambda lib: lib.optim.lr_scheduler.StepLR(1, 2),
    "no optimizer, plateau": lambda lib: lib.optim.lr_scheduler.ReduceLROnPlateau(1),
    "no initial_lr": of("StepLR", 2, last_epoch=3),
    "three functions": of("LambdaLR", [abs, abs, abs]),
    "no steps": of("OneCycleLR", 0.1),
    "epochs alone": of("OneCycleLR", 0.1, epochs=2),
    "minus steps": of("OneCycleLR", 0.1, -1),
    "no epochs": of("OneCycleLR", 0.1, epochs=0, steps_per_epoch=3),
    "pct_start": of("OneCycleLR", 0.1, 10, pct_start=2),
    "strategy": of("OneCycleLR", 0.1, 10, anneal_strategy="x"),
    "no momentum": of("OneCycleLR", 0.1, 10, optimizer="Adagrad"),
    "three peaks": of("OneCycleLR", [0.1, 0.2, 0.3], 10),
    "too many steps": too_many,
    "no momentum to cycle": of("CyclicLR", 0.1, 0.2, optimizer="Adagrad"),
    "cyclic mode": of("CyclicLR", 0.1, 0.2, mode="x"),
    "linear from": of("LinearLR", 2.0),
    "linear to": of("LinearLR", 0.5, 2.0),
    "constant": of("ConstantLR", 2.0),
    "plateau mode": of("ReduceLROnPlateau", "x"),
    "plateau factor": of("ReduceLROnPlateau", factor=1.0),
    "plateau threshold": of("ReduceLROnPlateau", threshold_mode="x"),
    "plateau rates": of("ReduceLROnPlateau", min_lr=[1, 2, 3]),
    "plateau without metric": lambda lib: of("ReduceLROnPlateau")(lib).step(),
    "T_0": of("CosineAnnealingWarmRestarts", 0),
    "T_mult": of("CosineAnnealingWarmRestarts", 1, 0),
    "epoch": lambda lib: of("CosineAnnealingWarmRestarts", 1)(lib).step(-1),
    "no schedule": lambda lib: lib.optim.lr_scheduler.SequentialLR(optimizer_of(lib), [], [1]),
}
TOPICS: dict[str, dict[str, Case]] = {
    "rates": {
        **{
            f"{name} {args} {settings}": follow(name, args, settings)
            for name, all_settings in SCHEDULES.items()
            for args, settings in all_settings
        },
        **{f"{name} of Adam": follow(name, *SCHEDULES[name][0], "Adam") for name in ("OneCycleLR", "CyclicLR")},
        "plateau": plateau(patience=2),
        "plateau, max": plateau(mode="max", patience=1, factor=0.5, min_lr=[0.01, 0.005]),
        "plateau, absolute": plateau(threshold_mode="abs", threshold=0.2, patience=1, cooldown=3, factor=0.3),
        "by_functions": by_functions,
        "sequence": sequence,
        "composed": compose_schedules,
        "continued": continue_schedule,
        "fractions": fractions,
        "jumped": jump_to_epoch,
    },
    "schedule_errors": {name: error_of(body) for name, body in ERRORS.items()},
}
