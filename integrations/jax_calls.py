"""A compiled program as a JAX primitive, with derivatives of every order.

JAX runs the program by a callback (`jax.pure_callback`). The derivatives of a program
are programs of the same kind, and so have derivatives themselves:

    tangent    x, dx -> dy          linear in dx
    gradient   x, g -> g * dy/dx    the transpose of the tangent
    gradient   x -> y, dy/dx        of a loss: its only result is a real number

The gradient of a loss has the forward and the backward pass in one plan. JAX keeps
dy/dx until it has the factor for it. The gradient of another program also contains the
forward pass, which therefore runs a second time, because JAX keeps only the arguments.
A program with a floating-point argument of smaller range or precision than the result
is not treated as a loss: a factor that keeps gradients in range (loss scaling) must be
applied before the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..frontends.jax import import_jax

if TYPE_CHECKING:
    from ..runtime.executor import Executable

Leaves: TypeAlias = Sequence[Any]
"""Arrays or Python numbers: the leaves of a pytree."""
Function: TypeAlias = Callable[..., Any]
Build: TypeAlias = Callable[[Function, Sequence[Any], Sequence[int]], "Executable"]
"""Compiles a function for arguments of the types of the given ones. The last parameter
has the numbers of the donated arguments."""


class Call:
    """A program on arrays, as JAX's transformations see it."""

    def __init__(
        self,
        function: Callable[..., Leaves],
        like: Leaves,
        results: Sequence[Any],
        build: Build,
        run: Executable | None = None,
    ):
        """`like` and `results` have the types of the arguments and of the results of
        `function`. `run` is the compiled function; if it is None, the first call
        compiles it.
        """
        self.like = like
        self.results = results
        self.transposed: Callable[[], Call] | None = None
        """Makes the transpose with respect to the last arguments, in which the call is
        linear. Their number is the number of the transpose's results. None if the call
        is not known to be linear."""
        is_a = import_jax().numpy.issubdtype
        self.floats = [n for n, x in enumerate(results) if is_a(x.dtype, np.inexact)]
        floats = [x.dtype for x in like if is_a(x.dtype, np.inexact)]
        self.is_loss = (
            [x.shape for x in results] == [()]
            and is_a(results[0].dtype, np.floating)
            and all(_holds(dtype, results[0].dtype) for dtype in floats)
        )
        self._function = function
        self._build = build
        self._run = run
        self._dependent: dict[frozenset[int], Sequence[bool]] = {}
        self._derived: dict[tuple[str, tuple[int, ...]], Call] = {}

    def __repr__(self) -> str:
        return f"<{self._function.__name__}>"

    def __call__(self, *leaves: Any) -> list[Any]:
        jax = import_jax()
        kinds = jax.Array  # includes tracers
        arrays = [x if isinstance(x, kinds) else jax.numpy.asarray(x) for x in leaves]
        return _operation().bind(*arrays, call=self)

    def run(self, *leaves: Any) -> Leaves:
        """Runs the program."""
        if self._run is None:
            self._run = self._build(self._function, self.like, ())
        return self._run(*leaves)

    def tangent(self, wanted: tuple[int, ...]) -> Call:
        """The program that computes tangents of the float and complex results. Its
        inputs are the arguments, and the tangents of the arguments `wanted`."""

        def tangent(*arrays: Any) -> Leaves:
            leaves, tangents = arrays[: len(self.like)], arrays[len(self.like) :]
            function, primals = self._of(wanted, leaves)
            return import_jax().jvp(function, primals, list(tangents))[1]

        more = [self.like[n] for n in wanted]
        call = self._derive(tangent, wanted, more, self._float_results())
        call.transposed = lambda: self.gradient(wanted)
        return call

    def gradient(self, wanted: tuple[int, ...]) -> Call:
        """The program that computes the gradients of the arguments `wanted`. Its inputs
        are the arguments, and the gradients of the float and complex results. For a
        loss, its inputs are only the arguments, and it also returns the loss."""
        jax = import_jax()

        def gradient(*arrays: Any) -> Leaves:
            leaves, given = arrays[: len(self.like)], arrays[len(self.like) :]
            function, primals = self._of(wanted, leaves)
            results, pull_back = jax.vjp(function, *primals)
            if not self.is_loss:
                return pull_back(list(given))
            return [*results, *pull_back([jax.numpy.ones_like(results[0])])]

        floats = self._float_results()
        found = [_strong(self.like[n]) for n in wanted]
        if self.is_loss:
            return self._derive(gradient, wanted, [], [*floats, *found])
        call = self._derive(gradient, wanted, floats, found)
        call.transposed = lambda: self.tangent(wanted)
        return call

    def depends_on(self, numbers: frozenset[int]) -> Sequence[bool]:
        """Whether each result depends on any of the arguments `numbers`: whether
        `jax.vmap` of the function over these arguments batches the result."""
        if numbers not in self._dependent:
            jax = import_jax()
            found = [False] * len(self.results)

            def seen(size: int, are_batches: list[bool], *results: Any) -> Any:
                found[:] = are_batches
                return results, tuple(are_batches)

            def same(*results: Any) -> Any:
                return results

            def one(*leaves: Any) -> Any:
                return look(*self._function(*leaves))

            look: Any = jax.custom_batching.custom_vmap(same)
            look.def_vmap(seen)
            axes = [0 if n in numbers else None for n in range(len(self.like))]
            given = [
                jax.ShapeDtypeStruct((1, *x.shape), x.dtype) if n in numbers else x
                for n, x in enumerate(self.like)
            ]
            jax.eval_shape(jax.vmap(one, axes), *given)
            self._dependent[numbers] = found
        return self._dependent[numbers]

    def _float_results(self) -> list[Any]:
        return [_strong(self.results[n]) for n in self.floats]

    def _derive(
        self,
        function: Callable[..., Leaves],
        wanted: tuple[int, ...],
        more: Leaves,
        results: Sequence[Any],
    ) -> Call:
        """A `Call` of `function`, which takes the arguments and `more`. It is cached by
        the name of `function` and `wanted`."""
        kind = function.__name__
        if (call := self._derived.get((kind, wanted))) is None:
            function.__name__ = f"{self._function.__name__}_{kind}"
            call = Call(function, [*self.like, *more], results, self._build)
            self._derived[kind, wanted] = call
        return call

    def _of(
        self, wanted: tuple[int, ...], leaves: Leaves
    ) -> tuple[Callable[..., list[Any]], list[Any]]:
        """The float and complex results as a function of the leaves `wanted`, with all
        other leaves fixed; and the values of the leaves `wanted`."""

        def function(*chosen: Any) -> list[Any]:
            given = list(leaves)
            for n, leaf in zip(wanted, chosen, strict=True):
                given[n] = leaf
            results = self._function(*given)
            return [results[n] for n in self.floats]

        return function, [leaves[n] for n in wanted]


