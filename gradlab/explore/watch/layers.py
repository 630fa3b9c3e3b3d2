"""The watched tensors: the parameters of a model by layer, and its activations; or single tensors.

A layer is a module that has parameters itself. Its name is the expression for it, such as `model[0]` or `model.fc1`.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradlab.explore.keras_layers import activation_kind, own_parameters
from gradlab.explore.libraries import Library, library_of
from gradlab.explore.libraries.gauging import DEAD, Gauge, flat_beyond
from gradlab.explore.module_paths import is_model
from gradlab.explore.names import modules_in, names_in
from gradlab.explore.sources import reachable

MAX_ACTIVATIONS = 200  # maximum number of modules whose outputs are measured
MAX_NODES = 50_000  # maximum number of nodes of a graph that are searched


@dataclass(frozen=True)
class Activation:
    """A module whose units may die or saturate."""

    name: str
    module: Any
    kind: str
    flat: tuple[float, float] | None


@dataclass(frozen=True)
class ReleasedTensor:
    """The shape and `requires_grad` of a tensor that was released."""

    shape: tuple[int, ...]
    requires_grad: bool


@dataclass
class WatchedModel:
    """The watched tensors and modules, with their names.

    Attributes
    ----------
    params, names : tuple
        The tensors, by layer, and their names.
    layers : tuple of str
        The names of the layers.
    starts : ndarray of int
        The index in `params` of each layer's first parameter.
    model : module or None
        The model that has these parameters.
    model_name : str
        The name of the model; "" without a model.
    is_held : bool
        Whether the tensors and modules are still held. Otherwise `params` has `ReleasedTensor`s.
    """

    library: Library
    gauge: Gauge
    params: tuple[Any, ...]
    names: tuple[str, ...]
    layers: tuple[str, ...]
    starts: np.ndarray
    activations: tuple[Activation, ...] = ()
    model: Any = None
    model_name: str = ""
    is_held: bool = True

    def release(self) -> None:
        """Release all tensors and modules."""
        if self.is_held:
            self.params = tuple(ReleasedTensor(tuple(p.shape), bool(p.requires_grad)) for p in self.params)
            self.activations = tuple(replace(one, module=None) for one in self.activations)
            self.model, self.is_held = None, False

    def release_unused(self) -> bool:
        """Release the model and its tensors if any of them is not referenced elsewhere. Return whether they are released."""
        if not self.is_held:
            return True
        weak = [self.library.weak(p) for p in self.params]
        modules = [weakref.ref(one.module) for one in self.activations]
        model = (lambda: None) if self.model is None else weakref.ref(self.model)
        has_model = self.model is not None
        self.release()
        params, outputs, alive = tuple(one() for one in weak), [one() for one in modules], model()
        if any(one is None for one in (*params, *outputs)) or (has_model and alive is None):
            return True
        self.params, self.model, self.is_held = params, alive, True
        self.activations = tuple(replace(one, module=it) for one, it in zip(self.activations, outputs, strict=True))
        return False

    def by_layer(self, norms: np.ndarray) -> np.ndarray:
        """Return the norms of layers from those of their parameters, shape (…, parameters). NaN means "none": it counts as 0 in a
        layer with other norms."""
        none = np.isnan(norms)
        squares = np.add.reduceat(np.where(none, 0.0, norms * norms), self.starts, axis=-1)
        empty = np.logical_and.reduceat(none, self.starts, axis=-1)
        return np.where(empty, np.nan, np.sqrt(squares))

    def layer_params(self, layer: int) -> tuple[Any, ...]:
        """Return the parameters of a layer."""
        stops = [*self.starts[1:], len(self.params)]
        return self.params[self.starts[layer] : stops[layer]]

    def trains(self, loss: Any) -> bool:
        """Return whether a tensor is computed from a watched one. There may be other models."""
        return not leaf_ids(self.library, loss).isdisjoint(map(id, self.params))

    def saved_bytes(self, loss: Any) -> int:
        """Return the bytes of the tensors saved by the nodes behind a tensor, without the parameters."""
        own = {id(p) for p in self.params}
        nodes = reachable(self.library, [self.library.node(loss)])
        saved = {id(item): int(item.nbytes) for node in nodes for _, item in self.library.saved(node)}
        return sum(size for key, size in saved.items() if key not in own)

    def largest(self) -> list[int]:
        """Return the index of each layer's largest parameter: the weights, of which histograms are shown."""
        return self._one_per_layer(max)

    def smallest(self) -> list[int]:
        """Return the index of each layer's smallest parameter: the bias, if there is one."""
        return self._one_per_layer(min)

    def _one_per_layer(self, choose: Any) -> list[int]:
        stops = [*self.starts[1:], len(self.params)]
        sizes = [int(np.prod(tuple(p.shape), dtype=np.int64)) for p in self.params]
        return [choose(range(a, b), key=sizes.__getitem__) for a, b in zip(self.starts, stops, strict=True)]


