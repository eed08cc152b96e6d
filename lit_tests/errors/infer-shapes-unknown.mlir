// RUN: not plan-opt %s -p 'tgraph-infer-shapes{require-static=true}' 2>&1 | filecheck %s

func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = tgraph.negate %x : tensor<?xf32>
  func.return %0 : tensor<?xf32>
}

// CHECK-NOT: Traceback
// CHECK:     infer-shapes-unknown.mlir:3:1: error: 2 types stay unknown in @f: argument 0 of type tensor<?xf32>, tgraph.negate of type tensor<?xf32>