def _holds(dtype: Any, other: Any) -> bool:
    """Whether a float type `dtype` has at least the range and precision of `other`."""
    own, its = map(import_jax().numpy.finfo, (dtype, other))
    return float(own.max) >= float(its.max) and float(own.eps) <= float(its.eps)


def _strong(kind: Any) -> Any:
    """A type of the same shape and elements that is not weak."""
    return import_jax().ShapeDtypeStruct(kind.shape, kind.dtype)


def _results(*_: Any, call: Call) -> list[Any]:
    array = import_jax().core.ShapedArray
    return [array(x.shape, x.dtype, weak_type=x.weak_type) for x in call.results]


@cache
def _operation() -> Any:
    ad, batching, mlir = (
        import_module(f"jax.interpreters.{name}") for name in ("ad", "batching", "mlir")
    )
    operation: Any = import_module("jax.extend.core").Primitive("tensorplan")
    operation.multiple_results = True
    operation.def_abstract_eval(_results)
    operation.def_impl(_call_back)
    mlir.register_lowering(operation, mlir.lower_fun(_call_back, multiple_results=True))
    ad.primitive_jvps[operation] = partial(_differentiate, ad)
    ad.primitive_transposes[operation] = partial(_transpose, ad)
    batching.primitive_batchers[operation] = _call_for_each
    return operation


