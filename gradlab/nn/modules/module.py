"""`Module`: a function with parameters, buffers and submodules.

As in torch, parameters, buffers and submodules are stored in three dictionaries of the instance, where `__getattr__` finds them.
Hooks are stored in an object that is created when the first one is registered, so a call without hooks costs one comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradlab.core.node import RemovableHandle
from gradlab.core.observers import OBSERVERS
from gradlab.core.tensor import Tensor
from gradlab.nn.modules import hooks
from gradlab.nn.modules.conversion import Conversion
from gradlab.nn.modules.state import State, type_name
from gradlab.nn.parameter import TEMPORARY, Buffer, Parameter

__all__ = ["Module"]


def forward_not_defined(self: Module, *input: Any) -> None:
    """Compute the output. Every subclass defines its own `forward`."""
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function. Define `def forward(self, x):` in the class.'
    )


def indent_lines(text: str) -> str:
    """Indent all lines but the first."""
    return text.replace("\n", "\n  ")


class Module(Conversion, State):
    """Base class of all layers and models: a function with parameters, buffers and submodules.

    Parameters
    ----------
    *args, **kwargs : Any
        Not accepted: a TypeError that names the class is raised.

    Notes
    -----
    A subclass calls `super().__init__()` first, assigns its parts as attributes, and defines `forward`. Call the module instead
    of `forward`, so that its hooks run.

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
    forward: Callable[..., Any] = forward_not_defined

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
        if "_modules" in own:  # the last attribute that __init__ sets
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
                    f"cannot assign '{type_name(value)}' as parameter '{name}' (gradlab.nn.Parameter or None expected)"
                )
            own["_parameters"][name] = None
        elif name in own.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type_name(value)}' as child module '{name}' (gradlab.nn.Module or None expected)"
                )
            own["_modules"][name] = None
        elif name in own.get("_buffers", ()) or isinstance(value, Buffer):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{type_name(value)}' as buffer '{name}' (gradlab.nn.Buffer, gradlab.Tensor or None expected)"
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

    def _check_name(self, kind: str, name: Any, held: str) -> None:
        if held not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call. Begin __init__ with super().__init__().")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type_name(name)}")
        if kind == "module" and hasattr(self, name) and name not in self.__dict__[held]:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if not name:
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in self.__dict__[held]:
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer: a tensor that is part of the state but is not trained.

        Parameters
        ----------
        name : str
            Name of the attribute.
        tensor : Tensor or None
            The tensor, or None for a buffer without a value.
        persistent : bool, default: True
            Include the buffer in the `state_dict`.

        Returns
        -------
        None

        Raises
        ------
        TypeError
            If `name` is not a string, or `tensor` is neither a Tensor nor None.
        KeyError
            If the name is empty, contains a dot, or is already in use.
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
        self._check_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{type_name(tensor)}' object to buffer '{name}' (gradlab Tensor or None required)")
        self._buffers[name] = tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def register_parameter(self, name: str, param: Any) -> None:
        """Add a parameter.

        Parameters
        ----------
        name : str
            Name of the attribute.
        param : Parameter or None
            The parameter, or None for a parameter without a value.

        Returns
        -------
        None

        Raises
        ------
        TypeError
            If `name` is not a string, or `param` is neither a Parameter nor None.
        KeyError
            If the name is empty, contains a dot, or is already in use.
        ValueError
            If `param` is not a leaf.
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
        self._check_name("parameter", name, "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{type_name(param)}' object to parameter '{name}' (gradlab.nn.Parameter or None required)"
            )
        if param is not None and not param.is_leaf:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. "
                f"To express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule.

        Parameters
        ----------
        name : str
            Name of the attribute.
        module : Module or None
            The module, or None for a submodule without a value.

        Returns
        -------
        None

        Raises
        ------
        TypeError
            If `name` is not a string, or `module` is neither a Module nor None.
        KeyError
            If the name is empty, contains a dot, or is already in use.
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
            raise TypeError(f"{type_name(module)} is not a Module subclass")
        self._check_name("module", name, "_modules")
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """Alias of `add_module`.

        Parameters
        ----------
        name : str
            Name of the attribute.
        module : Module or None
            The module, or None for a submodule without a value.

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
        """Register a hook to run before `forward`. It may replace the arguments.

        Parameters
        ----------
        hook : callable
            `hook(module, args)`. If it returns a value other than None, this replaces the arguments.
        prepend : bool, default: False
            Run the hook before the existing ones.
        with_kwargs : bool, default: False
            Call `hook(module, args, kwargs)`, which returns None or (args, kwargs).

        Returns
        -------
        RemovableHandle
            Handle with `remove()`, which removes the hook.

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
        return hooks.register_hook(self, "before", hook, prepend, with_kwargs)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Register a hook to run after `forward`. It may replace the output.

        Parameters
        ----------
        hook : callable
            `hook(module, args, output)`. If it returns a value other than None, this replaces the output.
        prepend : bool, default: False
            Run the hook before the existing ones.
        with_kwargs : bool, default: False
            Call `hook(module, args, kwargs, output)`.
        always_call : bool, default: False
            Run the hook after an error, too.

        Returns
        -------
        RemovableHandle
            Handle with `remove()`, which removes the hook.

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
        return hooks.register_hook(self, "after", hook, prepend, with_kwargs, always_call)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Register a hook to run once the gradients of the outputs are known. It may replace them.

        Parameters
        ----------
        hook : callable
            `hook(module, grad_output)`, with a tuple. If it returns a value other than None, this replaces the tuple.
        prepend : bool, default: False
            Run the hook before the existing ones.

        Returns
        -------
        RemovableHandle
            Handle with `remove()`, which removes the hook.

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
        return hooks.register_hook(self, "before_backward", hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Register a hook to run once the gradients of the inputs are known. It may replace them.

        Parameters
        ----------
        hook : callable
            `hook(module, grad_input, grad_output)`, with tuples. If it returns a value other than None, this replaces
            `grad_input`.
        prepend : bool, default: False
            Run the hook before the existing ones.

        Returns
        -------
        RemovableHandle
            Handle with `remove()`, which removes the hook.

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
        return hooks.register_hook(self, "after_backward", hook, prepend)

    # ----------------------------------------------------------------------------------------------------------- its text
    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return the text between the parentheses of `repr`, for instance the sizes of a layer.

        Returns
        -------
        str
            Empty unless a subclass overrides this method.

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
        children = [f"({name}): {indent_lines(repr(module))}" for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({extra})"
        inside = "".join(f"\n  {line}" for line in [*lines, *children])
        return f"{self._get_name()}({inside}\n)" if inside else f"{self._get_name()}()"
