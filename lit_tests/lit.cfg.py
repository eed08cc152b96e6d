"""How lit runs these tests: with the Python that runs lit, whatever PATH holds."""

import importlib.util
import os
import shutil
import sys

import lit.formats

config.name = "tensorplan"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
if output := os.environ.get("TENSORPLAN_LIT_OUTPUT"):  # of tests/test_lit.py
    config.test_exec_root = output

tools = {
    "plan-audit": "-m tensorplan.tools.plan_audit",
    "plan-opt": "-m tensorplan.tools.plan_opt",
    "plan-run": "-m tensorplan.tools.plan_run",
    "plan-serve": "-m tensorplan.tools.plan_serve",
    "plan-solve": "-m tensorplan.tools.plan_solve",
    "plan-view": "-m tensorplan.tools.plan_view",
    "xdsl-opt": "-m xdsl.tools.xdsl_opt",
    "filecheck": "-m filecheck",
    "python": "",
}
commands = {name: f'"{sys.executable}" {module}' for name, module in tools.items()}
if served := os.environ.get("TENSORPLAN_TOOLS"):  # by tests/support/tool_server.py
    commands |= {name: f'"{os.path.join(served, name)}"' for name in os.listdir(served)}

# Tests that need these say so: `REQUIRES: mlir-opt`.
versions = ("-22", "", *(f"-{version}" for version in range(23, 41)))
found = filter(None, (shutil.which(f"mlir-opt{version}") for version in versions))
if mlir_opt := next(found, None):
    commands["mlir-opt"] = mlir_opt
    config.available_features.add("mlir-opt")
if importlib.util.find_spec("jaxlib"):
    config.available_features.add("jax")
config.available_features |= {
    package for package in ("ml_dtypes", "ortools") if importlib.util.find_spec(package)
}

# Whole words only: paths may hold a tool's name, too.
config.substitutions += [
    (rf"(?<![\w./-]){name}(?![\w./-])", command) for name, command in commands.items()
]
