"""Transpose of a Jacobian, as lazy as the Jacobian itself."""

from __future__ import annotations

from typing import Any

import numpy as np


class Transposed:
    """Transpose Jᵀ: `J.T @ v` is vᵀJ, one backward sweep, and `u @ J.T` is Ju. As an array, or sparse, it is J's transpose."""

    __array_ufunc__ = None  # NumPy leaves `v @ J.T` to this class

    def __init__(self, jacobian: Any) -> None:
        self.T = jacobian
        rows, columns = jacobian.shape
        self.shape: tuple[int, int] = (columns, rows)
        self.dtype: np.dtype = jacobian.dtype

    def __repr__(self) -> str:
        return f"<transpose of {self.T!r}>"

    def __len__(self) -> int:
        return self.shape[0]

    def __matmul__(self, v: Any) -> np.ndarray:
        return np.asarray(np.asarray(v).T @ self.T).T

    def __rmatmul__(self, u: Any) -> np.ndarray:
        return np.asarray(self.T @ np.asarray(u).T).T

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (int, np.integer)):
            return self.T[:, key]
        return np.asarray(self)[key]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.T.__array__(dtype, copy)).T

    def sparse(self) -> Any:
        """Return the whole transpose as a scipy.sparse.csr_array."""
        return self.T.sparse().T.tocsr()
