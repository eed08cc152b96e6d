"""Entry points of the commands, which handle Ctrl-C while modules are imported.

Each tool's `main` handles signals itself (`common.guard`). Importing it takes 50 ms, in
which Python would print a traceback.
"""

from importlib import import_module


def plan_audit() -> int:
    return _run("tools.plan_audit")


def plan_minimalloc() -> int:
    return _run("integrations.minimalloc")


def plan_opt() -> int:
    return _run("tools.plan_opt")


def plan_run() -> int:
    return _run("tools.plan_run")


def plan_serve() -> int:
    return _run("tools.plan_serve")


def plan_solve() -> int:
    return _run("tools.plan_solve")


def plan_tflm() -> int:
    return _run("integrations.tflm")


def plan_view() -> int:
    return _run("tools.plan_view")


def _run(tool: str) -> int:
    try:
        main = import_module(f"tensorplan.{tool}").main
    except KeyboardInterrupt:
        return 130
    return main()
