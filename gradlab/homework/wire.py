"""Exchange plain data through a pipe: frames of JSON with arrays. Nothing that arrives is executed, and all of it is validated.

A frame is its length in four bytes, then JSON; an array is an object with its dtype, its shape and its bytes in base64. The
other side runs a student's code, so anything else raises `BadFrame`.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from typing import Any, BinaryIO

import numpy as np

MAX_BYTES = 8 << 20  # of a frame
KINDS, WIDEST = "biufc", 16  # numeric dtypes, up to complex128


class BadFrame(Exception):  # noqa: N818  (a finding about the other side)
    """Data that is not a frame, or a frame that is too long."""


def pack(message: Any) -> bytes:
    """Encode a message as a frame."""
    body = json.dumps(_plain(message), allow_nan=True).encode("utf-8", "backslashreplace")
    if len(body) > MAX_BYTES:
        raise BadFrame(f"a message of {len(body)} bytes; the limit is {MAX_BYTES}")
    return struct.pack(">I", len(body)) + body


def read(pipe: BinaryIO) -> Any:
    """Read the next message. Return None at the end.

    Raises
    ------
    BadFrame
        If the data is not a valid frame.
    """
    head = _exactly(pipe, 4)
    if not head:
        return None
    (length,) = struct.unpack(">I", head)
    if length > MAX_BYTES:
        raise BadFrame(f"a message of {length} bytes is announced; the limit is {MAX_BYTES}")
    body = _exactly(pipe, length)
    if len(body) < length:
        raise BadFrame("the message breaks off")
    try:
        return _restore_arrays(json.loads(body))
    except (ValueError, TypeError, RecursionError, MemoryError) as error:
        raise BadFrame(f"the message cannot be read: {type(error).__name__}") from None


def _exactly(pipe: BinaryIO, count: int) -> bytes:
    parts, missing = [], count
    while missing and (part := pipe.read(missing)):
        parts.append(part)
        missing -= len(part)
    got = b"".join(parts)
    if got and missing:
        raise BadFrame("the message breaks off")
    return got


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.str, "shape": list(value.shape), "bytes": base64.b64encode(value.tobytes()).decode()}
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value


def _restore_arrays(value: Any) -> Any:
    if isinstance(value, list):
        return [_restore_arrays(part) for part in value]
    if not isinstance(value, dict):
        return value
    if set(value) != {"dtype", "shape", "bytes"}:
        return {key: _restore_arrays(part) for key, part in value.items()}
    dtype, shape = np.dtype(str(value["dtype"])), tuple(value["shape"])
    raw = base64.b64decode(value["bytes"], validate=True)
    if (
        dtype.kind not in KINDS
        or dtype.itemsize > WIDEST
        or not all(type(n) is int and n >= 0 for n in shape)
        or (math.prod(shape) * dtype.itemsize != len(raw))
    ):
        raise ValueError("not an array")
    return np.frombuffer(raw, dtype).reshape(shape).copy()
