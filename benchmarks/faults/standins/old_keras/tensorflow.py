"""A small `tensorflow`: its Keras, and the functions that such programs call."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace


def module(keras) -> ModuleType:
    """Return the module, with Keras as `tensorflow.keras`."""
    tf = ModuleType("tensorflow")
    tf.__path__, tf.__version__ = [], "2.9.0"
    tf.keras = keras
    ops = keras.ops
    for name in ("abs", "argmax", "cast", "equal", "exp", "matmul", "maximum", "one_hot", "reshape", "sqrt", "square"):
        setattr(tf, name, getattr(ops, name))
    tf.reduce_mean, tf.reduce_sum, tf.concat = ops.mean, ops.sum, ops.concatenate
    tf.constant = tf.convert_to_tensor = ops.convert_to_tensor
    tf.nn = keras.activations
    tf.float32, tf.float64, tf.int32, tf.bool = "float32", "float64", "int32", "bool"
    seed = keras.utils.set_random_seed
    tf.random = SimpleNamespace(set_seed=seed, set_random_seed=seed, uniform=keras.random.uniform, normal=keras.random.normal)
    tf.set_random_seed = seed
    tf.random_uniform = keras.random.uniform
    tf.train = SimpleNamespace(GradientDescentOptimizer=keras.optimizers.SGD, AdamOptimizer=keras.optimizers.Adam)
    tf.compat = SimpleNamespace(v1=tf, v2=tf)
    descent = ModuleType("tensorflow.python.training.gradient_descent")
    descent.GradientDescentOptimizer = keras.optimizers.SGD
    for name in ("tensorflow.python", "tensorflow.python.training", "tensorflow.contrib"):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = []
    sys.modules[descent.__name__] = descent
    sys.modules["tensorflow.contrib"].keras = keras
    return tf
