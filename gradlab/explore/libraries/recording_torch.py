"""Reports of PyTorch's operations and sweeps to a `Recorder`. Imported once the user has imported torch.

A `TorchFunctionMode` sees each call of a function or method on tensors: where the user wrote it, its arguments, and its result.
Nodes created inside the call, between its `_sequence_nr` before and after, belong to it. Global hooks report calls of modules and
steps of optimizers. A call of `Tensor.backward`, or of `torch.autograd.backward` where modes see it (PyTorch 2.13), is swept with
a hook on every node. Everything applies to one thread, and is removed at the end.

A mode costs every call at least a microsecond, even if nothing is recorded. So it is removed while an optimizer steps, whose
operations are of no interest, and while the recorder needs nothing (`pause`). Then only `Tensor.backward` is replaced, to count
the sweeps and to resume.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Sequence
from sys import _getframe
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, _pop_mode, _push_mode

from gradlab import clock
from gradlab.diagnose.history_loss import CHECKPOINT
from gradlab.diagnose.sites import Loss
from gradlab.explore.keras_layers import is_keras_layer
from gradlab.explore.libraries.checkpointing_torch import Checkpoints
from gradlab.explore.libraries.compiling_torch import CompiledCalls, UncompiledCalls
from gradlab.explore.libraries.cuts_torch import BORN, LEAVE, flat, how_lost, leaves_behind, tensors_in, used_values
from gradlab.explore.libraries.forms_torch import form, has_numbers, is_leaf, node_of, readable, shape_of
from gradlab.explore.libraries.frames_torch import HANDLED, site_of, theirs, user_frame, user_site
from gradlab.explore.libraries.keras_torch import KerasCalls
from gradlab.explore.libraries.outside_compiler import outside_compiler
from gradlab.explore.libraries.protocol import Recording
from gradlab.explore.libraries.replacing import give_back, replace
from gradlab.explore.libraries.scaling_torch import GradScalers, unscaled_roots
from gradlab.explore.libraries.unseen_frames import Places, without_ours
from gradlab.explore.libraries.unseen_torch import unseen
from gradlab.explore.trace.notes import (
    NOTE,
    Note,
    RecordedArray,
    RecordedCut,
    RecordedFailure,
    RecordedOperand,
    around,
    users_frames,
)
from gradlab.explore.trace.values import FEW

MODE = 1.3  # actual cost of a call through the mode, relative to the measured time
GIVEN = 8  # maximum number of arguments without gradient in a note
INNER = 1_000  # maximum number of nodes recorded for one call
FEW_LOSSES = 3  # maximum number of cuts that a tensor inherits; checkpoints are not counted
LOST = 50_000  # maximum number of tensors with a recorded cut
QUIET = frozenset(("requires_grad_", "retain_grad", "register_hook", "zero_", "__setitem__", "zero_grad", "is_floating_point"))
ARITHMETIC = frozenset(
    f"{prefix}{name}{suffix}"
    for name in ("add", "sub", "mul", "div", "truediv", "pow", "floordiv", "mod", "true_divide", "rsub", "remainder", "fmod")
    for prefix, suffix in (("", ""), ("__", "__"), ("__r", "__"), ("__i", "__"), ("", "_"))
)
WHOLE_LAYERS = frozenset(  # functions that compute a layer in many operations, or in one with a name that users do not write
    (
        *("lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"),
        *("multi_head_attention_forward", "scaled_dot_product_attention"),
    )
)
sequence_number = torch.autograd._get_sequence_nr  # type: ignore[attr-defined]
TOLD = "handle_torch_function" in torch.autograd.backward.__code__.co_names  # whether modes see the call: not in old versions


class TorchRecording(TorchFunctionMode, Recording):
    """Function mode that records the calls of one thread."""

    def __init__(self, library: Any, recorder: Any) -> None:
        super().__init__()
        self.library, self.recorder = library, recorder
        self.thread = threading.get_ident()
        self._lost: dict[int, tuple[Any, tuple[Any, ...]]] = {}
        self._numpy = False
        self._stepping = False
        self._swept = 0  # number of the next operation when the last sweep ended
        self._away = False  # whether numbers have left tensors with a history
        self._handles: list[Any] = []
        self._calls: list[Any] = []  # hooks on modules
        self._replaced: set[Any] = set()  # owners of replaced `backward`: torch.autograd; during a pause torch.Tensor
        self._sweeping = False
        self._notes = [0]  # live notes
        self._away_from_stack = 0  # calls inside the mode
        self._compiled = self._compiled_calls()
        self._aside = False  # whether compiled code is running
        self._scalers = GradScalers(recorder.faults, self._on_scaling)
        self._checkpoints = Checkpoints(user_site, recorder.faults)
        self._places = Places()
        self._keras = KerasCalls(self._describe_target, self.before_step, self.after_step, recorder.faults)

    def open(self) -> None:
        if not self._handles:
            self._handles.append(register_optimizer_step_pre_hook(outside_compiler(self.before_step)))
            self._handles.append(register_optimizer_step_post_hook(outside_compiler(self.after_step)))
        self._compiled.open()
        self._scalers.open()
        self._checkpoints.open()
        self.resume()

    def close(self) -> None:
        self._compiled.close()
        self._scalers.close()
        self._checkpoints.close()
        self._keras.close()
        self._aside = False
        self._see_no_backward(torch.Tensor, torch.autograd)
        self._leave_mode()
        for handles in (self._calls, self._handles):
            _remove(handles)
        self._lost.clear()
        self._places.clear()

    def _compiled_calls(self) -> CompiledCalls | UncompiledCalls:
        if self.recorder.runs_compiled:
            return CompiledCalls(self._step_aside, self._come_back, self.recorder.faults)
        return UncompiledCalls(self._note_uncompiled, self.recorder.faults)

    def _note_uncompiled(self) -> None:
        self.recorder.ran_uncompiled = True

    def _step_aside(self) -> None:
        """Stop recording operations and modules while compiled code runs."""
        with self.recorder.faults:
            if not self._aside and self._handles:
                self._aside = True
                self._leave_mode()
                _remove(self._calls)

    def _come_back(self) -> None:
        """Continue after compiled code has ended."""
        with self.recorder.faults:
            if self._aside:
                self._aside = False
                if not self._is_paused:
                    self.resume()

    def resume(self) -> None:
        """Record operations and modules."""
        if self._aside:
            return
        if not self._calls:
            self._calls.append(register_module_forward_pre_hook(self.on_module_enter))
            self._calls.append(register_module_forward_hook(self.on_module_exit, always_call=True))
        self._enter_mode()
        if TOLD:
            self._see_no_backward(torch.Tensor, torch.autograd)
        else:
            self._see_no_backward(torch.Tensor)
            self._see_backward(torch.autograd)

    def pause(self) -> None:
        """Record only sweeps."""
        self._see_backward(torch.Tensor, torch.autograd)
        self._leave_mode()
        _remove(self._calls)

    def _rest(self) -> None:
        """Pause if the recorder needs nothing, but not inside a call through the mode, which is then off its stack."""
        if not self.recorder.on and self.recorder.call is None:
            self.pause()

    @property
    def _is_paused(self) -> bool:
        return torch.Tensor in self._replaced

    def _see_backward(self, *owners: Any) -> None:
        """Replace `torch.Tensor.backward` or `torch.autograd.backward`, where the mode does not see their calls."""
        for owner in owners:
            self._replaced.add(owner)
            replace(owner, "backward", self._of_tensors if owner is torch.Tensor else self._of_autograd)

    def _see_no_backward(self, *owners: Any) -> None:
        for owner in owners:
            give_back(owner, "backward", self._of_tensors if owner is torch.Tensor else self._of_autograd)
            self._replaced.discard(owner)

    def _of_tensors(self, original: Any) -> Any:
        return self._seeing(original, own=True)

    def _of_autograd(self, original: Any) -> Any:
        return self._seeing(original, own=False)

    def _seeing(self, original: Any, *, own: bool) -> Any:
        def backward(*args: Any, **kwargs: Any) -> Any:
            if self._sweeping or threading.get_ident() != self.thread:
                return original(*args, **kwargs)
            try:
                return self._backward(original, args, kwargs, own)
            except BaseException as error:
                without_ours(error)
                raise
            finally:
                with self.recorder.faults:
                    if self.recorder.on and self._is_paused:
                        self.resume()

        return outside_compiler(backward)

    def _enter_mode(self) -> None:
        """Enter below the program's modes, since each of them exits by popping the top of the stack. A default device stays
        lowest."""
        modes = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
        if self not in modes and not self._away_from_stack and not self._aside:
            default = getattr(getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None), "device_context", None)
            lowest = sum(mode is default for mode in modes[:1])
            _set_modes([*modes[:lowest], self, *modes[lowest:]])

    def _leave_mode(self) -> None:
        modes = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
        if self in modes:
            _set_modes([mode for mode in modes if mode is not self])

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        began = clock.now()
        kwargs, recorder = kwargs or {}, self.recorder
        before = sequence_number()
        self._away_from_stack += 1  # the mode is off its stack during the call, and is restored automatically
        try:
            if func is torch.Tensor.backward or func is torch.autograd.backward:
                return self._backward(func, args, kwargs, func is torch.Tensor.backward)
            if func is torch.autograd.grad:
                recorder.asked += recorder.on
                called = clock.now()
                result = func(*args, **kwargs)
            else:
                frame = _getframe(1)
                if frame.f_code is HANDLED:  # a Python function asks whether a mode handles its call, and is called again
                    frame = frame.f_back.f_back or frame  # type: ignore[union-attr]
                call = self._places.call_from(frame)
                called = clock.now()
                result = call(func, args, kwargs)
            began += clock.now() - called
        except BaseException as error:
            with recorder.faults:
                self._record_failure(error, getattr(func, "__name__", ""), (*args, *kwargs.values()), site_of(_getframe(1)))
            without_ours(error)
            raise
        finally:
            self._away_from_stack -= 1
        if recorder.on and not torch.jit.is_tracing():  # we must not record into a trace of torch.jit
            with recorder.faults:
                self._record_call(func, args, kwargs, result, before)
        recorder.add_time(MODE * (clock.now() - began))
        return result

    # ------------------------------------------------------------------------------------------------------- operations
    @unseen
    def _record_failure(self, error: BaseException, name: str, values: Sequence[Any], site: Any) -> None:
        given = [(weakref.ref(one), shape_of(one), self.library.dtype_name(one)) for one in tensors_in(values)]
        self.recorder.failed_call = RecordedFailure(id(error), name, given, site)

    @unseen
    def _record_call(self, func: Any, args: Any, kwargs: Any, result: Any, before: int) -> None:
        name = getattr(func, "__name__", "")
        if name in LEAVE and args and isinstance(args[0], torch.Tensor):
            self._record_exit(args[0], f"{name}()", site_of(user_frame(3)))
            return
        if name.endswith(("_", "setitem__")) and (leaves := self._leaves_written(name, args)):
            self.recorder.events.add("write", site_of(user_frame(3)), leaves)
        if isinstance(result, torch.Tensor):
            results: Sequence[Any] = (result,)
        elif isinstance(result, (tuple, list)):
            results = [x for x in result if isinstance(x, torch.Tensor)]
        else:
            if name == "__set__" and args[0].requires_grad and getattr(func, "__self__", None) is torch.Tensor.data:
                self.recorder.events.add("write", site_of(user_frame(3)), [args[0]])
            return
        if name == "requires_grad_" and self._numpy and not self.losses(args[0]):  # from_numpy is not seen by modes
            self._record_creation(args[0], site_of(user_frame(3)))
        if not results or name in QUIET:
            return
        if name == "__get__":
            if getattr(func, "__self__", None) is torch.Tensor.data and args[0].requires_grad:
                self._cut(results[0], (args[0],), "data", site_of(user_frame(3)))
                return
            if getattr(func, "__self__", None) is torch.Tensor.grad:
                return
        frame = user_frame(3)
        site = site_of(frame)
        arguments = list(flat((*args, *kwargs.values())))
        graded = [x for x in results if not is_leaf(x)]
        for x in results:
            if is_leaf(x) and (not x.requires_grad or name in BORN):
                self._record_cuts(name, x, used_values(name, args, kwargs, x), site, aside=bool(graded))
        if not graded or self._notes[0] >= self.library.touches:  # then no more nodes are touched
            return
        cell, methods = around(frame, site, self.recorder.call)
        if methods:
            self.recorder.calls_objects = True
        noted = [
            self._describe_argument(at, x, site)
            for at, x in enumerate(arguments[:GIVEN])
            if (isinstance(x, torch.Tensor) and not x.requires_grad) or (name in ARITHMETIC and isinstance(x, (int, float)))
        ]
        call = self.recorder.call
        part_of = (name, before) if name in WHOLE_LAYERS else None
        whole = self._keras.running
        nodes = []
        for x in graded:
            node = node_of(x)
            if node is None:
                continue
            nodes.append(node)
            if node._sequence_nr() >= before or NOTE not in node.metadata:
                node.metadata[NOTE] = _Counted(
                    self._notes, site, cell, call, self._keep(x), noted, False, part_of, methods, whole
                )
        if sequence_number() - before > len(set(nodes)):
            self._inner(nodes, before, site, cell, call, part_of, methods, whole)

    def _inner(self, nodes: list[Any], before: int, *noted: Any) -> None:
        """Record nodes that the call created internally."""
        site, cell, call, part_of, methods, whole = noted
        waiting, seen = deque(nodes), set(nodes)
        while waiting and len(seen) < INNER:
            for source, _ in waiting.popleft().next_functions:
                if source is None or source in seen:
                    continue
                seen.add(source)
                if hasattr(source, "variable") or source._sequence_nr() < before:
                    continue
                if NOTE not in source.metadata:
                    source.metadata[NOTE] = _Counted(self._notes, site, cell, call, None, (), True, part_of, methods, whole)
                waiting.append(source)

    @unseen
    def _describe_target(self, at: int, x: Any) -> RecordedOperand | None:
        is_target = self.recorder.on and isinstance(x, torch.Tensor)
        return self._describe_argument(at, x, site_of(user_frame(3))) if is_target else None

    def _describe_argument(self, at: int, x: Any, site: Any) -> RecordedOperand:
        if not isinstance(x, torch.Tensor):
            return RecordedOperand(at, RecordedArray((), type(x).__name__, (x,), None, None, 0), x, None, ())
        known = self._lost.get(id(x))
        losses = known[1] if known is not None and known[0]() is x else ()
        if not losses and self._numpy and site is not None:  # from_numpy, which modes do not see, may have made this tensor
            severed = RecordedCut("born", site, "", shape_of(x) or (), None, [])
            losses = (Loss("constant", site, "", shape_of(x) or (), None, None, severed),)
        return RecordedOperand(at, self._keep(x), None, weakref.ref(x), losses)

    def _keep(self, tensor: Any) -> RecordedArray | None:
        kind = form(tensor)
        if kind and (tensor.layout != torch.strided or not has_numbers(tensor)):
            return RecordedArray(shape_of(tensor) or (), tensor.dtype, None, None, None, 0, kind)
        shape = tuple(tensor.shape)
        if tensor.numel() <= FEW and tensor.device.type == "cpu":
            return RecordedArray(shape, tensor.dtype, tuple(readable(tensor.detach()).reshape(-1).tolist()), None, None, 0, kind)
        alias = tensor.detach()  # shares memory and version, and has no history
        self.recorder.hold(alias, alias.numel() * alias.element_size())
        return RecordedArray(shape, tensor.dtype, None, weakref.ref(alias), None, self.library.version(alias), kind)

    # ------------------------------------------------------------------------------------------------------------- cuts
    def _record_cuts(self, name: str, result: Any, tensors: Sequence[Any], site: Any, *, aside: bool = False) -> None:
        """Record a result without history that depends on the values of some tensors: a cut by the call itself, or earlier ones.
        `aside` for results that have a history."""
        graded = [x for x in tensors if x.requires_grad]
        if not graded and not tensors:
            if self._away and name in BORN:
                self._record_creation(result, site)
            return
        losses: list[Any] = []
        for x in tensors:
            known = self._lost.get(id(x))
            if known is not None and known[0]() is x:
                losses += [loss for loss in known[1] if loss not in losses]
        if graded:
            how = how_lost(name, result)
            if how == "no_grad" and self._checkpoints.running is not None:
                how, site = CHECKPOINT, self._checkpoints.running
            self._cut(result, graded, how, site, aside=aside, earlier=losses if how == CHECKPOINT else ())
            return
        if losses and not any(result is x for x in tensors):
            self._remember(result, _first_losses(losses))

    def _cut(
        self, result: Any, sources: Sequence[Any], how: str, site: Any, *, aside: bool = False, earlier: Sequence[Loss] = ()
    ) -> None:
        losses = [self._make_loss(x, how, site) for x in sources[:FEW_LOSSES]]
        for loss in losses:
            loss.severed.aside = aside
        self._remember(result, _first_losses([*losses, *(one for one in earlier if one.how == how and one.site != site)]))

    def _record_creation(self, result: Any, site: Any) -> None:
        """Record a tensor made from numbers, after numbers have left tensors."""
        severed = RecordedCut("born", site, "", shape_of(result) or (), self._keep(result), [])
        self._remember(result, (Loss("constant", site, "", shape_of(result) or (), None, None, severed),))

    def _make_loss(self, source: Any, how: str, site: Any) -> Loss:
        viewed = source._base if source._base is not None and is_leaf(source) else source  # a view of a leaf in no_grad mode
        node = self.library.node(viewed)
        operation = "" if node is None else self.library.name_of(node)
        shape = shape_of(source) or ()
        cell = around(user_frame(3), site, None)[0]
        severed = RecordedCut(how, site, operation, shape, self._keep(source), leaves_behind(node), cell)
        severed.old = node is not None and not hasattr(node, "variable") and node._sequence_nr() < self._swept
        self.recorder.cuts.append(severed)
        return Loss(how, site, f"the result of {operation}", shape, None, None, severed)

    def _record_exit(self, source: Any, how: str, site: Any) -> None:
        """Record that the numbers of a tensor were converted to Python or NumPy."""
        self._numpy |= how in ("numpy()", "__array__()")
        if source.requires_grad:
            self._make_loss(source, how, site)
            self._away = True
        elif lost := self.losses(source):
            first = lost[0]
            self.recorder.cuts.append(
                RecordedCut(how, site, first.operation, shape_of(source) or (), self._keep(source), first.leaves)
            )
            self._away = True

    def losses(self, tensor: Any) -> list[RecordedCut]:
        known = self._lost.get(id(tensor))
        return (
            [loss.severed for loss in known[1] if loss.severed is not None] if known is not None and known[0]() is tensor else []
        )

    def _leaves_written(self, name: str, args: Any) -> list[Any]:
        """Return the leaves that an in-place operation wrote to, directly or through `.data` or `detach()`."""
        in_place = name.startswith(("__i", "__seti")) or (name.endswith("_") and name[:2] != "__" and name not in QUIET)
        if self._stepping or not in_place or not args:
            return []
        leaves = []
        for target in args[0] if name.startswith("_foreach") else args[:1]:
            if not isinstance(target, torch.Tensor):
                continue
            if target.requires_grad and is_leaf(target):
                leaves.append(target)
            for severed in self.losses(target)[:1]:
                if severed.how in ("data", "detach") and severed.operation == "AccumulateGrad":
                    leaves += [node.variable for ref in severed.leaves[:1] if (node := ref()) is not None]
        return leaves

    def _remember(self, tensor: Any, losses: tuple[Any, ...]) -> None:
        if len(self._lost) >= LOST:
            self._lost = {key: known for key, known in self._lost.items() if known[0]() is not None}
        self._lost[id(tensor)] = weakref.ref(tensor), losses

    # ----------------------------------------------------------------------------------------------------------- sweeps
    def _backward(self, func: Any, args: Any, kwargs: Any, own: bool) -> Any:
        """Run `tensor.backward(…)` (`own`) or `autograd.backward(tensors, …)` and watch its sweep."""
        self._stepping = False  # also after a step that failed
        asked = None
        with self.recorder.faults:
            asked = self._sweep_arguments(args, kwargs, own)
        if asked is None:
            return func(*args, **kwargs)
        roots, outputs, site, frames, retains, scale = asked
        with self.recorder.sweeping(self.library, roots, outputs, site, frames, retains=retains, scale=scale):
            del asked, roots, outputs, frames  # the sweep does not need these any more
            outer = self._sweeping
            try:
                self._sweeping = True
                return func(*args, **kwargs)
            finally:
                self._sweeping = outer
                self._swept = sequence_number()

    @unseen
    def _sweep_arguments(self, args: Any, kwargs: Any, own: bool) -> Any:
        """Return the roots, the outputs, the site, the running functions, whether the graph is retained, and the scale of the
        loss, for a call of `backward`; None if there is nothing to record."""
        library, recorder = self.library, self.recorder
        arguments = dict(zip(("tensors", SEEDS[own], "retain_graph", "create_graph", OTHERS[own]), args, strict=False)) | kwargs
        outputs, weights = _as_list(arguments.get("tensors")), _as_list(arguments.get(SEEDS[own]))
        weights += [None] * (len(outputs) - len(weights))
        if not outputs or not all(isinstance(output, torch.Tensor) for output in outputs):  # GradientEdges, or a wrong call
            return None
        lost = next((output for output in outputs if not output.requires_grad), None)
        if lost is not None:
            recorder.refuse(library, lost, self.losses(lost), site_of(user_frame()))
        nodes = [library.node(output) for output in outputs]
        if len(weights) != len(outputs) or not all(nodes):
            return None
        frame = user_frame()
        site, frames = site_of(frame), users_frames(frame, theirs)
        seeds = [torch.ones_like(output) if weight is None else weight for output, weight in zip(outputs, weights, strict=True)]
        retains = bool(arguments.get("retain_graph") or arguments.get("create_graph"))
        scale, losses = unscaled_roots(outputs)
        if losses:
            nodes, outputs = [loss.node for loss in losses], [loss.tensor for loss in losses]
            seeds = [seed * scale for seed in seeds]
        return list(zip(nodes, seeds, strict=True)), outputs, site, frames, retains, scale

    @unseen
    def _on_scaling(self, kind: str, optimizer: Any, scale: Any) -> None:
        self.recorder.events.add_scaling(kind, optimizer, site_of(user_frame()), float(scale))

    # --------------------------------------------------------------------------------------------- modules, optimizers
    def on_module_enter(self, module: Any, args: Any) -> None:
        """Global hook before the call of a module."""
        if threading.get_ident() == self.thread:
            began = clock.now()
            with self.recorder.faults:
                if self._stepping:  # the end of a failed step is not reported
                    self._stepping = False
                    self._enter_mode()
                self._rest()
                if not self._keras.is_open and is_keras_layer(module):
                    self._keras.open()
                if self._calls:
                    self.recorder.on_module_enter(module, site_of(user_frame()), torch.is_grad_enabled())
            self.recorder.add_time(clock.now() - began)

    def on_module_exit(self, module: Any, args: Any, result: Any) -> None:
        """Global hook after the call of a module, however it ended."""
        if threading.get_ident() == self.thread:
            with self.recorder.faults:
                self.recorder.on_module_exit()

    def before_step(self, optimizer: Any, args: Any = (), kwargs: Any = None) -> None:
        """Global hook before an optimizer's step, whose writes are not the user's."""
        if threading.get_ident() == self.thread:
            with self.recorder.faults:
                self._stepping = True
                began = clock.now()
                unseen(self.recorder.frozen.before_step)(self.library, optimizer)
                self.recorder.add_time(clock.now() - began)
                if len(args) < 2 and not kwargs:  # a closure would be the user's own program
                    self._leave_mode()

    def after_step(self, optimizer: Any, args: Any = (), kwargs: Any = None) -> None:
        """Global hook after an optimizer's step."""
        if threading.get_ident() == self.thread:
            with self.recorder.faults:
                self._stepping = False
                if not self._is_paused:
                    self._enter_mode()
                    self._rest()
                unseen(self.recorder.on_step)(self.library, optimizer, site_of(user_frame()))


