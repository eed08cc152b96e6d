// RUN: not plan-opt %s -p 'tgraph-place-devices{devices="cpu:0","cpu:1"}' 2>&1 | filecheck %s
// RUN: not plan-opt %s -p 'tgraph-place-devices{devices="cpu:0" default="gpu:1"}' 2>&1 | filecheck %s --check-prefix=DEFAULT
// RUN: not plan-opt %s -p 'tgraph-place-devices{devices="cpu:0" groups="a=gpu:1"}' 2>&1 | filecheck %s --check-prefix=GROUP
// RUN: not plan-opt %s -p 'tgraph-place-devices{groups="a:gpu:1"}' 2>&1 | filecheck %s --check-prefix=SYNTAX
// RUN: not plan-opt %s -p 'plan-pipeline{groups="a=cpu:0","a=gpu:1"}' 2>&1 | filecheck %s --check-prefix=TWICE

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.negate %x {tgraph.device = "gpu:0"} : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// CHECK-NOT: Traceback
// CHECK:     device-not-there.mlir:8:8: error: tgraph.negate is on 'gpu:0', expected one of cpu:0, cpu:1
// DEFAULT:   plan-opt: error: pass tgraph-place-devices: default is 'gpu:1', expected one of cpu:0
// GROUP:     plan-opt: error: pass tgraph-place-devices: group 'a' is 'gpu:1', expected one of cpu:0
// SYNTAX:    plan-opt: error: pass tgraph-place-devices: groups has 'a:gpu:1', expected "GROUP=DEVICE"
// TWICE:     plan-opt: error: pass plan-pipeline: group 'a' is on cpu:0 and gpu:1
