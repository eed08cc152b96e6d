// RUN: plan-opt %s -p tgraph-sink-reshapes | filecheck %s

// A linear layer in PyTorch: the product is flat, later values are not. Bias and relu
// move to the product, into whose group they can be fused.
// CHECK-LABEL: func.func @linear
// CHECK:         %product = tgraph.dot_general
// CHECK-NEXT:    %[[BIAS:.*]] = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 1>} : (tensor<16xf32>) -> tensor<32x16xf32>
// CHECK-NEXT:    %sum = tgraph.add %product, %[[BIAS]] : tensor<32x16xf32>
// CHECK-NEXT:    %[[ZERO:.*]] = tgraph.constant<0.000000e+00 : f32> : tensor<32x16xf32>
// CHECK-NEXT:    %y = tgraph.maximum %sum, %[[ZERO]] : tensor<32x16xf32>
// CHECK-NEXT:    %[[Y:.*]] = tgraph.reshape %y : (tensor<32x16xf32>) -> tensor<4x8x16xf32>
// CHECK-NEXT:    func.return %[[Y]]
func.func @linear(%x: tensor<32x8xf32>, %w: tensor<8x16xf32>, %b: tensor<16xf32>) -> tensor<4x8x16xf32> {
  %product = tgraph.dot_general %x, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<32x8xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  %whole = tgraph.reshape %product : (tensor<32x16xf32>) -> tensor<4x8x16xf32>
  %bias = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 2>} : (tensor<16xf32>) -> tensor<4x8x16xf32>
  %sum = tgraph.add %whole, %bias : tensor<4x8x16xf32>
  %zero = tgraph.constant<0.0 : f32> : tensor<4x8x16xf32>
  %y = tgraph.maximum %sum, %zero : tensor<4x8x16xf32>
  func.return %y : tensor<4x8x16xf32>
}

// A dimension is split: an operand broadcast along it is reshaped first.
// CHECK-LABEL: func.func @group_norm
// CHECK:         %n = tgraph.multiply
// CHECK-NEXT:    %[[SCALE:.*]] = tgraph.reshape %scale : (tensor<8xf32>) -> tensor<2x4xf32>
// CHECK-NEXT:    %[[WIDE:.*]] = tgraph.broadcast_in_dim %[[SCALE]] {broadcast_dimensions = array<i64: 2, 3>} : (tensor<2x4xf32>) -> tensor<3x5x2x4xf32>
// CHECK-NEXT:    %y = tgraph.multiply %n, %[[WIDE]] : tensor<3x5x2x4xf32>
// CHECK-NEXT:    tgraph.reshape %y
func.func @group_norm(%x: tensor<3x5x2x4xf32>, %r: tensor<3x5x2x4xf32>, %scale: tensor<8xf32>) -> tensor<3x5x8xf32> {
  %n = tgraph.multiply %x, %r : tensor<3x5x2x4xf32>
  %flat = tgraph.reshape %n : (tensor<3x5x2x4xf32>) -> tensor<3x5x8xf32>
  %scales = tgraph.broadcast_in_dim %scale {broadcast_dimensions = array<i64: 2>} : (tensor<8xf32>) -> tensor<3x5x8xf32>
  %y = tgraph.multiply %flat, %scales : tensor<3x5x8xf32>
  func.return %y : tensor<3x5x8xf32>
}

// Nothing can be broadcast along half of a dimension.
// CHECK-LABEL: func.func @positions
// CHECK:         tgraph.reshape %n
// CHECK:         tgraph.add
// CHECK-NEXT:    func.return
func.func @positions(%x: tensor<32x16xf32>, %p: tensor<8x16xf32>) -> tensor<4x8x16xf32> {
  %n = tgraph.negate %x : tensor<32x16xf32>
  %whole = tgraph.reshape %n : (tensor<32x16xf32>) -> tensor<4x8x16xf32>
  %all = tgraph.broadcast_in_dim %p {broadcast_dimensions = array<i64: 1, 2>} : (tensor<8x16xf32>) -> tensor<4x8x16xf32>
  %y = tgraph.add %whole, %all : tensor<4x8x16xf32>
  func.return %y : tensor<4x8x16xf32>
}

