"""Runs memref programs: compiled once into a flat list of calls, then only called."""

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from functools import partial
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from ..dialects.tgraph.signature import signature
from ..threads import checked
from .arguments import Arguments, Results
from .callable import CallableProgram
from .calls import Call
from .devices import Runner
from .devices.local import local
from .devices.processes import Processes, Remote
from .donation import donations
from .pool import Pool, exclusive
from .profile import Profile
from .program.compiled import CompiledProgram
from .program.steps import Step
from .sanitizer import PlanViolation
from .sanitizer import sanitize as install_sanitizer
from .saved.writing import save

__all__ = ["Executable", "PlanViolation"]


class Executable(CallableProgram):
    """A memref program, ready to run; called as a `CallableProgram`. Calls of clones
    (`clone`) run in parallel.

    With `results="view"` results are views of the program's own memory, which the next
    call of it, or of another program with the same pools, overwrites. An input whose
    number is in `donate` is given up: a result of its size is returned in its memory if
    the program is done with the input before it writes the result (`donations`), and
    the array can be written. Otherwise nothing happens to it.

    Raises `LocatedError` when made from IR that it cannot run, one that is also a
    `MemoryError` where this machine has not the bytes for it.

    With `sanitize`, unsound use of memory is found, see `tensorplan.runtime.sanitizer`:
    a `PlanViolation` when the program is made or run says what, where and by which
    operation.

    What the program allocates without a plan comes from an `allocator` (a name in
    `tensorplan.runtime.allocators.ALLOCATORS`). With `pools`, those of other programs,
    it uses their memory and their allocators; the programs run one after the other.

    Where llvmlite is installed, elementwise operations, reductions and fused groups are
    compiled to native code, unless `native` is false (or the environment variable
    `TENSORPLAN_NATIVE` is 0).

    Parameters, the inputs with `tgraph.parameter`, are the same in every run: kernels
    may read a copy in a layout of their own, made once for each array that is given
    (`packed_bytes`). Who changes its contents gives another, or calls `bind` again.

    It uses `threads` at most, the caller's included; by default as many as
    `TENSORPLAN_THREADS` says, or one for each processor that the process may run on.
    Large operations are divided between them; all programs have the same threads in
    common. With `concurrent` streams and devices run at the same time in these threads,
    otherwise one after the other. With `processes` devices live in other processes,
    here or on other hosts, with one thread each; see
    `tensorplan.runtime.devices.processes`. The results are the same, but for oneDNN's
    products and convolutions: these differ by rounding where they are divided.
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
        threads: int | None = None,
        concurrent: bool = False,
        processes: Processes | None = None,
    ):
        if sanitize and (concurrent or processes):
            raise ValueError("sanitize cannot be combined with concurrent or processes")
        if processes and (threads or concurrent or pools):
            raise ValueError(
                "processes cannot be combined with threads, concurrent or pools"
            )
        self._module = module
        self._entry = entry
        self._sanitize = sanitize
        self._allocator = allocator
        self._native = native
        self._results: Results = results
        self._donate = donate
        self._threads = 1 if processes else checked(threads)
        self._concurrent = concurrent
        self._processes = processes
        self._signature = signature(module, entry)
        self._prepare(pools)

    def _prepare(self, pools: Sequence[Pool], like: "Executable | None" = None) -> None:
        """Makes all that runs change."""
        with exclusive(pools):
            io, native = self._signature, self._native
            program = self._compiled = CompiledProgram(
                *(self._module, io, pools, self._allocator, native),
                threads=self._threads,
                like=None if like is None else like._compiled,
            )
            arguments = Arguments(
                *(program, io.inputs, io.results, self._results),
                donations=donations(program, io, self._donate),
                like=None if like is None else like._arguments,
            )
            if self._sanitize:
                install_sanitizer(program, io)
            super().__init__(program, arguments, self._made_runner())

    def _made_runner(self) -> Runner:
        if self._processes is None:
            return local(self._compiled, self._threads, self._concurrent)
        return Remote(
            *(self._processes, self._module, self._entry, self._compiled),
            *(self._signature, self._allocator, self._native),
        )

    def clone(self, pools: Sequence[Pool] | None = None) -> "Executable":
        """The same program with memory of its own, or in `pools`, made with the same
        options: for calls in parallel. Parameters that were bound are bound in the
        clone, too, and both read the same copies of them and of constants. What is
        bound later is so in one of them only.
        """
        with self._alone:
            other = copy(self)
            if pools is None:
                pools = [pool.another() for pool in self.pools]
            other._prepare(pools, self)
        return other

    @property
    def fallbacks(self) -> Mapping[str, int]:
        """How many operations are left to NumPy, or to Python, by what they compute:
        `"tgraph.sort"`. No faster backend that is installed has a form for them."""
        return self._compiled.fallbacks

    @property
    def donations(self) -> Mapping[int, int]:
        """For each donated input that is of use, the result that takes its memory."""
        return self._arguments.donations

    def save(self, path: Path) -> None:
        """Writes the program to a file, from which `tensorplan.load` makes it again,
        for the same version and kind of machine.

        Parameters that `bind` has given become constants, and other inputs that it has
        given are written as they are now. A loaded program uses as many threads as
        this one, and returns copies.

        Raises `LocatedError` for an operation with calls that a file has no form for;
        `ValueError` for a program that is sanitized, has donated inputs or runs in
        other processes; `OSError`.
        """
        if self._sanitize or self._donate or self._processes:
            raise ValueError(
                "a program with sanitize, donate or processes can't be saved"
            )
        with self._alone:
            program = CompiledProgram(
                *(self._module, self._signature, (), self._allocator, self._native),
                threads=self._threads,
                like=self._compiled,
            )
            bound, packed = dict(self.parameters), self._arguments.prepacked
            constants = {n: packed[n] for n in self.parameters if n in packed}
            for number, (array, copies) in constants.items():
                memory = program.inputs[number]
                memory.array, memory.prepacked, memory.home = array, copies, None
                del bound[number]
            for step in program.steps:
                step.make()  # till the workspace is as large as it gets
            save(path, program, self.inputs, self.results, bound)

    def surround(self, wrap: Callable[[Step, list[Call]], list[Call]]) -> None:
        """Changes the calls of each step from now on, to watch or to delay them. They
        are called one after the other for each queue (`step.device`, `step.stream`).

        Raises `ValueError` where devices live in other processes.
        """
        if isinstance(self._runner, Remote):
            raise ValueError("surround cannot be combined with processes")
        with self._alone:
            self._arguments.forget()
            for step in self._program.steps:
                step.surround(partial(wrap, step))

    def profile(self) -> Profile:
        """Records all runs from now on: `Path("trace.json").write_text(p.to_json())`.
        Each operation becomes a call of its own, about a microsecond longer.

        Raises `ValueError` where devices live in other processes.
        """
        if isinstance(self._runner, Remote):
            raise ValueError("profile cannot be combined with processes")
        profile = Profile(self._compiled)
        self.surround(profile.timed)
        return profile
