"""Language models, recurrent nets, transformers, embeddings."""

from __future__ import annotations

from planting import Table

ROWS = Table()

ROWS.healthy(
    "an LSTM language model, its state detached between chunks",
    """
    class LM(nn.Module):
        def __init__(self, vocab=12, d=10, h=14):
            super().__init__()
            self.emb, self.rnn, self.out = nn.Embedding(vocab, d), nn.LSTM(d, h, batch_first=True), nn.Linear(h, vocab)
        def forward(self, tokens, state=None):
            z, state = self.rnn(self.emb(tokens), state)
            return self.out(z), state
    lm = LM()
    text = torch.randint(0, 12, (4, 31))
    opt = optim.Adam(lm.parameters(), lr=3e-3)
    # %%
    state = None
    for start in range(0, 30, 10):
        inp, tgt = text[:, start:start + 10], text[:, start + 1:start + 11]
        if state is not None:
            state = tuple(s.detach() for s in state)
        logits, state = lm(inp, state)
        loss = F.cross_entropy(logits.reshape(-1, 12), tgt.reshape(-1))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(lm.parameters(), 0.25)
        opt.step()
    print("perplexity", math.exp(loss.item()))
    """,
    learns="learning(lm.parameters())",
)
ROWS.healthy(
    "a GRU over sentences with padding",
    """
    emb = nn.Embedding(20, 8, padding_idx=0)
    gru = nn.GRU(8, 12, batch_first=True)
    fc = nn.Linear(12, 2)
    tokens = torch.randint(1, 20, (6, 9))
    tokens[:3, 6:] = 0
    labels = torch.randint(0, 2, (6,))
    # %%
    out, h = gru(emb(tokens))
    lengths = (tokens != 0).sum(1)
    last = out[torch.arange(6), lengths - 1]
    loss = F.cross_entropy(fc(last), labels)
    loss.backward()
    """,
    learns="learning([*gru.parameters(), *fc.parameters()]) and all_zero(emb.weight.grad[0])",
)
ROWS.healthy(
    "a sparse batch of an embedding",
    """
    table = nn.Embedding(1000, 8)
    head = nn.Linear(8, 1)
    opt = optim.SGD([*table.parameters(), *head.parameters()], lr=0.1)
    ids, y = torch.randint(0, 1000, (5,)), torch.randn(5, 1)
    # %%
    loss = F.mse_loss(head(table(ids)), y)
    loss.backward()
    opt.step()
    """,
    learns="zero_share(table.weight.grad) > 0.99",
)
ROWS.healthy(
    "word vectors with negative samples",
    """
    V, D = 50, 6
    center, context = nn.Embedding(V, D), nn.Embedding(V, D)
    nn.init.zeros_(context.weight)
    c, o, neg = torch.randint(0, V, (16,)), torch.randint(0, V, (16,)), torch.randint(0, V, (16, 5))
    opt = optim.SGD([*center.parameters(), *context.parameters()], lr=0.5)
    # %%
    for _ in range(3):
        v = center(c)
        pos = (v * context(o)).sum(1)
        negs = torch.einsum("bd,bkd->bk", v, context(neg))
        loss = -(F.logsigmoid(pos).mean() + F.logsigmoid(-negs).sum(1).mean())
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="norm(center.weight.grad) > 0",
)
ROWS.healthy(
    "a transformer by hand",
    """
    class Attention(nn.Module):
        def __init__(self, d, heads):
            super().__init__()
            self.h, self.qkv, self.proj = heads, nn.Linear(d, 3 * d), nn.Linear(d, d)
        def forward(self, x):
            B, T, D = x.shape
            q, k, v = (t.reshape(B, T, self.h, D // self.h).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
            s = q @ k.transpose(-2, -1) / math.sqrt(D // self.h)
            s = s.masked_fill(torch.triu(torch.ones(T, T), 1).bool(), float("-inf"))
            return self.proj((s.softmax(-1) @ v).transpose(1, 2).reshape(B, T, D))

    class Layer(nn.Module):
        def __init__(self, d, heads):
            super().__init__()
            self.n1, self.n2, self.att = nn.LayerNorm(d), nn.LayerNorm(d), Attention(d, heads)
            self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
        def forward(self, x):
            x = x + self.att(self.n1(x))
            return x + self.mlp(self.n2(x))

    class GPT(nn.Module):
        def __init__(self, vocab=11, d=12, n=3, T=8):
            super().__init__()
            self.tok, self.pos = nn.Embedding(vocab, d), nn.Parameter(torch.zeros(T, d))
            self.layers = nn.Sequential(*[Layer(d, 2) for _ in range(n)])
            self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)
            self.head.weight = self.tok.weight
        def forward(self, idx):
            return self.head(self.norm(self.layers(self.tok(idx) + self.pos[: idx.shape[1]])))
    gpt = GPT()
    # %%
    opt = optim.AdamW(gpt.parameters(), lr=3e-3)
    seq = torch.randint(0, 11, (4, 9))
    for it in range(2):
        logits = gpt(seq[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, 11), seq[:, 1:].reshape(-1))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    """,
    learns="not without_gradient(gpt)",
    remarks="first-loss",  # the output layer is the embedding, drawn from N(0, 1)
)
ROWS.healthy(
    "an encoder of the library",
    """
    layer = nn.TransformerEncoderLayer(d_model=16, nhead=2, dim_feedforward=32, dropout=0.1, batch_first=True)
    enc = nn.TransformerEncoder(layer, num_layers=2)
    cls = nn.Linear(16, 3)
    src, y = torch.randn(4, 7, 16), torch.randint(0, 3, (4,))
    # %%
    loss = F.cross_entropy(cls(enc(src).mean(1)), y)
    loss.backward()
    """,
    learns="not without_gradient(enc) and learning(cls.parameters())",
)
ROWS.healthy(
    "a narrow encoder initialised like BERT, whose branches have small gradients beside the skip connections",
    """
    class Layer(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.query, self.key, self.value, self.out = (nn.Linear(d, d) for _ in range(4))
            self.one, self.two, self.up, self.down = nn.LayerNorm(d), nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.Linear(2 * d, d)
        def forward(self, h):
            heads = [part(h).unflatten(-1, (2, -1)).transpose(1, 2) for part in (self.query, self.key, self.value)]
            seen = F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
            h = self.one(h + self.out(seen))
            return self.two(h + self.down(F.gelu(self.up(h))))
    class BERT(nn.Module):
        def __init__(self, d=32):
            super().__init__()
            self.emb, self.pos, self.norm = nn.Embedding(50, d), nn.Embedding(12, d), nn.LayerNorm(d)
            self.layers = nn.ModuleList([Layer(d) for _ in range(2)])
            self.pooler, self.head = nn.Linear(d, d), nn.Linear(d, 2)
            for p in self.parameters():
                if p.dim() > 1:
                    nn.init.normal_(p, std=0.02)
        def forward(self, ids):
            h = self.norm(self.emb(ids) + self.pos(torch.arange(ids.shape[1])))
            for layer in self.layers:
                h = layer(h)
            return self.head(torch.tanh(self.pooler(h[:, 0])))
    bert = BERT()
    ids, y = torch.randint(0, 50, (8, 12)), torch.randint(0, 2, (8,))
    # %%
    loss = F.cross_entropy(bert(ids), y)
    loss.backward()
    """,
    learns="not without_gradient(bert)",
)
ROWS.healthy(
    "sequence to sequence with teacher forcing",
    """
    src_e, tgt_e = nn.Embedding(9, 6), nn.Embedding(9, 6)
    encoder, decoder = nn.GRU(6, 10), nn.GRUCell(6, 10)
    out = nn.Linear(10, 9)
    src, tgt = torch.randint(0, 9, (5, 3)), torch.randint(0, 9, (6, 3))
    # %%
    _, h = encoder(src_e(src))
    h, prev, loss = h[0], tgt[0], 0
    for t in range(1, 6):
        h = decoder(tgt_e(prev), h)
        logits = out(h)
        loss = loss + F.cross_entropy(logits, tgt[t])
        prev = tgt[t] if torch.rand(1).item() < 0.5 else logits.argmax(1)
    loss = loss / 5
    loss.backward()
    """,
    learns="learning([*encoder.parameters(), *decoder.parameters(), *out.parameters()])",
)
ROWS.healthy(
    "a vanilla RNN over twenty steps, each with its loss",
    """
    Wx = (torch.randn(5, 16) * 0.4).requires_grad_()
    Wh = (torch.linalg.qr(torch.randn(16, 16))[0]).requires_grad_()
    Wo = (torch.randn(16, 5) * 0.25).requires_grad_()
    chars = F.one_hot(torch.randint(0, 5, (21,)), 5).float()
    h, total = torch.zeros(16), 0
    for t in range(20):
        h = torch.tanh(chars[t] @ Wx + h @ Wh)
        total = total + F.cross_entropy((h @ Wo)[None], chars[t + 1].argmax()[None])
    loss = total / 20
    loss.backward()
    """,
    learns="learning([Wx, Wh, Wo])",
)
ROWS.healthy(
    "masked tokens only",
    """
    torch.manual_seed(4)
    emb, mix, head = nn.Embedding(15, 8), nn.Linear(8, 8), nn.Linear(8, 15)
    x = torch.randint(1, 15, (4, 10))
    chosen = torch.rand(4, 10) < 0.15
    chosen[0, 0] = True
    labels = torch.where(chosen, x, torch.full_like(x, -100))
    inp = x.masked_fill(chosen, 0)
    # %%
    e = emb(inp)
    z = torch.tanh(mix(e + e.mean(1, keepdim=True)))
    loss = F.cross_entropy(head(z).reshape(-1, 15), labels.reshape(-1), ignore_index=-100)
    loss.backward()
    """,
    learns="learning([*mix.parameters(), *head.parameters()])",
)
ROWS.healthy(
    "CTC",
    """
    net = nn.Linear(5, 6)
    frames, targets = torch.randn(12, 2, 5), torch.randint(1, 6, (2, 4))
    log_probs = net(frames).log_softmax(2)
    loss = F.ctc_loss(log_probs, targets, torch.tensor([12, 12]), torch.tensor([4, 3]))
    loss.backward()
    """,
    learns="learning(net.parameters())",
    libraries=("torch",),
)
ROWS.healthy(
    "log_softmax before cross_entropy changes nothing",
    """
    lin = nn.Linear(4, 3)
    out = F.log_softmax(lin(torch.randn(9, 4)), dim=1)
    loss = F.cross_entropy(out, torch.randint(0, 3, (9,)))
    loss.backward()
    """,
    learns="learning(lin.parameters())",
    remarks="double-softmax",
)
ROWS.healthy(
    "a tied autoencoder",
    """
    W = (torch.randn(12, 4) * 0.3).requires_grad_()
    b1, b2 = torch.zeros(4, requires_grad=True), torch.zeros(12, requires_grad=True)
    X = torch.rand(30, 12)
    opt = optim.SGD([W, b1, b2], lr=0.1)
    for i in range(4):
        code = torch.sigmoid(X @ W + b1)
        recon = torch.sigmoid(code @ W.t() + b2)
        loss = ((recon - X) ** 2).sum(1).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    """,
    learns="learning([W, b1, b2])",
)