// A reduction can be fused with its operand without the reshape.
// CHECK-LABEL: func.func @sum
// CHECK:         tgraph.reshape %n
// CHECK-NEXT:    tgraph.exponential
// CHECK-NEXT:    tgraph.reduce
func.func @sum(%x: tensor<32x16xf32>) -> tensor<4xf32> {
  %n = tgraph.negate %x : tensor<32x16xf32>
  %whole = tgraph.reshape %n : (tensor<32x16xf32>) -> tensor<4x128xf32>
  %e = tgraph.exponential %whole : tensor<4x128xf32>
  %y = tgraph.reduce %e {kind = "add", dimensions = array<i64: 1>} : (tensor<4x128xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// As in ONNX, the mean of a row keeps a dimension of size 1. Its broadcast reads the
// flat mean, so the row is one group.
// CHECK-LABEL: func.func @centered
// CHECK:         %mean = tgraph.divide %{{.*}}, %{{.*}} : tensor<3x5xf32>
// CHECK-NEXT:    tgraph.broadcast_in_dim %mean {broadcast_dimensions = array<i64: 0, 1>} : (tensor<3x5xf32>) -> tensor<3x5x8xf32>
// CHECK-NEXT:    tgraph.subtract
func.func @centered(%x: tensor<3x5x8xf32>) -> tensor<3x5x8xf32> {
  %sum = tgraph.reduce %x {kind = "add", dimensions = array<i64: 2>} : (tensor<3x5x8xf32>) -> tensor<3x5xf32>
  %kept = tgraph.reshape %sum : (tensor<3x5xf32>) -> tensor<3x5x1xf32>
  %count = tgraph.constant<8.0 : f32> : tensor<3x5x1xf32>
  %mean = tgraph.divide %kept, %count : tensor<3x5x1xf32>
  %repeated = tgraph.broadcast_in_dim %mean {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<3x5x1xf32>) -> tensor<3x5x8xf32>
  %y = tgraph.subtract %x, %repeated : tensor<3x5x8xf32>
  func.return %y : tensor<3x5x8xf32>
}

// Rows are joined before a product and split after it: both reshapes are removed.
// CHECK-LABEL: func.func @rows
// CHECK-NEXT:    %product = tgraph.dot_general %x, %w {{.*}}lhs_contracting_dimensions = array<i64: 2>{{.*}} -> tensor<4x8x16xf32>
// CHECK-NEXT:    %[[BIAS:.*]] = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 2>}
// CHECK-NEXT:    %sum = tgraph.add %product, %[[BIAS]] : tensor<4x8x16xf32>
// CHECK-NEXT:    %y = tgraph.add %sum, %r : tensor<4x8x16xf32>
// CHECK-NEXT:    func.return %y
func.func @rows(%x: tensor<4x8x8xf32>, %w: tensor<8x16xf32>, %b: tensor<16xf32>, %r: tensor<4x8x16xf32>) -> tensor<4x8x16xf32> {
  %flat = tgraph.reshape %x : (tensor<4x8x8xf32>) -> tensor<32x8xf32>
  %product = tgraph.dot_general %flat, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<32x8xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  %bias = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 1>} : (tensor<16xf32>) -> tensor<32x16xf32>
  %sum = tgraph.add %product, %bias : tensor<32x16xf32>
  %whole = tgraph.reshape %sum : (tensor<32x16xf32>) -> tensor<4x8x16xf32>
  %y = tgraph.add %whole, %r : tensor<4x8x16xf32>
  func.return %y : tensor<4x8x16xf32>
}

// Rows with split elements: heads of attention are joined to one dimension first.
// CHECK-LABEL: func.func @heads
// CHECK-NEXT:    %flat = tgraph.reshape %x : (tensor<4x8x2x4xf32>) -> tensor<4x8x8xf32>
// CHECK-NEXT:    %product = tgraph.dot_general %flat, %w {{.*}} -> tensor<4x8x16xf32>
// CHECK-NEXT:    func.return %product
func.func @heads(%x: tensor<4x8x2x4xf32>, %w: tensor<8x16xf32>) -> tensor<4x8x16xf32> {
  %flat = tgraph.reshape %x : (tensor<4x8x2x4xf32>) -> tensor<32x8xf32>
  %product = tgraph.dot_general %flat, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<32x8xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  %whole = tgraph.reshape %product : (tensor<32x16xf32>) -> tensor<4x8x16xf32>
  func.return %whole : tensor<4x8x16xf32>
}

// A row that joins several rows is not a row of the original.
// CHECK-LABEL: func.func @images
// CHECK:         tgraph.dot_general %flat, %w
func.func @images(%x: tensor<4x8x8xf32>, %w: tensor<64x16xf32>) -> tensor<4x16xf32> {
  %flat = tgraph.reshape %x : (tensor<4x8x8xf32>) -> tensor<4x64xf32>
  %product = tgraph.dot_general %flat, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<4x64xf32>, tensor<64x16xf32>) -> tensor<4x16xf32>
  func.return %product : tensor<4x16xf32>
}

