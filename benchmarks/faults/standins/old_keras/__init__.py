"""A layer that lets Keras programs of 2015 to 2021 run on Keras 3 with PyTorch.

Old names of modules, layers and arguments mean what they meant. Data sets are made up. Training is bounded: see `bounds`.
The model, the loss, the optimizer and the scale of the data stay those of the program.
"""

from __future__ import annotations

import os
import random
import time

from old_keras.import_hooks import after_import, provide


def install() -> None:
    """Prepare for the imports of the program, which may come in any order."""
    import numpy as np

    seed = int(os.environ.get("FAULTS_SEED", "0"))
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    for kind in (float, int, object):
        setattr(np, kind.__name__, kind)
    time.clock = time.perf_counter
    after_import("keras", _on_keras)
    after_import("seaborn", _on_seaborn)
    after_import("scipy.ndimage", lambda ndimage: setattr(ndimage, "interpolation", ndimage))
    provide("tensorflow", _tensorflow)


def _on_keras(keras) -> None:
    from old_keras import bounds, data_sets, modules, spellings

    if keras.src.utils.module_utils.tensorflow.available:  # Keras remembers that it isn't
        raise RuntimeError("TensorFlow is installed: the programs run on PyTorch")
    keras.utils.set_random_seed(int(os.environ.get("FAULTS_SEED", "0")))
    spellings.accept(keras)
    bounds.set_bounds(keras)
    data_sets.replace(keras)
    modules.register(keras)


def _tensorflow():
    import keras

    from old_keras import tensorflow

    return tensorflow.module(keras)


def _on_seaborn(seaborn) -> None:
    from old_keras import data_sets

    seaborn.load_dataset = data_sets.table
