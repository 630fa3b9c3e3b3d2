"""Constructors and calls of all layers, recorded with torch 2.13 and run with gradlab.

A line of `LAYERS` has a constructor, the arguments of a call, and an option: `eval` for a call in evaluation mode after one in
training mode, `still` for evaluation without recording. In arguments, R draws normal numbers that require gradients, P positive
numbers, U numbers between 0 and 1, I indices below its first argument, and S signs; T is `tensor`.
"""

from __future__ import annotations

import contextlib
import warnings
from functools import partial
from typing import Any

LAYERS = """
Linear(3, 4) ; R(2, 3)
Linear(3, 4, bias=False) ; R(3)
Linear(3, 4, dtype=torch.float64) ; R(2, 2, 3).double()
Bilinear(2, 3, 4) ; R(5, 2), R(5, 3)
Bilinear(2, 3, 4, bias=False) ; R(5, 2), R(5, 3)
Flatten() ; R(2, 3, 4)
Flatten(0, 1) ; R(2, 3, 4)
Unflatten(1, (2, 3)) ; R(2, 6)
Unflatten(1, [-1, 3]) ; R(2, 6)
ReLU() ; R(2, 3)
ReLU(inplace=True) ; R(2, 3) * 1
ReLU6() ; R(2, 3) * 5
ReLU6(True) ; R(2, 3) * 5
Sigmoid() ; R(2, 3)
Tanh() ; R(2, 3)
Softmax(dim=1) ; R(2, 3)
Softmax(dim=-2) ; R(2, 3)
LogSoftmax(dim=1) ; R(2, 3)
Softmin(dim=1) ; R(2, 3)
Softmax2d() ; R(2, 3, 2, 2)
LeakyReLU() ; R(2, 3)
LeakyReLU(0.2, inplace=True) ; R(2, 3) * 1
ELU() ; R(2, 3)
ELU(alpha=0.5, inplace=True) ; R(2, 3) * 1
CELU(0.7) ; R(2, 3)
SELU() ; R(2, 3)
GELU() ; R(2, 3)
GELU('tanh') ; R(2, 3)
GELU(approximate='tanh') ; R(2, 3)
SiLU() ; R(2, 3)
SiLU(inplace=True) ; R(2, 3) * 1
Mish() ; R(2, 3)
Softplus() ; R(2, 3)
Softplus(beta=2, threshold=1) ; R(2, 3)
Hardtanh() ; R(2, 3)
Hardtanh(-2, 0.5, True) ; R(2, 3) * 1
Hardsigmoid() ; R(2, 3)
Hardswish() ; R(2, 3)
Hardswish(inplace=True) ; R(2, 3) * 1
LogSigmoid() ; R(2, 3)
Softsign() ; R(2, 3)
Tanhshrink() ; R(2, 3)
Softshrink() ; R(2, 3)
Softshrink(0.1) ; R(2, 3)
Hardshrink(0.3) ; R(2, 3)
Threshold(0.1, 20) ; R(2, 3)
PReLU() ; R(2, 3)
PReLU(3, 0.1) ; R(2, 3)
RReLU() ; R(2, 3)
RReLU(0.1, 0.2) ; R(2, 3) ; eval
GLU() ; R(2, 4)
GLU(dim=0) ; R(2, 4)
MSELoss() ; R(2, 3), R(2, 3)
MSELoss(reduction='sum') ; R(2, 3), R(2, 3)
MSELoss(reduction='none') ; R(2, 3), R(2, 3)
MSELoss(reduce=False) ; R(2, 3), R(2, 3)
MSELoss(size_average=False) ; R(2, 3), R(2, 3)
L1Loss() ; R(2, 3), R(2, 3)
L1Loss(reduction='sum') ; R(2, 3), R(2, 3)
SmoothL1Loss() ; R(2, 3), R(2, 3)
SmoothL1Loss(beta=0.5, reduction='none') ; R(2, 3), R(2, 3)
HuberLoss() ; R(2, 3), R(2, 3)
HuberLoss('sum', 0.5) ; R(2, 3), R(2, 3)
CrossEntropyLoss() ; R(4, 3), I(3, 4)
CrossEntropyLoss(weight=T([1.0, 2.0, 0.5]), label_smoothing=0.1) ; R(4, 3), I(3, 4)
CrossEntropyLoss(ignore_index=1, reduction='none') ; R(4, 3), I(3, 4)
CrossEntropyLoss(reduction='sum') ; R(4, 3), U(4, 3)
NLLLoss() ; R(4, 3), I(3, 4)
NLLLoss(T([1.0, 2.0, 0.5]), ignore_index=0) ; R(4, 3), I(3, 4)
BCELoss() ; U(4, 3), U(4, 3)
BCELoss(weight=T([1.0, 2.0, 0.5]), reduction='sum') ; U(4, 3), U(4, 3)
BCEWithLogitsLoss() ; R(4, 3), U(4, 3)
BCEWithLogitsLoss(pos_weight=T([1.0, 2.0, 0.5])) ; R(4, 3), U(4, 3)
KLDivLoss(reduction='batchmean') ; R(4, 3), U(4, 3)
KLDivLoss(reduction='sum', log_target=True) ; R(4, 3), R(4, 3)
PoissonNLLLoss() ; R(4, 3), U(4, 3)
PoissonNLLLoss(log_input=False, full=True, reduction='sum') ; P(4, 3), P(4, 3)
GaussianNLLLoss() ; R(4, 3), R(4, 3), P(4, 3)
GaussianNLLLoss(full=True, reduction='none') ; R(4, 3), R(4, 3), P(4, 3)
SoftMarginLoss() ; R(4, 3), S(4, 3)
MultiLabelMarginLoss() ; R(2, 3), T([[2, 0, -1], [1, -1, -1]])
MultiLabelSoftMarginLoss() ; R(4, 3), U(4, 3)
MultiLabelSoftMarginLoss(weight=T([1.0, 2.0, 0.5])) ; R(4, 3), U(4, 3)
MultiMarginLoss() ; R(4, 3), I(3, 4)
MultiMarginLoss(p=2, margin=0.5, weight=T([1.0, 2.0, 0.5])) ; R(4, 3), I(3, 4)
CosineEmbeddingLoss() ; R(4, 3), R(4, 3), S(4)
CosineEmbeddingLoss(margin=0.2, reduction='sum') ; R(4, 3), R(4, 3), S(4)
MarginRankingLoss(margin=0.5) ; R(4), R(4), S(4)
HingeEmbeddingLoss() ; R(4, 3), S(4, 3)
HingeEmbeddingLoss(margin=0.2) ; R(4, 3), S(4, 3)
TripletMarginLoss() ; R(4, 3), R(4, 3), R(4, 3)
TripletMarginLoss(margin=2.0, p=1, swap=True) ; R(4, 3), R(4, 3), R(4, 3)
TripletMarginWithDistanceLoss() ; R(4, 3), R(4, 3), R(4, 3)
TripletMarginWithDistanceLoss(distance_function=nn.CosineSimilarity(), margin=0.3) ; R(4, 3), R(4, 3), R(4, 3)
Conv1d(2, 3, 3) ; R(2, 2, 7)
Conv1d(2, 4, 3, stride=2, padding=1, dilation=2, groups=2, bias=False) ; R(2, 2, 9)
Conv1d(2, 3, 4, padding='same') ; R(2, 2, 7)
Conv1d(2, 3, 3, padding=1, padding_mode='circular') ; R(2, 7)
Conv2d(2, 3, 3) ; R(2, 2, 5, 6)
Conv2d(2, 3, (2, 3), stride=(2, 1), padding=(1, 2)) ; R(2, 2, 5, 6)
Conv2d(2, 3, 3, padding='valid') ; R(2, 5, 6)
Conv2d(2, 3, (2, 3), padding='same', padding_mode='reflect') ; R(2, 2, 5, 6)
Conv2d(2, 3, 3, padding=(1, 2), padding_mode='replicate', bias=False) ; R(2, 2, 5, 6)
Conv2d(4, 4, 3, groups=4, dilation=(1, 2)) ; R(2, 4, 5, 6)
Conv2d(1, 2, 3, dtype=torch.float64) ; R(1, 1, 4, 4).double()
Conv3d(2, 3, 2) ; R(2, 2, 3, 4, 3)
ConvTranspose1d(2, 3, 3) ; R(2, 2, 5)
ConvTranspose1d(2, 3, 3, stride=2, padding=1, output_padding=1) ; R(2, 2, 5)
ConvTranspose2d(2, 3, 3) ; R(2, 2, 4, 3)
ConvTranspose2d(2, 4, (2, 3), stride=2, padding=1, groups=2, bias=False, dilation=2) ; R(2, 2, 4, 3)
ConvTranspose2d(2, 3, 3, stride=2) ; R(2, 2, 4, 3), [10, 8]
ConvTranspose3d(2, 3, 2) ; R(2, 2, 3, 2, 3)
MaxPool1d(2) ; R(2, 3, 7)
MaxPool1d(3, stride=2, padding=1, ceil_mode=True) ; R(2, 3, 8)
MaxPool2d(2) ; R(2, 3, 4, 6)
MaxPool2d((3, 2), stride=(2, 1), padding=(1, 1), dilation=(1, 2)) ; R(2, 3, 5, 6)
MaxPool2d(2, return_indices=True) ; R(2, 3, 4, 6)
MaxPool3d(2) ; R(2, 3, 4, 4, 5)
AvgPool1d(2) ; R(2, 3, 7)
AvgPool1d(3, 2, 1, count_include_pad=False) ; R(2, 3, 7)
AvgPool2d(2) ; R(2, 3, 4, 6)
AvgPool2d((3, 2), stride=(2, 1), padding=(1, 0), ceil_mode=True) ; R(2, 3, 5, 6)
AvgPool2d(2, divisor_override=3) ; R(2, 3, 4, 6)
AvgPool3d(2) ; R(2, 3, 4, 4, 5)
LPPool1d(2, 3) ; P(2, 3, 7)
LPPool2d(1.5, (2, 3), stride=2) ; P(2, 3, 4, 6)
MaxUnpool1d(2) ; R(1, 1, 3), T([[[0, 3, 4]]])
MaxUnpool2d(2, stride=2) ; R(1, 1, 2, 2), T([[[[0, 3], [12, 15]]]])
AdaptiveAvgPool1d(3) ; R(2, 3, 7)
AdaptiveAvgPool2d((3, 2)) ; R(2, 3, 5, 6)
AdaptiveAvgPool2d(1) ; R(2, 3, 5, 6)
AdaptiveAvgPool2d((None, 2)) ; R(2, 3, 5, 6)
AdaptiveAvgPool3d(2) ; R(2, 3, 5, 6, 3)
AdaptiveMaxPool1d(3) ; R(2, 3, 7)
AdaptiveMaxPool2d((3, 2), return_indices=True) ; R(2, 3, 5, 6)
Dropout() ; R(4, 5)
Dropout(0.2, inplace=True) ; R(4, 5) * 1
Dropout(p=0.3) ; R(4, 5) ; eval
Dropout1d(0.4) ; R(4, 5, 2)
Dropout2d(0.4) ; R(4, 5, 2, 2)
Dropout3d(0.4) ; R(4, 5, 2, 2, 1)
AlphaDropout(0.3) ; R(4, 5)
FeatureAlphaDropout(0.3) ; R(4, 5, 2)
BatchNorm1d(3) ; R(4, 3)
BatchNorm1d(3) ; R(4, 3) ; eval
BatchNorm1d(3, momentum=None) ; R(4, 3, 2) ; eval
BatchNorm1d(3, eps=1e-3, momentum=0.3, affine=False) ; R(4, 3, 2) ; eval
BatchNorm1d(3, track_running_stats=False) ; R(4, 3, 2) ; eval
BatchNorm1d(3, bias=False) ; R(4, 3, 2)
BatchNorm2d(3) ; R(4, 3, 2, 2)
BatchNorm2d(3, dtype=torch.float64) ; R(4, 3, 2, 2).double() ; eval
BatchNorm3d(3) ; R(2, 3, 2, 2, 2)
LayerNorm(3) ; R(4, 3)
LayerNorm([2, 3], eps=1e-3) ; R(4, 2, 3)
LayerNorm(3, elementwise_affine=False) ; R(4, 3)
LayerNorm((3,), bias=False) ; R(4, 3)
RMSNorm(3) ; R(4, 3)
RMSNorm((2, 3), eps=1e-2, elementwise_affine=False) ; R(4, 2, 3)
GroupNorm(2, 4) ; R(3, 4, 2)
GroupNorm(4, 4, affine=False) ; R(3, 4, 2, 2)
GroupNorm(1, 4, bias=False) ; R(3, 4, 2, 2)
InstanceNorm1d(3) ; R(4, 3, 5)
InstanceNorm1d(3, affine=True, track_running_stats=True) ; R(4, 3, 5) ; eval
InstanceNorm1d(3) ; R(3, 5)
InstanceNorm2d(3, affine=True) ; R(4, 3, 2, 3)
InstanceNorm3d(3) ; R(2, 3, 2, 3, 2)
LocalResponseNorm(2) ; R(2, 4, 3)
Embedding(5, 3) ; I(5, 2, 4)
Embedding(5, 3, padding_idx=0) ; I(5, 2, 4)
Embedding(5, 3, padding_idx=-1) ; I(5, 2, 4)
Embedding(5, 3, max_norm=1.0) ; I(5, 2, 4)
Embedding(5, 3, scale_grad_by_freq=True, norm_type=1) ; I(5, 2, 4)
Embedding.from_pretrained(T([[1.0, 2.0], [3.0, 4.0]])) ; I(2, 3)
Embedding.from_pretrained(T([[1.0, 2.0], [3.0, 4.0]]), freeze=False, padding_idx=1) ; I(2, 3)
EmbeddingBag(5, 3) ; I(5, 2, 4)
EmbeddingBag(5, 3, mode='sum', padding_idx=1) ; I(5, 6), T([0, 2])
EmbeddingBag(5, 3, mode='max') ; I(5, 2, 4)
EmbeddingBag.from_pretrained(T([[1.0, 2.0], [3.0, 4.0]]), mode='sum') ; I(2, 3, 2)
CosineSimilarity() ; R(4, 3), R(4, 3)
CosineSimilarity(dim=0, eps=1e-3) ; R(4, 3), R(4, 3)
PairwiseDistance() ; R(4, 3), R(4, 3)
PairwiseDistance(p=1, keepdim=True) ; R(4, 3), R(4, 3)
Upsample(scale_factor=2) ; R(1, 2, 2, 3)
Upsample(size=(4, 5), mode='bilinear', align_corners=True) ; R(1, 2, 2, 3)
Upsample(scale_factor=(2, 1.5), mode='bicubic') ; R(1, 2, 2, 4)
UpsamplingNearest2d(scale_factor=3) ; R(1, 2, 2, 3)
UpsamplingBilinear2d(size=4) ; R(1, 2, 2, 3)
PixelShuffle(2) ; R(1, 4, 2, 3)
PixelUnshuffle(2) ; R(1, 1, 4, 6)
ChannelShuffle(2) ; R(1, 4, 2, 3)
Unfold(2) ; R(1, 2, 3, 4)
Unfold((2, 3), padding=1, stride=2) ; R(1, 2, 3, 4)
Fold((3, 4), 2) ; R(1, 8, 6)
ZeroPad1d(1) ; R(2, 3)
ZeroPad2d((1, 0, 2, 1)) ; R(1, 2, 3)
ConstantPad1d(2, 3.5) ; R(2, 3)
ConstantPad2d((1, 0, 0, 1), 2) ; R(1, 2, 3)
ReflectionPad1d((1, 2)) ; R(2, 4)
ReflectionPad2d(1) ; R(1, 1, 3, 4)
ReplicationPad1d((1, 2)) ; R(2, 4)
ReplicationPad2d(1) ; R(1, 1, 3, 4)
CircularPad1d((1, 2)) ; R(2, 4)
CircularPad2d(1) ; R(1, 1, 3, 4)
ZeroPad3d(1) ; R(1, 2, 3, 2)
ConstantPad3d((1, 0, 0, 1, 2, 0), 1.5) ; R(1, 2, 3, 2)
ReflectionPad3d(1) ; R(1, 1, 3, 4, 2)
ReplicationPad3d(1) ; R(1, 1, 3, 4, 2)
CircularPad3d(1) ; R(1, 1, 3, 4, 2)
RNN(3, 4) ; R(5, 2, 3)
RNN(3, 4) ; R(5, 2, 3), R(1, 2, 4)
RNN(3, 4, nonlinearity='relu', bias=False) ; R(5, 3)
RNN(3, 4, 2, 'tanh', True, True, 0.5, True) ; R(2, 5, 3), R(4, 2, 4)
GRU(3, 4) ; R(5, 2, 3)
GRU(3, 4, num_layers=2, batch_first=True, dropout=0.3, bidirectional=True) ; R(2, 5, 3)
GRU(3, 4, num_layers=2, bias=False) ; R(5, 3), R(2, 4)
LSTM(3, 4) ; R(5, 2, 3)
LSTM(3, 4) ; R(5, 2, 3), (R(1, 2, 4), R(1, 2, 4))
LSTM(3, 4, 2, batch_first=True, bidirectional=True) ; R(2, 5, 3)
LSTM(3, 4, num_layers=2, dropout=0.3) ; R(5, 2, 3)
LSTM(3, 4, num_layers=2, dropout=0.3) ; R(5, 2, 3) ; eval
LSTM(3, 4, 2, proj_size=2, bidirectional=True) ; R(5, 3)
LSTM(3, 4, dtype=torch.float64) ; R(5, 2, 3).double()
RNNCell(3, 4) ; R(2, 3)
RNNCell(3, 4, bias=False, nonlinearity='relu') ; R(3), R(4)
GRUCell(3, 4) ; R(2, 3), R(2, 4)
LSTMCell(3, 4) ; R(2, 3)
LSTMCell(3, 4, False) ; R(2, 3), (R(2, 4), R(2, 4))
MultiheadAttention(4, 2) ; X, X, X
MultiheadAttention(4, 2, batch_first=True) ; R(2, 3, 4), R(2, 5, 4), R(2, 5, 4)
MultiheadAttention(4, 2, dropout=0.4, bias=False) ; R(3, 2, 4), R(5, 2, 4), R(5, 2, 4)
MultiheadAttention(4, 2, kdim=3, vdim=5) ; R(3, 2, 4), R(5, 2, 3), R(5, 2, 5)
MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True) ; R(3, 4), R(5, 4), R(5, 4)
MultiheadAttention(4, 2) ; X, X, X, None, False, CAUSAL
MultiheadAttention(4, 2) ; X, X, X, T([[False, False, True], [False, True, True]]), True, None, False
MultiheadAttention(4, 2) ; X, X, X, T([[False, False, True], [False, True, True]]), False, CAUSAL
TransformerEncoderLayer(4, 2, 6) ; X
TransformerEncoderLayer(4, 2, 6, norm_first=True, activation='gelu', batch_first=True, bias=False) ; X
TransformerEncoderLayer(4, 2, dim_feedforward=6, dropout=0.0, layer_norm_eps=1e-3) ; X, CAUSAL
TransformerEncoderLayer(4, 2, 6, activation=torch.tanh) ; X ; eval
TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6, batch_first=True), 2) ; R(2, 3, 4)
TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6), 2, norm=nn.LayerNorm(4)) ; X, CAUSAL ; eval
TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6, batch_first=True), 2) ; R(2, 3, 4), None, PADDED
TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6, batch_first=True), 2) ; R(2, 3, 4), None, PADDED ; still
TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6, batch_first=True), 2, nn.LayerNorm(4)) ; R(2, 3, 4), None, PADDED ; still
TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6, batch_first=True), 2) ; R(2, 3, 4), None, HOLED ; still
TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6, batch_first=True), 2) ; R(2, 3, 4), CAUSAL, PADDED ; still
TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6), 2) ; R(3, 2, 4), None, PADDED ; still
TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6, batch_first=True), 2, None, False) ; R(2, 3, 4), None, PADDED ; still
TransformerEncoderLayer(4, 2, 6, batch_first=True, activation='gelu') ; R(2, 3, 4), CAUSAL ; still
MultiheadAttention(4, 2, batch_first=True) ; Y, Y, Y ; still
MultiheadAttention(4, 2, batch_first=True) ; Y, Y, Y, PADDED, True, CAUSAL, False ; still
TransformerDecoderLayer(4, 2, 6) ; X, R(5, 2, 4)
TransformerDecoderLayer(4, 2, 6, norm_first=True) ; X, R(5, 2, 4), CAUSAL
TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 6), 2) ; X, R(5, 2, 4), CAUSAL
Transformer(4, 2, 1, 1, 6, batch_first=True) ; R(2, 5, 4), R(2, 3, 4)
"""

