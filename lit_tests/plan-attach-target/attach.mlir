// The option --target-memory runs this pass. The contents of the file become DLTI
// attributes, which mlir-opt reads, and plans respect them.
// RUN: plan-opt %s -p 'plan-attach-target{file="%S/Inputs/cortex-m.toml"}' | filecheck %s
// RUN: plan-opt %s --target-memory %S/Inputs/cortex-m.toml -p plan-memory | filecheck %s --check-prefixes=CHECK,PLANNED

// CHECK:      dlti.target_system_spec = #dlti.target_system_spec<
// CHECK-SAME: "cpu" = #dlti.target_device_spec<"L1_cache_size_in_bytes" = 32768 : i64>
// CHECK-SAME: "sram" = #dlti.target_device_spec<"capacity" = 1024 : i64, "base" = 536870912 : i64, "alignment" = 32 : i64, "copies" = #dlti.map<"psram" = #dlti.map<"bandwidth" = 8.000000e-02 : f64>>>
// CHECK-SAME: "psram" = #dlti.target_device_spec<"capacity" = 8388608 : i64, "base" = 2415919104 : i64>
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"cpu" = #dlti.target_device_spec<"L1_cache_size_in_bytes" = 32768 : i64>>} {
  func.func @main(%x: memref<24xf32, "sram">, %y: memref<24xf32, "sram">) {
    // The alignment is that of the memory, 32 bytes, instead of 64.
    // PLANNED: memref.alloc() {alignment = 32 : i64, tgraph.arena} : memref<192xi8, "sram">
    // PLANNED: arith.constant 96 : index
    %a = memref.alloc() : memref<24xf32, "sram">
    tgraph.negate %x outs(%a) : memref<24xf32, "sram">
    %b = memref.alloc() : memref<24xf32, "sram">
    tgraph.reverse %a outs(%b) {dimensions = array<i64: 0>} : memref<24xf32, "sram">
    memref.dealloc %a : memref<24xf32, "sram">
    tgraph.negate %b outs(%y) : memref<24xf32, "sram">
    memref.dealloc %b : memref<24xf32, "sram">
    func.return
  }
}
