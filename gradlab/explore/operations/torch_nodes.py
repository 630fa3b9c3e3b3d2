"""Properties of the nodes that PyTorch records and gradlab does not, by their names without "Backward" and number.

The facts follow from the formulas in PyTorch's `derivatives.yaml` and from calculus. Each node of the installed PyTorch is
either here or has the name of a primitive of gradlab (a test compares). Nodes without special facts are listed too. A name that
still ends in "Backward" is the backward pass of an operation, recorded with `create_graph=True`.

Conversions to and from sparse and nested layouts move no elements one by one, so they have no `moves`.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradlab.core.properties import ORDINARY, Loss, Properties


def table(groups: Iterable[tuple[Properties, str]]) -> dict[str, Properties]:
    """Return the properties by name. Each group is (properties, names separated by spaces)."""
    by_name: dict[str, Properties] = {}
    for properties, names in groups:
        for name in names.split():
            if name in by_name:
                raise ValueError(f"{name} is listed twice.")
            by_name[name] = properties
    return by_name


# fmt: off
TORCH_NODES = table((
    # data that are only moved
    (Properties(moves="layout"), (
        "Alias LazyClone Lift LiftFresh MkldnnReshape NestedGetValues NestedViewFromBuffer NestedViewFromJagged ReshapeAlias "
        "ReshapeCopy Squeeze UnsafeView"
    )),
    (Properties(moves="layout", transposes=True), "T Transpose"),
    (Properties(moves="layout", inserts_axis=True), "Unsqueeze"),
    (Properties(moves="order"), (
        "ChannelShuffle PixelShuffle PixelUnshuffle ReflectionPad1D ReflectionPad2D ReflectionPad3D ReplicationPad1D "
        "ReplicationPad2D ReplicationPad3D Rot90 UpsampleNearest1D UpsampleNearest2D UpsampleNearest3D UpsampleNearestExact1D "
        "UpsampleNearestExact2D UpsampleNearestExact3D"
    )),
    (Properties(moves="part"), "IndexSelect MaskedSelect NarrowCopy PackPaddedSequence Select Take UnsafeIndex"),
    (Properties(moves="part", inserts_axis=True), "Slice"),
    (Properties(moves="part", several=True), "Chunk Split SplitWithSizes Unbind UnsafeSplit UnsafeSplitWithSizes"),
    (Properties(moves="join"), "NestedTensorFromTensorList"),
    (Properties(moves="cast"), "PinMemory"),
    # values written in places
    (Properties(writes=True), (
        "AsStridedScatter ConstantPadNd DiagonalScatter IndexCopy IndexFill IndexPutImpl MaskedScatter Put Scatter "
        "SelectScatter SliceScatter UnsafeIndexPut"
    )),
    (Properties(flat=True, elementwise=True, writes=True), "Zero"),
    # products with weights
    (Properties(product="matrix"), "ForeachMm GroupedMm Matmul SparseMmReduceImpl SparseSparseMatmul Vdot"),
    (Properties(product="matrix", addend=0), "Addbmm Addmv Addr SparseAddmm SparseSampledAddmm"),
    (Properties(product="layer"), (
        "ConvolutionBackwardOverrideable LinearBackward MpsConvolutionBackward SlowConv2DBackward Trilinear"
    )),
    (Properties(product="layer", addend=2), "ConvTbc MkldnnLinear"),
    (Properties(product="layer", addend=2, short_name="@"), "Linear"),
    (Properties(product="layer", channels_first=True), "CudnnConvolution CudnnConvolutionTranspose MpsConvolutionTranspose"),
    (Properties(product="layer", addend=2, channels_first=True), (
        "ConvDepthwise2D ConvDepthwise3D ConvolutionOverrideable MiopenConvolution MiopenConvolutionTranspose "
        "MiopenDepthwiseConvolution MkldnnConvolution MpsConvolution NnpackSpatialConvolution SlowConv2D SlowConv3D "
        "SlowConvDilated2D SlowConvDilated3D SlowConvTranspose2D SlowConvTranspose3D"
    )),
    (Properties(looks_up=True), "EmbeddingBag"),
    (Properties(several=True, recurrent=True), "CudnnRnn LstmMps MiopenRnn MkldnnRnnLayer"),
    # normalisations, softmaxes, reductions
    (Properties(normalises=True), "FusedRmsNorm"),
    (Properties(normalises=True, short_name="layer_norm"), "NativeLayerNorm"),
    (Properties(normalises=True, channels_first=True), (
        "BatchNormNoUpdate BatchNormWithUpdate MiopenBatchNorm NativeBatchNormLegit NativeBatchNormLegitNoTraining"
    )),
    (Properties(normalises=True, channels_first=True, short_name="batch_norm"), "CudnnBatchNorm NativeBatchNorm"),
    (Properties(normalises=True, channels_first=True, short_name="group_norm"), "NativeGroupNorm"),
    (Properties(low=0, high=1, ignores_minus_inf=True), "MaskedSoftmax SparseSoftmax"),
    (Properties(high=0, ignores_minus_inf=True), "SparseLogSoftmax"),
    (Properties(keeps_sign=True, reduces="sum"), "SparseSum Trace"),
    (Properties(keeps_sign=True, reduces="extreme", several=True), "Aminmax"),
    (Properties(keeps_sign=True, reduces="rank"), "Kthvalue Mode"),
    (Properties(poles=True, reduces="spread", several=True), "StdMean VarMean"),  # a mean may be negative
    (Properties(poles=True, still=True, low=0, reduces="norm"), "Dist EuclideanDist ForeachNorm Norm Pdist"),
    (Properties(keeps_sign=True), (
        "AdaptiveAvgPool2D AdaptiveAvgPool3D AdaptiveMaxPool2D AdaptiveMaxPool3D AvgPool2D AvgPool3D Cummax Cummin "
        "FractionalMaxPool2D FractionalMaxPool3D MaxPool2D MaxPool3DWithIndices MkldnnAdaptiveAvgPool2D MkldnnMaxPool2D "
        "MkldnnMaxPool3D Sort Topk"
    )),
    # losses
    (Properties(poles=True, loss=Loss(takes="log-probabilities")), "CtcLoss CudnnCtcLoss MiopenCtcLoss"),
    (Properties(loss=Loss(takes="scores", bounded_slope=True)), "MultiMarginLoss MultilabelMarginLoss"),
    (Properties(loss=Loss(takes="log-probabilities", bounded_slope=True)), "NllLoss2D"),
    # other poles
    (Properties(poles=True), (
        "Cholesky CholeskyInverse CholeskySolve FakeQuantizeLearnablePerChannelAffine FakeQuantizeLearnablePerTensorAffine "
        "LinalgHouseholderProduct LinalgLuSolve Ormqr Renorm WeightNormInterface"
    )),
    (Properties(poles=True, several=True), "LinalgEig LinalgLstsq LinalgLu TriangularSolve"),
    (Properties(poles=True, elementwise=True), "BinaryCrossEntropyBackward"),
    (Properties(poles=True, elementwise=True, multiplies=True), "ForeachDiv"),
    (Properties(poles=True, elementwise=True, still=True), "ForeachPow"),
    # random numbers
    (Properties(flat=True, draws=True, elementwise=True), "Poisson"),
    (Properties(flat=True, draws=True, elementwise=True, writes=True), "Cauchy Exponential Geometric LogNormal Random Uniform"),
    (Properties(flat=True, draws=True, elementwise=True, low=0, high=1), "Bernoulli"),
    (Properties(draws=True, drops=True, elementwise=True, keeps_sign=True), "FusedDropout NativeDropout"),
    (Properties(draws=True, elementwise=True, leaky=True, keeps_sign=True), "RreluWithNoise RreluWithNoiseFunctional"),
    (Properties(draws=True, elementwise=True, low=0), "StandardGamma"),
    # element by element
    (Properties(elementwise=True), (
        "Complex Conj ConjPhysical FakeQuantizePerChannelAffineCachemask FakeQuantizePerTensorAffineCachemask "
        "FakeQuantizePerTensorAffineCachemaskTensorQparams HardshrinkBackward HardswishBackward HardtanhBackward "
        "HuberLossBackward LeakyReluBackward LogSigmoidBackward MaskedScatterBackward MseLossBackward NativeDropoutBackward "
        "NegView Polar PreluKernelBackward RreluWithNoiseBackward SigmoidBackward SmoothL1LossBackward SoftMarginLossBackward "
        "SoftshrinkBackward TanhBackward ThresholdBackward"
    )),
    (Properties(elementwise=True, keeps_sign=True), "ForeachMaximum ForeachMinimum"),
    (Properties(elementwise=True, flat=True, low=0, high=1), "Eq Ge Gt Le Lt Ne"),
    (Properties(elementwise=True, flat=True, low=-1, high=1, keeps_sign=True), "Sgn"),
    (Properties(elementwise=True, keeps_sign=True, steepest=1, saturates="below", rectifier=True), "Celu"),
    # several outputs
    (Properties(several=True), "LuUnpack ThnnFusedGruCell ThnnFusedLstmCell"),
    # without special facts
    (ORDINARY, (
        "AdaptiveAvgPool2DBackward AdaptiveAvgPool3DBackward AdaptiveMaxPool2DBackward AdaptiveMaxPool3DBackward "
        "AffineGridGenerator AvgPool2DBackward AvgPool3DBackward BatchNormBackward CdistBackward Coalesce Col2Im "
        "CudnnAffineGridGenerator CudnnAttention CudnnBatchNormBackward CudnnGridSampler CudnnGridSamplerBackward "
        "CudnnRnnBackward DiagonalBackward EfficientAttention EmbeddingBagBackward EmbeddingBagDenseBackward EmbeddingRenorm "
        "FftC2C FftC2R FftR2C FlashAttention FractionalMaxPool2DBackward FractionalMaxPool3DBackward "
        "FusedMovingAvgObsFqHelper Geqrf Glu GluBackward GridSampler2D GridSampler2DBackward GridSampler2DCpuFallback "
        "GridSampler2DCpuFallbackBackward GridSampler3D GridSampler3DBackward Im2Col IndexReduce LogSoftmaxBackwardData "
        "MaxPool2DBackward MaxPool2DWithIndicesBackward MaxPool3DWithIndicesBackward MaxUnpool2D MaxUnpool3D "
        "MiopenBatchNormBackward NativeBatchNormBackward NativeLayerNormBackward NestedFromPadded NestedFromPaddedTensor "
        "NestedTensorFromMask NllLoss2DBackward NllLossBackward PdistBackward ReflectionPad1DBackward ReflectionPad2DBackward "
        "ReflectionPad3DBackward ReplicationPad1DBackward ReplicationPad2DBackward ReplicationPad3DBackward "
        "ScaledDotProductCudnnAttention ScaledDotProductEfficientAttention ScaledDotProductFlashAttention "
        "ScaledDotProductFlashAttentionForCpu ScaledDotProductFusedAttentionOverrideable ScatterReduce SegmentReduce "
        "SelectBackward SliceBackward SliceInverse SoftmaxBackwardData SparseCompressedTensor "
        "SparseCooTensorWithDimsAndTensors SparseMask StandardGammaGrad TestAutogradMultipleDispatch "
        "TestAutogradMultipleDispatchView TestWarnInAutograd ToDense ToMkldnn ToPaddedTensor ToSparse ToSparseBsc ToSparseBsr "
        "ToSparseCsc ToSparseCsr Unique Unique2 UniqueConsecutive UniqueDim UniqueDimConsecutive UnsafeMaskedIndex "
        "UnsafeMaskedIndexPutAccumulate UpsampleBicubic2D UpsampleBicubic2DAa UpsampleBicubic2DAaBackward "
        "UpsampleBicubic2DBackward UpsampleBilinear2D UpsampleBilinear2DAa UpsampleBilinear2DAaBackward "
        "UpsampleBilinear2DBackward UpsampleLanczos2DAa UpsampleLanczos2DAaBackward UpsampleLinear1D UpsampleLinear1DBackward "
        "UpsampleNearest1DBackward UpsampleNearest2DBackward UpsampleNearest3DBackward UpsampleNearestExact1DBackward "
        "UpsampleNearestExact2DBackward UpsampleNearestExact3DBackward UpsampleTrilinear3D UpsampleTrilinear3DBackward Values "
        "ViewAsComplex ViewAsReal"
    )),
))
# Nodes written in C++ by hand, whose names have no number. CopySlices and CopyBackwards are primitives of gradlab.
CPP_NODES = table((
    (Properties(moves="cast"), "Identity"),
    (ORDINARY, (
        "AccumulateGrad DelayedError Error GraphRoot NotImplemented RecvRpcBackward SendRpcBackward UndefinedGrad "
        "UndefinedGradBackward"
    )),
))
# Operations that PyTorch computes by others at present, or does not record. gradlab, other versions and subclasses of Tensor may.
OTHER_NAMES = table((
    (Properties(moves="layout"), "Contiguous Flatten Ravel Reshape Unflatten ViewAs"),
    (Properties(moves="layout", transposes=True), "MH MT Movedim Mt Swapaxes"),
    (Properties(moves="layout", inserts_axis=True), "BroadcastTo"),
    (Properties(moves="part"), "Diag Narrow"),
    (Properties(moves="part", inserts_axis=True), "Getitem"),
    (Properties(moves="part", several=True), "UnsafeChunk"),
    (Properties(product="matrix"), "Einsum Tensordot UnsafeMatmul"),
    (Properties(draws=True, drops=True, elementwise=True, keeps_sign=True), "Dropout"),
    (Properties(elementwise=True, flat=True), "FloorDivide Heaviside"),
    (Properties(elementwise=True, flat=True, low=0, high=1), "LogicalAnd LogicalNot LogicalOr LogicalXor"),
    (Properties(elementwise=True, still=True, low=0), "Square"),
    (Properties(elementwise=True, keeps_sign=True, leaky=True), "Prelu"),
    (Properties(elementwise=True, low=-1, high=1, keeps_sign=True, steepest=1, saturates="both", sigmoidal=True), "Softsign"),
    (Properties(low=-1, high=1), "CosineSimilarity"),
    (Properties(loss=Loss(takes="values")), "CosineEmbeddingLoss"),
    (Properties(still=True, loss=Loss(takes="values", bounded_slope=True)), "L1Loss"),
    (Properties(loss=Loss(takes="logits", bounded_slope=True)), "CrossEntropyLoss"),
    (Properties(loss=Loss(takes="log-probabilities", bounded_slope=True)), "NllLossNd"),
    (Properties(loss=Loss(takes="log-probabilities", nonnegative=False, bounded_slope=True)), "KlDiv"),
))
# fmt: on
