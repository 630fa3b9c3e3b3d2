"""Plain data through a pipe: JSON with arrays, a frame at a time. Nothing that arrives can run, and all of it is checked.

A frame is its length in four bytes and then JSON; an array is an object of its dtype, its shape and its bytes in base64. What
does not keep to this is a `BadFrame`, whatever it is: the other side runs a student's code.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from typing import Any, BinaryIO

import numpy as np

MOST = 8 << 20  # bytes of a frame
KINDS, WIDEST = "biufc", 16  # dtypes that are numbers, up to complex128


class BadFrame(Exception):  # noqa: N818  (a finding about the other side)
    """Not a frame, or too long a one."""


def packed(message: Any) -> bytes:
    """A message as a frame."""
    body = json.dumps(_plain(message), allow_nan=True).encode("utf-8", "backslashreplace")
    if len(body) > MOST:
        raise BadFrame(f"a message of {len(body)} bytes; {MOST} are the most")
    return struct.pack(">I", len(body)) + body


def read(pipe: BinaryIO) -> Any:
    """The next message; None at the end.

    Raises
    ------
    BadFrame
        If it is none.
    """
    head = _exactly(pipe, 4)
    if not head:
        return None
    (length,) = struct.unpack(">I", head)
    if length > MOST:
        raise BadFrame(f"a message of {length} bytes is announced; {MOST} are the most")
    body = _exactly(pipe, length)
    if len(body) < length:
        raise BadFrame("the message breaks off")
    try:
        return _with_arrays(json.loads(body))
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


def _with_arrays(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_arrays(part) for part in value]
    if not isinstance(value, dict):
        return value
    if set(value) != {"dtype", "shape", "bytes"}:
        return {key: _with_arrays(part) for key, part in value.items()}
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
