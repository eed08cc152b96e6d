// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%a: memref<4xf32>, %s: memref<?xi8>) {
  tgraph.negate %a outs(%a) workspace(%s : memref<?xi8>) : memref<4xf32>
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     workspace-dynamic.mlir:4:3: error: tgraph.negate: workspace has type memref<?xi8>, expected a static size