ERRORS = """
Linear(3, 4)(R(2, 5))
Linear(3)
Conv2d(2, 3)
Conv1d()
ConvTranspose2d(2)
CrossEntropyLoss(kind=3)
Threshold(1)
Embedding(3)
LayerNorm()
ReLU(True, 1)
Bilinear(0, 3, 4)
Bilinear(2, 3, 4)(R(5, 2), R(5, 4))
Unflatten(1, 3)
Unflatten(1, (2, 'a'))
Hardtanh(1, 0)
Hardtanh(min_value=-3)
Softmax()(R(2, 3))
Softmax2d()(R(2, 3))
PReLU(4)(R(2, 3))
MSELoss(reduction='median')(R(2), R(2))
MSELoss()(R(2, 3), R(2))
HuberLoss(delta='1')
CrossEntropyLoss()(R(4, 3), I(3, 5))
CrossEntropyLoss()(R(2, 3), T([0, 3]))
NLLLoss()(R(4, 3), U(4))
BCELoss()(R(4, 3) * 9, U(4, 3))
BCELoss()(U(4, 3), U(4))
MultiMarginLoss(p=3)
MultiMarginLoss(weight=R(2, 2))
TripletMarginLoss(margin=0)
TripletMarginWithDistanceLoss(margin=-1)
Conv1d(2, 3, 3)(R(2, 3, 7))
Conv2d(2, 3, 3)(R(2, 3))
Conv2d(3, 3, 3, groups=2)
Conv2d(2, 3, 3, groups=2)
Conv2d(2, 3, 3, groups=0)
Conv2d(2, 3, 3, padding='same', stride=2)
Conv2d(2, 3, 3)(R(2, 2, 2, 2))
ConvTranspose2d(2, 3, 3, padding_mode='reflect')
ConvTranspose2d(2, 3, 3, stride=2)(R(2, 2, 4, 3), [12, 8])
ConvTranspose2d(2, 3, 3, stride=2)(R(2, 2, 4, 3), [12])
MaxPool2d(2)(R(3, 4))
MaxPool2d(2, padding=2)(R(3, 4, 4))
Dropout(1.5)
Dropout(-0.1)
BatchNorm1d(3)(R(4))
BatchNorm1d(3)(R(1, 3))
BatchNorm1d(3)(R(4, 2))
BatchNorm2d(3)(R(4, 3))
LayerNorm(3)(R(4, 2))
GroupNorm(3, 4)
GroupNorm(2, 4)(R(3, 3, 2))
InstanceNorm1d(3)(R(4))
InstanceNorm1d(3)(R(4, 2, 5))
InstanceNorm1d(3, affine=True)(R(4, 2, 5))
Embedding(5, 3, padding_idx=5)
Embedding(5, 3, padding_idx=-6)
Embedding(5, 3, _weight=R(2, 2))
Embedding(5, 3)(T([5]))
Embedding(5, 3)(R(2))
Embedding.from_pretrained(R(3))
EmbeddingBag(5, 3, padding_idx=7)
EmbeddingBag(5, 3)(I(5, 6))
CircularPad1d(1)(R(3))
RNN(3, 4)(R(5, 2, 7))
RNN(3, 4)(R(5, 2, 3), R(1, 3, 4))
RNN(3, 4)(R(3))
RNN(3, 4)(R(5, 3), R(1, 1, 4))
RNN(3, 4, nonlinearity='sin')
RNN(3, 4).double()(R(5, 2, 3))
RNN(3, 4, dropout=0.5)
RNN(3, 4, dropout=2)
RNN(3, 4, bias=1)
RNN(3, 4, batch_first=1)
RNN(3.0, 4)
RNN(0, 4)
RNN(3, 4.0)
RNN(3, -4)
RNN(3, 4, num_layers=0)
GRU(3, 4, proj_size=2)
GRU(3, 4)(R(2, 5, 3, 4))
GRU(3, 4)(R(2, 5, 3), R(5, 4))
LSTM(3, 4, proj_size=-1)
LSTM(3, 4, proj_size=4)
LSTM(3, 4)(R(2, 5, 3), (R(1, 3, 4), R(1, 5, 4)))
LSTM(3, 4)(R(2, 5, 3), (R(1, 5, 4), R(1, 3, 4)))
LSTM(3, 4)(R(2, 5, 3), (R(5, 4), R(5, 4)))
LSTM(3, 4)(R(2, 3), (R(1, 5, 4), R(5, 4)))
RNNCell(3, 4)(R(2, 5))
RNNCell(3, 4)(R(2, 2, 3))
RNNCell(3, 4)(R(2, 3), R(2, 5))
RNNCell(3, 4)(R(2, 3), R(3, 4))
RNNCell(3, 4)(R(2, 3), R(2, 3, 4))
RNNCell(3, 4, nonlinearity='sin')(R(2, 3))
LSTMCell(3, 4)(R(2, 3), (R(2, 5), R(2, 4)))
LSTMCell(3, 4)(R(2, 3), (R(2, 4), R(2, 1, 4)))
MultiheadAttention(5, 2)
MultiheadAttention(0, 2)
MultiheadAttention(4, 2)(R(3, 2, 5), R(3, 2, 5), R(3, 2, 5))
MultiheadAttention(4, 2)(X, X, X, attn_mask=R(2, 2))
MultiheadAttention(4, 2)(X, X, X, is_causal=True)
MultiheadAttention(4, 2)(X, X, X, PADDED, True, CAUSAL)
TransformerEncoderLayer(4, 2, activation='sin')
TransformerEncoder(nn.TransformerEncoderLayer(4, 2), 1)
TransformerEncoder(nn.TransformerEncoderLayer(3, 1, batch_first=True), 1)
Transformer(4, 2, 1, 1, 6)(R(5, 2, 4), R(3, 3, 4))
Transformer(4, 2, 1, 1, 6)(R(5, 2, 4), R(3, 2, 5))
"""

