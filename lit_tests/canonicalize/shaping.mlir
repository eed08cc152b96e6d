// RUN: plan-opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: func.func @broadcasts_merge
// CHECK-NEXT:    %0 = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    func.return %0
func.func @broadcasts_merge(%b: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<1x8xf32>
  %1 = tgraph.broadcast_in_dim %0 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<1x8xf32>) -> tensor<4x8xf32>
  func.return %1 : tensor<4x8xf32>
}

// A reshape that only adds dimensions of size 1 is merged into the broadcast.
// CHECK-LABEL: func.func @broadcast_of_reshape
// CHECK-NEXT:    %0 = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 2>} : (tensor<8xf32>) -> tensor<2x4x8xf32>
// CHECK-NEXT:    func.return %0
func.func @broadcast_of_reshape(%b: tensor<8xf32>) -> tensor<2x4x8xf32> {
  %0 = tgraph.reshape %b : (tensor<8xf32>) -> tensor<1x1x8xf32>
  %1 = tgraph.broadcast_in_dim %0 {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<1x1x8xf32>) -> tensor<2x4x8xf32>
  func.return %1 : tensor<2x4x8xf32>
}

// A reshape that splits or joins dimensions is not merged into the broadcast.
// CHECK-LABEL: func.func @broadcast_of_split
// CHECK-NEXT:    tgraph.reshape
// CHECK-NEXT:    tgraph.broadcast_in_dim
func.func @broadcast_of_split(%b: tensor<8xf32>) -> tensor<3x2x4xf32> {
  %0 = tgraph.reshape %b : (tensor<8xf32>) -> tensor<2x4xf32>
  %1 = tgraph.broadcast_in_dim %0 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<2x4xf32>) -> tensor<3x2x4xf32>
  func.return %1 : tensor<3x2x4xf32>
}

