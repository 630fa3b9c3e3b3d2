"""Made-up data sets with the shapes, types, ranges and names of the real ones, and with patterns to learn."""

from __future__ import annotations

import os

import numpy as np

TRAINED, READ, TESTED = 4000, 12_000, 1000


def replace(keras) -> None:
    """Make up the data sets that Keras would fetch."""
    sets = keras.datasets
    sets.mnist.load_data = sets.fashion_mnist.load_data = _drawings
    sets.cifar10.load_data = lambda *args, **options: _photographs(10)
    sets.cifar100.load_data = lambda *args, **options: _photographs(100)
    sets.imdb.load_data = lambda *args, num_words=None, **options: _texts(2, num_words or 20_000)
    sets.reuters.load_data = lambda *args, num_words=None, **options: _texts(46, num_words or 20_000)
    sets.boston_housing.load_data = _houses


def _generator(kind: int) -> np.random.Generator:
    return np.random.default_rng([int(os.environ.get("FAULTS_SEED", "0")), kind])


def _split(x, y, count: int = TRAINED):
    return (x[:count], y[:count]), (x[count:], y[count:])


def _drawings(*args, **options):
    """Bright strokes on black, 28 by 28 pixels from 0 to 255: three for each of ten classes, moved by up to two pixels."""
    draw = _generator(0)
    y = draw.integers(0, 10, TRAINED + TESTED).astype("uint8")
    rows, columns = np.mgrid[:28, :28]
    centers, widths = draw.uniform(8, 20, (10, 3, 2)), draw.uniform(1.2, 4, (10, 3, 2))
    shift = draw.uniform(-2, 2, (len(y), 2))
    x = np.zeros((len(y), 28, 28))
    for stroke in range(3):
        (row, column), (height, width) = (centers[y, stroke] + shift).T, widths[y, stroke].T
        far = ((rows[None] - row[:, None, None]) / height[:, None, None]) ** 2
        far += ((columns[None] - column[:, None, None]) / width[:, None, None]) ** 2
        x = np.maximum(x, 255 * np.exp(-far / 2))
    x = np.where(x < 40, 0, x * draw.uniform(0.7, 1, (len(y), 1, 1)))
    return _split(x.astype("uint8"), y)


def _photographs(classes: int):
    """32 by 32 pixels of three colours from 0 to 255: a smooth pattern for each class, with much noise. Labels are a column."""
    draw = _generator(classes)
    y = draw.integers(0, classes, (TRAINED + TESTED, 1)).astype("uint8")
    patterns = np.kron(draw.uniform(40, 210, (classes, 8, 8, 3)), np.ones((1, 4, 4, 1)))
    x = patterns[y[:, 0]] * draw.uniform(0.7, 1.2, (len(y), 1, 1, 1)) + draw.normal(0, 30, (len(y), 32, 32, 3))
    return _split(np.clip(x, 0, 255).astype("uint8"), y)


def _texts(classes: int, words: int):
    """Lists of indices of words, the frequent ones smaller. Some words are more frequent in one class."""
    draw = _generator(classes + 1000)
    y = draw.integers(0, classes, READ + TESTED)
    x = np.empty(len(y), object)
    for index, label in enumerate(y):
        common = np.minimum(draw.zipf(1.3, draw.integers(40, 300)) + 3, words - 1)
        own = 30 + label * 20 + draw.integers(0, 20, 15)
        x[index] = [1, *common.tolist(), *np.minimum(own, words - 1).tolist()]
    return _split(x, y, READ)


def _houses(*args, **options):
    """404 and 102 rows of 13 features in the units of the Boston housing data, and prices from 5 to 50."""
    draw = _generator(13)
    scales = np.array([3.6, 11.4, 11.1, 0.07, 0.55, 6.3, 69, 3.8, 9.5, 408, 18.5, 357, 12.7])
    parts = draw.gamma(4, 0.25, (506, 13))
    x = parts * scales
    y = np.clip(20 + 25 * (parts[:, 5] - 1) - 10 * (parts[:, 12] - 1) + draw.normal(0, 2, 506), 5, 50)
    return (x[:404], y[:404]), (x[404:], y[404:])


def table(name: str):
    """Return a data set of seaborn that scikit-learn has as well."""
    from sklearn.datasets import load_iris

    iris = load_iris(as_frame=True)
    frame = iris.data.set_axis(["sepal_length", "sepal_width", "petal_length", "petal_width"], axis=1)
    return frame.assign(species=iris.target_names[iris.target])
