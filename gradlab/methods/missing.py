"""Names that a tensor of torch's has and gradlab's has not: asking for one says so, in one sentence.

(A `Tensor.__getattr__` would do it without a list, and would make every access to every attribute slower.)
"""
from __future__ import annotations

from typing import Any

NAMES = """
as_strided_ as_strided_scatter as_subclass ccol_indices cdouble cfloat chalf coalesce col_indices const_data_ptr crow_indices
dense_dim dequantize dim_order geqrf hash_tensor index index_reduce index_reduce_ indices int_repr ipu is_coalesced
istft map2_ module_load mtia narrow_copy nonzero_static orgqr ormqr q_per_channel_axis q_per_channel_scales
q_per_channel_zero_points q_scale q_zero_point qscheme record_stream reinforce resize resize_as resize_as_sparse_ row_indices
slice_inverse smm sparse_dim sparse_mask sparse_resize_ sparse_resize_and_clear_ sspaddmm stft storage_type sum_to_size
to_dense to_mkldnn to_padded_tensor to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr
triangular_solve untyped_storage values xpu
"""


class Missing:
    """Raises AttributeError when it is asked for, so that `hasattr` is false."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any) -> Any:
        raise AttributeError(f"'Tensor' object has no attribute {self.name!r}: gradlab does not have this of torch's yet. "
                             "dir(gradlab.Tensor) lists what there is.")
