// A training step of a three-layer perceptron on two devices, with explicit gradients:
//
//   plan-opt examples/mlp_train_two_devices.mlir -p plan-pipeline
//
// The first two layers are on cpu:0, the last layer and the loss on cpu:1. Only two tensors
// move between the devices: the activations forward, and their gradient back. The weights
// are updated in place.
!batch = tensor<32x8xf32>
!hidden = tensor<32x16xf32>
!classes = tensor<32x4xf32>
!rows = tensor<32xf32>

func.func @main(%x: !batch, %y: !classes,
    %v1: !tgraph.variable<tensor<8x16xf32>>, %u1: !tgraph.variable<tensor<16xf32>>,
    %v2: !tgraph.variable<tensor<16x16xf32>>, %u2: !tgraph.variable<tensor<16xf32>>,
    %v3: !tgraph.variable<tensor<16x4xf32>>, %u3: !tgraph.variable<tensor<4xf32>>) -> tensor<f32> {
  %w1 = tgraph.read %v1 : tensor<8x16xf32>
  %b1 = tgraph.read %u1 : tensor<16xf32>
  %w2 = tgraph.read %v2 : tensor<16x16xf32>
  %b2 = tgraph.read %u2 : tensor<16xf32>
  %w3 = tgraph.read %v3 : tensor<16x4xf32>
  %b3 = tgraph.read %u3 : tensor<4xf32>

  %p1 = tgraph.dot_general %x, %w1 {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>, tgraph.device = "cpu:0"} : (!batch, tensor<8x16xf32>) -> !hidden
  %c1 = tgraph.broadcast_in_dim %b1 {broadcast_dimensions = array<i64: 1>, tgraph.device = "cpu:0"} : (tensor<16xf32>) -> !hidden
  %s1 = tgraph.add %p1, %c1 {tgraph.device = "cpu:0"} : !hidden
  %h1 = tgraph.tanh %s1 {tgraph.device = "cpu:0"} : !hidden

  %p2 = tgraph.dot_general %h1, %w2 {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>, tgraph.device = "cpu:0"} : (!hidden, tensor<16x16xf32>) -> !hidden
  %c2 = tgraph.broadcast_in_dim %b2 {broadcast_dimensions = array<i64: 1>, tgraph.device = "cpu:0"} : (tensor<16xf32>) -> !hidden
  %s2 = tgraph.add %p2, %c2 {tgraph.device = "cpu:0"} : !hidden
  %h2 = tgraph.tanh %s2 {tgraph.device = "cpu:0"} : !hidden

  %p3 = tgraph.dot_general %h2, %w3 {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>, tgraph.device = "cpu:1"} : (!hidden, tensor<16x4xf32>) -> !classes
  %c3 = tgraph.broadcast_in_dim %b3 {broadcast_dimensions = array<i64: 1>, tgraph.device = "cpu:1"} : (tensor<4xf32>) -> !classes
  %s3 = tgraph.add %p3, %c3 {tgraph.device = "cpu:1"} : !classes

  // The loss: cross entropy of the softmax, averaged over the batch.
  %largest = tgraph.reduce %s3 {kind = "maximum", dimensions = array<i64: 1>, tgraph.device = "cpu:1"} : (!classes) -> !rows
  %shift = tgraph.broadcast_in_dim %largest {broadcast_dimensions = array<i64: 0>, tgraph.device = "cpu:1"} : (!rows) -> !classes
  %logits = tgraph.subtract %s3, %shift {tgraph.device = "cpu:1"} : !classes
  %e = tgraph.exponential %logits {tgraph.device = "cpu:1"} : !classes
  %sums = tgraph.reduce %e {kind = "add", dimensions = array<i64: 1>, tgraph.device = "cpu:1"} : (!classes) -> !rows
  %log = tgraph.log %sums {tgraph.device = "cpu:1"} : !rows
  %hits = tgraph.multiply %y, %logits {tgraph.device = "cpu:1"} : !classes
  %hit = tgraph.reduce %hits {kind = "add", dimensions = array<i64: 1>, tgraph.device = "cpu:1"} : (!classes) -> !rows
  %each = tgraph.subtract %log, %hit {tgraph.device = "cpu:1"} : !rows
  %total = tgraph.reduce %each {kind = "add", dimensions = array<i64: 0>, tgraph.device = "cpu:1"} : (!rows) -> tensor<f32>
  %count = tgraph.constant<32.0 : f32> {tgraph.device = "cpu:1"} : tensor<f32>
  %loss = tgraph.divide %total, %count {tgraph.device = "cpu:1"} : tensor<f32>

  %gw1, %gb1, %gw2, %gb2, %gw3, %gb3 = tgraph.gradient %loss wrt %w1, %b1, %w2, %b2, %w3, %b3
    : tensor<f32> wrt tensor<8x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x4xf32>, tensor<4xf32>

  %r1 = tgraph.constant<0.3 : f32> : tensor<8x16xf32>
  %r2 = tgraph.constant<0.3 : f32> : tensor<16x16xf32>
  %r3 = tgraph.constant<0.3 : f32> : tensor<16x4xf32>
  %q1 = tgraph.constant<0.3 : f32> : tensor<16xf32>
  %q2 = tgraph.constant<0.3 : f32> : tensor<16xf32>
  %q3 = tgraph.constant<0.3 : f32> : tensor<4xf32>
  %dw1 = tgraph.multiply %gw1, %r1 : tensor<8x16xf32>
  %db1 = tgraph.multiply %gb1, %q1 : tensor<16xf32>
  %dw2 = tgraph.multiply %gw2, %r2 : tensor<16x16xf32>
  %db2 = tgraph.multiply %gb2, %q2 : tensor<16xf32>
  %dw3 = tgraph.multiply %gw3, %r3 : tensor<16x4xf32>
  %db3 = tgraph.multiply %gb3, %q3 : tensor<4xf32>
  %nw1 = tgraph.subtract %w1, %dw1 : tensor<8x16xf32>
  %nb1 = tgraph.subtract %b1, %db1 : tensor<16xf32>
  %nw2 = tgraph.subtract %w2, %dw2 : tensor<16x16xf32>
  %nb2 = tgraph.subtract %b2, %db2 : tensor<16xf32>
  %nw3 = tgraph.subtract %w3, %dw3 : tensor<16x4xf32>
  %nb3 = tgraph.subtract %b3, %db3 : tensor<4xf32>
  tgraph.assign %v1, %nw1 : tensor<8x16xf32>
  tgraph.assign %u1, %nb1 : tensor<16xf32>
  tgraph.assign %v2, %nw2 : tensor<16x16xf32>
  tgraph.assign %u2, %nb2 : tensor<16xf32>
  tgraph.assign %v3, %nw3 : tensor<16x4xf32>
  tgraph.assign %u3, %nb3 : tensor<4xf32>
  func.return %loss : tensor<f32>
}
