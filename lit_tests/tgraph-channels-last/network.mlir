// RUN: plan-opt %s -p tgraph-channels-last | filecheck %s

// Everything after a convolution keeps channels last, up to the final reduction.
// CHECK-LABEL: func.func @network
// CHECK-NEXT:    %[[X:.*]] = tgraph.transpose %x {permutation = array<i64: 0, 2, 3, 1>}
// CHECK-NEXT:    %{{.*}} = tgraph.convolution %[[X]], %w {dim_labels = "b01f_oi01->b01f"{{.*}} -> tensor<1x8x8x4xf32>
// CHECK-NEXT:    %{{.*}} = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 3>}
// CHECK-NEXT:    %sum = tgraph.add {{.*}} : tensor<1x8x8x4xf32>
// CHECK-NEXT:    tgraph.constant
// CHECK-NEXT:    %y = tgraph.maximum
// CHECK-NEXT:    %pooled = tgraph.reduce_window %y {{.*}}window_dimensions = array<i64: 1, 2, 2, 1>
// CHECK-NEXT:    %apart = tgraph.broadcast_in_dim %pooled {broadcast_dimensions = array<i64: 0, 1, 3, 4>}
// CHECK-NEXT:    %tall = tgraph.reshape %apart : (tensor<1x4x2x4x4xf32>) -> tensor<1x8x4x4xf32>
// CHECK-NEXT:    %left = tgraph.slice %y {{.*}}limit_indices = array<i64: 1, 8, 4, 4>
// CHECK-NEXT:    %both = tgraph.concatenate %tall, %left {dimension = 3 : i64}
// CHECK-NEXT:    %[[Y:.*]] = tgraph.convolution %both, %v {dim_labels = "b01f_oi01->b01f"
// CHECK-NEXT:    %[[BACK:.*]] = tgraph.transpose %[[Y]] {permutation = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT:    %means = tgraph.reduce %[[BACK]]
func.func @network(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<4xf32>, %v: tensor<6x8x1x1xf32>) -> tensor<6xf32> {
  %0 = tgraph.convolution %x, %w {dim_labels = "bf01_oi01->bf01", window_strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x8x8xf32>
  %bias = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %sum = tgraph.add %0, %bias : tensor<1x4x8x8xf32>
  %zero = tgraph.constant<0.0 : f32> : tensor<1x4x8x8xf32>
  %y = tgraph.maximum %sum, %zero : tensor<1x4x8x8xf32>
  %pooled = tgraph.reduce_window %y {kind = "maximum", window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>, padding_low = array<i64: 0, 0, 0, 0>, padding_high = array<i64: 0, 0, 0, 0>, base_dilations = array<i64: 1, 1, 1, 1>, window_dilations = array<i64: 1, 1, 1, 1>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
  %apart = tgraph.broadcast_in_dim %pooled {broadcast_dimensions = array<i64: 0, 1, 2, 4>} : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x2x4xf32>
  %tall = tgraph.reshape %apart : (tensor<1x4x4x2x4xf32>) -> tensor<1x4x8x4xf32>
  %left = tgraph.slice %y {start_indices = array<i64: 0, 0, 0, 0>, limit_indices = array<i64: 1, 4, 8, 4>, strides = array<i64: 1, 1, 1, 1>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x4xf32>
  %both = tgraph.concatenate %tall, %left {dimension = 1 : i64} : (tensor<1x4x8x4xf32>, tensor<1x4x8x4xf32>) -> tensor<1x8x8x4xf32>
  %1 = tgraph.convolution %both, %v {dim_labels = "bf01_oi01->bf01", window_strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x8x8x4xf32>, tensor<6x8x1x1xf32>) -> tensor<1x6x8x4xf32>
  %means = tgraph.reduce %1 {kind = "add", dimensions = array<i64: 0, 2, 3>} : (tensor<1x6x8x4xf32>) -> tensor<6xf32>
  func.return %means : tensor<6xf32>
}

// Features, rows and columns are flattened in their original order.
// CHECK-LABEL: func.func @flattened
// CHECK:         %[[Y:.*]] = tgraph.convolution {{.*}}"b01f_oi01->b01f"
// CHECK-NEXT:    %[[BACK:.*]] = tgraph.transpose %[[Y]] {permutation = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT:    tgraph.reshape %[[BACK]] : (tensor<1x4x8x8xf32>) -> tensor<1x256xf32>
func.func @flattened(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<1x256xf32> {
  %0 = tgraph.convolution %x, %w {dim_labels = "bf01_oi01->bf01", window_strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<1x4x8x8xf32>
  %flat = tgraph.reshape %0 : (tensor<1x4x8x8xf32>) -> tensor<1x256xf32>
  func.return %flat : tensor<1x256xf32>
}
