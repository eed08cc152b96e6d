// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%a: memref<4xf32, "cpu:0">, %s: memref<4xf32, "cpu:0">) {
  tgraph.negate %a outs(%a) workspace(%s : memref<4xf32, "cpu:0">) : memref<4xf32, "cpu:0">
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     workspace-type.mlir:4:3: error: tgraph.negate: workspace has type memref<4xf32, "cpu:0">, expected bytes on the device of the result, such as memref<64xi8, "cpu:0">
