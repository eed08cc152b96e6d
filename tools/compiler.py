"""Reads a program and runs passes on it; records times and writes reproducers."""

import hashlib
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import gettempdir

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.passes import ModulePass
from xdsl.printer import Printer
from xdsl.utils.exceptions import ShrinkException, VerifyException

from ..frontends import reading
from ..model import Model
from ..passes import driver
from .common import USER_ERRORS, InternalError, Source, bug_message, this_command


class ToolPipeline:
    """The path of a tool from text to IR, for one program at a time."""

    def __init__(self, tool: str, ctx: Context):
        self.tool = tool
        self.ctx = ctx
        self._again: Callable[[], Model] = partial(_read, Source("", b""), ctx, False)
        self.reading = 0.0  # all times are seconds of CPU time
        self.steps: list[tuple[ModulePass, float]] = []
        self.verifying = 0.0

    def read(self, source: Source, *, simplify: bool) -> ModuleOp:
        """Reads the program and resets the times. Raises one of `USER_ERRORS`.

        If `simplify` is set, a model with values of its parameters is simplified as in
        `from_onnx`. Tools that run the program, or show what would run, set it. The
        simplified model loses the names of parameters, so new values can't be written
        for them.
        """
        return self.read_model(source, simplify=simplify).module

    def read_model(self, source: Source, *, simplify: bool) -> Model:
        """Like `read`, but returns the values of the parameters, too."""
        self._again = partial(_read, source, self.ctx, simplify)
        self.steps, self.verifying = [], 0.0
        start = time.process_time()
        try:
            return self._again()
        finally:
            self.reading = time.process_time() - start

    def run(
        self,
        module: ModuleOp,
        passes: Sequence[ModulePass],
        *,
        verify: bool = True,
        after: Callable[[ModulePass, ModuleOp, float], None] | None = None,
    ) -> None:
        """Runs the passes on a module that `read` returned, in place.

        Raises one of `USER_ERRORS`, or `InternalError` with the path of a reproducer.
        """
        running: ModulePass | None = None
        elsewhere = 0.0  # seconds spent in passes and in `after`

        def note_start(pass_: ModulePass, module: ModuleOp) -> None:
            nonlocal running
            running = pass_

        def note_end(pass_: ModulePass, module: ModuleOp, seconds: float) -> None:
            nonlocal elsewhere
            self.steps.append((pass_, seconds))
            start = time.process_time()
            if after:
                after(pass_, module, seconds)
            elsewhere += seconds + time.process_time() - start

        start = time.process_time()
        try:
            driver.run(
                self.ctx,
                module,
                passes,
                verify=verify,
                before=note_start,
                after=note_end,
            )
        except ShrinkException:
            raise
        except Exception as error:
            if running is None or self._is_users_fault(error, running, verify):
                raise
            raise InternalError(self._reproduce(error, running)) from error
        self.verifying += time.process_time() - start - elsewhere

    def seconds(self) -> dict[str, float]:
        """Seconds of CPU time by stage, for reports."""
        times = {"read": self.reading}
        for pass_, seconds in self.steps:
            times[pass_.name] = times.get(pass_.name, 0.0) + seconds
        return {**times, "verify": self.verifying}

    def _is_users_fault(
        self, error: Exception, running: ModulePass, verify: bool
    ) -> bool:
        if not isinstance(error, VerifyException) or not verify:
            return isinstance(error, USER_ERRORS)
        # A pass that turns valid IR into invalid IR has a bug. But operations of
        # unregistered dialects are never verified, so its input may be invalid.
        before = self._before_failure()
        return before is None or any(
            isinstance(op, UnregisteredOp) for op in before.walk()
        )

    def _before_failure(self) -> ModuleOp | None:
        """The input IR of the failing pass, computed again; None if that fails."""
        with suppress(Exception):
            module = self._again().module
            for pass_, _ in self.steps:
                pass_.apply(self.ctx, module)
            return module
        return None

    def _reproduce(self, error: Exception, failing: ModulePass) -> str:
        """Writes a reproducer; returns the message for the user."""
        message = f"{bug_message(self.tool, error)}, in pass {failing.name}"
        module = self._before_failure()
        if module is None:
            return f"{message}\nnote: to reproduce: {this_command(self.tool)}"
        text = StringIO()
        Printer(text, print_generic_format=True).print_op(module)
        digest = hashlib.sha256(text.getvalue().encode()).hexdigest()[:8]
        file = Path(gettempdir(), f"plan-opt-reproducer-{digest}.mlir")
        flags = ("--allow-unregistered-dialect",) * self.ctx.allow_unregistered
        command = shlex.join(("plan-opt", str(file), "-p", str(failing), *flags))
        try:
            file.write_text(f"// {command}\n{text.getvalue()}\n")
        except OSError as reason:
            return f"{message}\nnote: cannot write a reproducer: {reason}"
        return f"{message}\nnote: to reproduce: {command}"


def _read(source: Source, ctx: Context, simplify: bool) -> Model:
    model = reading.read_model(
        source.data,
        source.name,
        ctx,
        first_line=source.first_line,
        sizes=source.sizes,
    )
    if not simplify or not model.parameters:
        return model
    from ..passes.inference import simplified  # imports NumPy

    return simplified(ctx, model)
