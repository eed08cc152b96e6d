"""Runs tools in forks of a process that has imported them, so tests skip import time.

A client (`tool_client.py`) replaces the command. It passes its arguments, folder,
environment and standard streams to the server, and exits with the tool's exit code.
Each tool runs in a separate process, with the modules and hash seed of the server.
"""

import gc
import os
import shlex
import socket
import subprocess
import sys
import traceback
from ast import literal_eval
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory

TOOLS = {
    "filecheck": "filecheck.main",
    "plan-audit": "tensorplan.tools.plan_audit",
    "plan-minimalloc": "tensorplan.integrations.minimalloc",
    "plan-opt": "tensorplan.tools.plan_opt",
    "plan-run": "tensorplan.tools.plan_run",
    "plan-serve": "tensorplan.tools.plan_serve",
    "plan-solve": "tensorplan.tools.plan_solve",
    "plan-tflm": "tensorplan.integrations.tflm",
    "plan-view": "tensorplan.tools.plan_view",
}
"""For each tool, the module with its function `main`."""

_LOADED = (
    "tensorplan.runtime.executor",
    "tensorplan.runtime.random_inputs",
    "tensorplan.tools.plan_opt_main",
    "tensorplan.tools.plan_run_main",
    "tensorplan.tools.views.reading",
)
"""Modules that tools import lazily."""

_LOADED_IF_FOUND = {
    "jaxlib": "tensorplan.frontends.stablehlo.reading",
    "llvmlite": "llvmlite.binding",
}
"""The same, by the package that the module requires."""

_EXAMPLE = Path(__file__).parents[2] / "examples" / "classifier.mlir"

_CLIENT = Path(__file__).with_name("tool_client.py")


@contextmanager
def serving() -> Generator[Path]:
    """Runs a server in the context; yields a folder with a command for each tool."""
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        path, commands = Path(folder, "socket"), Path(folder, "bin")
        commands.mkdir()
        for tool in TOOLS:
            client = shlex.join(map(str, (sys.executable, "-IS", _CLIENT, path, tool)))
            (commands / tool).write_text(f'#!/bin/sh\nexec {client} "$@"\n')
            (commands / tool).chmod(0o700)
        listener.bind(str(path))
        listener.listen(64)
        with subprocess.Popen(
            [sys.executable, __file__, str(listener.fileno())],
            stdin=subprocess.PIPE,  # the server exits when it closes
            pass_fds=[listener.fileno()],
            start_new_session=True,  # Ctrl-C must reach only the tests
        ):
            listener.close()
            yield commands


def _serve(listener: socket.socket) -> None:
    import tensorplan
    from tensorplan.passes import get_all_passes
    from tensorplan.tools import plan_opt_main

    tools = {name: import_module(module).main for name, module in TOOLS.items()}
    for module in _LOADED:
        import_module(module)
    for package, module in _LOADED_IF_FOUND.items():
        if find_spec(package):
            import_module(module)
    for load in get_all_passes().values():
        load()
    # Fills caches of installed packages and of classes.
    plan_opt_main._get_multiverse()
    str(tensorplan.plan(tensorplan.read(_EXAMPLE)))
    gc.freeze()  # forks need not collect existing objects
    while sys.stdin not in select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        with connection:
            if not os.fork():
                code = _run(connection, tools)
                connection.sendall(str(code).encode())
                os._exit(0)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:  # reap processes
                pass


def _run(connection: socket.socket, tools: Mapping[str, Callable[[], int]]) -> int:
    """Runs the client's tool in this forked process; returns its exit code."""
    _, files, *_ = socket.recv_fds(connection, 1, 3)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)
    with connection.makefile() as request:
        sys.argv, folder, environment = literal_eval(request.read())
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    try:
        sys.exit(tools[sys.argv[0]]())
    except SystemExit as exit:
        return int(exit.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
