"""`tensorplan.jit`: a JAX function that is planned and compiled when it is called.

Each combination of trees, types of arrays and static arguments has a program of its
own, whose arguments and results are the leaves of the trees; keys of random numbers
(`jax.random.key`) go as the integers that they consist of. JAX's transformations see
a callback to it that has its own gradient. The forward and the backward pass are in one
plan, and it runs

 * with the forward pass if the only result is one number, a loss. JAX keeps the
   gradients, and multiplies them by the loss's own gradient.
 * with the backward pass otherwise. JAX keeps the arguments, and the forward pass is
   computed a second time.

Where another program is made of a function that calls it, it is a part of that one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache, cached_property, partial
from inspect import Parameter, signature
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from ..frontends.jax import import_jax, is_key, is_lowering, numbers_of

if TYPE_CHECKING:
    from ..runtime.executor import Executable
    from ..support.slots import Slot

Leaves: TypeAlias = Sequence[Any]
"""Arrays or Python numbers, flat."""
Function: TypeAlias = Callable[..., Sequence[Any]]
"""Of leaves, returns leaves."""
Keys: TypeAlias = Mapping[int, Any]
"""The implementations of leaves that are keys of random numbers, by number."""
Build: TypeAlias = Callable[[Function, Leaves, Sequence[int]], "Executable"]
"""Compiles a function for leaves like the given ones, of which some are donated."""


class Jitted:
    """A function that `tensorplan.jit` has made; called like the one it was made of."""

    def __init__(
        self,
        fn: Callable[..., Any],
        donate_argnums: int | Sequence[int],
        static_argnums: int | Sequence[int],
        static_argnames: str | Sequence[str],
        build: Build,
    ):
        self.__wrapped__ = fn
        self.__name__: str = getattr(fn, "__name__", type(fn).__name__)
        self.__doc__ = fn.__doc__
        self._donated = _chosen(fn, donate_argnums)
        self._static = _chosen(fn, static_argnums, static_argnames)
        if both := [n for n in self._donated & self._static if isinstance(n, int)]:
            raise ValueError(f"argument {min(both)} is both donated and static")
        options = {"static_argnums": static_argnums, "static_argnames": static_argnames}
        self._part: Callable[..., Any] = import_jax().jit(fn, **options)
        """As part of another program."""
        self._build = build
        self._flatten: Callable[[Any], tuple[Leaves, Any]]
        self._flatten = import_jax().tree_util.tree_flatten
        self._programs: dict[Hashable, _Program] = {}

    def __repr__(self) -> str:
        return f"<tensorplan.jit {self.__name__}: {len(self._programs)} programs>"

    def __get__(self, instance: Any, owner: object = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if is_lowering():
            return self._part(*args, **kwargs)
        leaves, program = self._program_for(args, kwargs)
        given = _without_keys(leaves, program.keys)
        results = program.traced(*given) if _is_traced(given) else program(given)
        return program.tree.unflatten(_with_keys(results, program.new_keys))

    def compiled(self, *args: Any, **kwargs: Any) -> Executable:
        """The program for arguments like these: of the leaves of the arguments that are
        not static."""
        return self._program_for(args, kwargs)[1].run

    def _program_for(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Leaves, _Program]:
        static: dict[int | str, Any] = {}
        kinds: list[Hashable] = []  # 2 == 2.0
        if self._static:
            static = {
                name: value
                for name, value in (*enumerate(args), *sorted(kwargs.items()))
                if name in self._static
            }
            kinds = [(name, type(value), value) for name, value in static.items()]
            args = tuple(None if n in static else arg for n, arg in enumerate(args))
            kwargs = {n: None if n in static else arg for n, arg in kwargs.items()}
        leaves, tree = self._flatten((args, kwargs))
        may_donate = bool(self._donated) and not _is_traced(leaves)
        key = (*kinds, tree, may_donate, *map(_type_of, leaves))
        try:
            program = self._programs.get(key)
        except TypeError as error:
            raise TypeError(f"a static argument is not hashable: {error}") from None
        if program is None:
            self._check_count(max(len(args), len(_parameters(self.__wrapped__)[0])))
            donated = self._donated_leaves(args, kwargs) if may_donate else []
            called = partial(self._called, static, tree)
            program = _Program(called, self.__name__, leaves, donated, self._build)
            self._programs[key] = program
        return leaves, program

    def _check_count(self, count: int) -> None:
        numbers = (n for n in self._static | self._donated if isinstance(n, int))
        for n in sorted(numbers):
            if not 0 <= n < count:
                raise ValueError(f"there is no argument {n}, expected 0 to {count - 1}")

    def _donated_leaves(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> list[int]:
        flags = [
            name in self._donated
            for name, arg in (*enumerate(args), *sorted(kwargs.items()))
            for _ in self._flatten(arg)[0]
        ]
        return [n for n, is_donated in enumerate(flags) if is_donated]

    def _called(
        self, static: dict[int | str, Any], tree: Any, leaves: Leaves
    ) -> tuple[Leaves, Any]:
        """The leaves of the function's result, and its tree."""
        args, kwargs = tree.unflatten(leaves)
        args = [static.get(n, arg) for n, arg in enumerate(args)]
        kwargs = {name: static.get(name, arg) for name, arg in kwargs.items()}
        return self._flatten(self.__wrapped__(*args, **kwargs))


