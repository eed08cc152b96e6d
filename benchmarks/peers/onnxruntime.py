"""Measures ONNX Runtime for the CPU: the block that its memory pattern planner plans.

From the second run on, a session allocates one block for all values of static shape
except arguments and results before it runs. The log shows this block as the first
extension of the arena. Memory that kernels allocate follows and does not count. ONNX
has no gradients.
"""

import os
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from peers.networks import Network, network_of, torch

ort: Any = import_module("onnxruntime")

VERSION: str = ort.__version__

LEVELS = "ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"
REQUEST = re.compile(r"Extending BFCArena .* num_bytes: (\d+) \(actual\)")


def measure(file: Path) -> Iterator[tuple[str, int]]:
    """Yields the bytes that a network needs at each optimization level."""
    network = network_of(file)
    if network is None or network.update:
        return
    _use_own_arena()
    model, arrays = _model(network)
    for level in LEVELS:
        yield level, _planned_bytes(model, arrays, level)


def _use_own_arena() -> None:
    ort.set_default_logger_severity(0)
    ort.set_default_logger_verbosity(4)
    arena = ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR
    kind = ort.OrtMemoryInfo("Cpu", arena, 0, ort.OrtMemType.DEFAULT)
    exactly = ort.OrtArenaCfg({"arena_extend_strategy": 1})
    ort.create_and_register_allocator(kind, exactly)


def _model(network: Network) -> tuple[bytes, tuple[Any, Any]]:
    """The serialized model, and its argument and result."""
    module, argument = network.make().eval(), network.input()
    program = torch.onnx.export(module, (argument,), dynamo=True, verbose=False)
    written = BytesIO()
    program.save(written)
    with torch.no_grad():
        result = module(argument)
    return written.getvalue(), (argument.numpy(), result.contiguous().numpy())


def _planned_bytes(model: bytes, arrays: tuple[Any, Any], level: str) -> int:
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.add_session_config_entry("session.use_env_allocators", "1")
    with _log() as log:
        session = ort.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )
        binding = session.io_binding()
        argument, result = map(ort.OrtValue.ortvalue_from_numpy, arrays)
        binding.bind_ortvalue_input(session.get_inputs()[0].name, argument)
        binding.bind_ortvalue_output(session.get_outputs()[0].name, result)
        giving_back = ort.RunOptions()
        giving_back.add_run_config_entry(
            "memory.enable_memory_arena_shrinkage", "cpu:0"
        )
        session.run_with_iobinding(binding, giving_back)
        log.truncate(0)
        session.run_with_iobinding(binding, giving_back)
        log.seek(0)
        request = REQUEST.search(log.read().decode(errors="replace"))
    if request is None:
        raise RuntimeError("the log of ONNX Runtime shows no block")
    return int(request[1])


@contextmanager
def _log() -> Generator[IO[bytes]]:
    """Redirects standard error, including C++ output, to a file inside the context."""
    kept = os.dup(2)
    with TemporaryFile("w+b") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield file
        finally:
            os.dup2(kept, 2)
            os.close(kept)
