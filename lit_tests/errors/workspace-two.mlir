// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%a: memref<4xf32>, %s: memref<64xi8>) {
  "tgraph.negate"(%a, %a, %s, %s) <{operandSegmentSizes = array<i32: 1, 1, 2>}> : (memref<4xf32>, memref<4xf32>, memref<64xi8>, memref<64xi8>) -> ()
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     workspace-two.mlir:4:3: error: tgraph.negate: expected 0 or 1 values for workspace, but got 2
