// RUN: plan-opt %s -p convert-tensor-to-tgraph | filecheck %s
// RUN: plan-opt %s -p convert-tensor-to-tgraph,tgraph-bufferize | filecheck %s --check-prefix BUFFER

// Views of tensors take no memory; a slice may drop dimensions of size 1.
// CHECK-LABEL: func.func @views
// CHECK-NEXT:  %row = tgraph.slice %x {start_indices = array<i64: 2, 0>, limit_indices = array<i64: 3, 7>, strides = array<i64: 1, 2>} : (tensor<4x8xf32>) -> tensor<1x4xf32>
// CHECK-NEXT:  %row_1 = tgraph.reshape %row : (tensor<1x4xf32>) -> tensor<4xf32>
// CHECK-NEXT:  %out = tensor.empty() : tensor<4xf32>
// CHECK-NEXT:  %sum = linalg.exp ins(%row_1 : tensor<4xf32>) outs(%out : tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:  %wide = tgraph.reshape %sum : (tensor<4xf32>) -> tensor<2x2xf32>
// BUFFER-LABEL: func.func @views
// BUFFER-NEXT:   %row = memref.reinterpret_cast %x to offset: [16], sizes: [4], strides: [2] : memref<4x8xf32> to memref<4xf32, strided<[2], offset: 16>>
// BUFFER-NEXT:   %sum = memref.reinterpret_cast %0 to offset: [0], sizes: [4], strides: [1]
// BUFFER-NEXT:   linalg.exp ins(%row : memref<4xf32, strided<[2], offset: 16>>) outs(%sum : memref<4xf32>)
func.func @views(%x: tensor<4x8xf32>) -> tensor<2x2xf32> {
  %row = tensor.extract_slice %x[2, 0] [1, 4] [1, 2] : tensor<4x8xf32> to tensor<4xf32>
  %out = tensor.empty() : tensor<4xf32>
  %sum = linalg.exp ins(%row : tensor<4xf32>) outs(%out : tensor<4xf32>) -> tensor<4xf32>
  %wide = "tensor.expand_shape"(%sum) <{reassociation = [[0, 1]], static_output_shape = array<i64: 2, 2>}> : (tensor<4xf32>) -> tensor<2x2xf32>
  func.return %wide : tensor<2x2xf32>
}

// Constants become globals, except splats, which become fills.
// CHECK-LABEL:  @constants
// CHECK:          tgraph.constant<dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>> : tensor<2xf32>
// CHECK:          tgraph.constant<0.000000e+00 : f32> : tensor<512xf32>
// BUFFER-LABEL: func.func @constants
// BUFFER:         memref.get_global @constant_0 : memref<2xf32>
func.func @constants(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<512xf32>) {
  %two = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %zeros = arith.constant dense<0.0> : tensor<512xf32>
  %out = tensor.empty() : tensor<2xf32>
  %sum = linalg.add ins(%x, %two : tensor<2xf32>, tensor<2xf32>) outs(%out : tensor<2xf32>) -> tensor<2xf32>
  func.return %sum, %zeros : tensor<2xf32>, tensor<512xf32>
}
