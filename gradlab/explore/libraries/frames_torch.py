"""Find the user's frame behind those of PyTorch, Keras and gradlab. Imported once the user has imported torch."""

from __future__ import annotations

import os
import sys
from sys import _getframe
from typing import Any

import torch

from gradlab.diagnose.sites import is_gradlab_file

TORCH = os.path.dirname(torch.__file__) + os.sep
IS_LIBRARY_FILE: dict[str, bool] = {}  # for each file name, whether it belongs to torch, Keras or gradlab
HANDLED = torch.overrides.handle_torch_function.__code__


def theirs(filename: str) -> bool:
    """Return whether a file belongs to torch, Keras or gradlab."""
    known = IS_LIBRARY_FILE.get(filename)
    if known is None:
        theirs = (TORCH, "<frozen", _keras_folder() or TORCH)
        known = IS_LIBRARY_FILE[filename] = filename.startswith(theirs) or is_gradlab_file(filename)
    return known


def _keras_folder() -> str:
    """Return the folder of the files of Keras; "" if it has not been imported."""
    file = getattr(sys.modules.get("keras"), "__file__", None)
    return os.path.dirname(file) + os.sep if isinstance(file, str) else ""


def user_frame(depth: int = 2) -> Any:
    """Return the nearest frame outside torch, Keras and gradlab; None if there is none."""
    frame: Any = _getframe(depth)
    while frame is not None and theirs(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def site_of(frame: Any) -> Any:
    """Return the site of a frame; None without a frame."""
    return None if frame is None else (frame.f_code, frame.f_lasti)


def user_site() -> Any:
    """Return the site of the nearest frame outside torch, Keras and gradlab; None if there is none."""
    return site_of(user_frame())
