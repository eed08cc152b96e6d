"""Tests profiles: one event per operation on its device and stream, and live bytes."""

import json
from typing import Any

import numpy as np
import pytest

import tensorplan
from tensorplan.frontends import reading
from tensorplan.runtime.executor import Executable

# Two branches on two streams, and a copy to another device.
PROGRAM = """\
!t = memref<16xf32, "cpu:0">
!u = memref<16xf32, "cpu:1">
!arena = memref<192xi8, "cpu:0">
func.func @main(%x: !t, %r: !u {tgraph.result = 0 : i32}) {
  %arena = memref.alloc() {alignment = 64 : i64} : !arena
  %0 = arith.constant 0 : index
  %1 = arith.constant 64 : index
  %2 = arith.constant 128 : index
  %a = memref.view %arena[%0][] : !arena to !t
  %b = memref.view %arena[%1][] : !arena to !t
  %c = memref.view %arena[%2][] : !arena to !t
  tgraph.tanh %x outs(%a) {tgraph.stream = 0 : i32} : !t
  tgraph.negate %x outs(%b) {tgraph.stream = 1 : i32} : !t
  tgraph.add %a, %b outs(%c) {tgraph.stream = 0 : i32} : !t
  tgraph.device_copy %c outs(%r) : (!t) -> !u
  memref.dealloc %arena : !arena
  func.return
}
"""
X = np.linspace(-1, 1, 16, dtype=np.float32)


@pytest.mark.parametrize(
    "how", [{}, {"threads": 2, "concurrent": True}, {"sanitize": True}]
)
def test_trace(how: dict[str, Any]) -> None:
    module = reading.read(PROGRAM.encode(), "plan.mlir", tensorplan.context())
    program = Executable(module, **how)
    profile = program.profile()
    for _ in range(2):
        np.testing.assert_allclose(program(X)[0], np.tanh(X) - X, rtol=1e-5, atol=1e-7)
    program.close()
    events = json.loads(profile.to_json())["traceEvents"]
    devices = {
        event["pid"]: event["args"]["name"]
        for event in events
        if event["name"] == "process_name"
    }
    runs = [event for event in events if event["ph"] == "X"]
    seen = {
        (e["name"], devices[e["pid"]], e["tid"], e["cat"], e["args"]["place"])
        for e in runs
    }
    assert len(runs) == 8
    assert seen == {
        ("tgraph.tanh", "cpu:0", 0, "op", "plan.mlir:12:3"),
        ("tgraph.negate", "cpu:0", 1, "op", "plan.mlir:13:3"),
        ("tgraph.add", "cpu:0", 0, "op", "plan.mlir:14:3"),
        ("tgraph.device_copy", "cpu:1", 0, "copy", "plan.mlir:15:3"),
    }
    start = {(e["name"], e["ts"]): e["ts"] + e["dur"] for e in runs}
    adds = sorted(ts for name, ts in start if name == "tgraph.add")
    tanhs = sorted(end for (name, _), end in start.items() if name == "tgraph.tanh")
    assert all(end <= ts for end, ts in zip(tanhs, adds, strict=True))
    live = [e["args"]["bytes"] for e in events if e["name"] == "live bytes"]
    assert live == [64, 128, 192, 64, 0] * 2
    assert {devices[e["pid"]] for e in events if e["ph"] == "C"} == {"cpu:0"}


def test_profile_before_any_run() -> None:
    module = reading.read(PROGRAM.encode(), "plan.mlir", tensorplan.context())
    events = json.loads(Executable(module).profile().to_json())["traceEvents"]
    assert {event["ph"] for event in events} == {"M"}
