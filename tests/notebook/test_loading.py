"""Check that `%load_ext`, `%reload_ext` and `%unload_ext` install each hook once, and remove all of them."""

from __future__ import annotations

import atexit
import builtins
import sys
import warnings
from collections import Counter

import pytest
from IPython.core.hooks import CommandChainDispatcher

from gradlab.diagnose.source_locations import notebook
from gradlab.explore.views import VIEWS


def names(things):
    """List the entries of a registry, with duplicates, as texts that are the same for each load."""
    return sorted(f"{getattr(one, '__module__', '')}.{getattr(one, '__qualname__', type(one).__qualname__)}" for one in things)


def chain(dispatcher):
    return names(function for _, function in dispatcher) if isinstance(dispatcher, CommandChainDispatcher) else [repr(dispatcher)]


def registries(ip):
    """All registries of a shell, and those of Python that an extension may write to."""
    found = {
        "input_transformers_cleanup": names(ip.input_transformers_cleanup),
        "input_transformers_post": names(ip.input_transformers_post),
        "cleanup_transforms": names(ip.input_transformer_manager.cleanup_transforms),
        "line_transforms": names(ip.input_transformer_manager.line_transforms),
        "token_transformers": names(ip.input_transformer_manager.token_transformers),
        "ast_transformers": names(ip.ast_transformers),
        "configurables": names(ip.configurables),
        "matchers": names(ip.Completer.matchers),
        "custom_matchers": names(ip.Completer.custom_matchers),
        "custom completers": names(ip.Completer.custom_completers.regexs),
        "magics registry": sorted(ip.magics_manager.registry),
        "lazy magics": sorted(ip.magics_manager.lazy_magics),
        "aliases": sorted(name for name, _ in ip.alias_manager.aliases),
        "checkers": names(ip.prefilter_manager.checkers),
        "handlers": sorted(ip.prefilter_manager.handlers),
        "transformers": names(ip.prefilter_manager.transformers),
        "custom exceptions": names(ip.custom_exceptions),
        "traits": {name: {kind: len(all_of) for kind, all_of in of.items()} for name, of in ip._trait_notifiers.items()},
        "builtins": sorted(vars(builtins)),
        "hidden names": sorted(ip.user_ns_hidden),
        "views": sorted(VIEWS),
        "warnings": len(warnings.filters),
        "meta path": names(sys.meta_path),
        "path hooks": names(sys.path_hooks),
        "atexit": atexit._ncallbacks(),
        "displayhook": [repr(sys.displayhook), repr(sys.excepthook)],
        "failed": notebook.last_error is not None,
    }
    for kind, table in ip.magics_manager.magics.items():
        found[f"{kind} magics"] = sorted(table)
    for event, callbacks in ip.events.callbacks.items():
        found[f"event {event}"] = names(callbacks)
    for name, hook in vars(ip.hooks).items():
        found[f"hook {name}"] = chain(hook)
    for name, dispatcher in ip.strdispatchers.items():
        found[f"dispatcher {name}"] = {key: chain(one) for key, one in dispatcher.strs.items()}
        found[f"dispatcher {name}, patterns"] = sorted(map(str, dispatcher.regexs))
    for kind, formatter in {**ip.display_formatter.formatters, "ipython": ip.display_formatter.ipython_display_formatter}.items():
        for table in ("type_printers", "deferred_printers", "singleton_printers"):
            found[f"{kind} {table}"] = sorted(map(str, getattr(formatter, table)))
    return found


def difference(before, after):
    """Return {registry: (removed entries, new entries)}."""
    found = {}
    for name in sorted(before | after):
        old, new = before.get(name), after.get(name)
        if old != new and isinstance(old, list) and isinstance(new, list):
            found[name] = list((Counter(old) - Counter(new)).elements()), list((Counter(new) - Counter(old)).elements())
        elif old != new:
            found[name] = old, new
    return found


@pytest.fixture
def ip(interactive, monkeypatch):
    monkeypatch.setitem(sys.modules, "__main__", interactive.user_module)
    interactive.reset(new_session=False)
    yield interactive
    interactive.run_cell("%unload_ext gradlab")


def run(ip, line):
    assert ip.run_cell(line, store_history=False).success


def test_everything_is_registered_once_and_removed_again(ip):
    run(ip, "%unload_ext gradlab")  # IPython registers its own magics for this when they are first used
    before = registries(ip)
    run(ip, "%load_ext gradlab")
    loaded = registries(ip)
    new = difference(before, loaded)
    assert set(new) >= {"ast_transformers", "event pre_run_cell", "event post_run_cell", "line magics", "cell magics", "builtins"}
    for name, (without, with_it) in new.items():
        if isinstance(with_it, list):
            assert not without and len(with_it) == len(set(with_it)), f"{name}: {with_it}"
    for line in ("%load_ext gradlab", "import gradlab; gradlab.load_ipython_extension(get_ipython())", "%reload_ext gradlab") * 2:
        run(ip, line)
        assert difference(loaded, registries(ip)) == {}, line
    run(ip, "%%grad -q\nx = gradlab.ones(2, requires_grad=True)\ny = x.sum()")
    run(ip, "%grad -q x.sum()")
    assert difference(loaded, registries(ip)) == {}
    run(ip, "%unload_ext gradlab")
    assert difference(before, registries(ip)) == {}
    run(ip, "import gradlab; gradlab.unload_ipython_extension(get_ipython())")
    assert difference(before, registries(ip)) == {}
