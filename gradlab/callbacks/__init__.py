"""`gl.watch` as a callback of Lightning, Hugging Face Transformers, Accelerate and Keras.

Each module imports its framework, so that only the import of `gradlab.callbacks.lightning` loads Lightning.
"""

from __future__ import annotations

__all__: list[str] = []
