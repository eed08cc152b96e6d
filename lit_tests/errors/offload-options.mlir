// RUN: not plan-opt %s -p 'tgraph-offload{device="cpu:0" to="cpu:0" budget=1KiB}' 2>&1 | filecheck %s --check-prefix=SAME
// RUN: not plan-opt %s -p 'tgraph-offload{device="cpu:0" to="cpu:1" budget=-1}' 2>&1 | filecheck %s --check-prefix=SIZE
// RUN: not plan-opt %s -p 'plan-pipeline{offload="cpu:1"}' 2>&1 | filecheck %s --check-prefix=BUDGET
// RUN: not plan-opt %s -p 'plan-pipeline{budget=1KiB offload="cpu:0"}' 2>&1 | filecheck %s --check-prefix=FIT
// RUN: not plan-opt %s -p 'plan-pipeline{budget=1KiB offload="cpu:1" streams=2}' 2>&1 | filecheck %s --check-prefix=STREAMS
// RUN: not plan-opt %s -p 'tgraph-schedule{max-slowdown=-0.1}' 2>&1 | filecheck %s --check-prefix=FASTER

func.func @f() {
  func.return
}

// RUN: not plan-opt %s -p 'tgraph-offload{budget=1KiB}' 2>&1 | filecheck %s --check-prefix=SOME
// SOME:    plan-opt: error: pass tgraph-offload: expected all or none of the options budget, device and to
// SAME:    plan-opt: error: pass tgraph-offload: to is 'cpu:0', the source device, expected another device
// SIZE:    plan-opt: error: pass tgraph-offload: budget is -1, expected bytes such as 4096, 64MiB or 1.5GB
// BUDGET:  plan-opt: error: pass plan-pipeline: offload is 'cpu:1', which requires a budget
// FIT:     plan-opt: error: pass plan-pipeline: to is 'cpu:0', the source device, expected another device
// STREAMS: plan-opt: error: pass plan-pipeline: streams is 2, expected 1 with offload
// FASTER:  plan-opt: error: pass tgraph-schedule: max-slowdown is -0.1, expected 0 or more
