"""What XLA's plans lose, for the models in `jax_models/`.

    python benchmarks/xla_plans.py

Compiles each model for the CPU, audits the plan that XLA dumps, and prints the bytes of
all its memories, and those that are lost by placement, by order, and by copies that an
alias could replace. Names choose models; `--json FILE` writes figures.
"""

import argparse
import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from models import MODELS, Model

from tensorplan.checking.foreign import audit
from tensorplan.foreign_plan import ForeignPlan
from tensorplan.frontends.plans.reading import plan_files, read
from tensorplan.reporting.foreign import account

COLUMNS = ("bytes", "placement", "order", "copies")


def plan_of(model: Model) -> ForeignPlan:
    """XLA's; the state is donated."""
    jax: Any = import_module("jax")
    donated = tuple(range(model.state))
    lowered = jax.jit(model.function, donate_argnums=donated).lower(*model.arguments)
    with TemporaryDirectory() as folder:
        options = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True}
        lowered.compile(compiler_options=options)
        [path] = plan_files(folder)
        return read(path)


def figures(plan: ForeignPlan) -> Mapping[str, int]:
    found = account(plan)
    lost = found.lost_by_placement, found.lost_by_order or 0, found.lost_by_copies or 0
    return dict(zip(COLUMNS, (plan.bytes, *lost), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(f"{'model':18}{'verdict':>10}" + "".join(f"{c:>14}" for c in COLUMNS))
    rows: dict[str, Mapping[str, Any]] = {}
    for name in options.models or MODELS:
        plan = plan_of(MODELS[name]())
        verdict, found = audit(plan).verdict, figures(plan)
        rows[name] = {"verdict": verdict, **found}
        numbers = "".join(f"{number:14,}" for number in found.values())
        print(f"{name:18}{verdict:>10}{numbers}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
