// REQUIRES: ml_dtypes
// RUN: plan-opt %s -p canonicalize | filecheck %s

// Constants are folded through chains of operations.
// CHECK-LABEL: func.func @numbers_are_computed
// CHECK-NEXT:    %0 = tgraph.constant<1.000000e+01 : f32> : tensor<4xf32>
// CHECK-NEXT:    func.return %0
func.func @numbers_are_computed() -> tensor<4xf32> {
  %0 = tgraph.constant<100 : i32> : tensor<i32>
  %1 = tgraph.convert %0 : (tensor<i32>) -> tensor<f32>
  %2 = tgraph.broadcast_in_dim %1 {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
  %3 = tgraph.sqrt %2 : tensor<4xf32>
  func.return %3 : tensor<4xf32>
}

// Folding computes as runs do: i8 wraps, bf16 rounds, comparisons with NaN are false.
// CHECK-LABEL: func.func @as_in_a_run
// CHECK-DAG:     tgraph.constant<-56 : i8> : tensor<i8>
// CHECK-DAG:     tgraph.constant<1.000000e+00 : bf16> : tensor<bf16>
// CHECK-DAG:     tgraph.constant<false> : tensor<i1>
// CHECK-NEXT:    func.return
func.func @as_in_a_run() -> (tensor<i8>, tensor<bf16>, tensor<i1>) {
  %0 = tgraph.constant<100 : i8> : tensor<i8>
  %1 = tgraph.add %0, %0 : tensor<i8>
  %2 = tgraph.constant<1.001 : f32> : tensor<f32>
  %3 = tgraph.convert %2 : (tensor<f32>) -> tensor<bf16>
  %4 = tgraph.constant<0x7fc00000 : f32> : tensor<f32>
  %5 = tgraph.compare %4, %4 {direction = "EQ"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
  func.return %1, %3, %5 : tensor<i8>, tensor<bf16>, tensor<i1>
}

// A constant with several numbers is not folded: see tgraph-precompute.
// CHECK-LABEL: func.func @lists_are_left
// CHECK:         tgraph.negate
func.func @lists_are_left() -> tensor<2xf32> {
  %0 = tgraph.constant<dense<[1.0, 2.0]> : tensor<2xf32>> : tensor<2xf32>
  %1 = tgraph.negate %0 : tensor<2xf32>
  func.return %1 : tensor<2xf32>
}

// CHECK-LABEL: func.func @neutral_numbers
// CHECK-NEXT:    func.return %i, %x, %p
func.func @neutral_numbers(%i: tensor<4xi32>, %x: tensor<4xf32>, %p: tensor<4xi1>) -> (tensor<4xi32>, tensor<4xf32>, tensor<4xi1>) {
  %zero = tgraph.constant<0 : i32> : tensor<4xi32>
  %one = tgraph.constant<1 : i32> : tensor<4xi32>
  %ones = tgraph.constant<-1 : i32> : tensor<4xi32>
  %0 = tgraph.add %zero, %i : tensor<4xi32>
  %1 = tgraph.divide %0, %one : tensor<4xi32>
  %2 = tgraph.and %1, %ones : tensor<4xi32>
  %3 = tgraph.shift_left %2, %zero : tensor<4xi32>
  %unit = tgraph.constant<1.0 : f32> : tensor<4xf32>
  %nothing = tgraph.constant<0.0 : f32> : tensor<4xf32>
  %low = tgraph.constant<0xff800000 : f32> : tensor<4xf32>
  %4 = tgraph.multiply %x, %unit : tensor<4xf32>
  %5 = tgraph.subtract %4, %nothing : tensor<4xf32>
  %6 = tgraph.maximum %low, %5 : tensor<4xf32>
  %7 = tgraph.power %6, %unit : tensor<4xf32>
  %true = tgraph.constant<true> : tensor<4xi1>
  %8 = tgraph.and %p, %true : tensor<4xi1>
  func.return %3, %7, %8 : tensor<4xi32>, tensor<4xf32>, tensor<4xi1>
}

// -0 + 0 is 0, 0 * NaN is NaN, 1 / x is not x, and NaN does not equal itself.
// CHECK-LABEL: func.func @not_with_floats
// CHECK:         tgraph.add
// CHECK-NEXT:    tgraph.multiply
// CHECK-NEXT:    tgraph.divide
// CHECK-NEXT:    tgraph.compare
func.func @not_with_floats(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>) {
  %zero = tgraph.constant<0.0 : f32> : tensor<4xf32>
  %one = tgraph.constant<1.0 : f32> : tensor<4xf32>
  %0 = tgraph.add %x, %zero : tensor<4xf32>
  %1 = tgraph.multiply %0, %zero : tensor<4xf32>
  %2 = tgraph.divide %one, %1 : tensor<4xf32>
  %3 = tgraph.compare %2, %2 {direction = "EQ"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  func.return %2, %3 : tensor<4xf32>, tensor<4xi1>
}

// CHECK-LABEL: func.func @of_itself
// CHECK-DAG:     %[[ZERO:.*]] = tgraph.constant<0 : i32> : tensor<4xi32>
// CHECK-DAG:     %[[FALSE:.*]] = tgraph.constant<false> : tensor<4xi1>
// CHECK-NEXT:    func.return %[[ZERO]], %[[FALSE]], %i
func.func @of_itself(%i: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi1>, tensor<4xi32>) {
  %0 = tgraph.subtract %i, %i : tensor<4xi32>
  %1 = tgraph.compare %i, %i {direction = "LT"} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  %2 = tgraph.maximum %i, %i : tensor<4xi32>
  func.return %0, %1, %2 : tensor<4xi32>, tensor<4xi1>, tensor<4xi32>
}

// CHECK-LABEL: func.func @what_is_selected
// CHECK-NEXT:    func.return %a, %b
func.func @what_is_selected(%p: tensor<4xi1>, %a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %true = tgraph.constant<true> : tensor<4xi1>
  %0 = tgraph.select %true, %a, %b : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = tgraph.select %p, %b, %b : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @twice_is_nothing
// CHECK-NEXT:    func.return %x
func.func @twice_is_nothing(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = tgraph.negate %x : tensor<4x8xf32>
  %1 = tgraph.negate %0 : tensor<4x8xf32>
  %2 = tgraph.reverse %1 {dimensions = array<i64: 1>} : tensor<4x8xf32>
  %3 = tgraph.reverse %2 {dimensions = array<i64: 1>} : tensor<4x8xf32>
  func.return %3 : tensor<4x8xf32>
}

// A conversion through a type that holds all numbers of the source type is removed.
// CHECK-LABEL: func.func @conversions
// CHECK-NEXT:    %0 = tgraph.convert %i : (tensor<4xi8>) -> tensor<4xf32>
// CHECK-NEXT:    func.return %x, %0
func.func @conversions(%x: tensor<4xbf16>, %i: tensor<4xi8>) -> (tensor<4xbf16>, tensor<4xf32>) {
  %0 = tgraph.convert %x : (tensor<4xbf16>) -> tensor<4xf32>
  %1 = tgraph.convert %0 : (tensor<4xf32>) -> tensor<4xbf16>
  %2 = tgraph.convert %1 : tensor<4xbf16>
  %3 = tgraph.convert %i : (tensor<4xi8>) -> tensor<4xi32>
  %4 = tgraph.convert %3 : (tensor<4xi32>) -> tensor<4xf32>
  func.return %2, %4 : tensor<4xbf16>, tensor<4xf32>
}

// CHECK-LABEL: func.func @conversions_that_round
// CHECK-NEXT:    %0 = tgraph.convert %x
// CHECK-NEXT:    %1 = tgraph.convert %0
// CHECK-NEXT:    func.return %1
func.func @conversions_that_round(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.convert %x : (tensor<4xf32>) -> tensor<4xbf16>
  %1 = tgraph.convert %0 : (tensor<4xbf16>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @shapes_as_they_are
// CHECK-NEXT:    func.return %x
func.func @shapes_as_they_are(%x: tensor<4x8xf32>, %n: tensor<f32>) -> tensor<4x8xf32> {
  %0 = tgraph.slice %x {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 4, 8>, strides = array<i64: 1, 1>} : tensor<4x8xf32>
  %1 = tgraph.pad %0, %n {low = array<i64: 0, 0>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %2 = tgraph.concatenate %1 {dimension = 0 : i64} : tensor<4x8xf32>
  func.return %2 : tensor<4x8xf32>
}

// The shape stays the same, but elements move.
// CHECK-LABEL: func.func @moved
// CHECK-NEXT:    tgraph.slice
// CHECK-NEXT:    tgraph.pad
// CHECK-NEXT:    tgraph.transpose
func.func @moved(%x: tensor<4x4xf32>, %n: tensor<f32>) -> tensor<4x4xf32> {
  %0 = tgraph.pad %x, %n {low = array<i64: 1, 0>, high = array<i64: -1, 0>, interior = array<i64: 0, 0>} : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %1 = tgraph.transpose %0 {permutation = array<i64: 1, 0>} : tensor<4x4xf32>
  func.return %1 : tensor<4x4xf32>
}

// An operation with a requested device stays.
// CHECK-LABEL: func.func @asked_for
// CHECK:         tgraph.negate {{.*}} {tgraph.device = "gpu:0"}
func.func @asked_for(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.negate %x : tensor<4xf32>
  %1 = tgraph.negate %0 {tgraph.device = "gpu:0"} : tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// A conversion of unknown types stays, as it may change the element type.
// CHECK-LABEL: func.func @unknown_types
// CHECK-NEXT:    tgraph.convert
func.func @unknown_types(%x: tensor<?xnone>) -> tensor<?xnone> {
  %0 = tgraph.convert %x : tensor<?xnone>
  func.return %0 : tensor<?xnone>
}

// An iota is at least 0 and less than its size, unless its type is too narrow.
// CHECK-LABEL: func.func @positions_are_ordered
// CHECK-NEXT:    tgraph.iota
// CHECK-NEXT:    %1 = tgraph.constant<false> : tensor<2x8xi1>
// CHECK-NEXT:    %2 = tgraph.constant<true> : tensor<2x8xi1>
// CHECK-NEXT:    %3 = tgraph.constant<true> : tensor<2x8xi1>
// CHECK:         tgraph.compare {{.*}} tensor<8xi32>
// CHECK:         tgraph.compare {{.*}} tensor<200xi8>
// CHECK-NEXT:    func.return %1, %2, %3,
func.func @positions_are_ordered() -> (tensor<2x8xi1>, tensor<2x8xi1>, tensor<2x8xi1>, tensor<2x8xi1>, tensor<200xi1>) {
  %0 = tgraph.iota {dimension = 0 : i64} : tensor<8xi32>
  %n = tgraph.broadcast_in_dim %0 {broadcast_dimensions = array<i64: 1>} : (tensor<8xi32>) -> tensor<2x8xi32>
  %zero = tgraph.constant<0 : i32> : tensor<2x8xi32>
  %seven = tgraph.constant<7 : i32> : tensor<2x8xi32>
  %eight = tgraph.constant<8 : i32> : tensor<2x8xi32>
  %1 = tgraph.compare %n, %zero {direction = "LT"} : (tensor<2x8xi32>, tensor<2x8xi32>) -> tensor<2x8xi1>
  %2 = tgraph.compare %seven, %n {direction = "GE"} : (tensor<2x8xi32>, tensor<2x8xi32>) -> tensor<2x8xi1>
  %3 = tgraph.compare %n, %eight {direction = "NE"} : (tensor<2x8xi32>, tensor<2x8xi32>) -> tensor<2x8xi1>
  %4 = tgraph.compare %n, %seven {direction = "LT"} : (tensor<2x8xi32>, tensor<2x8xi32>) -> tensor<2x8xi1>
  %wide = tgraph.iota {dimension = 0 : i64} : tensor<200xi8>
  %none = tgraph.constant<0 : i8> : tensor<200xi8>
  %5 = tgraph.compare %wide, %none {direction = "LT"} : (tensor<200xi8>, tensor<200xi8>) -> tensor<200xi1>
  func.return %1, %2, %3, %4, %5 : tensor<2x8xi1>, tensor<2x8xi1>, tensor<2x8xi1>, tensor<2x8xi1>, tensor<200xi1>
}

// Comparisons with what is known of the numbers: NumPy's `i % 9` is not negative, so its
// negative indices need no code. (The first select belongs to the remainder.)
// CHECK-LABEL: func.func @indices_from_the_end
// CHECK:         %[[AT:.*]] = tgraph.select
// CHECK-NEXT:    func.return %[[AT]], %u
func.func @indices_from_the_end(%i: tensor<4xi32>, %u: tensor<4xui8>) -> (tensor<4xi32>, tensor<4xui8>) {
  %zero = tgraph.constant<0 : i32> : tensor<4xi32>
  %nine = tgraph.constant<9 : i32> : tensor<4xi32>
  %false = tgraph.constant<false> : tensor<4xi1>
  %0 = tgraph.remainder %i, %nine : tensor<4xi32>
  %1 = tgraph.compare %0, %zero {direction = "NE"} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  %2 = tgraph.compare %0, %zero {direction = "LT"} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  %3 = tgraph.compare %nine, %zero {direction = "LT"} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  %4 = tgraph.compare %2, %3 {direction = "NE"} : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %5 = tgraph.and %1, %4 : tensor<4xi1>
  %6 = tgraph.add %0, %nine : tensor<4xi32>
  %7 = tgraph.select %5, %6, %0 : (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %8 = tgraph.compare %7, %zero {direction = "LT"} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  %9 = tgraph.add %7, %nine : tensor<4xi32>
  %10 = tgraph.select %8, %9, %7 : (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %none = tgraph.constant<0 : ui8> : tensor<4xui8>
  %11 = tgraph.compare %u, %none {direction = "LT"} : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xi1>
  %12 = tgraph.select %11, %none, %u : (tensor<4xi1>, tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  func.return %10, %12 : tensor<4xi32>, tensor<4xui8>
}
