// RUN: plan-opt %s -p convert-tgraph-to-linalg | filecheck %s

// An elementwise group is one linalg.generic. The broadcast becomes an indexing map and
// the constant is in the body, so neither is stored.
// CHECK-LABEL: func.func @loop
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%b, %a :
// CHECK-SAME:  outs(%r :
// CHECK-NEXT:  ^{{.*}}(%[[B:.*]]: f32, %[[A:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:    %[[SUM:.*]] = arith.addf %[[A]], %[[B]] : f32
// CHECK-NEXT:    %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:    %[[MAX:.*]] = arith.maximumf %[[SUM]], %[[ZERO]] : f32
// CHECK-NEXT:    linalg.yield %[[MAX]] : f32
// CHECK-NOT:   tgraph
func.func @loop(%a: memref<4x8xf32>, %b: memref<8xf32>, %r: memref<4x8xf32>) {
  tgraph.fusion(%x = %a, %y = %b) outs(%r) : (memref<4x8xf32>, memref<8xf32>) -> memref<4x8xf32> {
    %0 = tgraph.broadcast_in_dim %y {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<4x8xf32>
    %1 = tgraph.add %x, %0 : tensor<4x8xf32>
    %2 = tgraph.constant<0.0 : f32> : tensor<4x8xf32>
    %3 = tgraph.maximum %1, %2 : tensor<4x8xf32>
    tgraph.yield %3 : tensor<4x8xf32>
  }
  func.return
}

// A contraction accumulates in the result, which the epilogue then overwrites: no
// workspace.
// CHECK-LABEL: func.func @contraction
// CHECK-NOT:   memref.alloc
// CHECK:       linalg.fill ins(%{{.*}} : f32) outs(%r : memref<4x4xf32>)
// CHECK-NEXT:  linalg.generic {{.*}}iterator_types = ["parallel", "reduction", "parallel"]} ins(%a, %a :
// CHECK-SAME:  outs(%r :
// CHECK:       linalg.generic {{.*}} ins(%r : memref<4x4xf32>) outs(%r : memref<4x4xf32>)
// CHECK:         math.tanh
func.func @contraction(%a: memref<4x4xf32>, %r: memref<4x4xf32>) {
  tgraph.fusion(%x = %a) outs(%r) : memref<4x4xf32> {
    %0 = tgraph.dot_general %x, %x {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<4x4xf32>
    %1 = tgraph.tanh %0 : tensor<4x4xf32>
    tgraph.yield %1 : tensor<4x4xf32>
  }
  func.return
}

// Groups on rows keep reductions of a row in workspace; no full-size value is stored.
// CHECK-LABEL: func.func @rows
// CHECK:       %[[MAX:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
// CHECK:       linalg.generic {{.*}}"reduction"]} ins(%a :
// CHECK-SAME:  outs(%[[MAX]] : memref<4xf32>)
// CHECK:       linalg.generic {{.*}}"parallel", "parallel"]} ins(%a, %[[MAX]] : memref<4x6xf32>, memref<4xf32>) outs(%r :
// CHECK:         arith.subf
// CHECK:       memref.dealloc %[[MAX]]
func.func @rows(%a: memref<4x6xf32>, %r: memref<4x6xf32>) {
  tgraph.fusion(%x = %a) outs(%r) : memref<4x6xf32> {
    %0 = tgraph.reduce %x {kind = "maximum", dimensions = array<i64: 1>} : (tensor<4x6xf32>) -> tensor<4xf32>
    %1 = tgraph.broadcast_in_dim %0 {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x6xf32>
    %2 = tgraph.subtract %x, %1 : tensor<4x6xf32>
    tgraph.yield %2 : tensor<4x6xf32>
  }
  func.return
}
