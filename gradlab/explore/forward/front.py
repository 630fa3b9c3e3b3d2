"""Run a model, or a function of tensors, and draw the run."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from gradlab.core.scopes import scope_guard
from gradlab.explore.forward.arguments import name_arguments
from gradlab.explore.forward.assembling import assemble
from gradlab.explore.forward.failing import add_failed_call
from gradlab.explore.forward.forward_graph import Failure, ForwardGraph
from gradlab.explore.forward.run import Run
from gradlab.explore.keras_layers import is_keras_layer, is_unbuilt, to_tensors
from gradlab.explore.labels import shorten
from gradlab.explore.libraries import adapters
from gradlab.explore.module_paths import is_model
from gradlab.explore.names import with_held

EXPLORERS_FOLDER = str(Path(__file__).parent.parent)  # the explorers, whose frames a traceback is shown without
LONGEST = 60  # characters of a title


def draw_run(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    space: Mapping[str, Any],
    names: Mapping[str, Any],
    caller: FrameType | None = None,
    limit: int | None = None,
    unfold: Sequence[str] = (),
    values: bool = False,
    timed: bool = False,
) -> ForwardGraph:
    """Call a model, or a function, and return the graph of the run.

    Parameters
    ----------
    function : callable
    args, kwargs
        The arguments of the call.
    space : mapping of str to object
        The user's namespace, which has the names of models.
    names : mapping of str to Tensor
        The names of tensors.
    caller : frame, optional
        The user's function that requested the graph.
    limit, unfold
        See `graph`.
    values, timed : bool
        Summarize values, and time calls.

    Raises
    ------
    TypeError
        If the arguments do not fit the signature of the function, or no tensor takes part in the run.
    """
    model = getattr(function, "_orig_mod", function) if is_model(function) else function  # the model that torch.compile wraps
    if is_keras_layer(model):
        args, kwargs = to_tensors(args, kwargs)
    named = name_arguments(model, args, kwargs)
    models = models_in(space)
    name = getattr(model, "__name__", "model")
    if is_model(model):
        name = next((key for key, one in models.items() if one is model or one is function), "model")
        models = {name: model}
    title = f"{name}({', '.join(key for key, _ in named)})" if name != "<lambda>" else "the run"
    _initialize(model, args, kwargs)
    graph, _, error = record(
        lambda: model(*args, **kwargs),
        title,
        given=named,
        models=models,
        names=names,
        space=space,
        kept=model if is_model(model) else None,
        caller=caller,
        limit=limit,
        unfold=unfold,
        values=values,
        timed=timed,
        training=bool(kwargs.get("training")),
    )
    try:
        if graph is None:
            if error is not None:
                raise error
            raise TypeError(f"graph: no tensor of gradlab or PyTorch took part in {title}.")
        return graph
    finally:
        error = None  # its traceback holds this frame, and the frames of the run with their tensors


def _initialize(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Call a model once if it has parameters without a shape, or layers of Keras without weights, which the first call makes."""
    if not is_model(model) or not (is_unbuilt(model) or any(map(_is_uninitialized, chain(model.parameters(), model.buffers())))):
        return
    for library in adapters():
        if library.owns_module(model):
            with library.preserving(model), suppress(Exception):  # an error here is raised again in the recorded call
                model(*args, **kwargs)


def _is_uninitialized(tensor: Any) -> bool:
    return type(tensor).__name__.startswith("Uninitialized")


def models_in(space: Mapping[str, Any]) -> dict[str, Any]:
    """Return the models in a namespace, with their names."""
    return {name: one for name, one in with_held(space).items() if is_model(one) and not name.startswith("_")}


def record(
    call: Callable[[], Any],
    title: str,
    *,
    given: Sequence[tuple[str, Any]] = (),
    models: Mapping[str, Any],
    names: Mapping[str, Any],
    space: Mapping[str, Any],
    kept: Any = None,
    caller: FrameType | None = None,
    limit: int | None = None,
    unfold: Sequence[str] = (),
    values: bool = False,
    timed: bool = False,
    training: bool = False,
) -> tuple[ForwardGraph | None, Any, Exception | None]:
    """Call a function and return the graph of the run, its result, and the exception that ended it.

    The graph is None if no tensor took part.

    Parameters
    ----------
    call : callable
    title : str
    given : sequence of (str, object)
        The arguments, with their names.
    models : mapping of str to module
        The models whose modules and parameters have names.
    names, space
        See `draw_run`.
    kept : module, optional
        The model whose buffers are restored afterwards, with the state of the random generators.
    caller, limit, unfold, values, timed
        See `draw_run`.
    training : bool
        See `Run`.
    """
    runs = []
    for library in adapters():
        own = {key: one for key, one in models.items() if library.owns_module(one)}
        if kept is not None and not own:
            continue
        own_names = {key: one for key, one in names.items() if library.is_tensor(one)}
        run = Run(library, own_names, values=values, timed=timed, training=training)
        with run.faults:
            for key, one in own.items():
                run.own(key, one)
            for key, value in given:
                run.give(key, value)
        runs.append(run)
    error: Exception | None = None
    result: Any = None
    with ExitStack() as stack:
        for run in runs:
            stack.enter_context(run.library.preserving(kept))
        with ExitStack() as recordings:
            for run in runs:
                recordings.enter_context(_recording(run))
            try:
                result = call()
            except Exception as failed:  # noqa: BLE001  (an error of the user's code, which is shown)
                error = failed
                if caller is not None:  # its frame is not yet in the traceback
                    error.__traceback__ = TracebackType(error.__traceback__, caller, caller.f_lasti, caller.f_lineno)
        for run in runs:
            with run.faults:
                run.find_rebound_buffers()
    try:
        run = max(runs, key=lambda one: (len(one.modules), len(one.nodes)))
        failure = None
        with run.faults:
            if error is None:
                run.unmark_caught(None)
                run.add_outputs(result)
            else:
                add_failed_call(run, error)
                failure = _failure(error, space)
        if not run.nodes:
            return None, result, error
        graph = ForwardGraph(assemble(run), shorten(title, LONGEST), limit=limit, error=failure, unfold=unfold)
        return graph, result, error
    finally:
        error = None  # see `draw_run`


@contextmanager
def _recording(run: Run) -> Iterator[None]:
    recording = run.library.forward_recording(run)
    with scope_guard(recording.open, recording.close):
        yield


def _failure(error: Exception, space: Mapping[str, Any]) -> Failure:
    from gradlab.explore.doctor.after_run import error_findings

    diagnosis = error_findings(space, error)
    frames = [one for one in traceback.extract_tb(error.__traceback__) if not one.filename.startswith(EXPLORERS_FOLDER)]
    text = "".join(["Traceback (most recent call last):\n", *traceback.format_list(frames)])
    text += "".join(traceback.format_exception_only(error))
    return Failure(type(error).__name__, str(error), text, tuple(diagnosis.findings), tuple(diagnosis.remarks))
