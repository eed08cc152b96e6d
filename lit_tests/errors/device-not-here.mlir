// Devices that this host lacks: programs are planned for them, but can't run.
// RUN: not plan-run %s --entry attribute 2>&1 | filecheck %s --check-prefix=ATTRIBUTE
// RUN: not plan-run %s --entry attribute --backend=mlir 2>&1 | filecheck %s --check-prefix=ATTRIBUTE
// RUN: not plan-run %s --entry annotation 2>&1 | filecheck %s --check-prefix=ANNOTATION
// RUN: not plan-run %s --entry type 2>&1 | filecheck %s --check-prefix=TYPE
// RUN: plan-opt %s -p plan-pipeline | not plan-run - --entry attribute 2>&1 | filecheck %s --check-prefix=PLANNED
// RUN: plan-opt %s -p 'plan-pipeline{device="banana"}' | not plan-run - --entry nothing 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: plan-run %s --entry nothing

func.func @attribute(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.tanh %x {tgraph.device = "cuda:0"} : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

func.func @annotation(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.tanh %x : tensor<4xf32>
  %1 = tgraph.on_device %0, "tpu:3" : tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

func.func @type(%x: memref<4xf32, 1>, %y: memref<4xf32, 1> {tgraph.result = 0 : i32}) {
  tgraph.tanh %x outs(%y) : memref<4xf32, 1>
  func.return
}

func.func @nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.tanh %x : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// ATTRIBUTE:  device-not-here.mlir:{{[0-9]+}}:{{[0-9]+}}: error: {{.*}} is on cuda:0, expected cpu:0, cpu:1, ...: programs run on processors only; plan-strip-memory-spaces puts all of a plan in host memory
// ANNOTATION: device-not-here.mlir:{{[0-9]+}}:{{[0-9]+}}: error: {{.*}} is on tpu:3, expected cpu:0
// TYPE:       device-not-here.mlir:21:1: error: func.func is on 1 : i64, expected cpu:0
// PLANNED:    error: {{.*}} is on cuda:0, expected cpu:0
// OPTION:     error: func.func is on banana, expected cpu:0
