"""What a tensor tells of itself, what it becomes, and what Python and NumPy ask of it."""

from __future__ import annotations

import numpy as np
from operators.spelling import N, V, rows_for

INPUTS = {
    "x": V([[1.0, 2.0], [3.0, 4.0]]),
    "i": V([1, 2, 3], np.int64),
    "s": V(1.5),
    "b": V([True, False], np.bool_),
    "d": V([1.5, 2.5], np.float64),
    "c": V([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
}

ROWS = [
    # In both precisions, with derivatives: what is recorded.
    *rows_for(
        [{"x": N(2, 3)}, {"x": N()}, {"x": N(0, 2)}],
        """
        x.to(torch.float64)
        x.to(torch.float32)
        x.to('cpu', torch.float64)
        x.to(dtype=torch.float16).dtype
        x.to(torch.zeros(1, dtype=torch.float64))
        x.to(x.dtype, copy=True)
        x.to('cpu', copy=True)
        x.to(device='cpu', dtype=torch.float64, non_blocking=True)
        x.to('cpu', torch.float64, True, True)
        x.double()
        x.float()
        x.half().dtype
        x.int()
        x.type(torch.float64)
        x.type('torch.DoubleTensor')
        x.type_as(torch.zeros(1, dtype=torch.float64))
        x.cpu() * 2
        x.contiguous()
        x.T if x.ndim == 2 else x
        x.real
        x.H if x.ndim == 2 else x
        x.data * 2
        x.detach()
        x.requires_grad_() * 2
    """,
    ),
    *rows_for(
        {"x": N(2, 3)},
        """
        x.t().contiguous()
        x.mT
        x.T
        (x * 1).fill_(2.)
        (x * 1).zero_()
        (x * 1).copy_(x * 3)
        torch.zeros(2, 3, dtype=x.dtype).copy_(x)
        torch.zeros(4, 2, 3, dtype=x.dtype).copy_(x)
        torch.zeros(2, 3, dtype=torch.float64).copy_(x)
        torch.zeros(2, 3, dtype=torch.int64).copy_(x)
        x + x.detach()
        x.to(memory_format=torch.contiguous_format)
    """,
    ),
    *(
        row
        for row in rows_for(
            INPUTS,
            """
        # what it holds
        x.grad is None
        x.shape, x.size(), list(x.size()), x.size(0), x.size(-1), x.size(dim=1)
        x.size(5)
        s.size(), s.dim(), i.size(0)
        x.dim(), x.ndim, x.ndimension(), x.numel(), x.nelement()
        str(x.dtype), str(x.device), str(x.layout), x.device.type, x.device.index
        x.is_cuda, x.is_leaf, x.is_sparse, x.is_quantized, x.is_nested, x.is_meta, x.is_mps, x.is_mkldnn, x.is_xpu
        x.is_cpu, x.name, x.output_nr, x._version
        x.itemsize, x.nbytes, x.element_size(), x.storage_offset(), x[1].storage_offset(), x[1, 1:].storage_offset()
        x.stride(), x.stride(0), x.t().stride(), x.stride(-1), x.stride(dim=0)
        x.data_ptr() == x.detach().data_ptr(), x[1].data_ptr() - x.data_ptr()
        x.is_floating_point(), i.is_floating_point(), x.is_complex(), x.is_conj(), x.is_neg()
        x.is_signed(), b.is_signed(), torch.zeros(1, dtype=torch.uint8).is_signed()
        x.is_same_size(x.detach()), x.is_same_size(i)
        x.is_contiguous(), x.t().is_contiguous(), x.is_contiguous(memory_format=torch.contiguous_format)
        torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last).stride()
        torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last).is_contiguous(memory_format=torch.channels_last)
        torch.arange(120).reshape(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
        x.contiguous(memory_format=torch.channels_last)
        x.contiguous() is x, x.cpu() is x, x.to('cpu') is x, x.to(x.dtype) is x, x.float() is x
        x.get_device(), x.is_pinned(), x.share_memory_() is x, x.is_set_to(x), x.is_set_to(x.t()), x.is_distributed()
        x.requires_grad, i.requires_grad, (x * 2).requires_grad, (x * 2).is_leaf, x.grad_fn
        (x * 2).grad_fn.name()
        (x * 2).grad
        x.real is x
        i.imag
        # numbers
        s.item(), i[0].item(), b[0].item(), torch.tensor([[3]]).item()
        type(s.item()).__name__, type(i[0].item()).__name__, type(b[0].item()).__name__
        x.item()
        torch.zeros(0).item()
        x.tolist(), s.tolist(), i.tolist(), b.tolist(), torch.zeros(0, 2).tolist()
        float(i[0]), float(s.detach()), int(s.detach()), int(torch.tensor([[3]])), bool(s), complex(s.detach())
        float(i)
        int(i)
        int(torch.tensor(nan))
        float(torch.zeros(0))
        bool(i)
        bool(torch.zeros(0))
        bool(torch.tensor([0])), bool(torch.tensor(True))
        len(c), len(torch.zeros(0))
        len(s)
        list(i), [a.item() for a in i]
        list(c)
        list(s)
        [1, 2, 3][i[0]], list(range(i[1])), i[0].__index__()
        [1, 2, 3][s]
        [1, 2, 3][i]
        1 in i, 5 in i, 2 in c
        'a' in i
        None in i
        hash(x) == hash(x), len({x, x, x.detach()})
        max(i), min(d), sum(i), abs(d), pow(i, 2)
        import math; math.sqrt(i[2]), math.floor(i[0])
        f"{s.detach():.3f}", f"{i[0]:d}", "{:5.2f}".format(s.detach()), "%.2f" % i[0], f"{i[0]:>10}"
        format(i[0], '04d'), f"{b[0]}"
        f"{x:.2f}"
        f"{torch.tensor([1.5]):.2f}"
        f"{i}", str(i), repr(d)
        str(x), repr(x * 2), str(x[0]), str(b), str(s), str(x.data)
        # becoming something else
        x.type(), i.type(), b.type()
        x.type(torch.LongTensor)
        x.type(dtype=torch.int32)
        x.type('foo')
        x.type_as(3)
        x.to([1])
        x.long(), x.int(), x.short(), x.char(), x.byte(), x.bool()
        i.float(), i.double(), i.half(), b.int(), b.float()
        torch.tensor([300.7, -3.2]).byte()
        torch.tensor([nan, inf, 0.]).bool()
        x.to(float).dtype
        x.to()
        i.mT
        torch.ones(2, 3, 4).mT.shape, torch.ones(2, 3, 4).mH.shape
        torch.ones(2, 3, 4).H
        # writing
        torch.zeros(2, 2).copy_(c[:, :2])
        torch.zeros(2, 2).copy_(s)
        torch.zeros(2).copy_(c)
        torch.zeros(3).copy_(torch.ones(2, 3))
        torch.zeros(2).copy_([1, 2])
        torch.zeros(2).copy_(torch.ones(2), non_blocking=True)
        torch.zeros(3).fill_(2)
        torch.zeros(3).fill_(s)
        torch.zeros(3).fill_(c)
        torch.zeros(3).fill_('a')
        torch.zeros(3, dtype=torch.int64).fill_(2.7)
        torch.zeros(3, dtype=torch.uint8).fill_(300)
        torch.zeros(3, dtype=torch.bool).fill_(2)
        torch.zeros(3).zero_()
        x.zero_()
        x.fill_(1)
        x.copy_(c[:, :2])
        x.detach().apply_(lambda a: a * 2)
        i.apply_(lambda a: a + 1)
        x.apply_(lambda a: a)
        x.detach().map_(x.detach(), lambda a, b: a + b)
        torch.arange(6).resize_(2, 2)
        torch.arange(6).resize_((3, 2))
        torch.zeros(2).resize_(3).shape
        torch.arange(6).resize_as_(torch.zeros(2, 3))
        x.resize_(4)
        # gradients
        x.detach().requires_grad_()
        i.requires_grad_()
        b.requires_grad_()
        x.requires_grad_(False)
        (x * 2).requires_grad_(False)
        (x * 2).requires_grad_()
        x.detach_()
        (x * 2).detach_()
        (x * 2)[0].detach_()
        x.retain_grad()
        i.retain_grad()
        (x * 2).retain_grad()
        x.grad = torch.ones(2, 2, dtype=x.dtype); x.grad
        x.grad = 3; x
        x.grad = torch.ones(3); x
        x.grad = torch.ones(2, 2, dtype=torch.float16); x
        x.requires_grad = False; x
        i.requires_grad = True; i
        y = x * 2; y.requires_grad = False; y
        del x.grad; x.grad
        x.data = c; x
        x.data = 3; x
        x.data = i; x
        x.data.add_(1); x
        # Python's protocols
        import copy; y = copy.deepcopy(x); y.data.zero_(); x, y.requires_grad, y.is_leaf
        import copy; copy.deepcopy(x * 2)
        import copy; y = copy.copy(x); y.data.zero_(); x
        import copy; x.grad = torch.ones_like(x); copy.deepcopy(x).grad
        import pickle; pickle.loads(pickle.dumps(x))
        import pickle; pickle.loads(pickle.dumps(x.t())).stride(), pickle.loads(pickle.dumps(x * 2)).is_leaf
        import pickle; pickle.loads(pickle.dumps([x.dtype, x.shape, x.device]))
        x.foo
        x.foo()
        hasattr(x, 'foo'), hasattr(x, 'grad'), 'add' in dir(x)
        isinstance(x, torch.Tensor), str(type(x)), type(x).__name__, str(type(x.dtype)), str(type(x.shape))
        x.numpy()
        x.sum().numpy()
        x.detach().numpy().tolist(), x.numpy(force=True).tolist(), str(x.detach().numpy().dtype)
        # NumPy's
        import numpy as np; np.asarray(i).tolist(), np.array(c.detach()).shape, np.asarray(d.detach(), dtype=np.float32).tolist()
        import numpy as np; np.asarray(x)
        import numpy as np; np.array(x)
        import numpy as np; np.add(np.ones(2), d.detach())
        import numpy as np; d * np.float64(2), np.float64(2) * d, np.float32(2) * i, i - np.int64(1)
        import numpy as np; np.exp(d.detach()), np.sqrt(d.detach()), np.maximum(d.detach(), 2), np.isnan(d.detach())
        import numpy as np; np.stack([i, i]).tolist(), np.concatenate([i, i]).tolist(), float(np.linalg.norm(d.detach()))
        import numpy as np; bool(np.allclose(i, i)), bool(np.array_equal(i, np.array([1, 2, 3]))), np.where(i > 2, 1, 0).tolist()
        import numpy as np; i[np.array([0, 2])], c[np.int64(0)], c[:, np.array([True, False, True])]
        import numpy as np; float(np.float64(s.detach())), np.zeros(3)[i[0]]
        x.__array_priority__
        # shapes, dtypes, devices as objects
        torch.Size([2, 3]), torch.Size([2, 3]).numel(), torch.Size(), torch.Size((2,)), torch.Size(range(3)), torch.Size([True])
        str(torch.Size([2, 3])), f"{torch.Size([2])}", repr(torch.Size([]))
        str(torch.Size([2, 3]) + (4,)), str((4,) + torch.Size([2, 3])), str(torch.Size([2, 3]) * 2), str(2 * torch.Size([2, 3]))
        torch.Size([2, 3])[0], torch.Size([2, 3])[-1], str(torch.Size([2, 3, 4])[1:]), torch.Size([2, 3]) == (2, 3)
        torch.Size([2, 3]).index(3), torch.Size([2, 2]).count(2), hash(torch.Size([2, 3])) == hash((2, 3)), len(torch.Size([1]))
        str(torch.Size([i[0]])), [1] + list(torch.Size([2]))
        torch.Size([2.5])
        torch.Size(['a'])
        torch.Size(3)
        torch.Size([2, 3]) + [4]
        str(torch.device('cuda:1')), repr(torch.device('cpu')), torch.device('cuda', 1).index, f"{torch.device('cpu')}"
        torch.device('cpu') == 'cpu', torch.device('cpu') == torch.device(type='cpu'), hash(torch.device('cpu')) == hash(x.device)
        str(torch.device(device='cpu')), str(torch.device(torch.device('cpu'))), str(torch.device('cpu:0'))
        torch.device('cuda:')
        torch.device('')
        torch.device(3.5)
        exec("with torch.device('cpu'): y = torch.zeros(2)"); y.device.type
        str(torch.float32), repr(torch.int64), f"{torch.bool}", torch.float is torch.float32, torch.long is torch.int64
        torch.half is torch.float16, torch.double is torch.float64, torch.short is torch.int16, torch.int is torch.int32
        torch.float32.is_floating_point, torch.int8.is_signed, torch.uint8.is_signed, torch.bool.is_signed, torch.float64.itemsize
        isinstance(torch.float32, torch.dtype), {torch.float32: 1}[torch.float], torch.float32.is_complex
        str(torch.finfo(torch.float32)), str(torch.finfo(torch.float64)), str(torch.finfo(torch.float16)), str(torch.finfo())
        torch.finfo(torch.float32).eps, torch.finfo(torch.float32).tiny, torch.finfo(torch.float32).bits
        torch.finfo(torch.float16).min, torch.finfo(torch.float64).resolution, torch.finfo(torch.float64).dtype
        torch.finfo(torch.int32)
        torch.finfo(3)
        str(torch.iinfo(torch.int32)), str(torch.iinfo(torch.uint8)), torch.iinfo(torch.int64).max, torch.iinfo(torch.int64).min
        torch.iinfo(torch.int16).bits, torch.iinfo(torch.int16).dtype
        torch.iinfo(torch.float32)
        torch.iinfo(torch.bool)
        str(torch.result_type(x, i)), str(torch.result_type(i, 2.5)), str(torch.result_type(2, 3))
        str(torch.result_type(i, True))
        str(torch.result_type(torch.tensor(1., dtype=torch.float64), torch.ones(2))), str(torch.result_type(b, 1))
        torch.result_type('a', x)
        torch.can_cast(torch.float32, torch.int64), torch.can_cast(torch.int64, torch.float16)
        torch.can_cast(torch.int64, torch.bool), torch.can_cast(torch.uint8, torch.int8)
        torch.can_cast(torch.float64, torch.float16), torch.can_cast(torch.bool, torch.int8)
        str(torch.promote_types(torch.int32, torch.float32)), str(torch.promote_types(torch.uint8, torch.int8))
        torch.promote_types(1, 2)
        torch.is_floating_point(x), torch.is_floating_point(i), torch.is_complex(x), torch.is_tensor(x), torch.is_tensor([1])
        torch.is_nonzero(torch.tensor(0.)), torch.is_nonzero(torch.tensor([True])), torch.is_storage(x), torch.is_signed(i)
        torch.is_nonzero(i)
        torch.is_floating_point(3)
        torch.typename(i), torch.typename(3), torch.typename(torch.zeros(1)), torch.numel(c), torch.is_same_size(c, c)
        str(torch.strided), str(torch.contiguous_format), str(torch.channels_last), x.layout is torch.strided
        torch.pi, torch.e, torch.inf, torch.newaxis, str(torch.nan), x[torch.newaxis].shape
        str(torch.get_default_dtype()), torch.are_deterministic_algorithms_enabled(), torch.get_num_threads() > 0
        torch.set_num_threads(0)
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark, torch.backends.mps.is_available()
        torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.empty_cache()
    """,
        )
        if row.dtype == "float32"
    ),
]
