"""Edge cases of the gradient modes, on gradlab and on torch."""

from __future__ import annotations

import asyncio
import threading

import pytest

import gradlab


def current_modes(t):
    return t.is_grad_enabled(), t.is_inference_mode_enabled()


NORMAL = (True, False)
MODES = {"no_grad": (False, False), "inference_mode": (False, True)}


@pytest.fixture(params=MODES)
def name(request):
    return request.param


# ------------------------------------------------------------------------------------------------------ as a context
def test_nested_contexts(t):
    with t.no_grad():
        assert current_modes(t) == (False, False)
        with t.enable_grad():
            assert current_modes(t) == NORMAL
            with t.inference_mode():
                assert current_modes(t) == (False, True)
                with t.inference_mode(False):
                    assert current_modes(t) == NORMAL
                with t.enable_grad():
                    assert current_modes(t) == (True, True) and not (t.ones(1, requires_grad=True) * 2).requires_grad
            with t.set_grad_enabled(False):
                assert current_modes(t) == (False, False)
            assert current_modes(t) == NORMAL
        assert current_modes(t) == (False, False)
        with t.inference_mode(mode=False):
            assert current_modes(t) == NORMAL
    assert current_modes(t) == NORMAL


def test_one_object_may_be_entered_twice(t, name):
    mode = getattr(t, name)()
    if t is gradlab:  # torch does not restore the outer mode
        with mode, mode:
            assert current_modes(t) == MODES[name]
    for _ in range(2):
        with mode:
            assert current_modes(t) == MODES[name]
        assert current_modes(t) == NORMAL


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_after_exceptions(t, name, error):
    with pytest.raises(error), getattr(t, name)():
        raise error
    assert current_modes(t) == NORMAL


def test_set_grad_enabled_acts_at_once(t):
    try:
        t.set_grad_enabled(False)
        assert current_modes(t) == (False, False)
        with t.set_grad_enabled(True):
            assert current_modes(t) == NORMAL
        assert current_modes(t) == (False, False)
        with t.set_grad_enabled(mode=True):
            assert current_modes(t) == NORMAL
    finally:
        t.set_grad_enabled(True)
    for wrong in (1, None):
        with pytest.raises(TypeError, match=r"set_grad_enabled\(\): argument 'enabled' \(position 1\) must be bool, not"):
            t.set_grad_enabled(wrong)
    assert current_modes(t) == NORMAL


def test_threads_have_modes_of_their_own(t, name):
    found = []
    with getattr(t, name)():
        thread = threading.Thread(target=lambda: found.append(current_modes(t)))
        thread.start()
        thread.join()
    assert found == [NORMAL]


# ----------------------------------------------------------------------------------------------------- as a decorator
@pytest.mark.parametrize("parentheses", [False, True])
def test_functions(t, name, parentheses):
    mode = getattr(t, name)

    @(mode() if parentheses else mode)
    def function(x, *, y=3):
        """Its text."""
        return current_modes(t), x, y

    assert function(1, y=2) == (MODES[name], 1, 2) and current_modes(t) == NORMAL
    assert function.__name__ == "function" and function.__doc__ == "Its text."


def test_enable_grad_and_set_grad_enabled_decorate(t):
    @t.enable_grad
    def on():
        return current_modes(t)

    @t.set_grad_enabled(False)
    def off():
        return current_modes(t)

    assert current_modes(t) == NORMAL
    with t.no_grad():
        assert on() == NORMAL
    assert off() == (False, False)


def test_recursion(t, name):
    @getattr(t, name)()
    def down(n):
        return [current_modes(t), *(down(n - 1) if n else [])]

    assert down(3) == [MODES[name]] * 4 and current_modes(t) == NORMAL


def test_classes_warn(t):
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated and will be disabled in future versions"):

        @t.no_grad()
        class Made:
            def __init__(self):
                self.seen = current_modes(t)

    assert Made().seen == (False, False) and current_modes(t) == NORMAL


