// RUN: plan-opt %s -p 'plan-memory{arena=global}' --allow-unregistered-dialect 2>/dev/null | filecheck %s

// The arenas of one function have different names, whether their memory spaces are
// numbers or attributes that name nothing.
// CHECK: sym_name = "main_arena", type = memref<64xi8>,
// CHECK: sym_name = "main_arena_3", type = memref<128xi8, 3 : i64>,
// CHECK: sym_name = "main_arena_1", type = memref<192xi8, #npu.sram>,
func.func @main(%x: memref<16xf32>) {
  %a = memref.alloc() : memref<16xf32>
  %b = memref.alloc() : memref<32xf32, 3 : i64>
  %c = memref.alloc() : memref<48xf32, #npu.sram>
  "test.use"(%a, %b, %c) : (memref<16xf32>, memref<32xf32, 3 : i64>, memref<48xf32, #npu.sram>) -> ()
  memref.dealloc %a : memref<16xf32>
  memref.dealloc %b : memref<32xf32, 3 : i64>
  memref.dealloc %c : memref<48xf32, #npu.sram>
  func.return
}