// CHECK-LABEL: func.func @splats_take_any_shape
// CHECK-NEXT:    %0 = tgraph.constant<1.000000e+00 : f32> : tensor<8x4xf32>
// CHECK-NEXT:    func.return %0
func.func @splats_take_any_shape() -> tensor<8x4xf32> {
  %0 = tgraph.constant<1.0 : f32> : tensor<f32>
  %1 = tgraph.broadcast_in_dim %0 {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x8xf32>
  %2 = tgraph.transpose %1 {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  func.return %2 : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @rows_of_a_splat
// CHECK-NEXT:    %0 = tgraph.constant<1.000000e+00 : f32> : tensor<3x8xf32>
// CHECK-NEXT:    func.return %0
func.func @rows_of_a_splat(%i: tensor<3x1xi32>) -> tensor<3x8xf32> {
  %0 = tgraph.constant<1.0 : f32> : tensor<64x8xf32>
  %1 = tgraph.gather %0, %i {offset_dims = array<i64: 1>, collapsed_slice_dims = array<i64: 0>, start_index_map = array<i64: 0>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 1, 8>} : (tensor<64x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  func.return %1 : tensor<3x8xf32>
}

// CHECK-LABEL: func.func @full_like_needs_no_operand
// CHECK-NEXT:    %0 = tgraph.constant<0.000000e+00 : f32> : tensor<4xf32>
// CHECK-NEXT:    func.return %0
func.func @full_like_needs_no_operand(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.full_like %a {value = 0.0 : f32} : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @identities_go
// CHECK-NEXT:    func.return %a
func.func @identities_go(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = tgraph.reshape %a : (tensor<4x8xf32>) -> tensor<32xf32>
  %1 = tgraph.reshape %0 : (tensor<32xf32>) -> tensor<4x8xf32>
  %2 = tgraph.transpose %1 {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %3 = tgraph.transpose %2 {permutation = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %4 = tgraph.broadcast_in_dim %3 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %4 : tensor<4x8xf32>
}

// A weight gradient is computed in the layout of the weight.
// CHECK-LABEL: func.func @transposed_product
// CHECK-NEXT:    %0 = tgraph.dot_general %b, %a
// CHECK-SAME:      (tensor<16x8xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT:    func.return %0
func.func @transposed_product(%a: tensor<16x4xf32>, %b: tensor<16x8xf32>) -> tensor<8x4xf32> {
  %0 = tgraph.dot_general %a, %b {lhs_contracting_dimensions = array<i64: 0>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<16x4xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %1 = tgraph.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  func.return %1 : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @reduction_of_ones
// CHECK-NEXT:    %0 = tgraph.reshape %a : (tensor<1x8xf32>) -> tensor<8xf32>
func.func @reduction_of_ones(%a: tensor<1x8xf32>) -> tensor<8xf32> {
  %0 = tgraph.reduce %a {kind = "add", dimensions = array<i64: 0>} : (tensor<1x8xf32>) -> tensor<8xf32>
  func.return %0 : tensor<8xf32>
}

// Rows that are concatenated and sliced again are read from the operands.
// CHECK-LABEL: func.func @rows
// CHECK-NEXT:    [[B:%[a-z0-9_]+]] = tgraph.slice %b {start_indices = array<i64: 1, 0>, limit_indices = array<i64: 2, 4>
// CHECK-NEXT:    func.return %a, [[B]]
func.func @rows(%a: tensor<1x4xf32>, %b: tensor<2x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>) {
  %0 = tgraph.concatenate %a, %b {dimension = 0 : i64} : (tensor<1x4xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %1 = tgraph.slice %0 {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 1, 4>, strides = array<i64: 1, 1>} : (tensor<3x4xf32>) -> tensor<1x4xf32>
  %2 = tgraph.slice %0 {start_indices = array<i64: 1, 0>, limit_indices = array<i64: 3, 4>, strides = array<i64: 1, 1>} : (tensor<3x4xf32>) -> tensor<2x4xf32>
  %3 = tgraph.slice %2 {start_indices = array<i64: 1, 0>, limit_indices = array<i64: 2, 4>, strides = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<1x4xf32>
  func.return %1, %3 : tensor<1x4xf32>, tensor<1x4xf32>
}

// Rows that are also read together stay: else, no operand could be overwritten.
// CHECK-LABEL: func.func @rows_and_all
// CHECK:         tgraph.concatenate
// CHECK-NEXT:    tgraph.slice
func.func @rows_and_all(%a: tensor<1x4xf32>, %b: tensor<2x4xf32>) -> (tensor<1x4xf32>, tensor<2x4xf32>) {
  %0 = tgraph.concatenate %a, %b {dimension = 0 : i64} : (tensor<1x4xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %1 = tgraph.slice %0 {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 1, 4>, strides = array<i64: 1, 1>} : (tensor<3x4xf32>) -> tensor<1x4xf32>
  %2 = tgraph.slice %0 {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 2, 4>, strides = array<i64: 1, 1>} : (tensor<3x4xf32>) -> tensor<2x4xf32>
  func.return %1, %2 : tensor<1x4xf32>, tensor<2x4xf32>
}

// An update of all elements replaces the operand; a broadcast may be a reshape.
// CHECK-LABEL: func.func @all
// CHECK-NEXT:    func.return %x
func.func @all(%x: tensor<2x4xf32>, %i: tensor<i32>) -> tensor<2x4xf32> {
  %0 = tgraph.constant<0.0 : f32> : tensor<1x2x4xf32>
  %1 = tgraph.broadcast_in_dim %x {broadcast_dimensions = array<i64: 1, 2>} : (tensor<2x4xf32>) -> tensor<1x2x4xf32>
  %2 = tgraph.dynamic_update_slice %0, %1, %i, %i, %i : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x4xf32>
  %3 = tgraph.reshape %2 : (tensor<1x2x4xf32>) -> tensor<2x4xf32>
  func.return %3 : tensor<2x4xf32>
}

// A slice of one number of a constant folds to that number; other slices stay.
// CHECK-LABEL: func.func @numbers
// CHECK-NEXT:    %list = tgraph.constant<dense<
// CHECK-NEXT:    %a = tgraph.constant<29 : ui32> : tensor<1x1xui32>
// CHECK-NEXT:    %b = tgraph.slice %list
func.func @numbers() -> (tensor<1x1xui32>, tensor<1x2xui32>) {
  %list = tgraph.constant<dense<[[13, 15], [17, 29]]> : tensor<2x2xui32>> : tensor<2x2xui32>
  %a = tgraph.slice %list {start_indices = array<i64: 1, 1>, limit_indices = array<i64: 2, 2>, strides = array<i64: 1, 1>} : (tensor<2x2xui32>) -> tensor<1x1xui32>
  %b = tgraph.slice %list {start_indices = array<i64: 1, 0>, limit_indices = array<i64: 2, 2>, strides = array<i64: 1, 1>} : (tensor<2x2xui32>) -> tensor<1x2xui32>
  func.return %a, %b : tensor<1x1xui32>, tensor<1x2xui32>
}

// An elementwise operation moves before the broadcast of its operand.
// CHECK-LABEL: func.func @of_repeated
// CHECK-NEXT:    %0 = tgraph.convert %x : (tensor<64xui8>) -> tensor<64xf32>
// CHECK-NEXT:    %1 = tgraph.broadcast_in_dim %0 {broadcast_dimensions = array<i64: 1>} : (tensor<64xf32>) -> tensor<4x64x8xf32>
// CHECK-NEXT:    func.return %1
func.func @of_repeated(%x: tensor<64xui8>) -> tensor<4x64x8xf32> {
  %0 = tgraph.broadcast_in_dim %x {broadcast_dimensions = array<i64: 1>} : (tensor<64xui8>) -> tensor<4x64x8xui8>
  %1 = tgraph.convert %0 : (tensor<4x64x8xui8>) -> tensor<4x64x8xf32>
  func.return %1 : tensor<4x64x8xf32>
}

// CHECK-LABEL: func.func @of_reshaped
// CHECK-NEXT:    tgraph.broadcast_in_dim %x
// CHECK-NEXT:    tgraph.negate
func.func @of_reshaped(%x: tensor<64xf32>) -> tensor<1x64xf32> {
  %0 = tgraph.broadcast_in_dim %x {broadcast_dimensions = array<i64: 1>} : (tensor<64xf32>) -> tensor<1x64xf32>
  %1 = tgraph.negate %0 : tensor<1x64xf32>
  func.return %1 : tensor<1x64xf32>
}

// An elementwise operation also moves before equal broadcasts, scalars and splats.
// CHECK-LABEL: func.func @of_repeated_alike
// CHECK-NEXT:    %0 = tgraph.multiply %x, %y : tensor<64xf32>
// CHECK-NEXT:    [[A:%[a-z0-9_]+]] = tgraph.broadcast_in_dim %a {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<64xf32>
// CHECK-NEXT:    [[SUM:%[a-z0-9_]+]] = tgraph.add %0, [[A]] : tensor<64xf32>
// CHECK-NEXT:    tgraph.broadcast_in_dim [[SUM]] {broadcast_dimensions = array<i64: 1>} : (tensor<64xf32>) -> tensor<4x64xf32>
// CHECK-NEXT:    return
func.func @of_repeated_alike(%x: tensor<64xf32>, %y: tensor<64xf32>, %a: tensor<f32>) -> tensor<4x64xf32> {
  %0 = tgraph.broadcast_in_dim %x {broadcast_dimensions = array<i64: 1>} : (tensor<64xf32>) -> tensor<4x64xf32>
  %1 = tgraph.broadcast_in_dim %y {broadcast_dimensions = array<i64: 1>} : (tensor<64xf32>) -> tensor<4x64xf32>
  %2 = tgraph.multiply %0, %1 : tensor<4x64xf32>
  %3 = tgraph.broadcast_in_dim %a {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x64xf32>
  %4 = tgraph.add %2, %3 : tensor<4x64xf32>
  func.return %4 : tensor<4x64xf32>
}

// An elementwise operation stays if operands are broadcast along different dimensions.
// CHECK-LABEL: func.func @of_repeated_otherwise
// CHECK:         tgraph.multiply {{.*}} : tensor<64x64xf32>
func.func @of_repeated_otherwise(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64x64xf32> {
  %0 = tgraph.broadcast_in_dim %x {broadcast_dimensions = array<i64: 1>} : (tensor<64xf32>) -> tensor<64x64xf32>
  %1 = tgraph.broadcast_in_dim %y {broadcast_dimensions = array<i64: 0>} : (tensor<64xf32>) -> tensor<64x64xf32>
  %2 = tgraph.multiply %0, %1 : tensor<64x64xf32>
  func.return %2 : tensor<64x64xf32>
}

// A slice of a broadcast becomes a smaller broadcast of a slice.
// CHECK-LABEL: func.func @slice_of_repeated
// CHECK-NEXT:    %0 = tgraph.slice %x {start_indices = array<i64: 0, 2>, limit_indices = array<i64: 1, 7>, strides = array<i64: 1, 2>} : (tensor<1x8xf32>) -> tensor<1x3xf32>
// CHECK-NEXT:    %1 = tgraph.broadcast_in_dim %0 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<1x3xf32>) -> tensor<2x5x3xf32>
// CHECK-NEXT:    return
func.func @slice_of_repeated(%x: tensor<1x8xf32>) -> tensor<2x5x3xf32> {
  %0 = tgraph.broadcast_in_dim %x {broadcast_dimensions = array<i64: 1, 2>} : (tensor<1x8xf32>) -> tensor<4x9x8xf32>
  %1 = tgraph.slice %0 {start_indices = array<i64: 1, 3, 2>, limit_indices = array<i64: 3, 8, 7>, strides = array<i64: 1, 1, 2>} : (tensor<4x9x8xf32>) -> tensor<2x5x3xf32>
  func.return %1 : tensor<2x5x3xf32>
}

// CHECK-LABEL: func.func @transposed_broadcast
// CHECK-NEXT:    %0 = tgraph.broadcast_in_dim %x {broadcast_dimensions = array<i64: 2, 0>} : (tensor<64x8xf32>) -> tensor<8x4x64xf32>
// CHECK-NEXT:    func.return %0
func.func @transposed_broadcast(%x: tensor<64x8xf32>) -> tensor<8x4x64xf32> {
  %0 = tgraph.broadcast_in_dim %x {broadcast_dimensions = array<i64: 1, 2>} : (tensor<64x8xf32>) -> tensor<4x64x8xf32>
  %1 = tgraph.transpose %0 {permutation = array<i64: 2, 0, 1>} : (tensor<4x64x8xf32>) -> tensor<8x4x64xf32>
  func.return %1 : tensor<8x4x64xf32>
}

// A slice moves before a reshape that only adds and drops dimensions of size 1.
// CHECK-LABEL: func.func @slice_of_reshape
// CHECK-NEXT:    [[A:%[0-9]+]] = tgraph.slice %x {start_indices = array<i64: 1, 0>, limit_indices = array<i64: 6, 3>, strides = array<i64: 2, 1>}
// CHECK-NEXT:    tgraph.reshape [[A]] : (tensor<3x3xf32>) -> tensor<1x3x1x3xf32>
func.func @slice_of_reshape(%x: tensor<7x3xf32>) -> tensor<1x3x1x3xf32> {
  %0 = tgraph.reshape %x : (tensor<7x3xf32>) -> tensor<1x7x1x3xf32>
  %1 = tgraph.slice %0 {start_indices = array<i64: 0, 1, 0, 0>, limit_indices = array<i64: 1, 6, 1, 3>, strides = array<i64: 1, 2, 1, 1>} : (tensor<1x7x1x3xf32>) -> tensor<1x3x1x3xf32>
  func.return %1 : tensor<1x3x1x3xf32>
}

// Differences of all pairs, of which the first and the second number are read: only
// these are computed, from slices, and never stored as pairs.
// CHECK-LABEL: func.func @slices_of_elementwise
// CHECK-COUNT-4: tgraph.slice
// CHECK-NOT:     tensor<9x9x2xf32>
// CHECK-NOT:     tgraph.slice
func.func @slices_of_elementwise(%x: tensor<9x2xf32>) -> tensor<9x9x1xf32> {
  %e = tgraph.exponential %x : tensor<9x2xf32>
  %a = tgraph.broadcast_in_dim %e {broadcast_dimensions = array<i64: 0, 2>} : (tensor<9x2xf32>) -> tensor<9x9x2xf32>
  %b = tgraph.broadcast_in_dim %e {broadcast_dimensions = array<i64: 1, 2>} : (tensor<9x2xf32>) -> tensor<9x9x2xf32>
  %d = tgraph.subtract %a, %b : tensor<9x9x2xf32>
  %0 = tgraph.slice %d {start_indices = array<i64: 0, 0, 0>, limit_indices = array<i64: 9, 9, 1>, strides = array<i64: 1, 1, 1>} : (tensor<9x9x2xf32>) -> tensor<9x9x1xf32>
  %1 = tgraph.slice %d {start_indices = array<i64: 0, 0, 1>, limit_indices = array<i64: 9, 9, 2>, strides = array<i64: 1, 1, 1>} : (tensor<9x9x2xf32>) -> tensor<9x9x1xf32>
  %2 = tgraph.multiply %0, %1 : tensor<9x9x1xf32>
  func.return %2 : tensor<9x9x1xf32>
}

// The gates of an LSTM are computed together: otherwise two products would be stored
// for all gates instead of one sum. So is a value that has other readers.
// CHECK-LABEL: func.func @gates
// CHECK:         tgraph.add {{.*}} : tensor<2x8xf32>
// CHECK:         tgraph.negate %w : tensor<4x8xf32>
func.func @gates(%x: tensor<2x4xf32>, %w: tensor<4x8xf32>, %h: tensor<2x4xf32>, %u: tensor<4x8xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x8xf32>) {
  %a = tgraph.dot_general %x, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %b = tgraph.dot_general %h, %u {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %s = tgraph.add %a, %b : tensor<2x8xf32>
  %0 = tgraph.slice %s {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 2, 4>, strides = array<i64: 1, 1>} : (tensor<2x8xf32>) -> tensor<2x4xf32>
  %1 = tgraph.slice %s {start_indices = array<i64: 0, 4>, limit_indices = array<i64: 2, 8>, strides = array<i64: 1, 1>} : (tensor<2x8xf32>) -> tensor<2x4xf32>
  %n = tgraph.negate %w : tensor<4x8xf32>
  %t = tgraph.slice %n {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 2, 8>, strides = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<2x8xf32>
  %m = tgraph.dot_general %x, %n {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %p = tgraph.add %t, %m : tensor<2x8xf32>
  func.return %0, %1, %p : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x8xf32>
}

// Nothing of a dimension of size 1: the operand has no such dimension to slice.
// CHECK-LABEL: func.func @empty_slice_of_reshape
// CHECK-NEXT:    tgraph.reshape %x
// CHECK-NEXT:    tgraph.slice
func.func @empty_slice_of_reshape(%x: tensor<f32>) -> tensor<0xf32> {
  %0 = tgraph.reshape %x : (tensor<f32>) -> tensor<1xf32>
  %1 = tgraph.slice %0 {start_indices = array<i64: 1>, limit_indices = array<i64: 1>, strides = array<i64: 1>} : (tensor<1xf32>) -> tensor<0xf32>
  func.return %1 : tensor<0xf32>
}
