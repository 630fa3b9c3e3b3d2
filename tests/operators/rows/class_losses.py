"""Losses over class indices: nll_loss, cross_entropy and the margins."""

from __future__ import annotations

from operators.spelling import N, U, V, rows_for


def with_gradient(*lines):
    """The lines, each with its gradient: of these torch has no second derivatives."""
    return [f"z = {line}; z.backward(torch.ones_like(z)); [z.detach(), x.grad, z.grad_fn.name()]" for line in lines]


ROWS = [
    *rows_for(
        {"x": N(3, 4), "y": V([1, 0, 3], "int64"), "w": U(4)},
        with_gradient(
            "F.multi_margin_loss(x, y)",
            "F.multi_margin_loss(x, y, p=2)",
            'F.multi_margin_loss(x, y, margin=0.3, reduction="sum")',
            'F.multi_margin_loss(x, y, 2, 0.5, w.detach(), reduction="none")',
            "F.multi_margin_loss(x, y, weight=w.detach())",
            "F.multi_margin_loss(x[0], y[0])",
            'F.multi_margin_loss(x[0], y[:1], reduction="none")',
            "F.multi_margin_loss(x, y, size_average=False)",
        ),
    ),
    *rows_for(
        {"x": N(3, 4), "y": V([[1, 0, -1, 2], [3, -1, 0, 1], [-1, 0, 1, 2]], "int64")},
        with_gradient(
            "F.multilabel_margin_loss(x, y)",
            'F.multilabel_margin_loss(x, y, reduction="sum")',
            'F.multilabel_margin_loss(x, y, reduction="none")',
            "F.multilabel_margin_loss(x[0], y[1])",
            "F.multilabel_margin_loss(x, y, size_average=False)",
        ),
    ),
    *rows_for(
        {"x": N(3, 4), "y": V([1, 0, 3], "int64"), "w": U(4)},
        """
        F.nll_loss(x, y)
        F.nll_loss(x, y, reduction="sum")
        F.nll_loss(x, y, reduction="none")
        F.nll_loss(x, y, w.detach())
        F.nll_loss(x, y, weight=w.detach(), reduction="sum")
        F.nll_loss(x, y, w.detach(), reduction="none")
        F.nll_loss(x, y, ignore_index=0)
        F.nll_loss(x, y, ignore_index=0, reduction="none")
        F.nll_loss(x, y, w.detach(), ignore_index=3, reduction="none")
        F.nll_loss(x, y, w.detach(), ignore_index=3)
        F.nll_loss(x, y * 0, ignore_index=0)
        F.nll_loss(x, y * 0, ignore_index=0, reduction="sum")
        F.nll_loss(x, y * 0, ignore_index=0, reduction="none")
        F.nll_loss(x, y.to(torch.uint8))
        F.nll_loss(x[0], y[0])
        F.nll_loss(x[0].detach(), y[:1])
        F.nll_loss(x[0], y[0], reduction="none")
        F.nll_loss(x.T[:, :3], y[:1].expand(4) * 0)
        F.nll_loss(x, torch.tensor([1, -100, 2]))
        F.nll_loss(x * 0, y)
        F.nll_loss(x, y, None, False)
        F.nll_loss(x, y, reduce=False)
        F.nll_loss(x, y, w)
        F.nll_loss(x, y.to(x.dtype))
        F.nll_loss(x, y.int())
        F.nll_loss(x, y[:2])
        F.nll_loss(x, y[:, None])
        F.nll_loss(x[0], y)
        F.nll_loss(x, x.detach())
        F.nll_loss(x, y + 1)
        F.nll_loss(x, y - 1)
        F.nll_loss(x, y, w.detach()[:3])
        F.nll_loss(x, y, w.detach().half())
        F.nll_loss(x.long(), y)
        F.nll_loss(x, 2)
        F.nll_loss(x.sum(), y)
        F.nll_loss(x, y, reduction="average")
        F.cross_entropy(x, y)
        F.cross_entropy(input=x, target=y, weight=None, reduction="sum")
        F.cross_entropy(x, y, reduction="none")
        F.cross_entropy(x, y, w.detach())
        F.cross_entropy(x, y, w.detach(), reduction="none")
        F.cross_entropy(x, y, ignore_index=1)
        F.cross_entropy(x, y, label_smoothing=0.1)
        F.cross_entropy(x, y, label_smoothing=0.3, reduction="sum")
        F.cross_entropy(x, y, label_smoothing=0.3, reduction="none")
        F.cross_entropy(x, y, w.detach(), label_smoothing=0.1)
        F.cross_entropy(x, y, w.detach(), label_smoothing=0.1, ignore_index=3)
        F.cross_entropy(x, y, w.detach(), label_smoothing=0.1, reduction="none", ignore_index=0)
        F.cross_entropy(x, y * 0, ignore_index=0, label_smoothing=0.2)
        F.cross_entropy(x, y * 0, ignore_index=0)
        F.cross_entropy(x[0], y[0])
        F.cross_entropy(x[0], y[0], label_smoothing=0.2)
        F.cross_entropy(x[0].detach(), y[:1], reduction="none")
        F.cross_entropy(x, y.to(torch.uint8))
        F.cross_entropy(x * 1e4, y)
        F.cross_entropy(x, torch.softmax(x * 2, 1))
        F.cross_entropy(x, torch.softmax(x.detach() * 2, 1), w.detach())
        F.cross_entropy(x, torch.softmax(x.detach() * 2, 1), reduction="none")
        F.cross_entropy(x, torch.softmax(x.detach() * 2, 1), reduction="sum", label_smoothing=0.2)
        F.cross_entropy(x[0], torch.softmax(x.detach()[0], 0))
        F.cross_entropy(x, F.one_hot(y, 4).to(x.dtype))
        F.cross_entropy(x, y, None, False)
        F.cross_entropy(x, y, None, None, 1)
        F.cross_entropy(x, y, size_average=True)
        F.cross_entropy(x, y, reduce=False)
        F.cross_entropy(x, y.int())
        F.cross_entropy(x, y.to(x.dtype))
        F.cross_entropy(x, y > 1)
        F.cross_entropy(x, y[:2])
        F.cross_entropy(x, y[:, None])
        F.cross_entropy(x, y + 1)
        F.cross_entropy(x, y - 1)
        F.cross_entropy(x, x.detach()[:, :3])
        F.cross_entropy(x, x.long())
        F.cross_entropy(x.long(), y)
        F.cross_entropy(x, 2)
        F.cross_entropy(x, [1, 0, 3])
        F.cross_entropy(x, y, label_smoothing=1.5)
        F.cross_entropy(x, x.detach(), ignore_index=1)
        F.cross_entropy(x, y, w.detach()[:2])
        F.cross_entropy(x, x.detach(), w.detach()[:2])
        F.cross_entropy(x, y, reduction="average")
        F.cross_entropy(x.sum(), y)
        F.cross_entropy(x, y).grad_fn.next_functions[0][0].name()
        F.multi_margin_loss(x, y, p=3)
        F.multi_margin_loss(x, y[:2])
        F.multi_margin_loss(x, y, weight=w.detach()[:2])
        F.multi_margin_loss(x, y, weight=w.detach()[:, None])
        F.multi_margin_loss(x, y, weight=w)
        F.multi_margin_loss(x, y.to(x.dtype))
        F.multi_margin_loss(x, y + 1)
        F.multi_margin_loss(x[None], y)
        F.multi_margin_loss(x, y, reduction="average")
    """,
    ),
    *rows_for(
        {"x": N(3, 4), "y": V([[1, 0, -1, 2], [3, -1, 0, 1], [-1, 0, 1, 2]], "int64")},
        """
        F.multilabel_margin_loss(x, y[0])
        F.multilabel_margin_loss(x, y.to(x.dtype))
        F.multilabel_margin_loss(x, y + 3)
        F.multilabel_margin_loss(x, y, reduction="average")
    """,
    ),
    *rows_for(
        [
            {"x": N(2, 3, 4), "y": V([[0, 1, 2, 1], [2, 2, 0, 1]], "int64"), "w": U(3)},
            {"x": N(2, 3, 2, 2), "y": V([[[0, 1], [2, 1]], [[2, 2], [0, 1]]], "int64"), "w": U(3)},
            {"x": N(2, 3, 2, 1, 2), "y": V([[[[0, 1]], [[2, 1]]], [[[2, 2]], [[0, 1]]]], "int64"), "w": U(3)},
        ],
        """
        F.nll_loss(x, y)
        F.nll_loss(x, y, w.detach())
        F.nll_loss(x, y, reduction="none")
        F.nll_loss(x, y, w.detach(), ignore_index=1, reduction="none")
        F.nll_loss(x, y, ignore_index=2)
        F.cross_entropy(x, y, reduction="sum")
        F.cross_entropy(x, y, label_smoothing=0.2)
        F.cross_entropy(x, y, w.detach(), label_smoothing=0.2, ignore_index=1)
        F.cross_entropy(x, torch.softmax(x.detach(), 1))
        F.cross_entropy(x, torch.softmax(x.detach(), 1), w.detach(), reduction="none", label_smoothing=0.1)
        F.nll_loss(x, y[:1])
        F.nll_loss(x, y[:, :1])
        F.nll_loss(x, y + 1)
        F.nll_loss(x, y[0])
    """,
    ),
    *rows_for(
        {"x": N(0, 4), "y": V([], "int64")},
        """
        F.nll_loss(x, y)
        F.nll_loss(x, y, reduction="sum")
        F.nll_loss(x, y, reduction="none")
        F.cross_entropy(x, y)
        F.cross_entropy(x, y, reduction="none")
        F.cross_entropy(x, y, label_smoothing=0.1)
    """,
    ),
    *rows_for(
        {"x": V([[1.0, 2, 0], [0, 1, 3], [-float("inf"), 0, 1]]), "y": V([1, 0, 2], "int64")},
        """
        F.cross_entropy(x, y)
        F.cross_entropy(x, y, reduction="none")
    """,
    ),
]
