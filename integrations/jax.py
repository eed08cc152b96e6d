"""`tensorplan.jit`: JAX functions that are planned and compiled at their first call.

Each combination of pytrees, array types, static arguments and settings of JAX has its
own program, whose arguments and results are the leaves of the pytrees. PRNG keys
(`jax.random.key`) are passed as the integers of which they consist. JAX's
transformations see the program as a primitive with derivatives (`jax_calls.py`).

A call in a function that tensorplan compiles becomes a part of the caller's program. A
call becomes a part of JAX's program if the function needs more from the enclosing trace
than its arguments (traced values, the axis name of a `jax.vmap`, or `checkify`), or if
it has callbacks with effects, which JAX must neither drop nor repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import cache, cached_property, partial, update_wrapper
from inspect import Parameter, Signature, signature
from keyword import iskeyword
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from ..frontends.jax import (
    NotClosed,
    current_trace,
    import_jax,
    is_key,
    is_lowering,
    numbers_of,
    settings,
)
from ..support.ranges import indices
from .jax_calls import Build, Call, Function, Leaves

if TYPE_CHECKING:
    from ..runtime.executor import Executable

Keys: TypeAlias = Mapping[int, Any]
"""The PRNG implementations of the leaves that are PRNG keys, by number of the leaf."""


class Jitted:
    """The result of `tensorplan.jit`. It has the signature of the function `fn`."""

    def __init__(
        self,
        fn: Callable[..., Any],
        donate_argnums: int | Sequence[int],
        donate_argnames: str | Sequence[str],
        static_argnums: int | Sequence[int],
        static_argnames: str | Sequence[str],
        build: Build,
    ):
        self.__name__: str = type(fn).__name__
        self.__qualname__: str = self.__name__
        update_wrapper(self, fn, updated=())
        self.__wrapped__ = fn
        self._donated = _chosen(fn, donate_argnums, donate_argnames)
        self._static = _chosen(fn, static_argnums, static_argnames)
        if both := [n for n in self._donated & self._static if isinstance(n, int)]:
            raise ValueError(f"argument {min(both)} is both donated and static")
        self._options = donate_argnums, donate_argnames, static_argnums, static_argnames
        options = {"static_argnums": static_argnums, "static_argnames": static_argnames}
        self._part: Callable[..., Any] = import_jax().jit(fn, **options)
        """The function for calls that become a part of another program."""
        self.build = build
        self._flatten: Callable[[Any], tuple[Leaves, Any]]
        self._flatten = import_jax().tree_util.tree_flatten
        self._programs: dict[Hashable, _Program] = {}
        self._open: dict[Hashable, tuple[object, str]] = {}
        """By key: the last trace in which the function needed more than its arguments,
        and the reason."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Jitted:
        return Jitted(deepcopy(self.__wrapped__, memo), *self._options, self.build)

    def __repr__(self) -> str:
        return f"<tensorplan.jit {self.__name__}: {len(self._programs)} programs>"

    def __get__(self, instance: Any, owner: object = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if is_lowering() or _config().jax_disable_jit:
            return self._part(*args, **kwargs)
        try:
            leaves, program = self._program_for(args, kwargs)
        except NotClosed:
            return self._part(*args, **kwargs)
        given = _without_keys(leaves, program.keys)
        is_traced = _is_traced(given)
        if is_traced and program.run.has_side_effect:
            return self._part(*args, **kwargs)
        results = program.traced(*given) if is_traced else program(given)
        return program.tree.unflatten(_with_keys(results, program.new_keys))

    def compiled(self, /, *args: Any, **kwargs: Any) -> Executable:
        """The program for arguments of these types. Its inputs are the leaves of the
        arguments that are not static."""
        return self._program_for(args, kwargs)[1].run

    def _program_for(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Leaves, _Program]:
        static: dict[int | str, Any] = {}
        kinds: list[Hashable] = []  # with types, because 2 == 2.0
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
        key = (settings(), *kinds, tree, may_donate, *map(_type_of, leaves))
        try:
            program = self._programs.get(key)
        except TypeError as error:
            raise ValueError(f"a static argument is not hashable: {error}") from None
        if program is None:
            trace = current_trace()
            before, reason = self._open.get(key, (None, ""))
            if before == trace:  # tracing again would fail for the same reason
                raise NotClosed(reason)
            self._check_count(max(len(args), len(_parameters(self.__wrapped__)[0])))
            every = (*enumerate(args), *sorted(kwargs.items()))
            given = {name: arg for name, arg in every if name not in static}
            donated = [
                n
                for n, name in enumerate(given)
                if may_donate and name in self._donated
            ]
            called = partial(self._called, static, tree)
            names = _names(self.__wrapped__, given)
            try:
                program = _Program(self, called, names, [*given.values()], donated)
            except NotClosed as error:
                self._open[key] = trace, error.message
                raise
            self._programs[key] = program
        return leaves, program

    def _check_count(self, count: int) -> None:
        numbers = (n for n in self._static | self._donated if isinstance(n, int))
        for n in sorted(numbers):
            if not 0 <= n < count:
                raise ValueError(f"there is no argument {n}, expected {indices(count)}")

    def _called(
        self, static: dict[int | str, Any], tree: Any, leaves: Leaves
    ) -> object:
        args, kwargs = tree.unflatten(leaves)
        args = [static.get(n, arg) for n, arg in enumerate(args)]
        kwargs = {name: static.get(name, arg) for name, arg in kwargs.items()}
        return self.__wrapped__(*args, **kwargs)


def _chosen(
    fn: Callable[..., Any],
    argnums: int | Sequence[int],
    argnames: str | Sequence[str] = (),
) -> frozenset[int | str]:
    """The selected arguments, each by its nonnegative number and by its name, because
    calls can pass an argument by position or by keyword."""
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
    """The names of the arguments that can be passed by position, and of the
    keyword-only arguments; None for the latter if `fn` takes arbitrary keywords, or if
    its signature is unknown."""
    try:
        found = signature(fn).parameters.values()
    except (TypeError, ValueError):  # some builtin functions have no signature
        return [], None
    kinds = {p.name: p.kind for p in found}
    positional = Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD
    others = [name for name, kind in kinds.items() if kind is Parameter.KEYWORD_ONLY]
    is_open = Parameter.VAR_KEYWORD in kinds.values()
    return [n for n, kind in kinds.items() if kind in positional], (
        None if is_open else others
    )


def _names(fn: Callable[..., Any], given: Iterable[int | str]) -> list[str]:
    """The names in error messages of the arguments `given` by number or name:
    `argument_0` and so on if their own names are not distinct identifiers."""
    positional = dict(enumerate(_parameters(fn)[0]))
    names = [
        positional.get(name, f"argument_{name}") if isinstance(name, int) else name
        for name in given
    ]
    are_names = all(name.isidentifier() and not iskeyword(name) for name in names)
    if are_names and len({*names}) == len(names):
        return names
    return [f"argument_{n}" for n in range(len(names))]


def _type_of(leaf: Any) -> Hashable:
    """The type of a leaf, as part of the key of a program."""
    try:
        return leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)
    except AttributeError:
        return cast(Hashable, type(leaf))  # a Python number, which is weakly typed


