"""Texts of errors and findings about lost history: how a tensor lost its graph, and what to do."""

from __future__ import annotations

CHECKPOINT = "checkpoint"  # how a reentrant checkpoint loses it, if none of its arguments requires grad
# {how the history was lost: (why, fix)}
HISTORY_LOSSES = {
    "detach": ("detach() returns the values of {what} without their history", "remove detach(){at} if you need the gradient"),
    "data": (".data returns the values of {what} without their history", "remove .data{at} if you need the gradient"),
    "no_grad": ("computed from {what} under no_grad() or set_grad_enabled(False)", "compute it outside no_grad(){at}"),
    "inference_mode": ("computed from {what} under inference_mode()", "compute it outside inference_mode(){at}"),
    "comparison": (
        "a comparison of {what} returns bools, which have no gradient",
        "differentiate the values before the comparison, or use a smooth function instead (sigmoid)",
    ),
    "position": (
        "a position in {what} is an integer, which has no gradient",
        "use values instead of positions{at}, such as max or softmax instead of argmax",
    ),
    "cast": ("the cast of {what} to integers or bools has no gradient", "remove the cast{at}"),
    "tensor()": ("`gradlab.tensor(x)` copies the values of {what} without their history", "use x.clone() or x itself{at}"),
    "Parameter()": (
        "`Parameter(x)` is a new leaf that shares the memory of {what}",
        "use x itself{at}, and create parameters once, in `__init__`",
    ),
    "item()": (
        "it converted {what} to a Python number, which has no history",
        "keep the tensor itself{at} (`gradlab.stack` joins several)",
    ),
    "numpy()": ("it converted {what} to a NumPy array, which has no history", "use gradlab's functions{at}"),
    "grad()": (
        "without create_graph=True, the derivative of {what} has no history",
        "pass create_graph=True{at} if you differentiate it again",
    ),
    CHECKPOINT: (
        "with use_reentrant=True, checkpoint() records gradients only if one of its arguments requires grad, and none does",
        "pass use_reentrant=False{at}",
    ),
    "no derivative": (
        "{how} of {what} has no derivative",
        "differentiate the values before it{at}, or use a smooth function instead",
    ),
}
HISTORY_LOSSES["tolist()"] = HISTORY_LOSSES["item()"]
HISTORY_LOSSES["__float__()"] = HISTORY_LOSSES["item()"]
HISTORY_LOSSES["__int__()"] = HISTORY_LOSSES["item()"]
HISTORY_LOSSES["__index__()"] = HISTORY_LOSSES["item()"]
HISTORY_LOSSES["__array__()"] = HISTORY_LOSSES["numpy()"]
GRADIENTS_ADD_UP = "backward() adds to `.grad`"  # for gradients accumulated by mistake
# {how the history was lost: kind of finding}
LOSS_FAMILIES = {
    "detach": "detached",
    "data": "detached",
    "no_grad": "no_grad",
    "inference_mode": "no_grad",
    CHECKPOINT: "checkpoint-without-grad",
    "comparison": "non-differentiable",
    "position": "non-differentiable",
    "cast": "integer",
    "tensor()": "re-wrapped",
    "Parameter()": "re-wrapped",
    "item()": "item",
    "tolist()": "item",
    "__float__()": "item",
    "__int__()": "item",
    "__index__()": "item",
    "numpy()": "numpy",
    "grad()": "detached",
    "__array__()": "numpy",
}