def as_watched_model(model_or_params: Any, space: Mapping[str, Any], first: Iterable[str] = ()) -> WatchedModel:
    """Return the argument of `watch` as a `WatchedModel`, with its names in a namespace.

    Raises
    ------
    TypeError
        If it is neither a module nor tensors.
    ValueError
        If no tensor requires grad, or one is not a leaf.
    """
    if is_model(model_or_params):
        return _of_model(model_or_params, space, first)
    if isinstance(model_or_params, Mapping):
        pairs = [(str(name), tensor) for name, tensor in model_or_params.items()]
        return _of_tensors(pairs)
    if library_of(model_or_params) is not None:
        model_or_params = [model_or_params]
    if isinstance(model_or_params, type) or not isinstance(model_or_params, Iterable):
        hint = " Pass the model itself, not its class." if isinstance(model_or_params, type) else ""
        kind = type(model_or_params).__name__
        raise TypeError(f"watch(model_or_params) takes a model, or tensors, and got {kind}: {model_or_params!r:.80}.{hint}")
    items = list(model_or_params)
    if items and all(isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) for item in items):
        return _of_tensors(items)
    known = {id(tensor): name for name, tensor in names_in(space, first=first).items()}
    return _of_tensors([(known.get(id(tensor), f"params[{i}]"), tensor) for i, tensor in enumerate(items)])


def refuse_lazy(model: Any) -> None:
    """Raise a ValueError if a model has parameters that are created at its first call, such as those of `LazyLinear`."""
    if isinstance(model, type) or not callable(getattr(type(model), "named_parameters", None)):
        return
    lazy = [name for name, p in model.named_parameters() if p is not None and library_of(p) is None]
    if lazy:
        others = f" (and {len(lazy) - 1} more)" if len(lazy) > 1 else ""
        raise ValueError(
            f"watch(model): the parameter {lazy[0]!r}{others} of a lazy layer does not exist before the first call of the model. "
            "Call the model on one batch before watching it."
        )


def _of_model(model: Any, space: Mapping[str, Any], first: Iterable[str]) -> WatchedModel:
    own = [name for name in (*first, *space) if isinstance(name, str) and space.get(name) is model and name[:1] != "_"]
    model_name = own[0] if own else "model"
    params: list[Any] = []
    names: list[str] = []
    layers: list[str] = []
    starts: list[int] = []
    activations: list[Activation] = []
    seen: set[int] = set()
    for name, module in modules_in(model_name, model):
        kind = activation_kind(module)
        flat = flat_beyond(kind, module)
        if (kind in DEAD or flat is not None) and len(activations) < MAX_ACTIVATIONS:
            activations.append(Activation(name, module, kind, flat))
        mine = [
            (label, p)
            for label, p in own_parameters(name, module)
            if p is not None and library_of(p) is not None and p.requires_grad and id(p) not in seen
        ]
        if mine:
            layers.append(name)
            starts.append(len(params))
            for label, p in mine:
                seen.add(id(p))
                params.append(p)
                names.append(label)
    if not params:
        raise ValueError(f"watch({model_name}): no parameter of the model requires grad, so there is nothing to watch.")
    return _make(params, names, layers, starts, tuple(activations), model, model_name)


def _of_tensors(pairs: Sequence[tuple[str, Any]]) -> WatchedModel:
    for name, tensor in pairs:
        if library_of(tensor) is None:
            raise TypeError(f"watch(model_or_params): `{name}` is not a Tensor but {type(tensor).__name__}: {tensor!r:.80}.")
    learned = [(name, tensor) for name, tensor in pairs if tensor.requires_grad]
    if not learned:
        raise ValueError("watch(model_or_params): none of the tensors requires grad, so there is nothing to watch.")
    for name, tensor in learned:
        if not tensor.is_leaf:
            raise ValueError(
                f"watch(model_or_params): `{name}` is the result of an operation, so no step updates it. Pass leaves."
            )
    names = [name for name, _ in learned]
    return _make([tensor for _, tensor in learned], names, names, list(range(len(learned))))


def _make(
    params: list[Any],
    names: Sequence[str],
    layers: Sequence[str],
    starts: list[int],
    activations: tuple[Activation, ...] = (),
    model: Any = None,
    model_name: str = "",
) -> WatchedModel:
    library = library_of(params[0])
    for name, tensor in zip(names, params, strict=True):
        if library_of(tensor) is not library or library is None:
            raise TypeError(f"watch(model_or_params): `{name}` is of another library than `{names[0]}`. Watch them separately.")
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
        model_name,
    )


def leaf_ids(library: Library, loss: Any) -> set[int]:
    """Return the ids of the leaves that a tensor is computed from."""
    return {id(leaf) for leaf in leaves_behind(library, loss)}


def leaves_behind(library: Library, loss: Any) -> Iterator[Any]:
    """Yield the leaves that a tensor is computed from, those with the fewest operations in between first."""
    first = library.node(loss)
    most = library.at_most(MAX_NODES)
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
    """Return a shortest path from a tensor to one of its leaves, as the index of the input to follow at each node."""
    first = library.node(loss)
    previous: dict[Any, tuple[Any, int]] = {}
    waiting = deque([first])
    while waiting:
        node = waiting.popleft()
        if library.variable(node) is leaf:
            route: list[int] = []
            while node is not first:
                node, at = previous[node]
                route.append(at)
            return tuple(reversed(route))
        for at, source in enumerate(library.inputs(node)):
            if source is not None and source is not first and source not in previous:
                previous[source] = node, at
                waiting.append(source)
    return ()
