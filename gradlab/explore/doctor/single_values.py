"""An error of a normalisation that was given one value per channel: there is no variance to divide by."""

from __future__ import annotations

import re

from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.scene import Scene


def one_value(scene: Scene, match: re.Match[str]) -> Finding | None:
    """Say which layer was given one value per channel."""
    if scene.call is None:
        return None
    path, module, arguments = scene.call
    shape = list(arguments[0].shape) if arguments else []
    kind = type(module).__name__
    batch = kind.startswith(("BatchNorm", "SyncBatchNorm"))
    return Finding(
        "shape",
        f"{scene.said}: `{path}` ({kind}) takes the mean and the variance of each channel over the "
        f"{'batch' if batch else 'positions'}, and its input has shape {shape}: one value per channel.",
        fix="Give it a batch of more than one in training, with drop_last=True in the DataLoader, or call eval() on it first."
        if batch
        else "Give it more than one position per channel.",
        evidence={"layer": path, "shape": shape},
    )
