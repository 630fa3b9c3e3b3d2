"""`graph`: draw the operations that made a tensor, or a run of a model."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from gradlab.core.fixes import offer_fix
from gradlab.explore.graph.graphs import LEAST_LIMIT, MOST_NODES, Graph
from gradlab.explore.libraries import library_of
from gradlab.explore.markup import shape_text
from gradlab.explore.module_paths import is_model
from gradlab.explore.names import caller_names
from gradlab.explore.trace.notes import locals_of
from gradlab.explore.trace.reading import trace_of


def graph(
    out: Any,
    *args: Any,
    names: Mapping[str, Any] | None = None,
    limit: int | None = None,
    most: int = MOST_NODES,
    level: str | None = None,
    unfold: Sequence[str] = (),
    values: bool = False,
    time: bool = False,
    **kwargs: Any,
) -> Graph:
    """Draw the operations that made a tensor, or those of a model for an input.

    ``graph(loss)`` reads the graph that was recorded for `backward`. ``graph(model, x)`` runs the model and draws the run: the
    input on top, every module and function with shape and dtype, parameters, and each part's share of the floating-point
    operations.

    Parameters
    ----------
    out : Tensor, sequence of Tensor, module or function
        A computed tensor of gradlab or PyTorch. It is read, never changed; a graph that backward has freed works, too.
        Or a model, or a function of tensors; it is called with `args` and `kwargs`. After a model has run, its buffers and the
        random generators are restored. What a function changes is not restored.
    *args : Tensor, list, dict, dataclass or anything else
        Arguments of the model. For a tensor: `names`.
    names : mapping of str to Tensor, optional
        Names for tensors, intermediate ones included. By default, the names of the caller's variables.
    limit : int, optional
        Maximum number of nodes in a picture of the operations, at least 8. A larger graph is folded: by modules, functions and
        lines if they were recorded, then repeated segments, then straight chains, then parts of a model by their parameters'
        names. The text form is complete. By default 25 if they were recorded, and fewer if the picture would be higher than 900
        pixels; else 150.
    most : int, default 50 000
        Maximum number of nodes that are read. A million take about half a minute and a gigabyte. If the graph is larger, the
        nodes nearest to the outputs are read, and picture and text say so.
    level : str, optional
        "operations", "code" (the rows are the user's own lines) or "modules" (the rows are the modules of a model). By default
        the operations if there are up to 25 or `limit` is given, else the modules or the code if they were recorded.
    unfold : sequence of str, optional
        Names of leaves that stay visible, whatever is folded around them.
    values : bool, default False
        For a model: whether to show the values that each function returns.
    time : bool, default False
        For a model: whether to measure the time in each function, in this one run.
    **kwargs : Tensor or anything else
        Keyword arguments of the model. If one has the name of an argument above, pass a function:
        ``graph(lambda: model(x, limit=3))``.

    Returns
    -------
    Graph
        Shown as a picture in a notebook. For a model it is a `ForwardGraph`, which also has a `table()`. If the model raises, the
        graph ends there, and its `error` says why.

    Raises
    ------
    TypeError
        If `out` is not a tensor, a sequence of tensors of one library, or a model; or if the arguments do not fit the model.
    RuntimeError
        If a tensor does not require grad, since no graph was recorded for it.
    ValueError
        If `out` is empty, `limit` is too small, `level` is unknown, or `unfold` contains a name that no leaf has.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([1.0, 2.0], requires_grad=True)
    >>> loss = (x * x).sum()
    >>> print(gl.graph(loss).text())
    loss (scalar 5): 2 operations on 1 leaf, x
    <BLANKLINE>
    loss  scalar 5
    sum  SumBackward0  scalar
    ×  MulBackward0  2
    ├─ x  2  = [1, 2]
    └─ x  2  = [1, 2]

    >>> net = gl.nn.Sequential(gl.nn.Linear(2, 3), gl.nn.ReLU())
    >>> gl.graph(net, x).table().parameters
    9
    """
    if limit is not None and limit < LEAST_LIMIT:
        raise ValueError(f"graph(limit={limit}): a picture needs room for at least {LEAST_LIMIT} nodes")
    if isinstance(out, type):
        raise TypeError(f"graph(out) draws a tensor or a model; got the class {out.__name__}. Create the model first.")
    if is_model(out) or (callable(out) and library_of(out) is None):
        from gradlab.explore.forward.front import draw_run

        frame = sys._getframe(1)
        if level not in (None, "operations"):
            raise ValueError(f"graph(model, x, level={level!r}): a run is drawn by its operations; .table() has its modules.")
        return draw_run(
            out,
            args,
            kwargs,
            space={**frame.f_globals, **locals_of(frame)},
            names=caller_names() if names is None else names,
            caller=frame,
            limit=limit,
            unfold=unfold,
            values=values,
            timed=time,
        )
    if kwargs or len(args) > 1:
        unknown = next(iter(kwargs), "a third argument")
        raise TypeError(f"graph(out) of a tensor takes no {unknown}; only graph(model, …) passes arguments on.")
    if args:
        names = args[0]
    if names is None:
        names = caller_names()
    single = library_of(out) is not None or not isinstance(out, Sequence) or isinstance(out, str)
    outputs = [out] if single else list(out)
    if not outputs:
        raise ValueError("graph(out) draws a tensor or several; out is an empty sequence")
    first = library_of(outputs[0])
    for output in outputs:
        library = library_of(output)
        if library is None:
            raise TypeError(
                "graph(out) draws the graph of a tensor or of a sequence of tensors; got "
                f"{type(output).__module__}.{type(output).__qualname__}"
            )
        if first is not None and library is not first:
            raise TypeError(f"graph(out) draws tensors of one library; got {first.name} and {library.name}")
        if not output.requires_grad:
            name = next((name for name, tensor in names.items() if tensor is output), "out")
            why = library.why_lost(output) or offer_fix(
                "Call requires_grad_() on what it is computed from before computing it, and look "
                "for detach() and no_grad() on the way"
            )
            raise RuntimeError(
                "element 0 of tensors does not require grad and does not have a grad_fn: there is no graph behind "
                f"{name} ({library.dtype_name(output)}, {shape_text(tuple(output.shape))})"
                + (f". {why[:1].upper()}{why[1:]}" if why else "")
            )
    if most < LEAST_LIMIT:
        raise ValueError(f"graph(most={most}): there must be room for at least {LEAST_LIMIT} nodes")
    assert first is not None
    return Graph(
        trace_of(outputs, names, most),
        limit=limit,
        level=level,
        unfold=unfold,
        outputs=[first.weakly(out) for out in outputs],
        names={name: first.weakly(tensor) for name, tensor in names.items() if library_of(tensor) is first},
    )