def _call_back(*leaves: Any, call: Call) -> list[Any]:
    return import_jax().pure_callback(call.run, list(call.results), *leaves)


def _call_for_each(
    leaves: Leaves, dims: Sequence[int | None], *, call: Call
) -> tuple[list[Any], list[int | None]]:
    """Calls the program once for each element of a batch. A result that depends on no
    batched argument is taken from the first element, and is not batched."""
    jax = import_jax()
    batches = {
        n: jax.numpy.moveaxis(leaf, dim, 0)
        for n, (leaf, dim) in enumerate(zip(leaves, dims, strict=True))
        if dim is not None
    }

    def one(batched: dict[int, Any]) -> list[Any]:
        return call(*(batched.get(n, leaf) for n, leaf in enumerate(leaves)))

    results = jax.lax.map(one, batches)
    size = min(batch.shape[0] for batch in batches.values())
    every = call.depends_on(frozenset(batches)) if size else [True] * len(results)
    pairs = list(zip(results, every, strict=True))
    return [x if is_batch else x[0] for x, is_batch in pairs], [
        0 if is_batch else None for _, is_batch in pairs
    ]


def _differentiate(
    ad: Any, primals: Leaves, tangents: Leaves, *, call: Call
) -> tuple[Leaves, Leaves]:
    """The results and their tangents."""
    jax = import_jax()
    wanted = tuple(
        n
        for n, tangent in enumerate(tangents)
        if not isinstance(tangent, ad.Zero)
        and jax.typeof(tangent).dtype != jax.dtypes.float0
    )
    given = [jax.numpy.asarray(tangents[n]) for n in wanted]  # may be Python numbers
    if wanted and call.is_loss:
        loss, *gradients = call.gradient(wanted)(*primals)
        return [loss], [_tangent_of_loss(loss, gradients, given)]
    results = call(*primals)
    found = [ad.Zero(jax.typeof(result).to_tangent_aval()) for result in results]
    if wanted and call.floats:
        news = call.tangent(wanted)(*primals, *given)
        for n, tangent in zip(call.floats, news, strict=True):
            found[n] = tangent
    return results, found


def _tangent_of_loss(loss: Any, gradients: Leaves, tangents: Leaves) -> Any:
    """The sum of the products of `gradients` and `tangents`. It consists of operations
    of JAX, whose transpose multiplies the gradients by a number."""
    jax = import_jax()
    total: Any = None
    for gradient, tangent in zip(gradients, tangents, strict=True):
        axes = [range(gradient.ndim)] * 2
        product = jax.lax.dot_general(gradient, tangent, (axes, [(), ()]))
        if not jax.numpy.iscomplexobj(loss) and jax.numpy.iscomplexobj(product):
            product = jax.lax.real(product)
        product = jax.lax.convert_element_type(product, loss.dtype)
        total = product if total is None else jax.lax.add(total, product)
    return total


def _transpose(ad: Any, cotangents: Leaves, *leaves: Any, call: Call) -> Leaves:
    """The gradients of the arguments in which the call is linear; None for others."""
    transposed = call.transposed() if call.transposed else None
    count = len(leaves) - (len(transposed.results) if transposed else 0)
    if transposed is None or any(map(ad.is_undefined_primal, leaves[:count])):
        raise TypeError(
            f"{call} is not known to be linear, so jax.linear_transpose does not apply"
        )
    given = [ad.instantiate_zeros(cotangents[n]) for n in call.floats]
    found = transposed(*leaves[:count], *given)
    return [
        found[n - count] if ad.is_undefined_primal(leaf) else None
        for n, leaf in enumerate(leaves)
    ]
