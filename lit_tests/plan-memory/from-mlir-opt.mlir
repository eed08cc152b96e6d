// The pass also plans programs bufferized by mlir-opt, and mlir-opt accepts the result.
// REQUIRES: mlir-opt
// RUN: mlir-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --buffer-deallocation-pipeline --canonicalize | plan-opt - -p plan-memory --print-op-generic | mlir-opt | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<2048xi8>
// CHECK-NOT:     memref.alloc
// CHECK-COUNT-2: memref.view
// CHECK-NOT:     memref.alloc
// CHECK:         memref.dealloc
// CHECK-NOT:     memref.dealloc
func.func @main(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>, %o: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %m = linalg.matmul ins(%a, %b : tensor<16x16xf32>, tensor<16x16xf32>) outs(%f : tensor<16x16xf32>) -> tensor<16x16xf32>
  %e2 = tensor.empty() : tensor<16x16xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %m2 = linalg.matmul ins(%m, %b : tensor<16x16xf32>, tensor<16x16xf32>) outs(%f2 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %f3 = linalg.fill ins(%z : f32) outs(%o : tensor<16x16xf32>) -> tensor<16x16xf32>
  %m3 = linalg.matmul ins(%m2, %m2 : tensor<16x16xf32>, tensor<16x16xf32>) outs(%f3 : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %m3 : tensor<16x16xf32>
}