# -------------------------------------------------------------------------------------------- generators and coroutines
def test_the_mode_of_a_generator_holds_only_during_its_steps(t, name):
    @getattr(t, name)()
    def steps():
        sent = yield current_modes(t)
        assert sent == "sent" and current_modes(t) == MODES[name]
        try:
            yield current_modes(t)
        except ValueError:
            yield "caught", current_modes(t)
        try:
            yield
        finally:
            closed.append(current_modes(t))

    closed = []
    generator = steps()
    assert current_modes(t) == NORMAL
    assert next(generator) == MODES[name] and current_modes(t) == NORMAL
    assert generator.send("sent") == MODES[name] and current_modes(t) == NORMAL
    assert generator.throw(ValueError()) == ("caught", MODES[name]) and current_modes(t) == NORMAL
    next(generator)
    generator.close()
    assert closed == [MODES[name]] and current_modes(t) == NORMAL


def test_a_generator_in_another_mode_than_its_caller(t):
    @t.enable_grad()
    def steps():
        for _ in range(3):
            assert current_modes(t) == NORMAL
            yield
        return "done"

    def delegating():
        found.append((yield from steps()))

    found = []
    with t.no_grad():
        for _ in delegating():
            assert current_modes(t) == (False, False)
    assert found == ["done"] and current_modes(t) == NORMAL


def test_an_error_in_a_generator(t, name):
    @getattr(t, name)()
    def steps():
        yield 1
        raise KeyError("inside")

    generator = steps()
    next(generator)
    with pytest.raises(KeyError, match="inside"):
        next(generator)
    assert current_modes(t) == NORMAL


def test_coroutines_wait_in_the_callers_mode():
    """With gradlab's decorator, the mode is active while the coroutine runs. Torch's has no effect on coroutines."""
    t = gradlab

    @t.no_grad()
    async def work(log):
        log.append(current_modes(t))
        await asyncio.sleep(0)
        log.append(current_modes(t))
        return len(log)

    async def watch(log):
        for _ in range(3):
            log.append(current_modes(t))
            await asyncio.sleep(0)

    async def both():
        return await asyncio.gather(work(inner), watch(outer))

    inner, outer = [], []
    assert asyncio.run(both()) == [2, None]
    assert inner == [(False, False)] * 2 and outer == [NORMAL] * 3


def test_asynchronous_generators():
    t = gradlab

    @t.inference_mode()
    async def steps():
        try:
            for i in range(3):
                sent = yield i, current_modes(t)
                await asyncio.sleep(0)
                log.append((sent, current_modes(t)))
        except ValueError:
            yield "caught", current_modes(t)
        finally:
            log.append(("closed", current_modes(t)))

    async def run():
        generator = steps()
        found = [await generator.asend(None)]
        assert current_modes(t) == NORMAL
        found += [await generator.asend("a"), await generator.athrow(ValueError())]
        assert current_modes(t) == NORMAL
        await generator.aclose()
        async for _ in steps():
            assert current_modes(t) == NORMAL
        return found

    log = []
    assert asyncio.run(run()) == [(0, (False, True)), (1, (False, True)), ("caught", (False, True))]
    assert log == [("a", (False, True)), ("closed", (False, True)), *[(None, (False, True))] * 3, ("closed", (False, True))]


# ------------------------------------------------------------------------------------------------------------- names
def test_names(t):
    from importlib import import_module

    modes = import_module(f"{t.__name__}.autograd.grad_mode")
    for name in ("no_grad", "enable_grad", "set_grad_enabled", "inference_mode"):
        assert getattr(modes, name) is getattr(t, name) is getattr(t.autograd, name)
    assert t.autograd.is_multithreading_enabled()
    with modes.set_multithreading_enabled(False):
        assert not t.autograd.is_multithreading_enabled()
    assert t.autograd.is_multithreading_enabled()
    with t.no_grad().clone():
        assert current_modes(t) == (False, False)
    assert str(t.set_grad_enabled(True)).endswith("autograd.grad_mode.set_grad_enabled(mode=True)")