// Stacked values are computed with the dimension of size 1, unless this prevents fusion
// with their operands.
// CHECK-LABEL: func.func @stacked
// CHECK-NEXT:    [[X:%.+]] = tgraph.reshape %x : (tensor<8xf32>) -> tensor<8x1xf32>
// CHECK-NEXT:    [[SINE:%.+]] = tgraph.sine [[X]] : tensor<8x1xf32>
// CHECK-NEXT:    [[SQUARE:%.+]] = tgraph.multiply [[SINE]], [[SINE]] : tensor<8x1xf32>
// CHECK:         [[SUM:%.+]] = tgraph.reduce
// CHECK-NEXT:    [[ROOT:%.+]] = tgraph.sqrt [[SUM]] : tensor<8xf32>
// CHECK-NEXT:    [[LAST:%.+]] = tgraph.broadcast_in_dim [[ROOT]]
// CHECK-NEXT:    tgraph.concatenate [[SQUARE]], [[LAST]]
func.func @stacked(%x: tensor<8xf32>, %y: tensor<8x4xf32>) -> tensor<8x2xf32> {
  %0 = tgraph.sine %x : tensor<8xf32>
  %1 = tgraph.multiply %0, %0 : tensor<8xf32>
  %2 = tgraph.broadcast_in_dim %1 {broadcast_dimensions = array<i64: 0>} : (tensor<8xf32>) -> tensor<8x1xf32>
  %3 = tgraph.reduce %y {kind = "add", dimensions = array<i64: 1>} : (tensor<8x4xf32>) -> tensor<8xf32>
  %4 = tgraph.sqrt %3 : tensor<8xf32>
  %5 = tgraph.broadcast_in_dim %4 {broadcast_dimensions = array<i64: 0>} : (tensor<8xf32>) -> tensor<8x1xf32>
  %6 = tgraph.concatenate %2, %5 {dimension = 1 : i64} : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x2xf32>
  func.return %6 : tensor<8x2xf32>
}

// Broadcast values are reduced before the reshape, so nothing is copied.
// CHECK-LABEL: func.func @repeated
// CHECK:         %wide = tgraph.broadcast_in_dim %x
// CHECK-NEXT:    %most = tgraph.reduce %wide {kind = "maximum", dimensions = array<i64: 1, 2>} : (tensor<8x2x4xf32>) -> tensor<8xf32>
// CHECK-NEXT:    func.return %most
func.func @repeated(%x: tensor<8x4xf32>) -> tensor<8xf32> {
  %wide = tgraph.broadcast_in_dim %x {broadcast_dimensions = array<i64: 0, 2>} : (tensor<8x4xf32>) -> tensor<8x2x4xf32>
  %joined = tgraph.reshape %wide : (tensor<8x2x4xf32>) -> tensor<8x8xf32>
  %most = tgraph.reduce %joined {kind = "maximum", dimensions = array<i64: 1>} : (tensor<8x8xf32>) -> tensor<8xf32>
  func.return %most : tensor<8xf32>
}
