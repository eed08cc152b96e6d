"""Wall time of calls with one thread and with several, compared with JAX.

    python benchmarks/threads.py                  # all programs
    python benchmarks/threads.py softmax resnet   # names that contain these words
    python benchmarks/threads.py --threads 8

JAX reads its number of threads when it starts, so one process per number of threads
runs both tensorplan and JAX. Rounds alternate between all four candidates. A figure is
the minimum over a candidate's calls, in milliseconds, with the median in parentheses.
(Other programs on the machine can only lengthen calls; on a busy machine the median is
much larger than the minimum.) `speed-up` is the time of one thread divided by the time
of several. If the last column is below 1, tensorplan is faster than JAX. The process
sleeps before each call, as an idle server does.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from statistics import median
from time import perf_counter, sleep
from typing import Any

import numpy as np

PAUSE = 0.01
"""Seconds of sleep before each measurement. An untimed call follows the sleep."""


def programs() -> dict[str, Callable[[], Any]]:
    """By name, functions that return a JAX function, its arguments, and the indices of
    the arguments that are parameters."""
    from jax_models.base import Model
    from jax_models.convolutional import resnet18
    from jax_models.dense import mlp_step
    from jax_models.transformers import gpt2, gpt2_step

    jax: Any = import_module("jax")
    jnp: Any = jax.numpy
    random = np.random.default_rng(0)

    def floats(*shape: int) -> Any:
        return random.standard_normal(shape).astype(np.float32)

    def blocks(x: Any) -> Any:
        for _ in range(2):
            x = x - x.mean(-1, keepdims=True)
            x = jax.nn.gelu(x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5))
        return x

    def chain(x: Any, y: Any) -> Any:
        return jnp.tanh(x * y + 1) * x - y

    def squares(x: Any) -> Any:
        return (x * x).sum(1)

    def lenet(x: Any, *weights: Any) -> Any:
        first, second, *dense = weights
        for kernel in (first, second):
            x = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME")
            x = jax.nn.relu(x)
            x = x.reshape(*x.shape[:2], x.shape[2] // 2, 2, x.shape[3] // 2, 2)
            x = x.max((3, 5))
        x = x.reshape(len(x), -1)
        for weight in dense:
            x = jax.nn.relu(x @ weight)
        return x

    images = floats(64, 1, 28, 28)
    kernels = floats(6, 1, 5, 5), floats(16, 6, 5, 5) / 12
    dense = floats(784, 120) / 28, floats(120, 84) / 11, floats(84, 10) / 9

    def of(model: Model) -> Any:
        return model.function, model.arguments, model.parameters

    return {
        "layer-norm + gelu, 4096x512": lambda: (blocks, (floats(4096, 512),), ()),
        "softmax, 4096x512": lambda: (jax.nn.softmax, (floats(4096, 512),), ()),
        "chain, 16 MiB": lambda: (chain, (floats(1 << 22), floats(1 << 22)), ()),
        "sums of rows, 4096x1024": lambda: (squares, (floats(4096, 1024),), ()),
        "product, 512": lambda: (jnp.matmul, (floats(512, 512), floats(512, 512)), ()),
        "MLP step": lambda: of(mlp_step()),
        "LeNet, 64 images": lambda: (lenet, (images, *kernels, *dense), ()),
        "ResNet-18": lambda: of(resnet18()),
        "GPT-2": lambda: of(gpt2()),
        "GPT-2 step": lambda: of(gpt2_step(length=256, width=512)),
    }


def serve() -> None:
    """Compiles the programs that standard input names, and times calls on request."""
    import tensorplan

    jax: Any = import_module("jax")

    known = programs()
    calls: dict[str, Callable[[], object]] = {}
    for line in sys.stdin:
        word, _, name = line.strip().partition(" ")
        if word == "make":
            function, arguments, parameters = known[name]()
            model = tensorplan.from_jax(
                function, *arguments, parameter_argnums=parameters
            )
            run: Any = tensorplan.compile(model)
            rest = [a for n, a in enumerate(arguments) if n not in parameters]
            outs = [np.empty(x.shape, x.dtype) for x in run.results]
            jitted, here = jax.jit(function), [jax.device_put(a) for a in arguments]
            calls["ours"] = lambda run=run, rest=rest, outs=outs: run(*rest, out=outs)
            calls["jax"] = lambda jitted=jitted, here=here: jax.block_until_ready(
                jitted(*here)
            )
            got, want = calls["ours"](), jax.tree.leaves(calls["jax"]())
            for x, y in zip(got, want, strict=True):  # pyright: ignore
                scale = float(np.abs(y).max())
                np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-3 * scale)
            print("made", flush=True)
            continue
        sleep(PAUSE)
        calls[word]()
        start = perf_counter()
        calls[word]()
        print(perf_counter() - start, flush=True)


class Server:
    """A process in which tensorplan and JAX use `threads` threads."""

    def __init__(self, threads: int):
        number = str(threads)
        names = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TENSORPLAN_THREADS", "NPROC"
        env = {**os.environ, **dict.fromkeys(names, number), "JAX_PLATFORMS": "cpu"}
        eigen = "true" if threads > 1 else "false"
        env["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={eigen}"
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )

    def ask(self, text: str) -> str:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        print(text, file=process.stdin, flush=True)
        answer = process.stdout.readline()
        if not answer:
            sys.exit("a process has ended")
        return answer

    def close(self) -> None:
        self._process.communicate()


def compare(servers: Sequence[Server], name: str, rounds: int) -> None:
    for server in servers:
        server.ask(f"make {name}")
    times: dict[tuple[str, int], list[float]] = {
        (word, n): [] for word in ("ours", "jax") for n in range(len(servers))
    }
    for _ in range(rounds):
        for (word, n), found in times.items():
            found.append(float(servers[n].ask(word)) * 1e3)
    cells = [f"{min(x):8.3f} ({median(x):8.3f})" for x in times.values()]
    best = {key: min(found) for key, found in times.items()}
    ours, theirs = (best[word, 0] / best[word, 1] for word in ("ours", "jax"))
    ratio = best["ours", 1] / best["jax", 1]
    print(
        f"{name:28}{''.join(cells[:2])}{ours:9.2f} {''.join(cells[2:])}{theirs:9.2f}"
        f"{ratio:9.2f}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--threads", type=int, default=2, help="default: 2")
    parser.add_argument("--rounds", type=int, default=60, help="default: 60")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return 0
    names = list(programs())
    for word in options.programs:
        if not any(word.lower() in name.lower() for name in names):
            parser.error(f"no program {word!r}, expected one of {', '.join(names)}")
    several = options.threads
    head = f"{'1 thread':>19}{f'{several} threads':>19}{'speed-up':>9} "
    print(f"{'':28}{'tensorplan':>19}{'':29}{'JAX':>19}")
    print(f"{'':28}{head}{head}{'to JAX':>8}")
    servers = [Server(1), Server(several)]
    for name in names:
        if not options.programs or any(
            word.lower() in name.lower() for word in options.programs
        ):
            compare(servers, name, options.rounds)
    for server in servers:
        server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
