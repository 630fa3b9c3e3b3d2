"""There is not enough memory: what was asked for, what is held, by which saved tensors of the graph, and what to do.

NumPy and CuPy raise a `MemoryError`. A recording function, and a sweep, hand it here, with the nodes that the operation's
operands (or the sweep's roots) came from: what these saved is what a user can do something about.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from gradlab.backend.namespaces import cuda, is_array
from gradlab.core.engine import reachable
from gradlab.core.errors import OutOfMemoryError, advice

SHOWN = 5


def out_of_memory_error(plain: OutOfMemoryError, name: str, error: MemoryError, nodes: Iterable[Any]) -> OutOfMemoryError:
    """What to raise where `name` met a MemoryError; `nodes` are those from which the graph is reached."""
    if plain is error:
        return plain
    on_gpu = type(error) is not MemoryError and type(error).__module__.startswith("cupy")
    asked = getattr(error, "_size" if on_gpu else "_total_size", None)
    largest = sorted(held(nodes), key=lambda item: -item[1])
    if on_gpu:
        lines = [f"CUDA out of memory. Tried to allocate {amount(asked)}."]
    elif asked is None:
        lines = ["Out of memory."]
    else:
        lines = [f"DefaultCPUAllocator: can't allocate memory: you tried to allocate {asked} bytes ({amount(asked)})."]
    lines[0] += f" The operation was {name.strip('_')}."
    if on_gpu and cuda.cupy is not None:
        pool = cuda.cupy.get_default_memory_pool()
        lines.append(
            f"In use are {amount(pool.used_bytes())} of the GPU's memory, and {amount(pool.free_bytes())} more are kept "
            + advice("for reuse (gradlab.cuda.empty_cache() gives them back).")
        )
    if largest:
        lines.append(f"The graph holds {amount(sum(size for _, size in largest))} in {len(largest)} saved tensors. The largest:")
        lines += [f"  {amount(size):>10}  {what}" for what, size in largest[:SHOWN]]
        lines.append(
            advice(
                "What to do: a smaller batch; gradlab.utils.checkpoint, which computes a part again instead of saving it; "
                "no_grad() where no gradient is wanted; and keep no graph longer than its backward (add up loss.item(), not "
                "loss)."
            )
        )
    else:
        lines.append(
            "No graph is held. What to do: a smaller batch or a smaller result, float32 for float64, and del for what "
            "is not needed."
        )
    return OutOfMemoryError("\n".join(lines))


def held(nodes: Iterable[Any]) -> list[tuple[str, int]]:
    """What the nodes reached save, each memory once: (which tensor of which node, bytes)."""
    seen: set[int] = set()
    sizes: list[tuple[str, int]] = []
    below = reachable([node for node in nodes if node is not None])
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


def amount(size: Any) -> str:
    """A number of bytes as torch writes it: 20.00 MiB."""
    if size is None:
        return "an unknown amount"
    units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        del units[0]
    return f"{size} bytes" if units[0] == "bytes" else f"{size:.2f} {units[0]}"
