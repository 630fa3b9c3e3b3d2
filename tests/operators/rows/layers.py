"""Linear and bilinear layers, embeddings, one-hot, dropout."""

from __future__ import annotations

import numpy as np
from operators.spelling import N, V, rows_for

LONG = np.int64


def linear(x, w=(3, 4), b=(3,)):
    return {"x": N(*x), "w": N(*w), "b": N(*b)}


def bilinear(x, y, w=(3, 4, 5), b=(3,)):
    return {"x": N(*x), "y": N(*y), "w": N(*w), "b": N(*b)}


ROWS = [
    # ------------------------------------------------------------------------------------------------------------ linear
    *rows_for(
        [
            linear((2, 4)),
            linear((4,)),
            linear((5, 2, 4)),
            linear((2, 2, 2, 4)),
            linear((0, 4)),
            linear((2, 0, 4)),
            linear((2, 0), (3, 0)),
            linear((2, 5)),
            linear((5,)),
            linear((3, 2, 5)),
            linear((2, 4), (4,), ()),
            linear((4,), (4,), ()),
            linear(()),
            linear((2, 4), (2, 3, 4)),
            linear((2, 4), ()),
            linear((3,), (4,), ()),
            linear((2, 3), (4,), ()),
            linear((2, 3, 4), (4,), ()),
        ],
        """
        F.linear(x, w, b)
        F.linear(x, w)
    """,
    ),
    *rows_for(
        [
            linear(x, b=b)
            for x, biases in (
                ((2, 4), ((1,), (2, 3), (1, 3), (2,), (), (3, 3))),
                ((5, 2, 4), ((1,), (2, 3), (2,), ())),
                ((4,), ((1,), (1, 3), (2,), ())),
            )
            for b in biases
        ],
        """
        F.linear(x, weight=w, bias=b)
    """,
    ),
    *rows_for(
        {"x": N(5, 2, 4), "w": N(3, 4), "b": N(3)},
        """
        F.linear(x.transpose(0, 1), w, b)
        F.linear(x.transpose(0, 1), w)
        F.linear(x[:1].expand(2, 2, 4), w, b)
        F.linear(input=x, weight=w)
        F.linear(x.detach(), w, b)
        F.linear(x, w.detach(), b)
        F.linear(x, w, b).sum().backward(); (x.grad, w.grad, b.grad)
        F.linear(x[0], w, b).sum().backward(); (x.grad, w.grad, b.grad)
        F.linear(x.half(), w, b)
        F.linear(x[0].half(), w)
        F.linear(x[0].long(), w, b)
        F.linear(x[0, 0].long(), w, b)
        F.linear(x[0], w, b.half())
        F.linear(x, w, b.half())
        F.linear(x[0], w.half(), b)
        F.linear(x[0].long(), w.long(), b.long())
        F.linear(x[0].bool(), w.bool())
        F.linear([1.0, 2.0], w, b)
        F.linear(None, w)
        F.linear(x, 3.0)
    """,
    ),
    # ---------------------------------------------------------------------------------------------------------- bilinear
    *rows_for(
        [
            bilinear((2, 4), (2, 5)),
            bilinear((6, 2, 4), (6, 2, 5)),
            bilinear((4,), (5,)),
            bilinear((0, 4), (0, 5)),
            bilinear((2, 5), (2, 5)),
            bilinear((2, 4), (2, 4)),
            bilinear((2, 4), (3, 5)),
            bilinear((2, 4), (5,)),
            bilinear((2, 4), (2, 5), b=(2,)),
            bilinear((2, 4), (2, 5), (4, 5)),
            bilinear((), ()),
        ],
        """
        F.bilinear(x, y, w, b)
        F.bilinear(x, y, w)
    """,
    ),
    *rows_for(
        {"x": N(2, 4), "y": N(2, 5), "w": N(3, 4, 5), "b": N(3)},
        """
        F.bilinear(input1=x, input2=y, weight=w, bias=b)
        F.bilinear(x.half(), y, w, b)
        F.bilinear(x, y, w, b.half())
        F.bilinear(x.long(), y.long(), w.long())
        F.bilinear([1.0], y, w)
    """,
    ),
    # --------------------------------------------------------------------------------------------------------- embedding
    *rows_for(
        [
            {"w": N(5, 3), "i": V([[0, 2], [1, 2]], LONG)},
            {"w": N(5, 3), "i": V(2, LONG)},
            {"w": N(5, 1), "i": V([4, 4, 4], LONG)},
            {"w": N(5, 3), "i": V(np.zeros((0, 2)).tolist(), LONG)},
        ],
        """
        F.embedding(i, w)
        F.embedding(input=i, weight=w, padding_idx=2)
        F.embedding(i, w, -3)
        F.embedding(i, w, padding_idx=4)
        F.embedding(i.int(), w)
    """,
    ),
    *rows_for(
        {"w": N(5, 3), "i": V([[0, 2], [1, 2]], LONG), "j": V([4, 0, 4, 4], LONG)},
        """
        torch.autograd.grad(F.embedding(i, w, scale_grad_by_freq=True).sum(), w)
        torch.autograd.grad((F.embedding(j, w, 0, scale_grad_by_freq=True) ** 2).sum(), w)
        v = w.detach().clone(); (F.embedding(i, v, max_norm=1.0), v, v._version)
        v = w.detach().clone(); (F.embedding(i, v, max_norm=0.5, norm_type=1.0), v)
        v = w.detach().clone(); (F.embedding(i, v, None, 0.1, float("inf")), v)
        v = w.detach().clone().requires_grad_(); F.embedding(i, v, max_norm=0.5).sum().backward(); (v, v.grad, v._version)
        F.embedding(i.float(), w)
        F.embedding(i.short(), w)
        F.embedding(i.to(torch.uint8), w)
        F.embedding(i.bool(), w)
        F.embedding(i + 4, w)
        F.embedding(i - 4, w)
        F.embedding(i, w, padding_idx=5)
        F.embedding(i, w, padding_idx=-6)
        F.embedding(i, w[0])
        F.embedding(i, w[None])
        F.embedding([0, 1], w)
        F.embedding(w, i)
        F.embedding(i, w.long())
        F.embedding(i, w * 2).sum(0)
        w.grad = None; F.embedding(i, w).sum().backward(); F.embedding(j, w).sum().backward(); w.grad
    """,
    ),
    # ----------------------------------------------------------------------------------------------------- embedding_bag
    # Torch has no second derivatives here. Its gradient with scale_grad_by_freq divides by the counts of other indices than the
    # row's own (only "max", which refuses it, is compared), and it has three texts for an index out of range.
    *rows_for(
        {
            "w": N(5, 3),
            "s": N(5),
            "i": V([[0, 2], [1, 2]], LONG),
            "f": V([0, 2, 1, 2, 4], LONG),
            "o": V([0, 2, 2], LONG),
            "e": V([0, 2, 5], LONG),
        },
        [
            f"y = {call}; (y.detach(), y.grad_fn.name(), torch.autograd.grad((y * y.detach()).sum(), w))"
            for mode in ("mean", "sum", "max")
            for call in (
                f"F.embedding_bag(f, w, o, mode={mode!r})",
                f"F.embedding_bag(i, w, mode={mode!r})",
                f"F.embedding_bag(i, w, mode={mode!r}, padding_idx=2)",
                f"F.embedding_bag(f, w, o, mode={mode!r}, padding_idx=-5)",
                f"F.embedding_bag(f, w, e, mode={mode!r}, include_last_offset=True)",
                f"F.embedding_bag(f.int(), w, o.int(), mode={mode!r})",
                f"F.embedding_bag(f[:0], w, o[:1], mode={mode!r})",
                f"F.embedding_bag(f, w, o, mode={mode!r}, per_sample_weights=s)",
            )
        ],
    ),
    *rows_for(
        {"w": N(5, 3), "s": N(5), "i": V([[0, 2], [1, 2]], LONG), "f": V([0, 2, 1, 2, 4], LONG), "o": V([0, 2, 2], LONG)},
        """
        torch.autograd.grad((F.embedding_bag(f, w, o, mode="sum", per_sample_weights=s) ** 2).sum(), (w, s))
        torch.autograd.grad((F.embedding_bag(i, w, mode="sum", per_sample_weights=s[:4].view(2, 2)) ** 2).sum(), (w, s))
        F.embedding_bag(f, w.detach(), o)
        v = w.detach().clone(); (F.embedding_bag(f, v, o, max_norm=1.0), v)
        F.embedding_bag(w, f, o).detach()
        F.embedding_bag(i, w, o)
        F.embedding_bag(f, w)
        F.embedding_bag(i[None], w)
        F.embedding_bag(f, w, o + 1)
        F.embedding_bag(f, w, o * 4)
        F.embedding_bag(f, w, o[None])
        F.embedding_bag(f, w, o, mode="x")
        F.embedding_bag(f.float(), w, o)
        F.embedding_bag(f, w, o, mode="max", scale_grad_by_freq=True)
        F.embedding_bag(f, w, o, mode="sum", per_sample_weights=s[:4])
        F.embedding_bag(f, w, o, mode="sum", per_sample_weights=s.half())
        F.embedding_bag(f, w, o[:0], include_last_offset=True)
        F.embedding_bag(f, w, o, padding_idx=9)
        F.embedding_bag(f, w[0], o)
    """,
    ),
    # ----------------------------------------------------------------------------------------------------------- one_hot
    *rows_for(
        {"i": V([[0, 2], [1, 2]], LONG), "e": V([], LONG), "x": N(3), "z": V(3, LONG)},
        """
        F.one_hot(i)
        F.one_hot(i, 5)
        F.one_hot(i, num_classes=3)
        F.one_hot(z)
        F.one_hot(e, 4)
        F.one_hot(e)
        F.one_hot(e, 0)
        F.one_hot(i, 2)
        F.one_hot(i, 0)
        F.one_hot(i, -2)
        F.one_hot(i - 1)
        F.one_hot(x)
        F.one_hot(i.int())
        F.one_hot([1, 2])
        F.one_hot(i, 2.5)
        F.one_hot(input=i)
        F.one_hot(i).float() @ torch.ones(3)
    """,
    ),
    # ----------------------------------------------------------------------------------------------------------- dropout
    *rows_for(
        [{"x": N(2, 3, 4)}, {"x": N(5)}, {"x": N()}, {"x": N(0, 3)}, {"x": N(40, 30)}],
        """
        torch.manual_seed(3); F.dropout(x)
        torch.manual_seed(3); F.dropout(x, 0.3)
        torch.manual_seed(3); (F.dropout(x, p=0.25, training=True), torch.rand(2))
        F.dropout(x, training=False)
        F.dropout(x, 0.0)
        F.dropout(x, 1.0)
        torch.manual_seed(3); F.dropout(x * 1, 0.4, True, True)
        torch.manual_seed(4); torch.dropout(x, 0.4, True)
        torch.manual_seed(4); torch.dropout(x, p=0.4, train=False)
        torch.manual_seed(3); F.alpha_dropout(x, 0.3, True)
        torch.manual_seed(3); F.alpha_dropout(x * 1, 0.3, True, True)
        F.alpha_dropout(x)
        F.alpha_dropout(x, 1.0, True)
        F.alpha_dropout(x, 0.0, True)
        torch.manual_seed(3); torch.alpha_dropout(x, 0.3, True)
    """,
    ),
    *rows_for(
        {"x": N(3, 4)},
        """
        torch.manual_seed(3); F.dropout(x.T, 0.3)
        torch.manual_seed(3); F.dropout(x[None].permute(2, 0, 1), 0.3)
        torch.manual_seed(3); F.dropout(x[:, ::2], 0.3)
        torch.manual_seed(3); F.dropout(x[:, :2].T, 0.3)
        torch.manual_seed(3); F.dropout(x, torch.tensor(0.5))
        torch.manual_seed(3); y = x * 1; F.dropout(y, 0.5, inplace=True) is y
        F.dropout(x, 0.5, False) is x
        F.dropout(x, 2.0)
        F.dropout(x, -0.1)
        F.dropout(x, 0.5, True, True)
        F.dropout(x.long())
        F.dropout(x.long(), training=False)
        F.dropout(x.bool())
        F.dropout("a")
        torch.dropout(x, 1.5, True)
        torch.manual_seed(1); torch.dropout_(x * 1, 0.5, True)
        torch.manual_seed(1); torch.alpha_dropout_(x * 1, 0.5, True)
        torch.manual_seed(1); torch.feature_dropout(x, 0.5, True)
        torch.manual_seed(1); torch.feature_dropout_(x * 1, 0.5, True)
        torch.manual_seed(1); torch.feature_alpha_dropout(x, 0.5, True)
        torch.manual_seed(1); torch.feature_alpha_dropout_(x * 1, 0.5, True)
        F.alpha_dropout(x, 1.5, True)
        F.feature_alpha_dropout(x, -1.0)
        F.dropout1d(x, 1.5)
        F.dropout2d(x, 1.5)
        F.dropout3d(x, 1.5)
        torch.manual_seed(1); F.dropout(x.half(), 0.3)
    """,
    ),
    *rows_for(
        [
            {"x": N(3)},
            {"x": N(2, 3)},
            {"x": N(2, 3, 4)},
            {"x": N(2, 3, 4, 2)},
            {"x": N(2, 3, 1, 2, 2)},
            {"x": N(2, 2, 1, 2, 1, 2)},
        ],
        """
        torch.manual_seed(3); F.dropout1d(x, 0.3)
        torch.manual_seed(3); F.dropout2d(x, 0.3)
        torch.manual_seed(3); F.dropout3d(x, 0.3)
        torch.manual_seed(3); F.feature_alpha_dropout(x, 0.3, True)
        F.feature_alpha_dropout(x)
        F.dropout1d(x, training=False)
        F.dropout3d(x, 0.0)
        F.dropout3d(x, 1.0)
    """,
    ),
    # torch's graph shows the axis that is put in front in place
    *rows_for(
        [{"x": N(2, 3)}, {"x": N(2, 3, 4)}, {"x": N(2, 3, 4, 2)}],
        """
        ~ torch.manual_seed(3); F.dropout1d(x * 1, 0.3, True, True)
        ~ torch.manual_seed(3); F.dropout2d(x * 1, 0.3, True, True)
        ~ torch.manual_seed(3); F.dropout3d(x * 1, 0.3, True, True)
    """,
    ),
]