def _chosen(
    fn: Callable[..., Any],
    argnums: int | Sequence[int],
    argnames: str | Sequence[str] = (),
) -> frozenset[int | str]:
    """Arguments by number, from the first one on, and by name: calls may give them
    either way."""
    positional, others = _parameters(fn)
    names = {argnames} if isinstance(argnames, str) else {*argnames}
    if others is not None and (unknown := names.difference(positional, others)):
        known = ", ".join((*positional, *others))
        raise ValueError(f"there is no argument {min(unknown)!r}, expected {known}")
    count = len(positional)
    numbers = {n + count * (n < 0) for n in numbers_of(argnums)}
    numbers |= {n for n, name in enumerate(positional) if name in names}
    names |= {positional[n] for n in numbers if 0 <= n < count}
    return frozenset[int | str]({*numbers, *names})


def _parameters(fn: Callable[..., Any]) -> tuple[list[str], list[str] | None]:
    """The names of arguments that may be given by position, and of others; None for
    these if there may be any."""
    try:
        found = signature(fn).parameters.values()
    except (TypeError, ValueError):  # of some builtin functions
        return [], None
    kinds = {p.name: p.kind for p in found}
    positional = Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD
    others = [name for name, kind in kinds.items() if kind is Parameter.KEYWORD_ONLY]
    is_open = Parameter.VAR_KEYWORD in kinds.values()
    return [n for n, kind in kinds.items() if kind in positional], (
        None if is_open else others
    )


def _type_of(leaf: Any) -> Hashable:
    """What programs differ by."""
    try:
        return leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)
    except AttributeError:
        return cast(Hashable, type(leaf))  # of a Python number, whose type gives way


def _is_traced(leaves: Leaves) -> bool:
    return any(map(_is_tracer, map(type, leaves)))


@cache
def _is_tracer(kind: type) -> bool:
    return issubclass(kind, import_jax().core.Tracer)


