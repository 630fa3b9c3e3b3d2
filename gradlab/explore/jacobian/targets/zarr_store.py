"""A key in the store of a zarr array or group, and whether other processes can access the store."""

from __future__ import annotations

from typing import Any

NAME = "gradlab.json"


class KeyBeside:
    """`gradlab.json` in the folder, or under the prefix, of a zarr array or group, whose stores write objects atomically."""

    def __init__(self, store_path: Any, name: str = NAME) -> None:
        self.base, self.store_path, self.name = store_path, store_path / name, name

    def __str__(self) -> str:
        return str(self.store_path).removeprefix("file://")

    def read(self) -> bytes | None:
        from zarr.core.buffer import default_buffer_prototype
        from zarr.core.sync import sync

        buffer: Any = sync(self.store_path.get(default_buffer_prototype()))
        return None if buffer is None else bytes(buffer.to_bytes())

    def write(self, text: str) -> None:
        from zarr.core.buffer import default_buffer_prototype
        from zarr.core.sync import sync

        sync(self.store_path.set(default_buffer_prototype().buffer.from_bytes(text.encode())))

    def remove(self) -> None:
        """Remove the object."""
        from zarr.core.sync import sync

        sync(self.store_path.delete())


def compressor() -> Any:
    """Return the default compressor: LZ4 on shuffled bytes takes half the time of zarr's default, and floating-point numbers
    compress better."""
    from zarr.codecs import BloscCodec

    return BloscCodec(cname="lz4", clevel=5, shuffle="shuffle")


def is_shared(store: Any) -> bool:
    """Return whether other processes can access the store. A store that would be copied to them is not shared."""
    from zarr.storage import MemoryStore

    inner = store
    while hasattr(inner, "_store"):  # wrappers that log or count accesses
        inner = vars(inner)["_store"]
    return not isinstance(inner, MemoryStore)
