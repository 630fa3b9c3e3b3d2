"""Check that the names used in teaching material exist (from 1452 files of courses), except modules, optimizers and loaders."""

from __future__ import annotations

import pytest

import gradlab

FUNCTIONS = """
tensor randn zeros manual_seed no_grad ones from_numpy arange device rand Tensor float32 mm stack linspace cat sum max sigmoid
__version__ FloatTensor exp save normal log float LongTensor load zeros_like ones_like sin randint mean cos unsqueeze dot matmul
empty long add sqrt tanh eye randperm set_grad_enabled float64 allclose multinomial where norm meshgrid mul flatten Generator int
int32 enable_grad einsum std diag var diagonal outer
as_tensor asarray full full_like empty_like rand_like randn_like randint_like logspace bernoulli initial_seed seed get_rng_state
set_rng_state default_generator Size dtype pi e inf nan newaxis finfo iinfo result_type can_cast promote_types set_default_dtype
get_default_dtype set_default_device get_default_device set_default_tensor_type set_printoptions typename is_tensor
is_floating_point is_complex is_nonzero numel get_num_threads set_num_threads use_deterministic_algorithms
cuda.is_available cuda.device_count cuda.manual_seed cuda.manual_seed_all cuda.empty_cache cuda.synchronize
backends.cudnn.deterministic backends.cudnn.benchmark backends.mps.is_available random.fork_rng random.manual_seed
autograd.grad autograd.backward autograd.Variable linalg.norm
strided contiguous_format preserve_format channels_last bool uint8 int8 int16 int64 float16 half double short
DoubleTensor HalfTensor IntTensor ShortTensor CharTensor ByteTensor BoolTensor from_dlpack to_dlpack
""".split()  # noqa: SIM905  (a table reads better than quotes)
METHODS = """
backward item data grad shape numpy size sum mean view float detach to requires_grad reshape zero_ unsqueeze cpu requires_grad_
squeeze max grad_fn norm pow clone type numel t tolist std dtype long transpose device abs flatten T add_ split mm permute fill_
cuda scatter min clamp argmax dot contiguous sub_ log add exp nelement uniform_ ravel expand_as expand normal_ register_hook
scatter_ is_leaf relu eq dim int var detach_ retain_grad
is_cuda is_sparse is_quantized is_nested layout ndim mul sub div neg gt lt mul_
itemsize nbytes element_size storage_offset data_ptr type_as double half short char byte bool is_floating_point is_signed
is_same_size apply_ map_ copy_ share_memory_ pin_memory is_pinned get_device retains_grad bernoulli_ random_ exponential_
geometric_ cauchy_ log_normal_ bernoulli multinomial new_tensor new_zeros new_ones new_full new_empty new
register_post_accumulate_grad_hook
stride is_contiguous ndimension mT H mH real _version __dlpack__ __array__ __array_priority__ __deepcopy__ __hash__
__getitem__ __setitem__ __eq__ __pow__ __rsub__ __format__ __repr__ __bool__ __float__ __len__
""".split()  # noqa: SIM905
FUNCTIONALS = ["relu", "softmax", "cross_entropy", "log_softmax", "mse_loss", "one_hot", "linear", "nll_loss", "sigmoid", "tanh"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name: str) -> None:
    found = gradlab
    for part in name.split("."):
        found = getattr(found, part)


@pytest.mark.parametrize("name", METHODS)
def test_method(name: str) -> None:
    assert hasattr(gradlab.ones(2, 2), name)


@pytest.mark.parametrize("name", FUNCTIONALS)
def test_functional(name: str) -> None:
    assert callable(getattr(gradlab.nn.functional, name))


def test_dir_of_a_tensor_lists_only_existing_names() -> None:
    for name in dir(gradlab.Tensor):
        assert hasattr(gradlab.Tensor, name), name
    x = gradlab.ones(2, 2)
    unset = {"_frozen", "lost", "_role", "_tangent", "view_record", "imag"}  # slots that may be unset, and the imaginary part
    assert not [name for name in dir(x) if name not in unset and not hasattr(x, name)]
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'sparse_mask'"):
        x.sparse_mask  # noqa: B018
