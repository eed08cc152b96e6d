// RUN: plan-opt %s -p convert-tgraph-to-linalg | filecheck %s

// In a cumulative sum, each position sees another part of its window. One loop carries
// the sum, in f64, whatever the number of positions.
// CHECK-LABEL: func.func @sums
// CHECK:       scf.for %[[ROW:.*]] = %{{.*}} to %{{.*}} step
// CHECK:         scf.for %[[I:.*]] = %{{.*}} iter_args(%[[OLD:.*]] = %{{.*}}) -> (f64) {
// CHECK:           memref.load %x[%[[ROW]], %[[I]]]
// CHECK:           %[[NEW:.*]] = arith.addf %[[OLD]], %{{.*}} : f64
// CHECK:           arith.truncf %[[NEW]] : f64 to f32
// CHECK:           memref.store %{{.*}}, %r[%[[ROW]], %[[I]]]
// CHECK:           scf.yield %[[NEW]] : f64
// CHECK-NOT:   linalg.generic
func.func @sums(%x: memref<2x9xf32>, %r: memref<2x9xf32>) {
  tgraph.reduce_window %x outs(%r) {kind = "add", window_dimensions = array<i64: 1, 9>, window_strides = array<i64: 1, 1>, padding_low = array<i64: 0, 8>, padding_high = array<i64: 0, 0>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>} : memref<2x9xf32>
  func.return
}

// A reversed scan starts at the last element.
// CHECK-LABEL: func.func @reversed
// CHECK:       scf.for %[[I:.*]] = %{{.*}} iter_args(%{{.*}} = %{{.*}}) -> (i32) {
// CHECK:         %[[AT:.*]] = arith.subi %{{.*}}, %[[I]] : index
// CHECK:         memref.load %x[%[[AT]]]
// CHECK:         memref.store %{{.*}}, %r[%[[AT]]]
func.func @reversed(%x: memref<9xi32>, %r: memref<9xi32>) {
  tgraph.reduce_window %x outs(%r) {kind = "maximum", window_dimensions = array<i64: 9>, window_strides = array<i64: 1>, padding_low = array<i64: 0>, padding_high = array<i64: 8>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>} : memref<9xi32>
  func.return
}
