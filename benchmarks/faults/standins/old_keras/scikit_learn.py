"""A small `keras.wrappers.scikit_learn`."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin


class _Wrapper(BaseEstimator):
    """An estimator that trains the model of `build_fn`."""

    def __init__(self, build_fn=None, **fit):
        self.build_fn, self.options = build_fn, fit

    def get_params(self, deep=True):
        return {"build_fn": self.build_fn, **self.options}

    def set_params(self, **params):
        self.build_fn = params.pop("build_fn", self.build_fn)
        self.options |= params
        return self

    def fit(self, x, y, **more):
        self.model = self.build_fn()
        self.history = self.model.fit(np.asarray(x), np.asarray(y), **{**self.options, **more})
        return self


class KerasClassifier(ClassifierMixin, _Wrapper):
    def predict(self, x):
        out = self.model.predict(np.asarray(x), verbose=0)
        return out.argmax(axis=-1) if out.shape[-1] > 1 else (out > 0.5).astype("int32")

    def score(self, x, y, **options):
        y = np.asarray(y)
        return float(np.mean(self.predict(x).ravel() == (y.argmax(axis=-1) if y.ndim > 1 and y.shape[-1] > 1 else y.ravel())))


class KerasRegressor(RegressorMixin, _Wrapper):
    def predict(self, x):
        return self.model.predict(np.asarray(x), verbose=0).squeeze(-1)
