"""What the functions of one number have as methods in a form of its own. (The others follow from their declarations.)"""

from __future__ import annotations

from gradlab.core import inplace
from gradlab.core.operator import described
from gradlab.core.tensor import Tensor
from gradlab.ops import elementary as functions
from gradlab.ops import gamma


class Elementary:
    """The order first, and what is about complex numbers."""

    conj, conj_physical, resolve_conj, resolve_neg = (
        functions.conj,
        functions.conj_physical,
        functions.resolve_conj,
        functions.resolve_neg,
    )
    real, imag = property(functions.real), property(functions.imag)

    def polygamma(self, n: int) -> Tensor:
        """The n-th derivative of the digamma function: `gradlab.polygamma` with the order alone.

        Parameters
        ----------
        n : int
            The order, 0 for the digamma function itself.

        Returns
        -------
        Tensor
            The shape of this tensor, floating point.

        Raises
        ------
        RuntimeError
            If `n` is negative.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.tensor([1., 2.]).polygamma(1)
        tensor([1.6449, 0.6449])
        """
        return gamma.polygamma(n, self)

    def polygamma_(self, n: int) -> Tensor:
        """`polygamma`, written into this tensor's memory.

        Parameters
        ----------
        n : int
            The order, 0 for the digamma function itself.

        Returns
        -------
        Tensor
            This tensor, with its new elements.

        Raises
        ------
        RuntimeError
            If `n` is negative, or this tensor is a leaf that requires a gradient.

        Examples
        --------
        >>> import gradlab as gl
        >>> x = gl.tensor([1., 2.])
        >>> x.polygamma_(1)
        tensor([1.6449, 0.6449])
        """
        return inplace.composed_in_place(lambda x, n: gamma.polygamma(n, x), self, n)

    def conj_physical_(input: Tensor) -> Tensor:  # noqa: N805  (`gradlab.conj_physical_` calls it so)
        """The tensor itself: its numbers are real.

        Parameters
        ----------
        {input}

        Returns
        -------
        Tensor
            `input`.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.tensor([1., 2.]).conj_physical_()
        tensor([1., 2.])
        """
        return input

    conj_physical_.__doc__ = described(conj_physical_.__doc__)
