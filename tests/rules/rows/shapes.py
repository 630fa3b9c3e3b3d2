"""Samples of views, of copies in another order, and of joins."""

from __future__ import annotations

from rules.sample import case

import gradlab as gl
from gradlab.rules import shapes

CASES = [
    case("reshape", lambda x: x.reshape(2, -1), (3, 4)),
    case("reshape", lambda x: x.unsqueeze(1).squeeze(0), (1, 4)),
    case("permute", lambda x: x.permute(2, 0, 1), (2, 3, 4)),
    case("permute", lambda x: x.mT, (2, 3, 3)),
    case("expand", lambda x: x.expand(3, 2, 4), (2, 1)),
    case("expand", lambda x: x.T.expand(3, 2, 4), (1, 2)),
    case("diagonal", lambda x: x.diagonal(), (3, 4)),
    case("diagonal", lambda x: x.diagonal(1, 0, 2), (3, 2, 3)),
    case("fill_diagonal", lambda x: x.diag(-1), (3,)),
    case("fill_diagonal", lambda x: x.diag_embed(1, 0, 2), (3, 2)),
    case("unfold", lambda x: x.unfold(0, 2, 2), (5, 2)),
    case("unfold", lambda x: x.unfold(1, 3, 1), (2, 5)),
    case("unfold", lambda x: x.unfold(0, 2, 1).unfold(1, 2, 2), (3, 4)),
    case("fold", lambda x: shapes.fold.record(x, length=5, axis=-1, step=1), (2, 3, 3)),
    case("fold", lambda x: shapes.fold.record(x, length=5, axis=-2, step=2), (2, 3, 2)),
    case("as_strided", lambda x: x.as_strided((2, 3), (1, 2), 1), (8,)),
    case("as_strided", lambda x: x.as_strided((2, 2, 2), (4, 1, 1)), (2, 4)),
    case("contiguous", lambda x: shapes.contiguous.record(x.T), (3, 2)),
    case("flip", lambda x: x.flip(0, 2), (2, 3, 2)),
    case("flip", lambda x: x.rot90(), (2, 3)),
    case("roll", lambda x: x.roll((1, -2), (0, 1)), (3, 4)),
    case("roll", lambda x: x.roll(2), (2, 3)),
    case("tril", lambda x: x.tril(1), (3, 4)),
    case("tril", lambda x: x.tril(-1), (2, 3, 3)),
    case("triu", lambda x: x.triu(), (3, 4)),
    case("triu", lambda x: x.triu(-1), (2, 3, 2)),
    case("repeat", lambda x: x.repeat(2, 3), (2, 2)),
    case("repeat", lambda x: x.repeat(2, 1, 3), (2, 1)),
    case("cat", lambda a, b: gl.cat([a, b], 1), (3, 2), (3, 1)),
    case("cat", lambda a, b: gl.cat([a, b, a]), (2, 3), (1, 3)),
    case("stack", lambda a, b: gl.stack([a, b], 1), (3, 2), (3, 2)),
    case("stack", lambda a, b: gl.stack([a, b], -1), (3,), (3,)),
    case("block_diag", gl.block_diag, (2, 3), (2,), ()),
    case("astype", lambda x: x.float().double(), (3,)),
    case("transfer", lambda x: shapes.transfer.record(x, where=x.device, back=x.device, waits=True), (3,)),
]
