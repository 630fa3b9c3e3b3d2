"""Iteration over submodules, parameters and buffers, and access by dotted names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.nn.modules.state import named_members
from gradlab.nn.parameter import Parameter


class Parts:
    """Methods of Module that iterate over its members."""

    _modules: dict[str, Any]

    def children(self) -> Iterator[Any]:
        """Iterate over the direct submodules, each once.

        Returns
        -------
        iterator of Module

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> list(net.children())
        [Linear(in_features=2, out_features=3, bias=True), ReLU()]
        """
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Iterate over the direct submodules with their names, each once.

        Returns
        -------
        iterator of (str, Module)

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> [name for name, _ in net.named_children()]
        ['0', '1']
        """
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """Iterate over this module and all submodules, each once.

        Parameters
        ----------
        remove_duplicate : bool, default: True
            Yield a module that is used in several places only once.

        Returns
        -------
        iterator of Module

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> [type(module).__name__ for module in net.modules()]
        ['Sequential', 'Linear', 'ReLU']
        """
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Iterate over this module and all submodules with their dotted names.

        Parameters
        ----------
        memo : set of Module, optional
            Modules to skip. Modules that are yielded are added to it.
        prefix : str, default: ""
            Name of this module, prefix of the names of submodules.
        remove_duplicate : bool, default: True
            Yield a module that is used in several places only once.

        Returns
        -------
        iterator of (str, Module)

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> [name for name, _ in net.named_modules(prefix="net")]
        ['net', 'net.0', 'net.1']
        """
        seen = set() if memo is None else memo
        whole: Any = self
        if whole in seen:
            return
        if remove_duplicate:
            seen.add(whole)
        yield prefix, whole
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(seen, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """Iterate over the parameters of this module and of all submodules, each once.

        Parameters
        ----------
        recurse : bool, default: True
            Include those of submodules.

        Returns
        -------
        iterator of Parameter

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> sum(parameter.numel() for parameter in net.parameters())
        9
        """
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Iterate over the parameters with their dotted names.

        Parameters
        ----------
        prefix : str, default: ""
            Prefix of the names.
        recurse : bool, default: True
            Include those of submodules.
        remove_duplicate : bool, default: True
            Yield a shared tensor only once.

        Returns
        -------
        iterator of (str, Parameter)

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> [name for name, _ in net.named_parameters()]
        ['0.weight', '0.bias']
        """
        yield from named_members(self, "_parameters", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over the buffers of this module and of all submodules, each once.

        Parameters
        ----------
        recurse : bool, default: True
            Include those of submodules.

        Returns
        -------
        iterator of Tensor

        Examples
        --------
        >>> from gradlab import nn
        >>> [tuple(buffer.shape) for buffer in nn.BatchNorm1d(3).buffers()]
        [(3,), (3,), ()]
        """
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterate over the buffers with their dotted names.

        Parameters
        ----------
        prefix : str, default: ""
            Prefix of the names.
        recurse : bool, default: True
            Include those of submodules.
        remove_duplicate : bool, default: True
            Yield a shared tensor only once.

        Returns
        -------
        iterator of (str, Tensor)

        Examples
        --------
        >>> from gradlab import nn
        >>> [name for name, _ in nn.BatchNorm1d(3).named_buffers()]
        ['running_mean', 'running_var', 'num_batches_tracked']
        """
        yield from named_members(self, "_buffers", prefix, recurse, remove_duplicate)

    def get_submodule(self, target: str) -> Any:
        """Return the submodule with a dotted name.

        Parameters
        ----------
        target : str
            Name as in `named_modules`; "" for this module.

        Returns
        -------
        Module

        Raises
        ------
        AttributeError
            If there is no attribute with that name, or it is not a Module.

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> net.get_submodule("1")
        ReLU()
        """
        module: Any = self
        for name in target.split(".") if target else ():
            module = module._part(name)
            if not isinstance(module, Parts):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Replace the submodule with a dotted name.

        Parameters
        ----------
        target : str
            Name as in `named_modules`.
        module : Module
            The new module.
        strict : bool, default: False
            Require that the name exists already.

        Returns
        -------
        None

        Raises
        ------
        ValueError
            If `target` is empty, or `module` is not a Module.
        AttributeError
            If the parent does not exist, or an attribute of the path is not a Module.

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> net.set_submodule("1", nn.Tanh())
        >>> net[1]
        Tanh()
        """
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        path, _, name = target.rpartition(".")
        if not isinstance(module, Parts):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}. Pass a module.")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Parts):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Any:
        """Return the parameter with a dotted name.

        Parameters
        ----------
        target : str
            Name as in `named_parameters`.

        Returns
        -------
        Parameter

        Raises
        ------
        AttributeError
            If there is no attribute with that name, or it is not a Parameter.

        Examples
        --------
        >>> from gradlab import nn
        >>> net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> net.get_parameter("0.bias").shape == (3,)
        True
        """
        path, _, name = target.rpartition(".")
        parameter = self.get_submodule(path)._part(name)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer with a dotted name.

        Parameters
        ----------
        target : str
            Name as in `named_buffers`.

        Returns
        -------
        Tensor

        Raises
        ------
        AttributeError
            If there is no attribute with that name, or it is not a buffer.

        Examples
        --------
        >>> from gradlab import nn
        >>> nn.BatchNorm1d(2).get_buffer("running_mean")
        tensor([0., 0.])
        """
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        buffer = module._part(name)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    def _part(self, name: str) -> Any:
        if not hasattr(self, name):
            raise AttributeError(f"{type(self).__name__} has no attribute `{name}`")
        return getattr(self, name)