# Torch's LSTM is a node of Intel's library if possible, and its other recurrent layers transpose in place.
ALIKE = {"MkldnnRnnLayerBackward0": "StackBackward0", "TransposeBackward1": "TransposeBackward0"}


def names(lib: Any) -> dict[str, Any]:
    """Return the names that the lines use."""

    def draw(*shape: int) -> Any:
        return lib.randn(*shape).requires_grad_()

    return {
        **{name: getattr(lib.nn, name) for name in dir(lib.nn) if name[0].isupper()},
        "torch": lib,
        "nn": lib.nn,
        "R": draw,
        "P": lambda *shape: (lib.rand(*shape) + 0.5).requires_grad_(),
        "U": lib.rand,
        "I": lambda n, *shape: lib.randint(0, n, shape),
        "S": lambda *shape: lib.randint(0, 2, shape) * 2.0 - 1,
        "T": lib.tensor,
        "CAUSAL": lib.triu(lib.full((3, 3), float("-inf")), 1),
        "PADDED": lib.tensor([[False, False, True], [False, True, True]]),
        "HOLED": lib.tensor([[False, False, True], [False, True, False]]),
    }


def flat(value: Any) -> list[Any]:
    """Return the tensors in nested tuples."""
    return [t for part in value for t in flat(part)] if isinstance(value, (tuple, list)) else [value]


