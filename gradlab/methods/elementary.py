"""Element-wise methods whose signature differs from the function's. The others are generated from the operators' declarations."""

from __future__ import annotations

from gradlab.core import inplace
from gradlab.core.operator import fill_placeholders
from gradlab.core.tensor import Tensor
from gradlab.ops import elementary as functions
from gradlab.ops import gamma


class Elementary:
    """Methods that take the order first, and methods for complex numbers."""

    conj, conj_physical, resolve_conj, resolve_neg = (
        functions.conj,
        functions.conj_physical,
        functions.resolve_conj,
        functions.resolve_neg,
    )
    real, imag = property(functions.real), property(functions.imag)

    def polygamma(self, n: int) -> Tensor:
        """Compute the n-th derivative of the digamma function.

        Parameters
        ----------
        n : int
            Order of the derivative. 0 gives the digamma function itself.

        Returns
        -------
        Tensor
            Floating point, with the shape of this tensor.

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
        """In-place version of `polygamma`.

        Parameters
        ----------
        n : int
            Order of the derivative. 0 gives the digamma function itself.

        Returns
        -------
        Tensor
            This tensor.

        Raises
        ------
        RuntimeError
            If `n` is negative or this tensor is a leaf that requires a gradient.

        Examples
        --------
        >>> import gradlab as gl
        >>> x = gl.tensor([1., 2.])
        >>> x.polygamma_(1)
        tensor([1.6449, 0.6449])
        """
        return inplace.composed_in_place(lambda x, n: gamma.polygamma(n, x), self, n)

    def conj_physical_(input: Tensor) -> Tensor:  # noqa: N805  (the parameter's name in `gradlab.conj_physical_`)
        """Return the tensor itself, since its elements are real.

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

    conj_physical_.__doc__ = fill_placeholders(conj_physical_.__doc__)
