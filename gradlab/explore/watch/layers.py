"""What is watched: the parameters of a model, layer by layer, and its activations; or tensors, each by itself.

A layer is a module with parameters of its own. It is called as one would write it, `model[0]` or `model.fc1`.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradlab.explore.libraries import Library, library_of
from gradlab.explore.libraries.gauging import DEAD, Gauge, flat_beyond
from gradlab.explore.module_paths import attribute, is_model
from gradlab.explore.names import names_in
from gradlab.explore.sources import reachable

ACTIVATIONS = 200  # modules whose outputs are looked at
MOST = 50_000  # nodes of a graph that are looked through


@dataclass(frozen=True)
class Activation:
    """A module whose units may die or saturate."""

    name: str
    module: Any
    kind: str
    flat: tuple[float, float] | None


@dataclass(frozen=True)
class ReleasedTensor:
    """What is known of a tensor that is not held any more."""

    shape: tuple[int, ...]
    requires_grad: bool


@dataclass
class WatchedModel:
    """What is watched.

    Attributes
    ----------
    params, names : tuple
        The tensors, layer after layer, and what they are called.
    layers : tuple of str
        What the layers are called.
    starts : ndarray of int
        Where each layer's parameters begin in `params`.
    model : module or None
        Whose parameters they are.
    called : str
        What the model is called; "" without one.
    held : bool
        Whether the tensors and modules are held still; else `params` has what is known of them.
    """

    library: Library
    gauge: Gauge
    params: tuple[Any, ...]
    names: tuple[str, ...]
    layers: tuple[str, ...]
    starts: np.ndarray
    activations: tuple[Activation, ...] = ()
    model: Any = None
    called: str = ""
    held: bool = True

    def release(self) -> None:
        """Hold no tensor and no module any more."""
        if self.held:
            self.params = tuple(ReleasedTensor(tuple(p.shape), bool(p.requires_grad)) for p in self.params)
            self.activations = tuple(replace(one, module=None) for one in self.activations)
            self.model, self.held = None, False

    def release_unused(self) -> bool:
        """Release the model and its tensors if nobody else holds all of them any more. Return whether."""
        if not self.held:
            return True
        weak = [self.library.weak(p) for p in self.params]
        modules = [weakref.ref(one.module) for one in self.activations]
        model = (lambda: None) if self.model is None else weakref.ref(self.model)
        whole = self.model is not None
        self.release()
        params, outputs, of = tuple(one() for one in weak), [one() for one in modules], model()
        if any(one is None for one in (*params, *outputs)) or (whole and of is None):
            return True
        self.params, self.model, self.held = params, of, True
        self.activations = tuple(replace(one, module=it) for one, it in zip(self.activations, outputs, strict=True))
        return False

    def by_layer(self, norms: np.ndarray) -> np.ndarray:
        """The norms of layers from those of their parameters, shape (…, parameters); NaN stands for none and counts as 0 beside
        others."""
        none = np.isnan(norms)
        squares = np.add.reduceat(np.where(none, 0.0, norms * norms), self.starts, axis=-1)
        empty = np.logical_and.reduceat(none, self.starts, axis=-1)
        return np.where(empty, np.nan, np.sqrt(squares))

    def of_layer(self, layer: int) -> tuple[Any, ...]:
        """The parameters of a layer."""
        stops = [*self.starts[1:], len(self.params)]
        return self.params[self.starts[layer] : stops[layer]]

    def trains(self, loss: Any) -> bool:
        """Whether a tensor is computed from what is watched: there may be other models."""
        return not leaves_of(self.library, loss).isdisjoint(map(id, self.params))

    def saved_bytes(self, loss: Any) -> int:
        """What the nodes behind a tensor have saved, but for the parameters, in bytes."""
        own = {id(p) for p in self.params}
        nodes = reachable(self.library, [self.library.node(loss)])
        saved = {id(item): int(item.nbytes) for node in nodes for _, item in self.library.saved(node)}
        return sum(size for key, size in saved.items() if key not in own)

    def largest(self) -> list[int]:
        """Of each layer the parameter with the most elements: the weights, whose histogram is shown."""
        return self._of_each(max)

    def smallest(self) -> list[int]:
        """Of each layer the parameter with the fewest: the bias, if it has one."""
        return self._of_each(min)

    def _of_each(self, choose: Any) -> list[int]:
        stops = [*self.starts[1:], len(self.params)]
        sizes = [int(np.prod(tuple(p.shape), dtype=np.int64)) for p in self.params]
        return [choose(range(a, b), key=sizes.__getitem__) for a, b in zip(self.starts, stops, strict=True)]


def watched(model_or_params: Any, space: Mapping[str, Any], first: Iterable[str] = ()) -> WatchedModel:
    """What `watch` was given, with the names that it has in a namespace.

    Raises
    ------
    TypeError
        If it is neither a module nor tensors.
    ValueError
        If there is no tensor that requires grad, or one is no leaf.
    """
    if is_model(model_or_params):
        return _of_model(model_or_params, space, first)
    if isinstance(model_or_params, Mapping):
        pairs = [(str(name), tensor) for name, tensor in model_or_params.items()]
        return _of_tensors(pairs)
    if library_of(model_or_params) is not None:
        model_or_params = [model_or_params]
    if isinstance(model_or_params, type) or not isinstance(model_or_params, Iterable):
        hint = " Give the model itself, not its class." if isinstance(model_or_params, type) else ""
        kind = type(model_or_params).__name__
        raise TypeError(f"watch(model_or_params) takes a model, or tensors, and got {kind}: {model_or_params!r:.80}.{hint}")
    items = list(model_or_params)
    if items and all(isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) for item in items):
        return _of_tensors(items)
    known = {id(tensor): name for name, tensor in names_in(space, first=first).items()}
    return _of_tensors([(known.get(id(tensor), f"params[{i}]"), tensor) for i, tensor in enumerate(items)])


def refuse_lazy(model: Any) -> None:
    """Raise a ValueError if a model has parameters that do not exist before its first call, as those of `LazyLinear`."""
    if isinstance(model, type) or not callable(getattr(type(model), "named_parameters", None)):
        return
    lazy = [name for name, p in model.named_parameters() if p is not None and library_of(p) is None]
    if lazy:
        others = f" (and {len(lazy) - 1} more)" if len(lazy) > 1 else ""
        raise ValueError(
            f"watch(model): its parameter {lazy[0]!r}{others} does not exist before the first call of the model, which has a "
            "lazy layer. Call the model on one batch before it is watched."
        )


def _of_model(model: Any, space: Mapping[str, Any], first: Iterable[str]) -> WatchedModel:
    own = [name for name in (*first, *space) if isinstance(name, str) and space.get(name) is model and name[:1] != "_"]
    called = own[0] if own else "model"
    params: list[Any] = []
    names: list[str] = []
    layers: list[str] = []
    starts: list[int] = []
    activations: list[Activation] = []
    seen: set[int] = set()
    for path, module in model.named_modules():
        name = attribute(called, path, model)
        kind = type(module).__name__
        flat = flat_beyond(kind, module)
        if (kind in DEAD or flat is not None) and len(activations) < ACTIVATIONS:
            activations.append(Activation(name, module, kind, flat))
        mine = [
            (key, p)
            for key, p in module.named_parameters(recurse=False)
            if p is not None and library_of(p) is not None and p.requires_grad and id(p) not in seen
        ]
        if mine:
            layers.append(name)
            starts.append(len(params))
            for key, p in mine:
                seen.add(id(p))
                params.append(p)
                names.append(attribute(name, key, module))
    if not params:
        raise ValueError(f"watch({called}): it has no parameter that requires grad; there is nothing to watch.")
    return _made(params, names, layers, starts, tuple(activations), model, called)


def _of_tensors(pairs: Sequence[tuple[str, Any]]) -> WatchedModel:
    for name, tensor in pairs:
        if library_of(tensor) is None:
            raise TypeError(f"watch(model_or_params): `{name}` is no tensor but {type(tensor).__name__}: {tensor!r:.80}.")
    kept = [(name, tensor) for name, tensor in pairs if tensor.requires_grad]
    if not kept:
        raise ValueError("watch(model_or_params): no tensor among them requires grad; there is nothing to watch.")
    for name, tensor in kept:
        if not tensor.is_leaf:
            raise ValueError(f"watch(model_or_params): `{name}` was computed, and no step moves it. Give leaves: what is learnt.")
    names = [name for name, _ in kept]
    return _made([tensor for _, tensor in kept], names, names, list(range(len(kept))))


def _made(
    params: list[Any],
    names: Sequence[str],
    layers: Sequence[str],
    starts: list[int],
    activations: tuple[Activation, ...] = (),
    model: Any = None,
    called: str = "",
) -> WatchedModel:
    library = library_of(params[0])
    for name, tensor in zip(names, params, strict=True):
        if library_of(tensor) is not library or library is None:
            raise TypeError(f"watch(model_or_params): `{name}` is of another library than `{names[0]}`; watch them one by one.")
    assert library is not None
    return WatchedModel(
        library,
        library.gauge(params),
        tuple(params),
        tuple(names),
        tuple(layers),
        np.array(starts),
        activations,
        model,
        called,
    )


def leaves_of(library: Library, loss: Any) -> set[int]:
    """What tells the leaves that a tensor is computed from."""
    return {id(leaf) for leaf in leaves_behind(library, loss)}


def leaves_behind(library: Library, loss: Any) -> Iterator[Any]:
    """The leaves that a tensor is computed from, those first that the fewest operations lie between."""
    first = library.node(loss)
    most = library.at_most(MOST)
    seen, waiting = {first}, deque([first])
    while waiting and (most is None or len(seen) < most):
        node = waiting.popleft()
        leaf = library.variable(node)
        if leaf is not None:
            yield leaf
        for source in library.inputs(node):
            if source is not None and source not in seen:
                seen.add(source)
                waiting.append(source)


def route_to(library: Library, loss: Any, leaf: Any) -> tuple[int, ...]:
    """The way from a tensor to one of the leaves behind it: which input to take of each node. It is one of the shortest."""
    first = library.node(loss)
    came: dict[Any, tuple[Any, int]] = {}
    waiting = deque([first])
    while waiting:
        node = waiting.popleft()
        if library.variable(node) is leaf:
            route: list[int] = []
            while node is not first:
                node, at = came[node]
                route.append(at)
            return tuple(reversed(route))
        for at, source in enumerate(library.inputs(node)):
            if source is not None and source is not first and source not in came:
                came[source] = node, at
                waiting.append(source)
    return ()