@cache
def _config() -> Any:
    return import_jax().config


def _is_traced(leaves: Leaves) -> bool:
    return any(map(_is_tracer, map(type, leaves)))


@cache
def _is_tracer(kind: type) -> bool:
    return issubclass(kind, import_jax().core.Tracer)


class _Program:
    """A program of a `Jitted` function, for arguments of certain types."""

    def __init__(
        self,
        jitted: Jitted,
        called: Callable[[Leaves], Any],
        names: Sequence[str],
        arguments: Sequence[Any],
        donated: Sequence[int],
    ):
        """`called` calls the function with the leaves of its arguments."""
        self.tree: Any = None
        """The tree of the result."""
        like = import_jax().tree.leaves(arguments)
        self.keys = _keys_in(like)
        """The PRNG implementations of the arguments' leaves that are PRNG keys."""
        self.new_keys: Keys = {}
        """The PRNG implementations of the results' leaves that are PRNG keys."""
        self._called = called
        self._jitted = jitted
        self._weak: Sequence[int] = ()
        self.run = jitted.build(self._named(names), arguments, donated)
        self._like = _without_keys(like, self.keys)
        # JAX truncates 64-bit arguments to 32 bits.
        self._narrowed = [
            n
            for n, (leaf, slot) in enumerate(
                zip(self._like, self.run.inputs, strict=True)
            )
            if getattr(leaf, "dtype", slot.dtype) != slot.dtype
        ]
        self._like = [_struct(leaf) for leaf in self._like]

    def __call__(self, leaves: Leaves) -> Leaves:
        if self._narrowed:
            leaves = list(leaves)
            for n in self._narrowed:
                leaves[n] = np.asarray(leaves[n], self.run.inputs[n].dtype)
        return self.run(*leaves)

    @cached_property
    def traced(self) -> Call:
        """The program as a primitive, for JAX's transformations."""

        def function(*leaves: Any) -> Leaves:
            result = self._called(_with_keys(leaves, self.keys))
            return _without_keys(import_jax().tree.leaves(result), self.new_keys)

        function.__name__ = self._jitted.__name__
        build = self._jitted.build
        results = [
            import_jax().ShapeDtypeStruct(x.shape, x.dtype, weak_type=n in self._weak)
            for n, x in enumerate(self.run.results)
        ]
        return Call(function, self._like, results, build, self.run)

    def _named(self, names: Sequence[str]) -> Function:
        """The function to compile. For JAX's messages, it has the name and the source
        location of the user's function, and parameters called `names`."""
        flatten = import_jax().tree_util.tree_flatten

        def named(*arguments: Any) -> Any:
            result = self._called(flatten(arguments)[0])
            leaves, self.tree = flatten(result)
            self.new_keys = _keys_in(leaves)
            self._weak = [n for n, leaf in enumerate(leaves) if _is_weak(leaf)]
            return result

        update_wrapper(named, self._jitted)
        kind = Parameter.POSITIONAL_OR_KEYWORD
        parameters = [Parameter(name, kind) for name in names]
        return _with_signature(named, Signature(parameters))


