"""Notes on losses that are stored with their graphs, and on activations before a cross-entropy."""

from __future__ import annotations

import pytest
from applying_fixes import apply_change, changes_in
from planting import Fault, Table
from test_planted import each

from gradlab.explore.doctor.session import NOTEBOOK

ROWS = Table()
LOOP = """
net = nn.Linear(3, 1)
opt = optim.SGD(net.parameters(), lr=0.1)
X, Y = torch.randn(32, 3), torch.randn(32, 1)
"""

ROWS.fault(
    "a running loss",
    "kept-history",
    LOOP
    + """
# %%
running = 0.0
for x, y in zip(X.split(8), Y.split(8)):
    opt.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    opt.step()
    running += loss #!
print(running / 4)
""",
    shows="getattr(running, 'requires_grad', False)",
    cure={"running += loss": "running += loss.item()"},
    says=("in each of 4 steps", "`running += loss.item()` in place of `running += loss`"),
)
ROWS.fault(
    "a total times the size of the batch, in a function",
    "kept-history",
    LOOP
    + """
# %%
def train():
    total = torch.zeros(())
    for x, y in zip(X.split(8), Y.split(8)):
        loss = F.mse_loss(net(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
        total = total + loss * len(x) #!
    return total / len(X)
mean = train()
""",
    shows="mean.requires_grad",
    cure={"loss * len(x)": "loss.item() * len(x)"},
    says="as long as `total`",
)
ROWS.fault(
    "losses in a dictionary of lists, appended before backward",
    "kept-history",
    LOOP
    + """
# %%
log = {"train": []}
for epoch in range(2):
    for x, y in zip(X.split(8), Y.split(8)):
        loss = F.mse_loss(net(x), y)
        log["train"].append(loss) #!
        opt.zero_grad()
        loss.backward()
        opt.step()
mean = torch.stack(log["train"]).mean()
""",
    shows="mean.requires_grad",
    cure={".append(loss)": ".append(loss.detach())"},
    says=".append(loss.detach())",
)
ROWS.fault(
    "a total of a loop by hand whose methods are used",
    "kept-history",
    """
    w = torch.zeros(3, requires_grad=True)
    X, Y = torch.randn(16, 3), torch.randn(16)
    # %%
    total = 0
    for step in range(4):
        loss = ((X @ w - Y) ** 2).mean()
        (loss / 2).backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w.grad = None
        total += loss #!
    mean = total.item() / 4
    """,
    shows="total.requires_grad",
    cure={"total += loss": "total += loss.detach()"},
    says="`total += loss.detach()` in place of `total += loss`",
)
ROWS.fault(
    "a ReLU before a cross-entropy",
    "limited-output",
    """
    a, b = nn.Linear(4, 8), nn.Linear(8, 3)
    X, Y = torch.randn(16, 4), torch.randint(0, 3, (16,))
    # %%
    out = torch.relu(b(torch.relu(a(X))))
    loss = F.cross_entropy(out, Y) #!
    loss.backward()
    """,
    shows="out.min().item() >= 0",
    cure={"torch.relu(b(torch.relu(a(X))))": "b(torch.relu(a(X)))"},
    says="cannot be negative",
)
ROWS.fault(
    "a tanh before a cross-entropy",
    "limited-output",
    """
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Tanh())
    X, Y = torch.randn(16, 4), torch.randint(0, 3, (16,))
    # %%
    loss = F.cross_entropy(net(X), Y) #!
    loss.backward()
    """,
    shows="abs(net(50 * X)).max().item() <= 1",
    cure={", nn.Tanh()": ""},
    says="with 3 classes no probability can be above 0.787",
)
ROWS.fault(
    "a tanh for targets of unit variance",
    "limited-output",
    """
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), nn.Tanh())
    X, Y = torch.randn(40, 4), torch.linspace(-1, 1, 40).unsqueeze(1)
    Y[0] = 2.5
    # %%
    loss = F.mse_loss(net(X), Y) #!
    loss.backward()
    """,
    shows="abs(net(50 * X)).max().item() <= 1",
    cure={"nn.Linear(8, 1), nn.Tanh()": "nn.Linear(8, 1)"},
    says="with targets between -0.949 and 2.5",
)


def notes(row: Fault) -> list:
    return [one for one in NOTEBOOK.last.remarks if one.kind in row.kinds]


@pytest.mark.parametrize(("name", "library"), each(ROWS))
def test_a_note_names_the_line_and_its_fix_cures(run, name, library):
    row = ROWS[name]
    ran = run(library, row.texts)
    assert ran.error is None, ran.said
    assert ran.holds(row.shows), row.shows
    assert not NOTEBOOK.last.findings, NOTEBOOK.last
    (note,) = notes(row)
    assert note.line == row.line
    assert all(words in str(note) for words in row.says), note
    for pieces in changes_in(note.fix):
        ran.leave()
        ran = run(library, apply_change(row.texts, note.line, pieces))
        assert ran.error is None, ran.said
        assert not notes(row), NOTEBOOK.last


@pytest.mark.slow
@pytest.mark.parametrize(("name", "library"), each(ROWS))
def test_a_cured_cell_has_no_note(run, name, library):
    row = ROWS[name]
    ran = run(library, row.cured)
    assert not ran.holds(row.shows), row.shows
    assert not notes(row), NOTEBOOK.last