class _Program:
    """A function of leaves of certain types."""

    def __init__(
        self,
        called: Callable[[Leaves], tuple[Leaves, Any]],
        name: str,
        like: Leaves,
        donated: Sequence[int],
        build: Build,
    ):
        self.tree: Any = None
        """The tree of the result."""
        self.keys = _keys_in(like)
        """What JAX calls the kinds of the leaves that are keys of random numbers."""
        self.new_keys: Keys = {}
        """The same of the results."""
        self._called = called
        self._name = name
        like = _without_keys(like, self.keys)
        self._like = [_struct(leaf) for leaf in like]
        self._build = build
        self._gradients: dict[tuple[int, ...], Executable] = {}
        self.run = self._built(self._function, self._like, donated)
        # JAX takes 64 bits as 32.
        self._narrowed = [
            n
            for n, (leaf, slot) in enumerate(zip(like, self.run.inputs, strict=True))
            if getattr(leaf, "dtype", slot.dtype) != slot.dtype
        ]
        self._floats = [n for n, x in enumerate(self.run.results) if _is_float(x)]
        self._is_loss = [x.shape for x in self.run.results] == [()] and self._floats

    def __call__(self, leaves: Leaves) -> Leaves:
        if self._narrowed:
            leaves = list(leaves)
            for n in self._narrowed:
                leaves[n] = np.asarray(leaves[n], self.run.inputs[n].dtype)
        return self.run(*leaves)

    @cached_property
    def traced(self) -> Function:
        """The function as JAX's transformations see it."""
        traced = import_jax().custom_vjp(partial(_call_back, self.run))
        traced.defvjp(self._forward, self._backward, symbolic_zeros=True)
        return traced

    def _forward(self, *primals: Any) -> tuple[Leaves, Any]:
        """The results, and what the backward pass reads."""
        leaves = [primal.value for primal in primals]
        wanted = tuple(n for n, primal in enumerate(primals) if primal.perturbed)
        if not self._is_loss:
            return _call_back(self.run, *leaves), (leaves, dict.fromkeys(wanted))
        loss, *found = _call_back(self._gradient(wanted), *leaves)
        return [loss], ([], dict(zip(wanted, found, strict=True)))

    def _backward(self, kept: Any, cotangents: Leaves) -> Leaves:
        """The gradients of the leaves, as JAX wants them: None for no gradient."""
        leaves, gradients = kept
        given = [_instantiated(cotangents[n]) for n in self._floats]
        if self._is_loss:
            found = [given[0] * gradient for gradient in gradients.values()]
        else:
            found = _call_back(self._gradient(tuple(gradients)), *leaves, *given)
        by_leaf = dict(zip(gradients, found, strict=True))
        return tuple(by_leaf.get(n) for n in range(len(self._like)))

    def _gradient(self, wanted: tuple[int, ...]) -> Executable:
        """A program of the leaves and the gradients of the results; or of the leaves,
        for a loss, which it then also returns."""
        if wanted not in self._gradients:
            results = (
                [] if self._is_loss else [self.run.results[n] for n in self._floats]
            )
            like = [*self._like, *map(_result, results)]
            function = partial(self._differentiated, wanted)
            self._gradients[wanted] = self._built(function, like)
        return self._gradients[wanted]

    def _differentiated(self, wanted: tuple[int, ...], *arrays: Any) -> Leaves:
        jax = import_jax()
        leaves, given = list(arrays[: len(self._like)]), arrays[len(self._like) :]

        def function(*chosen: Any) -> Leaves:
            for n, leaf in zip(wanted, chosen, strict=True):
                leaves[n] = leaf
            results, _ = self._called(_with_keys(leaves, self.keys))
            return [results[n] for n in self._floats]

        results, pull_back = jax.vjp(function, *(leaves[n] for n in wanted))
        if not self._is_loss:
            return pull_back(list(given))
        return [*results, *pull_back([jax.numpy.ones_like(results[0])])]

    def _function(self, *leaves: Any) -> Leaves:
        results, self.tree = self._called(_with_keys(leaves, self.keys))
        self.new_keys = _keys_in(results)
        return _without_keys(results, self.new_keys)

    def _built(
        self, function: Function, like: Leaves, donated: Sequence[int] = ()
    ) -> Executable:
        def named(*leaves: Any) -> Leaves:
            return function(*leaves)

        named.__name__ = named.__qualname__ = self._name
        return self._build(named, like, donated)


def _keys_in(leaves: Leaves) -> Keys:
    return {n: _implementation(leaf) for n, leaf in enumerate(leaves) if is_key(leaf)}


def _implementation(key: Any) -> Any:
    """What `jax.random.key_impl` says, of a `ShapeDtypeStruct`, too."""
    jax = import_jax()
    if not isinstance(key, jax.ShapeDtypeStruct):
        return jax.random.key_impl(key)
    found: list[Any] = []

    def ask(traced: Any) -> None:
        found.append(jax.random.key_impl(traced))

    jax.eval_shape(ask, key)
    return found[0]


def _without_keys(leaves: Leaves, keys: Keys) -> Leaves:
    """The leaves with the integers that keys consist of."""
    if not keys:
        return leaves
    jax = import_jax()

    def data(key: Any) -> Any:
        is_type = isinstance(key, jax.ShapeDtypeStruct)
        read = jax.random.key_data
        return jax.eval_shape(read, key) if is_type else read(key)

    return [data(leaf) if n in keys else leaf for n, leaf in enumerate(leaves)]


def _with_keys(leaves: Leaves, keys: Keys) -> Leaves:
    """The leaves with keys made of their integers, which a later call may overwrite."""
    if not keys:
        return leaves
    jax = import_jax()
    key = jax.random.wrap_key_data
    return [
        key(jax.numpy.array(leaf), impl=keys[n]) if n in keys else leaf
        for n, leaf in enumerate(leaves)
    ]


def _struct(leaf: Any) -> Any:
    """The type of an array, or of what JAX makes one of."""
    jax = import_jax()
    kind = jax.typeof(leaf)
    return jax.ShapeDtypeStruct(kind.shape, kind.dtype, weak_type=kind.weak_type)


def _result(slot: Slot) -> Any:
    return import_jax().ShapeDtypeStruct(slot.shape, slot.dtype)


def _is_float(slot: Slot) -> bool:
    return import_jax().numpy.issubdtype(slot.dtype, np.inexact)


def _instantiated(cotangent: Any) -> Any:
    jax = import_jax()
    if not isinstance(cotangent, jax.custom_derivatives.SymbolicZero):
        return cotangent
    return jax.numpy.zeros(cotangent.aval.shape, cotangent.aval.dtype)


def _call_back(run: Executable, *leaves: Any) -> list[Any]:
    call = partial(import_jax().pure_callback, vmap_method="sequential")
    return call(run, list(map(_result, run.results)), *leaves)
