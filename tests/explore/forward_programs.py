"""PyTorch programs whose runs are drawn, with their arguments."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

Pair = namedtuple("Pair", ["left", "right"])


@dataclass
class Batch:
    """A batch as a dataclass."""

    ids: Any
    mask: Any
    scale: float = 2.0


@dataclass(slots=True)
class Answer:
    """An answer as a dataclass without `__dict__`."""

    mean: Any
    spread: Any


def programs(torch):
    """Return each program by name as (model, arguments, keyword arguments)."""
    nn, F = torch.nn, torch.nn.functional
    found = {}

    def program(*args, **kwargs):
        def add(kind):
            torch.manual_seed(0)
            found[kind.__name__] = kind() if isinstance(kind, type) else kind, args, kwargs
            return kind

        return add

    r = torch.randn
    torch.manual_seed(0)

    # ------------------------------------------------------------------------------------------------ arguments and results
    @program({"ids": r(2, 3), "extra": [r(2, 3), r(2, 3)], "unused": r(2)})
    class OfADict(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 2)

        def forward(self, batch):
            return {"a": self.fc(batch["ids"]), "b": batch["extra"][1] * 2}

    @program((r(2, 3), r(2, 3)))
    class OfATuple(nn.Module):
        def forward(self, pair):
            a, b = pair
            return a + 1, (b * 2, a * b)

    @program(Pair(r(2, 3), r(2, 3)))
    class OfANamedTuple(nn.Module):
        def forward(self, pair):
            return Pair(pair.right.exp(), pair.left.sin())

    @program(Batch(r(2, 3), r(2, 3)))
    class OfADataclass(nn.Module):
        def forward(self, batch):
            return Answer(batch.ids * batch.scale, batch.mask - batch.ids)

    @program(r(2, 3), scale=r(3), shift=None, bias=r(3))
    class OfKeywords(nn.Module):
        def forward(self, x, *, scale, shift=None, **more):
            return x * scale + more["bias"]

    @program(r(2), r(2), r(2))
    class OfManyArguments(nn.Module):
        def forward(self, *tensors):
            return torch.stack(tensors[:2]), tensors[2].neg()

    @program(r(2, 3), r(2, 3))
    def of_a_function(x, y):
        return x.sin() @ y.cos().T, y.sum()

    @program(r(2, 3))
    class Nested(nn.Module):
        def forward(self, x):
            return {"all": [x + 1, (x * 2, {"deep": Pair(x.exp(), None)})], "text": "no tensor", "number": 3}

    @program(r(2, 3))
    class GivesItsInput(nn.Module):
        def forward(self, x):
            return x, x + 1

    # -------------------------------------------------------------------------------------------------- writes and views
    @program(r(2, 3), r(3))
    class InPlace(nn.Module):
        def forward(self, x, y):
            h = x.clone()
            h.add_(y)
            h *= 2
            return h, x + 1

    @program(r(2, 3), r(3))
    class ThroughAView(nn.Module):
        def forward(self, x, y):
            h = x.clone()
            h[0].mul_(y)
            return h

    @program(r(2, 3), r(3))
    class SetItem(nn.Module):
        def forward(self, x, y):
            h = torch.zeros(2, 3)
            h[0] = y
            before = h.clone()
            h[1] = x[1]
            return before, h.sum()

    @program(r(2, 3), r(3))
    class ViewMadeBefore(nn.Module):
        def forward(self, x, y):
            h = x.clone()
            row = h.view(6)[3:]
            h += y
            return row * 2

    @program(r(2, 3), r(3))
    class ThroughDetach(nn.Module):
        def forward(self, x, y):
            h = x.clone()
            h.detach()[1] = y
            h[1].mul_(x[0])
            bare = h.data
            bare[1] += 1
            return h.exp()

    @program(r(2, 3), r(2, 3))
    class InPlaceArgument(nn.Module):
        def forward(self, x, y):
            h = x + 0
            F.relu(h.view(-1).view(2, 3)[:1], inplace=True)
            part = h[1]
            nn.LeakyReLU(0.1, inplace=True)(part)
            torch._foreach_add_([part], [y[0]])
            return h * 3

    @program(r(2, 3), r(3, 4))
    class Out(nn.Module):
        def forward(self, x, y):
            place = torch.empty(2, 4)
            torch.mm(x, y, out=place)
            return place + 1

    @program(r(2, 3), r(2, 3))
    class OutIntoAView(nn.Module):
        def forward(self, x, y):
            place = torch.zeros(4, 3)
            torch.add(x, y, out=place[:2])
            torch.mul(x, 2, out=place[2:])
            return place

    @program(r(2, 3), r(2, 3))
    class TwoRows(nn.Module):
        """Each row is written through its own view and read separately."""

        def forward(self, x, y):
            h = torch.zeros(2, 3)
            a, b = h[0], h[1]
            a += x[0]
            b += y[0]
            return a * 2, b * 2, h

    @program(r(2, 3))
    class Views(nn.Module):
        def forward(self, x):
            a, b = x.T.reshape(3, 2).chunk(2, dim=0)
            return a.expand(2, *a.shape), b.squeeze().unsqueeze(0), x[..., None].permute(2, 0, 1), x.unfold(1, 2, 1)

    @program(r(4, 3))
    class Several(nn.Module):
        def forward(self, x):
            values, at = x.max(dim=0)
            top = x.topk(2, dim=0)
            first, *_ = x.unbind()
            return values, top.values, first, torch.linalg.svd(x, full_matrices=False).S

    # ----------------------------------------------------------------------------------------- parameters and buffers
    @program(r(4, 3))
    class Normalized(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)

        def forward(self, x):
            return self.norm(self.fc(x))

    @program(r(4, 3))
    class OwnBuffers(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(3))
            self.register_buffer("steps", torch.tensor(0.5))
            self.register_buffer("spare", torch.zeros(3))

        def forward(self, x):
            self.mean.lerp_(x.mean(0), 0.1)
            self.steps = self.steps + 1
            return (x - self.mean) * self.steps

    @program(r(4, 3))
    class Direct(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(r(3))
            self.list = nn.ParameterList([r(3), r(3)])
            self.dict = nn.ParameterDict({"a": r(3)})
            self.table = r(3)

        def forward(self, x):
            return x * self.scale + self.list[1], self.dict["a"] - self.table

    @program(torch.tensor([[1, 2]]))
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids):
            return self.head(self.embed(ids))

    @program(r(4, 3))
    class ThreeTimes(nn.Module):
        def __init__(self):
            super().__init__()
            self.step, self.never = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x):
            for _ in range(3):
                x = self.step(x).tanh()
            return x

    @program(r(4, 3))
    class Containers(nn.Module):
        def __init__(self):
            super().__init__()
            self.list = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
            self.dict = nn.ModuleDict({"a b": nn.Linear(3, 2), "c": nn.Linear(3, 2)})

        def forward(self, x, head="a b"):
            for layer in self.list[:2]:
                x = layer(x)
            return self.dict[head](x)

    # ------------------------------------------------------------------------------------------------------ control flow
    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 2), nn.Linear(3, 2)

        def forward(self, x):
            if x.sum() > 0:
                return self.a(x)
            return self.b(x).sigmoid()

    torch.manual_seed(0)
    found["BranchTaken"] = Branches(), (torch.ones(2, 3),), {}
    found["BranchNotTaken"] = Branches(), (-torch.ones(2, 3),), {}

    class Loops(nn.Module):
        def forward(self, x):
            while x.norm() < 10:
                x = x * 2
            return x

    found["LoopOfThree"] = Loops(), (torch.full((2, 2), 1.0),), {}
    found["LoopOfNone"] = Loops(), (torch.full((2, 2), 50.0),), {}

    # ---------------------------------------------------------------------------------------------- modes and precisions
    @program(r(4, 3))
    class Dropped(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(0.5)

        def forward(self, x):
            return F.dropout(self.drop(x) * 2, 0.3, self.training) + 1

    found["DroppedOff"] = Dropped().eval(), (r(4, 3),), {}

    @program(r(4, 3))
    class Casts(nn.Module):
        def forward(self, x):
            return x.half().float(), x.to(torch.float64), x.bfloat16().type(torch.float32), x.double()

    @program(r(4, 3))
    class Autocast(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 3)

        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return self.fc(x) + 1

    @program(r(4, 3))
    class NoGrad(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 3)

        def forward(self, x):
            with torch.no_grad():
                h = self.fc(x)
            with torch.inference_mode():
                k = h.exp()
                k += 1
            return h + 1, k

    @program(r(4, 3))
    class Catches(nn.Module):
        def __init__(self):
            super().__init__()
            self.wrong, self.right = nn.Linear(5, 2), nn.Linear(3, 2)

        def forward(self, x):
            try:
                return self.wrong(x)
            except RuntimeError:
                return self.right(x)

    # ------------------------------------------------------------------------------------------------- PyTorch's layers
    @program(r(2, 5, 8))
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def forward(self, x):
            return self.encoder(x)

    found["EncoderInEvaluation"] = Encoder().eval(), (r(2, 5, 8),), {}

    @program(r(5, 2, 8), r(7, 2, 8))
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.attn = nn.MultiheadAttention(8, 2)

        def forward(self, x, y):
            return self.attn(x, y, y)

    found["AttentionInEvaluation"] = Attention().eval(), (r(5, 2, 8), r(7, 2, 8)), {}

    @program(r(5, 3, 4))
    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.LSTM(4, 3)

        def forward(self, x):
            packed = nn.utils.rnn.pack_padded_sequence(x, [5, 3, 2])
            out, (h, c) = self.rnn(packed)
            return nn.utils.rnn.pad_packed_sequence(out)[0], h, c

    @program(r(2, 3, 4))
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = nn.GRU(4, 3, bidirectional=True, batch_first=True)
            self.cell = nn.LSTMCell(6, 2)

        def forward(self, x):
            out, _ = self.gru(x)
            h, c = self.cell(out[:, 0])
            return self.cell(out[:, 1], (h, c))[0]

    # ----------------------------------------------------------------------------- functions that run code in another way
    from torch.utils.checkpoint import checkpoint

    for reentrant in (True, False):

        @program(r(4, 3, requires_grad=True))
        class Checkpointed(nn.Module):
            def __init__(self, reentrant=reentrant):
                super().__init__()
                self.a, self.b, self.reentrant = nn.Linear(3, 3), nn.Linear(3, 2), reentrant

            def forward(self, x):
                return self.b(checkpoint(self.a, x, use_reentrant=self.reentrant).tanh())

        found[f"Checkpointed{'Reentrant' if reentrant else 'Otherwise'}"] = found.pop("Checkpointed")

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 2, y.exp()

        @staticmethod
        def backward(ctx, g, k):
            return g * 2, k

    @program(r(4, 3, requires_grad=True), r(2))
    class OwnFunction(nn.Module):
        def forward(self, x, y):
            a, b = Double.apply(x, y)
            return a + 1, b

    @program(r(4, 3))
    class Scripted(nn.Module):
        def __init__(self):
            super().__init__()
            inner = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
            import warnings

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.inner = torch.jit.script(inner)

        def forward(self, x):
            return self.inner(x) + 1

    @program(r(4, 3))
    class Called(nn.Module):
        """A module that calls another one with different parameters."""

        def __init__(self):
            super().__init__()
            self.fc, self.scale = nn.Linear(3, 2), nn.Parameter(r(2, 3))

        def forward(self, x):
            return torch.func.functional_call(self.fc, {"weight": self.scale * 2}, (x,))

    @program(r(4, 3), r(5, 3))
    def transforms(x, w):
        batched = torch.func.vmap(lambda row: (w @ row).tanh())(x)
        columns = torch.func.vmap(lambda column, y: column * y[0, 0], in_dims=(1, None), out_dims=1)(x, batched)
        slope = torch.func.grad(lambda w: w.sin().sum())(w)
        return batched, columns, slope

    @program(r(2, 3), r(2, 3))
    def set_data(x, y):
        h = x + 1
        before = h * 2
        h.data = y * 2
        return before, h + 1

    @program(r(4, 3), r(3))
    def parts_of_one(x, y):
        """Use columns, rows and elements of one tensor, some of which share memory."""
        h = x.clone()
        left, right = h[:, :1], h[:, 1:]
        left.mul_(2)
        right.mul_(y[1:])
        corner = h[0, 0]
        row = h[3]
        h[0].add_(y)
        return left + 1, row + 1, corner + 1

    @program(r(2, 60))
    def many_parts(x):
        h = torch.zeros(2, 60)
        for i in range(60):
            h[:, i].copy_(x[:, i])
        return h.sum(0), h[:, 3]

    return found
