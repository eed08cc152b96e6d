// RUN: plan-opt %s -p convert-tensor-to-tgraph | filecheck %s

// Dynamic offsets and scalars stay.
// CHECK-LABEL: @dynamic
// CHECK:         %c = arith.constant 1.000000e+00 : f32
// CHECK:         tensor.extract_slice
func.func @dynamic(%x: tensor<8xf32>, %i: index) -> (tensor<4xf32>, f32) {
  %c = arith.constant 1.0 : f32
  %part = tensor.extract_slice %x[%i] [4] [1] : tensor<8xf32> to tensor<4xf32>
  func.return %part, %c : tensor<4xf32>, f32
}