def _first_losses(losses: Sequence[Loss]) -> tuple[Loss, ...]:
    """Return the first losses that the result of an operation inherits, and one for each place of a checkpoint."""
    others = [one for one in losses if one.how != CHECKPOINT]
    return (*others[:FEW_LOSSES], *{one.site: one for one in losses if one.how == CHECKPOINT}.values())


class _Counted(Note):
    """A note that counts live notes."""

    __slots__ = ("_living",)

    def __init__(self, living: list[int], *args: Any) -> None:
        super().__init__(*args)
        self._living = living
        living[0] += 1

    def __del__(self) -> None:
        self._living[0] -= 1


SEEDS = ("grad_tensors", "gradient")  # names of arguments of autograd.backward and Tensor.backward
OTHERS = ("grad_variables", "inputs")


def _as_list(value: Any) -> list[Any]:
    """Return a list of a value that was given alone or in a sequence."""
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def _set_modes(modes: Sequence[Any]) -> None:
    """Replace the stack of this thread's function modes."""
    for _ in range(len(_get_current_function_mode_stack())):  # type: ignore[no-untyped-call]
        _pop_mode()  # type: ignore[no-untyped-call]
    for mode in modes:
        _push_mode(mode)  # type: ignore[no-untyped-call]


def _remove(handles: list[Any]) -> None:
    while handles:
        handles[-1].remove()
        handles.pop()
