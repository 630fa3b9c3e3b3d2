"""`Module`: a function with state. It holds parameters, buffers and other modules, and calls functions on them.

Parameters, buffers and submodules live in three dictionaries of the instance, and `__getattr__` finds them there, as in
torch. Hooks live in one object that is made when the first is registered, so that a call without any is one comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradlab.core.node import RemovableHandle
from gradlab.core.observers import OBSERVERS
from gradlab.core.tensor import Tensor
from gradlab.nn.modules import hooks
from gradlab.nn.modules.conversion import Conversion
from gradlab.nn.modules.state import State, type_named
from gradlab.nn.parameter import TEMPORARY, Buffer, Parameter

__all__ = ["Module"]


def unimplemented(self: Module, *input: Any) -> None:
    """What the module computes. Every subclass defines its own."""
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function. Define `def forward(self, x):` in the class.'
    )


def indented(text: str) -> str:
    """The text with all lines but the first moved to the right."""
    return text.replace("\n", "\n  ")


class Module(Conversion, State):
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
        """Hold a tensor that is state but is not learnt.

        Parameters
        ----------
        name : str
            The attribute under which it is found.
        tensor : Tensor or None
            The tensor; None keeps the place.
        persistent : bool, default: True
            Whether it is in the `state_dict`.

        Returns
        -------
        None

        Raises
        ------
        TypeError
            If `name` is no string, or `tensor` no tensor.
        KeyError
            If the name is empty, has a dot in it, or means something else already.
        AttributeError
            If `Module.__init__` has not run.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> net = nn.Module()
        >>> net.register_buffer("mean", gl.zeros(2))
        >>> list(net.state_dict())
        ['mean']
        """
        self._checked_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{type_named(tensor)}' object to buffer '{name}' (gradlab Tensor or None required)")
        self._buffers[name] = tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def register_parameter(self, name: str, param: Any) -> None:
        """Hold a Parameter, or keep its place by None.

        Parameters
        ----------
        name : str
            The attribute under which it is found.
        param : Parameter or None
            What is learnt.

        Returns
        -------
        None

        Raises
        ------
        TypeError
            If `name` is no string, or `param` no Parameter.
        KeyError
            If the name is empty, has a dot in it, or means something else already.
        ValueError
            If `param` was computed: it is no leaf.
        AttributeError
            If `Module.__init__` has not run.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> net = nn.Module()
        >>> net.register_parameter("weight", nn.Parameter(gl.ones(2)))
        >>> net.weight.requires_grad
        True
        """
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
        """Hold another module under a name.

        Parameters
        ----------
        name : str
            The attribute under which it is found.
        module : Module or None
            The module; None keeps the place.

        Returns
        -------
        None

        Raises
        ------
        TypeError
            If `name` is no string, or `module` no module.
        KeyError
            If the name is empty, has a dot in it, or means something else already.
        AttributeError
            If `Module.__init__` has not run.

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.Module()
        >>> net.add_module("head", nn.Linear(2, 1))
        >>> net.head
        Linear(in_features=2, out_features=1, bias=True)
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type_named(module)} is not a Module subclass")
        self._checked_name("module", name, "_modules")
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as `add_module`.

        Parameters
        ----------
        name : str
            The attribute under which it is found.
        module : Module or None
            The module; None keeps the place.

        Returns
        -------
        None

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.Module()
        >>> net.register_module("head", nn.ReLU())
        >>> net.head
        ReLU()
        """
        self.add_module(name, module)

    # ---------------------------------------------------------------------------------------------------------- its hooks
    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Have a function called before `forward`, which may replace the arguments.

        Parameters
        ----------
        hook : callable
            `hook(module, args)`; what it returns, if not None, takes the place of the arguments.
        prepend : bool, default: False
            Whether it comes before those that are there.
        with_kwargs : bool, default: False
            Whether it is `hook(module, args, kwargs)`, and returns None or (args, kwargs).

        Returns
        -------
        RemovableHandle
            Its `remove()` takes the hook away.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> net = nn.ReLU()
        >>> handle = net.register_forward_pre_hook(lambda module, args: (-args[0],))
        >>> net(gl.tensor([-1.0, 2.0]))
        tensor([1., 0.])
        >>> handle.remove()
        """
        return hooks.registered(self, "before", hook, prepend, with_kwargs)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Have a function called after `forward`, which may replace the output.

        Parameters
        ----------
        hook : callable
            `hook(module, args, output)`; what it returns, if not None, takes the place of the output.
        prepend : bool, default: False
            Whether it comes before those that are there.
        with_kwargs : bool, default: False
            Whether it is `hook(module, args, kwargs, output)`.
        always_call : bool, default: False
            Whether it is called after an error too.

        Returns
        -------
        RemovableHandle
            Its `remove()` takes the hook away.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> net, shapes = nn.Linear(2, 3), []
        >>> handle = net.register_forward_hook(lambda module, args, output: shapes.append(tuple(output.shape)))
        >>> output = net(gl.zeros(5, 2))
        >>> shapes
        [(5, 3)]
        >>> handle.remove()
        """
        return hooks.registered(self, "after", hook, prepend, with_kwargs, always_call)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Have a function called when the gradients of the outputs are known, which may replace them.

        Parameters
        ----------
        hook : callable
            `hook(module, grad_output)`, with a tuple; what it returns, if not None, takes its place.
        prepend : bool, default: False
            Whether it comes before those that are there.

        Returns
        -------
        RemovableHandle
            Its `remove()` takes the hook away.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> net, x = nn.ReLU(), gl.ones(2, requires_grad=True)
        >>> handle = net.register_full_backward_pre_hook(lambda module, grad_output: (10 * grad_output[0],))
        >>> net(x).sum().backward()
        >>> x.grad
        tensor([10., 10.])
        """
        return hooks.registered(self, "before_backward", hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Have a function called when the gradients of the inputs are known, which may replace them.

        Parameters
        ----------
        hook : callable
            `hook(module, grad_input, grad_output)`, with tuples; what it returns, if not None, takes the place of
            `grad_input`.
        prepend : bool, default: False
            Whether it comes before those that are there.

        Returns
        -------
        RemovableHandle
            Its `remove()` takes the hook away.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> net, x, norms = nn.ReLU(), gl.ones(4, requires_grad=True), []
        >>> handle = net.register_full_backward_hook(lambda module, given, arrived: norms.append(given[0].norm().item()))
        >>> net(x).sum().backward()
        >>> norms
        [2.0]
        """
        return hooks.registered(self, "after_backward", hook, prepend)

    # ----------------------------------------------------------------------------------------------------------- its text
    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands between the parentheses of its text: a layer writes its sizes.

        Returns
        -------
        str
            Nothing, unless a subclass defines it.

        Examples
        --------
        >>> from gradlab import nn
        >>> nn.Linear(2, 3).extra_repr()
        'in_features=2, out_features=3, bias=True'
        """
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {indented(repr(module))}" for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({extra})"
        inside = "".join(f"\n  {line}" for line in [*lines, *children])
        return f"{self._get_name()}({inside}\n)" if inside else f"{self._get_name()}()"