def _with_signature(function: Any, own: Signature) -> Any:
    function.__signature__ = own
    return function


def _keys_in(leaves: Leaves) -> Keys:
    return {n: _implementation(leaf) for n, leaf in enumerate(leaves) if is_key(leaf)}


def _implementation(key: Any) -> Any:
    """The PRNG implementation of `key`, which may also be a `ShapeDtypeStruct`."""
    jax = import_jax()
    if not isinstance(key, jax.ShapeDtypeStruct):
        return jax.random.key_impl(key)
    found: list[Any] = []

    def ask(traced: Any) -> None:
        found.append(jax.random.key_impl(traced))

    jax.eval_shape(ask, key)
    return found[0]


def _without_keys(leaves: Leaves, keys: Keys) -> Leaves:
    """The leaves, with each PRNG key replaced by the integers of which it consists."""
    if not keys:
        return leaves
    jax = import_jax()

    def data(key: Any) -> Any:
        is_type = isinstance(key, jax.ShapeDtypeStruct)
        read = jax.random.key_data
        return jax.eval_shape(read, key) if is_type else read(key)

    return [data(leaf) if n in keys else leaf for n, leaf in enumerate(leaves)]


def _with_keys(leaves: Leaves, keys: Keys) -> Leaves:
    """The leaves, with PRNG keys made from copies of their integers. The copies are
    needed because a later call may overwrite the integers."""
    if not keys:
        return leaves
    jax = import_jax()
    key = jax.random.wrap_key_data
    return [
        key(jax.numpy.array(leaf), impl=keys[n]) if n in keys else leaf
        for n, leaf in enumerate(leaves)
    ]


def _struct(leaf: Any) -> Any:
    """The type of an array, or of a value that JAX converts to an array."""
    jax = import_jax()
    kind = jax.typeof(leaf)
    return jax.ShapeDtypeStruct(kind.shape, kind.dtype, weak_type=kind.weak_type)


def _is_weak(leaf: Any) -> bool:
    """Whether the type of `leaf` is weak, as defined by JAX's type promotion."""
    is_number = isinstance(leaf, int | float | complex) and not isinstance(leaf, bool)
    return getattr(leaf, "weak_type", is_number)