def sketch(x: Any) -> Any:
    """Return shape, dtype and values; for many values their mean, a weighted mean and some of them."""
    if x is None or not hasattr(x, "shape"):
        return x
    values = x.detach().double().reshape(-1)
    head = [list(x.shape), str(x.dtype).partition(".")[2]]
    if values.numel() <= 6:
        return [*head, values.tolist()]
    return [*head, [values.mean().item(), (values * ramp(values)).mean().item(), *values[:: values.numel() // 3].tolist()]]


def ramp(x: Any) -> Any:
    """Return a different weight for each element: 0.3, 0.37, 0.44 ..., by position."""
    return (x.detach() * 0).reshape(-1).add(1).cumsum(0).reshape(x.shape).mul(0.07).add(0.23)


def layer(lib: Any, line: str) -> dict[str, Any]:
    """Return the repr, parameters, outputs, gradients and final buffers of a layer."""
    made, arguments, *mode = (part.strip() for part in line.split(" ; "))
    known = names(lib)
    lib.manual_seed(1)
    module = eval(made, known)
    found: dict[str, Any] = {"repr": repr(module), "state": {name: sketch(x) for name, x in module.state_dict().items()}}
    known["X"], known["Y"] = known["R"](3, 2, 4), known["R"](2, 3, 4)
    given = eval(f"({arguments},)", known)
    if mode:
        module(*given)
        module.eval()
    with lib.no_grad() if mode == ["still"] else contextlib.nullcontext():
        outputs = [y for y in flat(module(*given)) if y is not None]
    found["out"] = [sketch(y) for y in outputs]
    name = outputs[0].grad_fn.name().rpartition("::")[2] if outputs[0].grad_fn else ""
    found["grad_fn"] = ALIKE.get(name, name)
    total = sum([(y * ramp(y)).sum() for y in outputs if y.requires_grad])
    if hasattr(total, "backward"):
        total.backward()
    found["grads"] = {name: sketch(p.grad) for name, p in module.named_parameters()}
    found["input grads"] = [sketch(x.grad) for x in flat(given) if hasattr(x, "is_leaf") and x.is_leaf and x.requires_grad]
    found["buffers"] = {name: sketch(b) for name, b in module.named_buffers()}
    return found


def error(lib: Any, line: str) -> list[str]:
    """Return the type and text of the error, or of the warnings if there is none."""
    known = names(lib)
    lib.manual_seed(1)
    known["X"] = known["R"](3, 2, 4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            eval(line, known)
        except Exception as e:  # noqa: BLE001  (any error is a result)
            return [type(e).__name__, str(e)]
    return [w.category.__name__ + ": " + str(w.message) for w in caught]


def lines(table: str) -> list[str]:
    return table.strip().splitlines()


TOPICS = {
    topic: {line: partial(case, line=line) for line in lines(table)}
    for topic, case, table in (("layers", layer, LAYERS), ("layer_errors", error, ERRORS))
}
