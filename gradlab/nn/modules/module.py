"""`Module`: a function with state. It holds parameters, buffers and other modules, and calls functions on them.

Parameters, buffers and submodules live in three dictionaries of the instance, and `__getattr__` finds them there, as in
torch. Hooks live in one object that is made when the first is registered, so that a call without any is one comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from gradlab.core.dtypes import dtype, float16, float32, float64
from gradlab.core.node import RemovableHandle
from gradlab.core.observers import OBSERVERS
from gradlab.core.tensor import Tensor, constant
from gradlab.nn.modules import hooks
from gradlab.nn.modules.state import State, named_members, type_named
from gradlab.nn.parameter import TEMPORARY, Buffer, Parameter
from gradlab.ops.creation_arguments import Device

__all__ = ["Module"]

M = TypeVar("M", bound="Module")


def unimplemented(self: Module, *input: Any) -> None:
    """What the module computes. Every subclass defines its own."""
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function. Define `def forward(self, x):` in the class.'
    )


def indented(text: str) -> str:
    """The text with all lines but the first moved to the right."""
    return text.replace("\n", "\n  ")


class Module(State):
    """The base of all layers and models: a function that holds parameters, buffers and other modules.

    Parameters
    ----------
    *args, **kwargs : Any
        None are taken: they are refused with a TypeError that names the class.

    Notes
    -----
    A subclass calls `super().__init__()` first, assigns its parts as attributes, and defines `forward`. What is called is the
    module, not `forward`, so that the hooks run.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> class Scale(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = nn.Parameter(gradlab.tensor(2.0))
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> model = Scale()
    >>> model(gradlab.tensor([1.0, 3.0])).sum().backward()
    >>> model.factor.grad
    tensor(4.)
    """

    training: bool
    _hooks: hooks.Hooks | None = None
    _version: int = 1
    call_super_init = False
    forward: Callable[..., Any] = unimplemented

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
            if args:
                raise TypeError(f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given")
        own = self.__dict__
        own["training"] = True
        own["_parameters"], own["_buffers"], own["_non_persistent_buffers_set"], own["_modules"] = {}, {}, set(), {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._hooks is None and not OBSERVERS:
            return self.forward(*args, **kwargs)
        return hooks.call(self, args, kwargs)

    # -------------------------------------------------------------------------------------------------- its attributes
    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if "_modules" in own:  # the last that __init__ makes
            if name in own["_parameters"]:
                return own["_parameters"][name]
            if name in own["_modules"]:
                return own["_modules"][name]
            if name in own["_buffers"]:
                return own["_buffers"][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, (Parameter, Module)):
            kind, word = ("_parameters", "parameters") if isinstance(value, Parameter) else ("_modules", "module")
            if kind not in own:
                raise AttributeError(
                    f"cannot assign {word} before Module.__init__() call. Begin __init__ with super().__init__()."
                )
            own.pop(name, None)
            for other in {"_parameters", "_buffers", "_modules"} - {kind}:
                own[other].pop(name, None)
            own["_non_persistent_buffers_set"].discard(name)
            if kind == "_parameters":
                self.register_parameter(name, value)
            else:
                own["_modules"][name] = value
        elif name in own.get("_parameters", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type_named(value)}' as parameter '{name}' (gradlab.nn.Parameter or None expected)"
                )
            own["_parameters"][name] = None
        elif name in own.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type_named(value)}' as child module '{name}' (gradlab.nn.Module or None expected)"
                )
            own["_modules"][name] = None
        elif name in own.get("_buffers", ()) or isinstance(value, Buffer):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{type_named(value)}' as buffer '{name}' (gradlab.nn.Buffer, gradlab.Tensor or None expected)"
                )
            persistent = value._role != TEMPORARY if isinstance(value, Buffer) else name not in own["_non_persistent_buffers_set"]
            self.register_buffer(name, value, persistent)
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        for kind in (self._parameters, self._buffers, self._modules):
            if name in kind:
                del kind[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted(name for name in names if not name[:1].isdigit())

    def _checked_name(self, kind: str, name: Any, held: str) -> None:
        if held not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call. Begin __init__ with super().__init__().")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type_named(name)}")
        if kind == "module" and hasattr(self, name) and name not in self.__dict__[held]:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if not name:
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in self.__dict__[held]:
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Hold a tensor that is state but is not learnt. `persistent=False` leaves it out of the state_dict."""
        self._checked_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{type_named(tensor)}' object to buffer '{name}' (gradlab Tensor or None required)")
        self._buffers[name] = tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def register_parameter(self, name: str, param: Any) -> None:
        """Hold a Parameter, or keep its place by None."""
        self._checked_name("parameter", name, "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{type_named(param)}' object to parameter '{name}' (gradlab.nn.Parameter or None required)"
            )
        if param is not None and not param.is_leaf:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. "
                f"To express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Hold another module under a name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type_named(module)} is not a Module subclass")
        self._checked_name("module", name, "_modules")
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as add_module."""
        self.add_module(name, module)

    # -------------------------------------------------------------------------------------------------------- its parts
    def children(self) -> Iterator[Module]:
        """The modules it holds itself, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) of those it holds itself, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Itself and all modules below, each once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """(dotted name, module) of itself (whose name is `prefix`) and of all modules below."""
        seen = set() if memo is None else memo
        if self in seen:
            return
        if remove_duplicate:
            seen.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(seen, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """The parameters, each once; `recurse=False`: only its own."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """(dotted name, parameter) of the parameters, those that are shared once."""
        yield from named_members(self, "_parameters", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once; `recurse=False`: only its own."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """(dotted name, buffer) of the buffers, those that are shared once."""
        yield from named_members(self, "_buffers", prefix, recurse, remove_duplicate)

    def get_submodule(self, target: str) -> Module:
        """The module of a dotted name; itself for ""."""
        module: Any = self
        for name in target.split(".") if target else ():
            module = module._part(name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replace the module of a dotted name. `strict=True`: it must exist."""
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        path, _, name = target.rpartition(".")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}. Give a module.")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Any:
        """The parameter of a dotted name."""
        path, _, name = target.rpartition(".")
        parameter = self.get_submodule(path)._part(name)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of a dotted name."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        buffer = module._part(name)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    def _part(self, name: str) -> Any:
        if not hasattr(self, name):
            raise AttributeError(f"{self._get_name()} has no attribute `{name}`")
        return getattr(self, name)

    # ----------------------------------------------------------------------------------------------- changing all of it
    def apply(self: M, fn: Callable[[Module], None]) -> M:
        """Call `fn` on every module below, then on itself."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self: M, mode: bool = True) -> M:
        """Set training mode, which dropout and batch norm heed."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: M) -> M:
        """Set evaluation mode: `train(False)`."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Whether gradients are wanted for its parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of its parameters, or set them to 0."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad_slot = None
            elif parameter.grad_slot is not None:
                parameter.grad_slot.detach_().zero_()

    def _apply(self: M, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> M:
        """Put `fn` of each parameter, gradient and buffer in its place."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is not None:
                gradient = parameter.grad_slot
                parameter.data = fn(constant(parameter.array))
                if gradient is not None:
                    gradient.data = fn(constant(gradient.array))
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self: M, *args: Any, **kwargs: Any) -> M:
        """Its parameters and buffers on another device, or in another dtype: `to(device)`, `to(dtype)`, `to(device, dtype)`,
        `to(tensor)`. Integer buffers keep their dtype."""
        like = args[0] if args and isinstance(args[0], Tensor) else None
        wanted = like.dtype if like is not None else kwargs.get("dtype", next((x for x in args if isinstance(x, dtype)), None))
        if wanted is not None and not wanted.is_floating_point:
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={wanted}")
        rest = tuple(x for x in args if not isinstance(x, (dtype, Tensor)))
        place = {"device": like.device} if like is not None else {}
        options: dict[str, Any] = {**place, **{k: v for k, v in kwargs.items() if k != "dtype"}}
        return self._apply(lambda x: x.to(*rest, **options, dtype=wanted if x.is_floating_point() else None))

    def type(self: M, dst_type: Any) -> M:
        """All its parameters and buffers in a dtype."""
        return self._apply(lambda x: x.type(dst_type))

    def _floating(self: M, wanted: dtype) -> M:
        return self._apply(lambda x: x.to(wanted) if x.is_floating_point() else x)

    def float(self: M) -> M:
        """Its floating point parameters and buffers as float32."""
        return self._floating(float32)

    def double(self: M) -> M:
        """Its floating point parameters and buffers as float64."""
        return self._floating(float64)

    def half(self: M) -> M:
        """Its floating point parameters and buffers as float16."""
        return self._floating(float16)

    def bfloat16(self: M) -> M:
        """There is no bfloat16."""
        return self._apply(lambda x: x.bfloat16())

    def cpu(self: M) -> M:
        """Its parameters and buffers in host memory."""
        return self._apply(lambda x: x.cpu())

    def cuda(self: M, device: Device = None) -> M:
        """Its parameters and buffers on a GPU."""
        return self._apply(lambda x: x.cuda(device))

    def share_memory(self: M) -> M:
        """As Tensor.share_memory_ of each parameter and buffer."""
        return self._apply(lambda x: x.share_memory_())

    # ---------------------------------------------------------------------------------------------------------- its hooks
    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """`hook(module, args)` runs before `forward`; what it returns, if not None, replaces the arguments. With
        `with_kwargs`, `hook(module, args, kwargs)` returns None or (args, kwargs)."""
        return hooks.registered(self, "before", hook, prepend, with_kwargs)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """`hook(module, args, output)` runs after `forward`; what it returns, if not None, replaces the output. With
        `with_kwargs`, `hook(module, args, kwargs, output)`. `always_call`: also after an error."""
        return hooks.registered(self, "after", hook, prepend, with_kwargs, always_call)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """`hook(module, grad_output)` runs when the gradients of the outputs are known; may return others."""
        return hooks.registered(self, "before_backward", hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """`hook(module, grad_input, grad_output)` runs when the gradients of the inputs are known; may return others for
        them."""
        return hooks.registered(self, "after_backward", hook, prepend)

    # ----------------------------------------------------------------------------------------------------------- its text
    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands between the parentheses of its text: a layer writes its sizes."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {indented(repr(module))}" for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({extra})"
        inside = "".join(f"\n  {line}" for line in [*lines, *children])
        return f"{self._get_name()}({inside}\n)" if inside else f"{self._get_name()}()"
