// RUN: plan-opt %s -p convert-tgraph-to-linalg | filecheck %s

// One linalg.generic computes all results, starting from the initial values.
// CHECK-LABEL: func.func @argmax
// CHECK-COUNT-2: linalg.generic {{.*}}iterator_types = ["parallel"]}
// CHECK:         linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%x, %n : {{.*}}) outs(%v, %i :
// CHECK:           arith.cmpf oge
// CHECK:           linalg.yield %{{.*}}, %{{.*}} : f32, i32
func.func @argmax(%x: memref<4x8xf32>, %n: memref<4x8xi32>, %low: memref<f32>, %zero: memref<i32>, %v: memref<4xf32>, %i: memref<4xi32>) {
  tgraph.reduce_by %x, %n, %low, %zero outs(%v, %i) {dimensions = array<i64: 1>} : (memref<4x8xf32>, memref<4x8xi32>, memref<f32>, memref<i32>) -> (memref<4xf32>, memref<4xi32>) {
  ^bb0(%a: tensor<f32>, %k: tensor<i32>, %b: tensor<f32>, %l: tensor<i32>):
    %0 = tgraph.compare %a, %b {direction = "GE"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %1 = tgraph.select %0, %a, %b : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %2 = tgraph.select %0, %k, %l : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    tgraph.yield %1, %2 : tensor<f32>, tensor<i32>
  }
  func.return
}

// A merge sort in the result, with workspace for one column.
// CHECK-LABEL: func.func @sort
// CHECK:       linalg.copy ins(%x : {{.*}}) outs(%r :
// CHECK:       %[[SPARE:.*]] = memref.alloc() {alignment = 64 : i64} : memref<8xf32>
// CHECK-COUNT-3: scf.for
// CHECK:       arith.cmpf olt
// CHECK:       memref.store {{.*}}, %[[SPARE]]
// CHECK:       memref.dealloc %[[SPARE]]
func.func @sort(%x: memref<4x8xf32>, %r: memref<4x8xf32>) {
  tgraph.sort %x outs(%r) {dimension = 1 : i64} : memref<4x8xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %0 = tgraph.compare %a, %b {direction = "LT"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    tgraph.yield %0 : tensor<i1>
  }
  func.return
}

// A loop over blocks of four words; the last of six numbers ends within a block.
// CHECK-LABEL: func.func @bits
// CHECK:       scf.for
// CHECK:         scf.if
// CHECK:           memref.store {{.*}}, %b[
func.func @bits(%s: memref<2xui64>, %t: memref<2xui64>, %b: memref<2x3xui32>) {
  tgraph.rng_bit_generator %s outs(%t, %b) {algorithm = "philox"} : (memref<2xui64>) -> (memref<2xui64>, memref<2x3xui32>)
  func.return
}

// Strides of 0 become indexing maps, as MLIR 19 rejects them in types.
// CHECK-LABEL: func.func @repeated
// CHECK-NOT:   memref.reinterpret_cast
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>
func.func @repeated(%x: memref<3xf32>, %r: memref<2x3xf32>) {
  %v = memref.reinterpret_cast %x to offset: [0], sizes: [2, 3], strides: [0, 1] : memref<3xf32> to memref<2x3xf32, strided<[0, 1]>>
  tgraph.negate %v outs(%r) : (memref<2x3xf32, strided<[0, 1]>>) -> memref<2x3xf32>
  func.return
}
