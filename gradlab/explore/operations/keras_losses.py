"""Properties of the losses of Keras and of layers without weights, by the names that `libraries/keras_torch` and `trace/wholes`
give to their calls.

Keras documents what each loss takes: the cross-entropies take probabilities, unless `from_logits=True`.
"""

from __future__ import annotations

from gradlab.core.properties import ORDINARY, Loss, Properties

PROBABILITIES = Properties(loss=Loss(takes="probabilities"))
LOGITS = Properties(loss=Loss(takes="logits"))
VALUES = Properties(loss=Loss(takes="values"), low=0)
SCORES = Properties(loss=Loss(takes="scores", bounded_slope=True), low=0)

CLASSES = ("Keras CategoricalCrossentropy", "Keras SparseCategoricalCrossentropy", "Keras CategoricalFocalCrossentropy")
BINARY = ("Keras BinaryCrossentropy", "Keras BinaryFocalCrossentropy")

KERAS_LOSSES = {
    **dict.fromkeys((*CLASSES, *BINARY), PROBABILITIES),
    **dict.fromkeys([f"{name}WithLogits" for name in (*CLASSES, *BINARY)], LOGITS),
    **dict.fromkeys(
        (
            *("Keras MeanSquaredError", "Keras MeanAbsoluteError", "Keras MeanAbsolutePercentageError"),
            *("Keras MeanSquaredLogarithmicError", "Keras Huber", "Keras LogCosh"),
        ),
        VALUES,
    ),
    **dict.fromkeys(("Keras Hinge", "Keras SquaredHinge", "Keras CategoricalHinge"), SCORES),
    **dict.fromkeys(
        (
            "Keras KlDivergence",
            "Keras Poisson",
            "Keras CosineSimilarity",
            "Keras Dice",
            "Keras Tversky",
            "Keras Circle",
            "Keras Ctc",
        ),
        ORDINARY,
    ),
    **dict.fromkeys(
        ("Keras Dropout", "Keras SpatialDropout1D", "Keras SpatialDropout2D", "Keras SpatialDropout3D"),
        Properties(draws=True, drops=True, elementwise=True, keeps_sign=True),
    ),
    **dict.fromkeys(("Keras Flatten", "Keras Reshape"), Properties(moves="layout")),
    "Keras penalty": Properties(low=0),
    "Keras sum": Properties(adds=True),
}
