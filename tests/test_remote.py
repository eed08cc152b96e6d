"""Tests devices in other processes: equal values, and no hang after a lost process."""

import gc
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Timer

import numpy as np
import pytest
from executables import run
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import tensorplan
from tensorplan.runtime.devices.processes import LostDevices, Processes, Remote
from tensorplan.runtime.executor import Executable

pytest.importorskip("mpi4py")

PATH = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
TWO_DEVICES = Path(__file__).parents[1] / "examples" / "mlp_train_two_devices.mlir"

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(
        shutil.which("mpiexec", path=PATH) is None
        or not Path("/proc/self/stat").exists(),
        reason="needs mpiexec, and /proc",
    ),
]


@pytest.fixture(scope="module")
def planned() -> ModuleOp:
    return tensorplan.plan(tensorplan.from_stablehlo(TWO_DEVICES).module)


@pytest.fixture(scope="module")
def remote(planned: ModuleOp) -> Iterator[Executable]:
    executable = Executable(planned, processes=Processes(2))
    yield executable
    executable.close()


def check_same(module: ModuleOp, executable: Executable, times: int = 1) -> None:
    want = run(Executable(module), times)
    for x, y in zip(run(executable, times), want, strict=True):
        np.testing.assert_array_equal(x, y)


def workers(executable: Executable) -> list[int]:
    """The ids of the started worker processes, without their launchers."""
    runner = executable._runner
    assert isinstance(runner, Remote)
    group = runner._group
    assert group is not None
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_text().rpartition(")")[2]
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(after_name.split()[1])
    family = {group._launcher.pid}
    for _ in range(4):
        family |= {pid for pid, parent in parents.items() if parent in family}
    is_worker = {pid: b"devices.worker" in command_line(pid) for pid in family}
    return sorted(
        pid
        for pid in family
        if is_worker[pid] and parents[pid] != group._launcher.pid and pid in parents
    )[-len(group.links) :]


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def are_gone(pids: Sequence[int]) -> bool:
    return not any(b"devices.worker" in command_line(pid) for pid in pids)


def test_values_equal_those_of_one_process(
    planned: ModuleOp, remote: Executable
) -> None:
    check_same(planned, remote, 5)
    check_same(planned, remote, 1)  # a new run, with other arrays


def test_one_process_for_all_devices(planned: ModuleOp) -> None:
    executable = Executable(planned, processes=Processes(1))
    check_same(planned, executable, 2)
    pids = workers(executable)
    assert len(pids) == 1
    del executable
    gc.collect()
    wait_until(lambda: are_gone(pids))


def test_more_processes_than_devices_and_streams(planned: ModuleOp) -> None:
    module = tensorplan.from_stablehlo(TWO_DEVICES).module
    streams = tensorplan.plan(module, streams=2)
    executable = Executable(streams, processes=Processes(5))
    check_same(planned, executable, 2)
    assert len(workers(executable)) == 2
    executable.close()


def test_transfers_of_strided_memrefs() -> None:
    text = """
    !a = memref<2x3xf32, "cpu:0">
    !b = memref<2x3xf32, "cpu:1">
    !at = memref<3x2xf32, strided<[1, 3]>, "cpu:0">
    !bt = memref<3x2xf32, strided<[1, 3]>, "cpu:1">
    func.func @main(%x: !a, %f: memref<0xf32, "cpu:0">,
                    %r: memref<3x2xf32, "cpu:1"> {tgraph.result = 0 : i32},
                    %s: !b {tgraph.result = 1 : i32},
                    %g: memref<0xf32, "cpu:1"> {tgraph.result = 2 : i32}) {
      %t = memref.reinterpret_cast %x to offset: [0], sizes: [3, 2], strides: [1, 3]
           : !a to !at
      "memref.copy"(%t, %r) : (!at, memref<3x2xf32, "cpu:1">) -> ()
      %u = memref.reinterpret_cast %s to offset: [0], sizes: [3, 2], strides: [1, 3]
           : !b to !bt
      "memref.copy"(%t, %u) : (!at, !bt) -> ()
      "memref.copy"(%f, %g) : (memref<0xf32, "cpu:0">, memref<0xf32, "cpu:1">) -> ()
      func.return
    }
    """
    module = Parser(tensorplan.context(), text).parse_module()
    executable = Executable(module, processes=Processes(2))
    check_same(module, executable)
    executable.close()


def test_lost_process_is_an_error_and_is_replaced(planned: ModuleOp) -> None:
    executable = Executable(planned, processes=Processes(2))
    run(executable)
    pids = workers(executable)
    killer = Timer(0.3, os.kill, (pids[1], signal.SIGKILL))
    killer.start()
    start = time.monotonic()
    with pytest.raises(LostDevices, match="has died"):
        run(executable, 1_000_000)
    assert time.monotonic() < start + 8
    wait_until(lambda: are_gone(pids))
    check_same(planned, executable, 2)
    executable.close()


def test_hanging_process_is_an_error(planned: ModuleOp) -> None:
    executable = Executable(planned, processes=Processes(2, timeout=0.5))
    run(executable)
    pids = workers(executable)
    os.kill(pids[0], signal.SIGSTOP)
    start = time.monotonic()
    with pytest.raises(
        LostDevices, match=(r"no answer from a worker process " r"within 0\.5 s")
    ):
        run(executable)
    assert time.monotonic() < start + 8
    wait_until(lambda: are_gone(pids))


@pytest.mark.parametrize(
    ("launcher", "message"),
    [
        ("no-such-mpiexec", "cannot start no-such-mpiexec: .*No such file"),
        ("false", "0 of 2 processes have started"),
        ("cat", "0 of 2 processes have started\n.*cat: "),
    ],
)
def test_processes_that_do_not_start(
    planned: ModuleOp, launcher: str, message: str
) -> None:
    executable = Executable(planned, processes=Processes(2, (launcher,)))
    with pytest.raises(LostDevices, match=message):
        run(executable)


def test_processes_that_do_not_call_back(planned: ModuleOp) -> None:
    how = Processes(2, ("sh", "-c", "sleep 60"), start_timeout=0.3)
    start = time.monotonic()
    with pytest.raises(LostDevices, match="0 of 2 processes have started"):
        run(Executable(planned, processes=how))
    assert time.monotonic() < start + 8


def test_incompatible_options(planned: ModuleOp) -> None:
    with pytest.raises(ValueError, match="processes is 0, expected 1 or more"):
        Processes(0)
    with pytest.raises(ValueError, match="cannot be combined with concurrent"):
        Executable(planned, processes=Processes(2), sanitize=True)
    with pytest.raises(ValueError, match="with threads, concurrent or pools"):
        Executable(planned, processes=Processes(2), threads=2)
    with pytest.raises(ValueError, match="surround cannot be combined"):
        Executable(planned, processes=Processes(2)).surround(lambda _, calls: calls)
