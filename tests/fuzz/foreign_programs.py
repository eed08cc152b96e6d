"""Random JAX programs that provoke in-place errors of XLA on a CPU.

    verdict = judge(17)

The programs shift, reverse and overwrite parts of integer arrays, also in loops and
branches. XLA's values are compared with the reference interpreter's, and its plan is
audited. It is a failure if a value is wrong although the audit proves the plan, or if
all values of many inputs are right although the audit refutes the plan (many, since a
`select` may discard a value that is read too late). Other outcomes are `ok`; `found`, a
wrong value of an unsound or suspicious plan; and `suspicious`, if all values are right.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from judging import Verdict

import tensorplan
from tensorplan.checking.foreign import Audit, audit
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.frontends.plans.reading import plan_files, read

ROWS, COLUMNS = 8, 16
SPANS = ((0, 9), (-20, 20), (-3, 3))
FEW, MANY = 1, 20
"""The number of inputs in each span: `MANY` if the audit refutes the plan."""

Make = Callable[["_Program"], Any]


class _Program:
    """Draws operations on arrays of one shape. Arguments may be starts of windows."""

    def __init__(self, random: Random, values: Sequence[Any], starts: Sequence[Any]):
        import jax

        self.random = random
        self.values = list(values)
        self.starts = [*starts, 0]
        self.lax, self.jnp = jax.lax, jax.numpy

    def value(self) -> Any:
        return self.random.choice(self.values)

    def start(self) -> Any:
        return self.random.choice(self.starts) + self.random.randint(0, 1)

    def window(self) -> tuple[int, int, int]:
        """The number of rows of a window, and the first rows of two such windows."""
        rows = self.random.randint(1, ROWS)
        begin, other = (self.random.randint(0, ROWS - rows) for _ in range(2))
        return rows, begin, other

    def steps(self, count: int, depth: int) -> None:
        for _ in range(count):
            nested = [_loop, _branch] if depth else []
            make = self.random.choice([*MAKERS, *nested])
            self.values.append(make(self))


def _shifted(p: _Program) -> Any:
    """Updates rows of an array by a window of the same array, or of several."""
    rows, begin, other = p.window()
    base = p.value()
    new = base[other : other + rows] * p.random.randint(1, 2)
    if p.random.random() < 0.3:
        new = new + p.value()[other : other + rows]
    return base.at[begin : begin + rows].set(new)


def _shifted_columns(p: _Program) -> Any:
    columns, begin, other = p.window()
    base = p.value()
    new = base[:, other : other + columns] + 1
    return base.at[:, begin : begin + columns].set(new)


def _dynamic(p: _Program) -> Any:
    rows, _, _ = p.window()
    base = p.value()
    taken = p.random.choice([base, p.value()])
    new = p.lax.dynamic_slice(taken, (p.start(), 0), (rows, COLUMNS)) + 1
    return p.lax.dynamic_update_slice(base, new, (p.start(), 0))


def _reshaped(p: _Program) -> Any:
    rows, begin, other = p.window()
    base = p.value()
    whole = base.reshape((1, ROWS, COLUMNS))
    return whole.at[0, begin : begin + rows].set(base[other : other + rows])[0]


def _scattered(p: _Program) -> Any:
    x, y = p.value(), p.value()
    return x.at[y[0, :ROWS] % ROWS].add(x)


def _branch(p: _Program) -> Any:
    seeds = p.random.random(), p.random.random()

    def choice(seed: float) -> Callable[[Any, Any], Any]:
        def body(x: Any, y: Any) -> Any:
            inner = _Program(Random(seed), [x, y], p.starts[:-1])
            inner.steps(2, 0)
            return inner.values[-1]

        return body

    bodies = [choice(seed) for seed in seeds]
    return p.lax.cond(p.starts[0] > 1, *bodies, p.value(), p.value())


def _loop(p: _Program) -> Any:
    seed = p.random.random()

    def body(i: Any, carried: Any) -> Any:
        inner = _Program(Random(seed), carried, [*p.starts[:-1], i])
        inner.steps(3, 0)
        return tuple(inner.values[-2:])

    return p.lax.fori_loop(0, 3, body, (p.value(), p.value()))[p.random.randrange(2)]


MAKERS: Sequence[Make] = [
    *(_shifted, _shifted, _shifted, _shifted_columns, _reshaped),
    *(_dynamic, _dynamic, _scattered),
    lambda p: p.value() * 3 - p.value(),
    lambda p: p.jnp.flip(p.value(), p.random.randrange(2)) + p.value(),
    lambda p: p.jnp.roll(p.value(), p.random.randint(-3, 3), p.random.randrange(2)),
    lambda p: p.value().reshape(COLUMNS, ROWS).T.reshape(ROWS, COLUMNS),
    lambda p: p.value()[p.value()[:, 0] % ROWS],
    lambda p: p.jnp.sort(p.value(), axis=p.random.randrange(2)),
    lambda p: p.jnp.cumsum(p.value(), axis=p.random.randrange(2)),
    lambda p: p.value() - p.jnp.max(p.value(), axis=1, keepdims=True),
    lambda p: p.jnp.where(p.value() > 3, p.value(), p.value()),
]


def program(seed: int) -> Callable[..., Any]:
    """The function of a seed: two arrays and two starts to one to three results."""

    def function(x: Any, y: Any, i: Any, j: Any) -> Any:
        drawn = _Program(Random(seed), [x + 1, y * 2], [i, j])
        drawn.steps(drawn.random.randint(2, 7), 1)
        results = drawn.values[-drawn.random.randint(1, 3) :]
        return [r.reshape((1, ROWS, COLUMNS)) for r in results]

    return function


def _arguments(seed: int, span: tuple[int, int] = (0, 9)) -> Sequence[Any]:
    random = np.random.default_rng(seed)
    x, y = random.integers(*span, (2, ROWS, COLUMNS), np.int32)
    return x, y, *random.integers(0, 5, 2, np.int32)


def text(seed: int) -> str:
    """The program of a seed, as JAX prints it."""
    import jax

    return str(jax.make_jaxpr(program(seed))(*_arguments(seed)))


def compiled(seed: int) -> tuple[Callable[[Sequence[Any]], bool], Audit]:
    """A function that compares XLA with the interpreter, and the audit of the plan."""
    import jax

    arguments = _arguments(seed)
    model = tensorplan.from_jax(program(seed), *arguments)
    donated = 0 if seed % 3 == 0 else ()
    lowered = jax.jit(program(seed), donate_argnums=donated).lower(*arguments)
    with TemporaryDirectory() as folder:
        options = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True}
        run = lowered.compile(compiler_options=options)
        [path] = plan_files(str(Path(folder)))
        found = audit(read(path))

    def is_right(arguments: Sequence[Any]) -> bool:
        expected = run_reference(model.module, [np.array(a) for a in arguments])
        got = run(*map(jax.numpy.array, arguments))
        return all(map(np.array_equal, got, expected))

    return is_right, found


def judge(seed: int) -> Verdict:
    is_right, found = compiled(seed)
    count = MANY if found.verdict == "unsound" else FEW
    inputs = (_arguments(seed + n, span) for n in range(count) for span in SPANS)
    right = all(map(is_right, inputs))
    if found.verdict == "unsound" and right:
        return Verdict(seed, "failed", found.findings[0].message, "false alarm")
    if found.verdict in ("proved", "not refuted") and not right:
        return Verdict(seed, "failed", "a wrong value, and nothing found", "missed")
    if found.verdict == "proved":
        return Verdict(seed, "ok")
    return Verdict(seed, found.verdict if right else "found")
