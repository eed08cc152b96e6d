// RUN: plan-opt %s -p convert-tgraph-to-linalg | filecheck %s

// A transpose is a copy with another indexing map.
// CHECK-LABEL: func.func @transpose
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>]
func.func @transpose(%a: memref<2x3xf32>, %r: memref<3x2xf32>) {
  tgraph.transpose %a outs(%r) {permutation = array<i64: 1, 0>} : (memref<2x3xf32>) -> memref<3x2xf32>
  func.return
}

// Float sums accumulate in f64; the loops include the reduced dimension.
// CHECK-LABEL: func.func @sum
// CHECK:       %[[SUM:.*]] = memref.alloc() {alignment = 64 : i64} : memref<3xf64>
// CHECK:       linalg.fill ins(%{{.*}} : f64) outs(%[[SUM]] : memref<3xf64>)
// CHECK:       linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]} ins(%a :
// CHECK:         arith.extf
// CHECK:       linalg.generic
// CHECK:         arith.truncf
// CHECK:       memref.dealloc %[[SUM]]
func.func @sum(%a: memref<2x3xf32>, %r: memref<3xf32>) {
  tgraph.reduce %a outs(%r) {kind = "add", dimensions = array<i64: 0>} : (memref<2x3xf32>) -> memref<3xf32>
  func.return
}

// Windows at both ends cover two elements, all others three: three loop nests on views
// of operand and result replace a padded copy of the operand. (An unused memref of two
// bytes defines the size of the window.)
// CHECK-LABEL: func.func @window
// CHECK-DAG:   memref.reinterpret_cast %a to offset: [0], sizes: [2], strides: [1]
// CHECK-DAG:   memref.reinterpret_cast %r to offset: [1], sizes: [6], strides: [1]
// CHECK-DAG:   memref.reinterpret_cast %a to offset: [6], sizes: [2], strides: [1]
// CHECK-NOT:   memref.alloc() {{.*}}xi32>
func.func @window(%a: memref<8xi32>, %r: memref<8xi32>) {
  tgraph.reduce_window %a outs(%r) {kind = "maximum", window_dimensions = array<i64: 3>, window_strides = array<i64: 1>, padding_low = array<i64: 1>, padding_high = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>} : memref<8xi32>
  func.return
}

// Concatenation and padding write slices of the result.
// CHECK-LABEL: func.func @concatenate
// CHECK:       %[[LOW:.*]] = memref.reinterpret_cast %r to offset: [0], sizes: [2], strides: [1]
// CHECK:       linalg.copy ins(%a : memref<2xf32>) outs(%[[LOW]]
// CHECK:       %[[HIGH:.*]] = memref.reinterpret_cast %r to offset: [2], sizes: [3], strides: [1]
// CHECK:       linalg.copy ins(%b : memref<3xf32>) outs(%[[HIGH]]
func.func @concatenate(%a: memref<2xf32>, %b: memref<3xf32>, %r: memref<5xf32>) {
  tgraph.concatenate %a, %b outs(%r) {dimension = 0 : i64} : (memref<2xf32>, memref<3xf32>) -> memref<5xf32>
  func.return
}

// A gather loads at clamped indices inside a linalg.generic. A scatter is a loop, as
// updates may overlap, and it skips updates that are out of bounds.
// CHECK-LABEL: func.func @gather
// CHECK:       linalg.generic
// CHECK:         arith.maxsi
// CHECK:         arith.minsi
// CHECK:         memref.load %a
func.func @gather(%a: memref<9x4xf32>, %i: memref<3xi32>, %r: memref<3x4xf32>) {
  tgraph.gather %a, %i outs(%r) {offset_dims = array<i64: 1>, collapsed_slice_dims = array<i64: 0>, start_index_map = array<i64: 0>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 1, 4>} : (memref<9x4xf32>, memref<3xi32>) -> memref<3x4xf32>
  func.return
}

// The operand is not copied if the result is in its memory.
// CHECK-LABEL: func.func @scatter
// CHECK-NOT:   linalg
// CHECK:       scf.for
// CHECK:         scf.if
// CHECK:           scf.for
// CHECK:             arith.addf
// CHECK:             memref.store %{{.*}}, %a
func.func @scatter(%a: memref<9x4xf32>, %i: memref<3xi32>, %u: memref<3x4xf32>) {
  tgraph.scatter %a, %i, %u outs(%a) {kind = "add", update_window_dims = array<i64: 1>, inserted_window_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 0>, index_vector_dim = 1 : i64} : (memref<9x4xf32>, memref<3xi32>, memref<3x4xf32>) -> memref<9x4xf32>
  func.return
}

// Unsigned integers become signless; the operations imply the sign.
// CHECK-LABEL: func.func @unsigned
// CHECK-SAME:  memref<4xi8>
// CHECK:       arith.divui
func.func @unsigned(%a: memref<4xui8>, %r: memref<4xui8>) {
  tgraph.divide %a, %a outs(%r) : memref<4xui8>
  func.return
}

// Integer division is total: x / 0 is -1, and the smallest integer divided by -1 is
// itself.
// CHECK-LABEL: func.func @divide
// CHECK:       %[[ZERO:.*]] = arith.cmpi eq
// CHECK:       %[[SAFE:.*]] = arith.select
// CHECK:       arith.divsi %{{.*}}, %[[SAFE]]
// CHECK:       arith.select %[[ZERO]]
func.func @divide(%a: memref<4xi32>, %b: memref<4xi32>, %r: memref<4xi32>) {
  tgraph.divide %a, %b outs(%r) : memref<4xi32>
  func.return
}
