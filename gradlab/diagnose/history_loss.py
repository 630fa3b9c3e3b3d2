"""The ways in which a tensor loses its history, and what to do about each: the words of the errors and of the doctor."""

from __future__ import annotations

# What each way of losing the history is, and what to do about it.
WAYS = {
    "detach": ("detach() gives the values of {what} without their history", "leave detach() out{at}, if its gradient is wanted"),
    "data": (".data gives the values of {what} without their history", "leave .data out{at}, if its gradient is wanted"),
    "no_grad": ("computed from {what} while no_grad() or set_grad_enabled(False) held", "compute it outside no_grad(){at}"),
    "inference_mode": ("computed from {what} in inference_mode()", "compute it outside inference_mode(){at}"),
    "comparison": (
        "a comparison of {what} gives bools, which have no gradient",
        "differentiate what comes before the comparison, or use a smooth function in its place (sigmoid)",
    ),
    "position": (
        "a position among {what} is an integer, and has no gradient",
        "differentiate what comes before argmax{at}: max, or softmax in its place",
    ),
    "cast": ("the cast of {what} to integers or bools has no gradient", "leave the cast out{at}"),
    "tensor()": ("`gradlab.tensor(x)` copies the values of {what} without their history", "write x.clone(), or x itself{at}"),
    "Parameter()": (
        "`Parameter(x)` is a leaf of its own with the memory of {what}",
        "use x itself{at}, and make parameters once, in `__init__`",
    ),
    "item()": (
        "it made a Python number of {what}, and numbers have no history",
        "go on with the tensor itself{at} (`gradlab.stack` puts several together)",
    ),
    "numpy()": ("it made a NumPy array of {what}, which has no history", "stay with gradlab's functions{at}"),
    "grad()": (
        "the derivative of {what} is a number like any other without create_graph=True, and has no history",
        "pass create_graph=True{at}, if it is to be differentiated in its turn",
    ),
    "no derivative": (
        "{how} of {what} has no derivative",
        "differentiate what comes before it{at}, or use a smooth function in its place",
    ),
}
WAYS["tolist()"] = WAYS["item()"]
WAYS["__float__()"] = WAYS["item()"]
WAYS["__int__()"] = WAYS["item()"]
WAYS["__index__()"] = WAYS["item()"]
WAYS["__array__()"] = WAYS["numpy()"]
ADDS = "backward() adds to what is in `.grad`"  # of gradients that were added up without intent
# Of which family each is.
FAMILIES = {
    "detach": "detached",
    "data": "detached",
    "no_grad": "no_grad",
    "inference_mode": "no_grad",
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
