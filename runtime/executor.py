"""Runs memref programs: compiled once into a flat list of calls, then only called.

The caller's arrays are the arguments' memory. When a call brings an argument in other
memory than the last, the steps that touch it are made again; else nothing is.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from xdsl.dialects.builtin import ModuleOp

from tensorplan.runtime.arguments import Arguments, Results
from tensorplan.runtime.devices import Runner
from tensorplan.runtime.devices.local import local
from tensorplan.runtime.devices.processes import Processes, Remote
from tensorplan.runtime.dtypes import Array
from tensorplan.runtime.kernels import Call
from tensorplan.runtime.pool import Pool
from tensorplan.runtime.profile import Profile
from tensorplan.runtime.program import Program
from tensorplan.runtime.sanitizer import PlanViolation
from tensorplan.runtime.sanitizer import sanitize as install_sanitizer
from tensorplan.runtime.signature import Input, Result, signature
from tensorplan.runtime.steps import Step

__all__ = ["Executable", "PlanViolation"]


class Executable:
    """A memref program, ready to run. Not for use by several threads at a time.

    `executable(*arrays)` takes an array for each input and returns the results in the
    order of the signature (see `tensorplan.runtime.signature`):

    - An input that is a C-contiguous array of the right type is used where it is, and
      kept alive until another takes its place: a NumPy array, or whatever shows its
      memory by `__array_interface__` or DLPack. Anything else is copied (`copies`).
    - A variable given as such an array, if writable, is updated in place and returned
      as a NumPy array. Otherwise a copy is updated and returned.
    - Other results are new arrays, which nothing changes later, or are written to the
      arrays in `out`. With `results="view"` they are views of the program's own memory,
      which the next call of it, or of another program with the same pools, overwrites.
    - An input whose number is in `donate` is given up: a result of its size is returned
      in its memory if the program is done with the input before it writes the result
      (`donations`), and the array can be written. Otherwise nothing happens to it.

    Raises `LocatedError` when made from IR that it cannot run; `TypeError` or
    `ValueError` when called with arrays that do not fit.

    With `sanitize`, unsound use of memory is found, see `tensorplan.runtime.sanitizer`:
    a `PlanViolation` when the program is made or run says what, where and by which
    operation.

    What the program allocates without a plan comes from an `allocator` (a name in
    `tensorplan.runtime.allocators.ALLOCATORS`). With `pools`, those of other programs,
    it uses their memory and their allocators; only one of the programs may run at a
    time.

    Where llvmlite is installed, elementwise operations, reductions and fused groups are
    compiled to native code, unless `native` is false (or the environment variable
    `TENSORPLAN_NATIVE` is 0).

    Parameters, the inputs with `tgraph.parameter`, are the same in every run: kernels
    may read a copy in a layout of their own, made once for each array that is given
    (`packed_bytes`). Who changes its contents gives another, or calls `bind` again.

    With `threads` each stream of each device runs in a thread of its own, without one
    after the other, as by default, unless threads are estimated to be faster. With
    `processes` devices live in other processes, here or on other hosts; see
    `tensorplan.runtime.devices.processes`. The results are the same.
    """

    def __init__(
        self,
        module: ModuleOp,
        entry: str = "main",
        *,
        sanitize: bool = False,
        allocator: str = "bfc",
        pools: Sequence[Pool] = (),
        native: bool = True,
        results: Results = "copy",
        donate: Collection[int] = (),
        threads: bool | None = None,
        processes: Processes | None = None,
    ):
        if sanitize and (threads or processes):
            raise ValueError("sanitize is for runs in one thread")
        if processes and (threads or pools):
            raise ValueError("with processes, threads and pools are theirs")
        signature_ = signature(module, entry)
        self.inputs: Sequence[Input] = signature_.inputs
        self.results: Sequence[Result] = signature_.results
        self._program = Program(module, signature_, pools, allocator, native)
        self._arguments = Arguments(self._program, signature_, results, donate)
        if sanitize:
            install_sanitizer(self._program, signature_)
        if processes:
            self._runner: Runner = Remote(
                processes, module, entry, self._program, signature_, allocator, native
            )
        else:
            self._runner = local(self._program, False if sanitize else threads)

    def __repr__(self) -> str:
        pools = ", ".join(f"{pool.device} {pool.bytes:,} bytes" for pool in self.pools)
        inputs, results = len(self.inputs), len(self.results)
        return f"<Executable: {inputs} inputs, {results} results; {pools or 'no pool'}>"

    @property
    def pools(self) -> Sequence[Pool]:
        """The devices' memory: `pool.device`, `pool.bytes`."""
        return self._program.pools

    @property
    def parameters(self) -> Mapping[int, Array]:
        """The inputs that `bind` has given once, by number."""
        return self._arguments.parameters

    @property
    def copies(self) -> Mapping[str, int]:
        """How many inputs and results calls have copied, by which and why:
        `"argument 1: not C-contiguous and aligned"`."""
        return self._arguments.copies

    @property
    def donations(self) -> Mapping[int, int]:
        """For each donated input that is of use, the result that takes its memory."""
        return self._arguments.donations

    @property
    def scratch_bytes(self) -> int:
        """Bytes that kernels take while they run, besides planned workspaces, on all
        devices."""
        return self._program.scratch_bytes

    @property
    def packed_bytes(self) -> int:
        """Bytes of the copies of constants in the layouts that kernels want."""
        return self._program.packed_bytes

    def bind(self, parameters: Mapping[int, object]) -> None:
        """Gives inputs, by number, for all calls from now on; these take the others
        only. Programs share parameters when one binds those of another:
        `other.bind(program.parameters)`; then each sees how the others update them,
        unless the inputs are marked `tgraph.parameter`: then it binds them again.

        Raises `TypeError` or `ValueError` for arrays that do not fit.
        """
        self._arguments.bind(parameters)

    def __call__(
        self, *arrays: object, out: Sequence[Array | None] | None = None
    ) -> list[Array]:
        changed = self._arguments.accept(arrays, out)
        have_moved = self._program.follow_pools()
        if have_moved or changed:
            self._runner.remake(None if have_moved else changed)
        self._runner.run()
        return self._arguments.results(out)

    def surround(self, wrap: Callable[[Step, list[Call]], list[Call]]) -> None:
        """Changes the calls of each step from now on, to watch or to delay them. They
        are called in the thread of their queue (`step.device`, `step.stream`).

        Raises `ValueError` where devices live in other processes.
        """
        if isinstance(self._runner, Remote):
            raise ValueError("steps run in other processes")
        for step in self._program.steps:
            step.surround(partial(wrap, step))
        self._runner.remake()

    def profile(self) -> Profile:
        """Records all runs from now on: `Path("trace.json").write_text(p.to_json())`.
        Each operation becomes a call of its own, about a microsecond longer.

        Raises `ValueError` where devices live in other processes.
        """
        if isinstance(self._runner, Remote):
            raise ValueError("what other processes do is not recorded")
        profile = Profile(self._program)
        self.surround(profile.timed)
        return profile

    def close(self) -> None:
        """Ends threads and processes, which a later call starts again. So does dropping
        the executable."""
        self._runner.close()
