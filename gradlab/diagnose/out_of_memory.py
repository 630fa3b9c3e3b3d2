"""Explanations of out-of-memory errors: the requested size, the largest saved tensors of the graph, and what to do.

NumPy and CuPy raise a `MemoryError`. Recording functions and sweeps pass it on with the nodes of the operands (or of the sweep's
roots), because the tensors saved there are the memory that a user can free.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from gradlab.backend.namespaces import cuda, is_array
from gradlab.core.errors import OutOfMemoryError, advice
from gradlab.core.search import reachable_nodes

MAX_LISTED_TENSORS = 5


def out_of_memory_error(plain: OutOfMemoryError, name: str, error: MemoryError, nodes: Iterable[Any]) -> OutOfMemoryError:
    """Return the error to raise for a MemoryError in `name`. `nodes` are those from which the graph is reached."""
    if plain is error:
        return plain
    on_gpu = type(error) is not MemoryError and type(error).__module__.startswith("cupy")
    asked = getattr(error, "_size" if on_gpu else "_total_size", None)
    largest = sorted(saved_tensor_sizes(nodes), key=lambda item: -item[1])
    if on_gpu:
        lines = [f"CUDA out of memory. Tried to allocate {format_bytes(asked)}."]
    elif asked is None:
        lines = ["Out of memory."]
    else:
        lines = [f"DefaultCPUAllocator: can't allocate memory: you tried to allocate {asked} bytes ({format_bytes(asked)})."]
    lines[0] += f" The operation was {name.strip('_')}."
    if on_gpu and cuda.cupy is not None:
        pool = cuda.cupy.get_default_memory_pool()
        lines.append(
            f"{format_bytes(pool.used_bytes())} of the GPU's memory are in use, and {format_bytes(pool.free_bytes())} more are "
            + advice("cached for reuse (gradlab.cuda.empty_cache() releases them).")
        )
    if largest:
        lines.append(
            f"The graph holds {format_bytes(sum(size for _, size in largest))} in {len(largest)} saved tensors. The largest:"
        )
        lines += [f"  {format_bytes(size):>10}  {what}" for what, size in largest[:MAX_LISTED_TENSORS]]
        lines.append(
            advice(
                "Use a smaller batch, gradlab.utils.checkpoint (which computes a part again instead of saving it), or no_grad() "
                "where no gradient is needed. Do not keep graphs after their backward pass (add up loss.item(), not loss)."
            )
        )
    else:
        lines.append(
            "No graph is held. Use a smaller batch or a smaller result, float32 instead of float64, and delete tensors that "
            "you no longer need."
        )
    return OutOfMemoryError("\n".join(lines))


def saved_tensor_sizes(nodes: Iterable[Any]) -> list[tuple[str, int]]:
    """Return (description, bytes) of each tensor saved in the graph; tensors that share memory are counted once."""
    seen: set[int] = set()
    sizes: list[tuple[str, int]] = []
    below = reachable_nodes([node for node in nodes if node is not None])
    for node in chain.from_iterable(getattr(one, "members", (one,)) for one in below):
        saved = node.saved if node.op is not None and type(node.saved) is tuple else ()
        for name, value in zip(getattr(node.op, "saves", ()), saved, strict=False):
            array = getattr(value, "array", value)
            if not is_array(array):
                continue
            owner = array.base if is_array(array.base) else array
            if id(owner) not in seen:
                seen.add(id(owner))
                shape = "×".join(map(str, owner.shape)) or "0-d"
                sizes.append(
                    (
                        f"{node.title}, its {'result' if name == 'out' else 'argument ' + name} ({shape} {owner.dtype})",
                        owner.size * owner.itemsize,
                    )
                )
    return sizes


def format_bytes(size: Any) -> str:
    """Format a number of bytes as PyTorch does: "20.00 MiB"."""
    if size is None:
        return "an unknown amount"
    units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        del units[0]
    return f"{size} bytes" if units[0] == "bytes" else f"{size:.2f} {units[0]}"
