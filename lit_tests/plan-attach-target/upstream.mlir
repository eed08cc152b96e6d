// REQUIRES: mlir-opt
// RUN: plan-opt %S/attach.mlir --target-memory %S/Inputs/cortex-m.toml -p plan-memory --print-op-generic | mlir-opt --allow-unregistered-dialect | filecheck %s

// CHECK: #dlti.target_system_spec<{{.*}}"sram" = #dlti.target_device_spec<"capacity" = 1024
// CHECK: memref.view
