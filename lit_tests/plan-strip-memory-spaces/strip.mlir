// RUN: plan-opt %s -p plan-strip-memory-spaces | filecheck %s

// Signatures, constants and all values lose their memory space; layouts stay.
// CHECK-NOT: "cpu:0"
// CHECK:     func.func @f(%a: memref<4xf32>, %r: memref<2xf32, strided<[2]>>)
// CHECK:     memref.alloc() : memref<4xf32>
"memref.global"() <{sym_name = "c", type = memref<2xf32, "cpu:0">, initial_value = dense<[1.0, 2.0]> : tensor<2xf32>, sym_visibility = "private", constant}> : () -> ()
func.func @f(%a: memref<4xf32, "cpu:0">, %r: memref<2xf32, strided<[2]>, "cpu:0">) {
  %c = memref.get_global @c : memref<2xf32, "cpu:0">
  %0 = memref.alloc() : memref<4xf32, "cpu:0">
  memref.dealloc %0 : memref<4xf32, "cpu:0">
  func.return
}
