"""Table of the losses and the optimizers that use their gradients; Notes on gradients that leak into another optimizer's step."""

from __future__ import annotations

import numpy as np
import pytest
from applying_fixes import apply_change, changes_in
from symptoms import array

from gradlab.explore.doctor.context.loss_table import Influence
from gradlab.explore.doctor.session import NOTEBOOK

LIBRARIES = ["gradlab", pytest.param("torch", marks=pytest.mark.torch)]
MAKE = """
G = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 2))
D = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
g_opt, d_opt = optim.SGD(G.parameters(), lr=1e-3), optim.SGD(D.parameters(), lr=1e-3)
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)
left, summed = [], []
"""
GENERATOR = """
    fake = G(torch.randn(16, 4))
    g_opt.zero_grad()
    g_loss = bce(D(fake), ones)
    g_loss.backward()
    g_opt.step()
"""
DISCRIMINATOR = """
    left.append([0 if p.grad is None else p.grad.clone() for p in D.parameters()])
    d_loss = bce(D(torch.randn(16, 2) + 3), ones) + bce(D(fake.detach()), zeros)
    d_loss.backward()
    summed.append([p.grad.clone() for p in D.parameters()])
    d_opt.step()
"""
LOOP = "%%grad -o report\nfor step in range(3):"
LEAK = f"{LOOP}{GENERATOR}{DISCRIMINATOR}    d_opt.zero_grad()\n"
CLEARED = f"{LOOP}{GENERATOR}    d_opt.zero_grad()\n{DISCRIMINATOR}"


def notes():
    assert not NOTEBOOK.last.unseen
    return [one for one in NOTEBOOK.last.remarks if one.kind == "accumulated"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_gradient_that_leaks_into_another_optimizers_step_is_noted(run, library):
    ran = run(library, (MAKE, LEAK))
    (note,) = notes()
    assert note.line == 11 and note.lines == (6, 13)
    assert "`g_loss.backward()` on line 6" in note.message and "the 4 parameters of `D[0]` and `D[2]`" in note.message
    assert "in 3 of 3 calls `d_loss.backward()` on line 11 added to it, and the step of `d_opt` used both" in note.message
    at = ["D[0].weight", "D[0].bias", "D[2].weight", "D[2].bias"].index(note.evidence["of"])
    before, after = (array(ran.shell.ns[name][-1][at]) for name in ("left", "summed"))
    for key, value in {"before": before, "after": after, "arrived": after - before}.items():
        assert note.evidence[key] == pytest.approx(np.linalg.norm(value), rel=1e-4)
    assert note.evidence["parameters"] == 4 and note.evidence["calls"] == 3


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_fix_clears_the_gradient(run, library):
    ran = run(library, (MAKE, LEAK))
    (note,) = notes()
    ((change,),) = changes_in(note.fix)
    ran.leave()
    texts = apply_change((MAKE, LEAK.replace("%%grad -o report", "%%grad")), note.line, [change])
    assert texts is not None
    ran = run(library, texts)
    assert ran.error is None and not notes()
    assert len(ran.shell.ns["summed"]) == 3 and not NOTEBOOK.last.findings


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_gradient_that_is_cleared_or_never_cleared_is_not_noted(run, library):
    run(library, (MAKE, CLEARED)).leave()
    assert not notes()
    run(library, (MAKE, LEAK.replace("    d_opt.zero_grad()\n", ""))).leave()
    assert [one.kind for one in NOTEBOOK.last.findings] == ["accumulated"], "it is a Problem and reported once"
    assert not notes()


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_table_says_which_loss_moves_which_optimizer(run, library):
    ran = run(library, (MAKE, CLEARED))
    report = ran.shell.ns["report"]
    table = report.losses
    assert [(loss.name, loss.where) for loss in table.losses] == [("g_loss", "line 6"), ("d_loss", "line 12")]
    assert (table.optimizers, table.sizes) == (("g_opt", "d_opt"), (4, 4))
    assert table.influences == ((Influence(4, 4), Influence(0, 4)), (Influence(0, 0), Influence(4, 4)))
    card = report.parts()[0]
    assert "g_loss (line 6) moves g_opt (4); reaches d_opt (4), not stepped" in card.text
    assert "d_loss (line 12) moves d_opt (4)" in card.text
    fold = card.html[card.html.index("Which loss moves") :]
    assert "reaches 4, not stepped" in fold and "–" in fold and fold.index("moves 4") < fold.index("</details>")
    assert r"g\_\allowbreak{}loss} (line 6) moves" in card.latex


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_leak_is_a_move(run, library):
    ran = run(library, (MAKE, LEAK))
    assert ran.shell.ns["report"].losses.influences[0] == (Influence(4, 4), Influence(4, 4))


ONE = """%%grad -o report
for step in range(2):
    g_opt.zero_grad()
    loss = G(torch.randn(16, 4)).pow(2).mean()
    loss.backward()
    g_opt.step()
"""
ANEW = """%%grad -o report
for rate in (0.1, 0.2):
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=rate)
    for step in range(2):
        opt.zero_grad()
        loss = net(torch.randn(16, 4)).pow(2).mean()
        loss.backward()
        opt.step()
"""
NO_STEP = "%%grad -o report\na = D[0].weight.sum()\na.backward()\nb = D[0].weight.pow(2).sum()\nb.backward()"


@pytest.mark.parametrize("text", [ONE, ANEW, NO_STEP])
def test_there_is_no_table_for_one_loss_and_one_optimizer_or_without_a_step(run, text):
    report = run("gradlab", (MAKE, text)).shell.ns["report"]
    assert report.losses is None and "Which loss moves" not in report.parts()[0].html + report.text()


def test_two_losses_of_one_optimizer_that_are_summed(run):
    text = """%%grad -o report
for step in range(2):
    g_opt.zero_grad()
    first = G(torch.randn(16, 4)).pow(2).mean()
    first.backward()
    (G[0].weight.pow(2).sum() * 0.1).backward()
    g_opt.step()
"""
    table = run("gradlab", (MAKE, text)).shell.ns["report"].losses
    assert [loss.name for loss in table.losses] == ["first", "(G[0].weight.pow(2).sum() * 0.1)"]
    assert table.influences == ((Influence(4, 4),), (Influence(1, 1),)) and not notes()


def test_optimizers_that_a_loop_steps_have_a_number_each(run):
    text = """%%grad -o report
for step in range(2):
    loss = (G[2](G[0](torch.randn(16, 4))) ** 2).mean() + (D[0].weight ** 2).sum()
    for opt in (g_opt, d_opt):
        opt.zero_grad()
    loss.backward()
    for opt in (g_opt, d_opt):
        opt.step()
"""
    table = run("gradlab", (MAKE, text)).shell.ns["report"].losses
    assert table.optimizers == ("opt (1)", "opt (2)")
    assert table.influences == ((Influence(4, 4), Influence(1, 1)),)


def test_names_of_the_user_are_escaped(run):
    text = """%%grad -o report
opts = {"<b>": g_opt, "d": d_opt}
for step in range(2):
    loss = (D[0].weight ** 2).sum() + (G[0].weight ** 2).sum()
    loss.backward()
    opts["<b>"].step()
    opts["d"].step()
    G.zero_grad(); D.zero_grad()
"""
    report = run("gradlab", (MAKE, text)).shell.ns["report"]
    assert report.losses.optimizers == ("opts['<b>']", "opts['d']") or report.losses.optimizers == ('opts["<b>"]', 'opts["d"]')
    assert "<b>" not in report.parts()[0].html and "&lt;b&gt;" in report.parts()[0].html
