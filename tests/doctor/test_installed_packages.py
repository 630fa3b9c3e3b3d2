"""A cut inside an installed package is reported at the user's line, followed by the package's line."""

from __future__ import annotations

import pytest

PACKAGE = """
def net(nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 2)

        def forward(self, x):
            h = self.a(x).tanh()
            return self.b(h)

        def features(self, x):
            return self.a(x).detach()

    return Net()


def frozen(lib, model, x):
    with lib.no_grad():
        return model(x)


def applied(function, x):
    return function(x)
"""
BEGIN = "import {lib} as T\nfrom laidaside import modeling as m\nmodel = m.net(T.nn); head = T.nn.Linear(2, 1); x = T.ones(3, 4)"


@pytest.fixture(params=["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
def find_cut(request, shell, tmp_path, monkeypatch):
    """Function that runs a cell and returns the finding about a cut."""
    folder = tmp_path / "lib" / "site-packages" / "laidaside"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "modeling.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(folder.parent))
    shell.ok(BEGIN.format(lib=request.param))

    def find_cut(cell):
        shell.ok(f"%%doctor -o seen -q\n{cell}")
        kinds = ("no_grad", "detached", "inference_mode")
        return next(one for one in [*shell.ns["seen"].findings, *shell.ns["seen"].remarks] if one.kind in kinds)

    yield find_cut
    for name in ("laidaside", "laidaside.modeling"):
        __import__("sys").modules.pop(name, None)


def test_a_grad_mode_of_the_user_is_reported_at_its_line(find_cut):
    one = find_cut("def run(x):\n    with T.no_grad():\n        return model(x)\nloss = head(run(x)).mean()\nloss.backward()")
    assert one.line == 4 and one.message.startswith(
        "`model(x)` on line 4 (there `self.b(h)` at modeling.py line 10): computed from"
    )
    assert "no_grad() on line 4" in one.fix and "modeling.py" not in one.fix


def test_a_grad_mode_of_a_package_is_not_reported_as_the_users(find_cut):
    one = find_cut("loss = head(m.frozen(T, model, x)).mean()\nloss.backward()")
    assert one.line == 2 and one.message.startswith(
        "`m.frozen(T, model, x)` on line 2 (there `self.b(h)` at modeling.py line 10)"
    )
    assert one.fix == "`m.frozen(T, model, x)` cuts the history inside: call a function that keeps it."


def test_a_detach_in_a_package(find_cut):
    one = find_cut("h = model.features(x)\nloss = model.b(h).mean()\nloss.backward()")
    assert (
        one.line == 2
        and "`model.features(x)` on line 2 (there `self.a(x).detach()` at modeling.py line 13): detach()" in one.message
    )
    assert one.fix.startswith("`model.features(x)` cuts the history inside")


def test_a_detach_in_a_function_of_the_user_that_a_package_calls(find_cut):
    one = find_cut("def mine(x):\n    return x.detach()\nloss = head(m.applied(mine, model(x))).mean()\nloss.backward()")
    assert one.line == 3 and one.message.startswith("`x.detach()` on line 3: detach()")
    assert "`x` in place of `x.detach()`" in one.fix
