"""Rewrite calls of `torch.utils.checkpoint.checkpoint`, and of methods that enable checkpointing, without reentry."""

from __future__ import annotations

import ast
import copy
from functools import partial
from typing import Any

MODULES = ("torch.utils.checkpoint", "gradlab.utils.checkpoint")
FUNCTIONS = ("checkpoint", "checkpoint_sequential")
ENABLING = {  # methods of Transformers' models, and their argument for the keywords of `checkpoint`
    "gradient_checkpointing_enable": "gradient_checkpointing_kwargs",
    "activation_checkpointing_enable": "activation_checkpointing_kwargs",
}


def is_checkpoint(function: Any) -> bool:
    """Return whether a value is a function of torch.utils.checkpoint, perhaps with some arguments."""
    function = function.func if isinstance(function, partial) else function
    return getattr(function, "__name__", "") in FUNCTIONS and getattr(function, "__module__", "") in MODULES


def has_name_of_checkpoint(call: ast.Call) -> bool:
    """Return whether the called function has the name of one of torch.utils.checkpoint."""
    return ast.unparse(call.func).rpartition(".")[2] in FUNCTIONS


def without_reentry(call: ast.Call) -> ast.Call | None:
    """Return a call of `checkpoint` with use_reentrant=False; None if the argument may be given in another way."""
    kept = [one for one in call.keywords if one.arg != "use_reentrant"]
    is_named = len(kept) < len(call.keywords)
    is_sequential = ast.unparse(call.func).rpartition(".")[2] == FUNCTIONS[1]
    if not is_named and (any(one.arg is None for one in kept) or (is_sequential and len(call.args) > 3)):
        return None
    return ast.Call(call.func, call.args, [*kept, ast.keyword("use_reentrant", ast.Constant(False))])


def turn_off_setting(node: ast.AST) -> ast.expr | None:
    """Return `{"use_reentrant": False}` for a dictionary with True; None for other nodes."""
    new: Any = copy.deepcopy(node)
    if isinstance(node, ast.Dict):
        pairs = [(key.value, value) for key, value in zip(new.keys, new.values, strict=True) if isinstance(key, ast.Constant)]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        pairs = [(keyword.arg, keyword.value) for keyword in new.keywords]
    else:
        return None
    for name, value in pairs:
        if name == "use_reentrant" and isinstance(value, ast.Constant) and value.value is True:
            value.value = False
            return new  # type: ignore[no-any-return]
    return None


def turn_off_default(node: ast.AST) -> ast.expr | None:
    """Return `model.gradient_checkpointing_enable(...)` with use_reentrant=False for this call without arguments; else None."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.args or node.keywords:
        return None
    argument = ENABLING.get(node.func.attr)
    if argument is None:
        return None
    settings = ast.Dict([ast.Constant("use_reentrant")], [ast.Constant(False)])
    return ast.Call(node.func, [], [ast.keyword(argument, settings)])
