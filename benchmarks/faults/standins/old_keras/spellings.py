"""Old names of arguments, layers and methods."""

from __future__ import annotations

import functools
import inspect

ARGUMENTS = {
    "output_dim": "units",
    "init": "kernel_initializer",
    "inner_init": "recurrent_initializer",
    "inner_activation": "recurrent_activation",
    "W_regularizer": "kernel_regularizer",
    "b_regularizer": "bias_regularizer",
    "W_constraint": "kernel_constraint",
    "bias": "use_bias",
    "nb_filter": "filters",
    "filter_length": "kernel_size",
    "pool_length": "pool_size",
    "subsample": "strides",
    "subsample_length": "strides",
    "border_mode": "padding",
    "dim_ordering": "data_format",
    "p": "rate",
    "dropout_W": "dropout",
    "dropout_U": "recurrent_dropout",
    "lr": "learning_rate",
    "alpha": "negative_slope",
}
VALUES = {"th": "channels_first", "tf": "channels_last"}
DROPPED = {"input_length", "weights", "schedule_decay", "mode"}
LAYERS = (
    "Dense Conv1D Conv2D Conv3D SimpleRNN LSTM GRU Embedding Dropout BatchNormalization MaxPooling1D MaxPooling2D MaxPooling3D "
    "AveragePooling1D AveragePooling2D UpSampling2D LeakyReLU Flatten Activation Masking Reshape"
)
OPTIMIZERS = ["SGD", "RMSprop", "Adagrad", "Adadelta", "Adam", "Adamax", "Nadam"]
RENAMED = {
    "Convolution1D": "Conv1D",
    "Convolution2D": "Conv2D",
    "Convolution3D": "Conv3D",
    "CuDNNLSTM": "LSTM",
    "CuDNNGRU": "GRU",
}
LOSSES = {"logcosh": "log_cosh"}


def accept(keras) -> None:
    """Let Keras accept old spellings."""
    for name in LAYERS.split():
        cls = getattr(keras.layers, name)
        cls.__init__ = _of_layer(cls.__init__, square=name == "Conv2D")
    for name in OPTIMIZERS:
        cls = getattr(keras.optimizers, name)
        cls.__init__ = _of_optimizer(cls.__init__, keras.optimizers.schedules.InverseTimeDecay)
        cls.lr = property(lambda self: self.learning_rate)
    for old, new in RENAMED.items():
        setattr(keras.layers, old, getattr(keras.layers, new))
    keras.layers.Layer.input_shape = property(lambda self: self.input.shape)
    keras.layers.Layer.output_shape = property(lambda self: self.output.shape)
    keras.models.Input = keras.layers.Input
    keras.Model.predict_classes = _predict_classes
    keras.Model.predict_proba = lambda self, x, **options: self.predict(x, **options)
    keras.Sequential.add = _with_batch_size(keras.Sequential.add, keras.layers.Input)
    keras.Model.compile = _of_compile(keras.Model.compile)
    for name in ("VGG16", "VGG19", "ResNet50", "InceptionV3", "MobileNet", "Xception"):
        setattr(keras.applications, name, _without_weights(getattr(keras.applications, name)))
    keras.utils.plot_model = lambda *args, **options: None


def rename(options: dict, accepted: set[str]) -> dict:
    """Return options by their new names. Those without a meaning in Keras 3 are left out."""
    new = {}
    for name, value in options.items():
        if name in DROPPED and name not in accepted:
            continue
        if name not in accepted and ARGUMENTS.get(name) in accepted:
            name = ARGUMENTS[name]
        new[name] = VALUES.get(value, value) if isinstance(value, str) else value
    return new


def _of_layer(original, *, square: bool):
    accepted = set(inspect.signature(original).parameters) | {"input_dim", "input_shape"}

    @functools.wraps(original)
    def __init__(self, *args, **options):  # noqa: N807
        batch = options.pop("batch_input_shape", None)
        if batch is not None:
            options["input_shape"] = tuple(batch[1:])
        if "nb_row" in options:
            options["kernel_size"] = (options.pop("nb_row"), options.pop("nb_col"))
        if square and len(args) == 3 and "border_mode" in options:
            args = (args[0], args[1:])
        if options.get("input_shape") is not None:
            options["input_shape"] = tuple(options["input_shape"])
        original(self, *args, **rename(options, accepted))
        self.old_batch_shape = batch

    __init__.__signature__ = inspect.signature(original)
    return __init__


def _of_optimizer(original, schedule):
    accepted = set(inspect.signature(original).parameters)

    @functools.wraps(original)
    def __init__(self, *args, **options):  # noqa: N807
        decay = options.pop("decay", None)
        options = {name: value for name, value in rename(options, accepted).items() if value is not None or name == "name"}
        if decay and decay > 1e-5:
            options["learning_rate"] = schedule(options.get("learning_rate", 0.01), 1, decay)
        options.pop("l2", None)
        original(self, *args, **options)

    __init__.__signature__ = inspect.signature(original)
    return __init__


def _with_batch_size(add, make_input):
    """A stateful layer knows the size of its batches."""

    @functools.wraps(add)
    def with_batch_size(self, layer, **options):
        batch = getattr(layer, "old_batch_shape", None)
        if batch and batch[0] and not self.layers:
            add(self, make_input(batch_shape=tuple(batch)), **options)
        add(self, layer, **options)

    return with_batch_size


def _of_compile(original):
    @functools.wraps(original)
    def compile(self, optimizer="rmsprop", loss=None, metrics=None, **options):
        known = [one for one in metrics or [] if one != "loss"]
        options.pop("class_mode", None)
        original(
            self, optimizer=optimizer, loss=LOSSES.get(loss, loss) if isinstance(loss, str) else loss, metrics=known, **options
        )

    return compile


def _predict_classes(self, x, **options):
    out = self.predict(x, verbose=0)
    return out.argmax(axis=-1) if out.shape[-1] > 1 else (out > 0.5).astype("int32")


def _without_weights(original):
    """Weights that would be fetched are random."""

    @functools.wraps(original)
    def application(*args, weights=None, **options):
        return original(*args, weights=None, **options)

    return application
