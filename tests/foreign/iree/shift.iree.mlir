// -----// IR Dump Before ScheduleAllocationPass: iree-stream-schedule-allocation //----- //
"builtin.module"() <{sym_name = "jit_shift"}> ({
  "util.global"() <{initial_value = #hal.device.target<"local", [#hal.executable.target<"llvm-cpu", "embedded-elf-x86_64", {cpu = "", cpu_features = "", data_layout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128", iree.encoding.resolver = #iree_cpu.cpu_encoding_resolver<>, max_stack_allocation_size = 32768 : i64, native_vector_size = 16 : i64, target_triple = "x86_64-unknown-unknown-eabi-elf"}>]> : !hal.device, sym_name = "__device_0", sym_visibility = "private", type = !hal.device}> : () -> () loc(unknown)
  "util.func"() <{function_type = (!hal.buffer_view) -> !hal.buffer_view, sym_name = "main"}> ({
  ^bb0(%arg0: !hal.buffer_view loc(unknown)):
    %0 = "arith.constant"() <{value = 64 : index}> : () -> index loc("jit(shift)/scatter"(callsite("shift"("record.py":34:11 to :37) at "<module>"("record.py":101:22 to :57))))
    %1 = "arith.constant"() <{value = 448 : index}> : () -> index loc("jit(shift)/slice"(callsite("shift"("record.py":34:27 to :36) at "<module>"("record.py":101:22 to :57))))
    %2 = "arith.constant"() <{value = 0 : index}> : () -> index loc(unknown)
    %3 = "arith.constant"() <{value = 512 : index}> : () -> index loc(unknown)
    %4 = "arith.constant"() <{value = 8 : index}> : () -> index loc(unknown)
    %5 = "arith.constant"() <{value = 16 : index}> : () -> index loc(unknown)
    %6 = "hal.element_type"() <{type = f32}> : () -> i32 loc(unknown)
    %7 = "hal.encoding_type"() : () -> i32 loc(unknown)
    "hal.buffer_view.assert"(%arg0, %6, %7, %4, %5) <{message = "input0"}> : (!hal.buffer_view, i32, i32, index, index) -> () loc(unknown)
    %8 = "stream.tensor.import"(%arg0, %3) <{affinity = #hal.device.affinity<@__device_0>, result_encoding = tensor<8x16xf32>}> : (!hal.buffer_view, index) -> !stream.resource<external> loc(unknown)
    %9:2 = "stream.async.execute"(%8, %3, %3) <{affinity = #hal.device.affinity<@__device_0>, operandSegmentSizes = array<i32: 1, 1, 1, 0>, tied_operands = []}> ({
    ^bb0(%arg1: !stream.resource<external> loc(fused["jit(shift)/scatter"(callsite("shift"("record.py":34:11 to :37) at "<module>"("record.py":101:22 to :57))), "jit(shift)/add"(callsite("shift"("record.py":33:11 to :16) at "<module>"("record.py":101:22 to :57)))])):
      %12 = "stream.async.dispatch"(%arg1, %3, %2, %3, %3, %3) <{entry_points = [@main_dispatch_0::@main_dispatch_0_elementwise_128_f32], operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1>, tied_operands = [-1 : index]}> : (!stream.resource<external>, index, index, index, index, index) -> !stream.resource<external> loc("jit(shift)/add"(callsite("shift"("record.py":33:11 to :16) at "<module>"("record.py":101:22 to :57))))
      %13 = "stream.async.copy"(%12, %3, %0, %3, %12, %3, %2, %1, %1) : (!stream.resource<external>, index, index, index, !stream.resource<external>, index, index, index, index) -> !stream.resource<external> loc("jit(shift)/scatter"(callsite("shift"("record.py":34:11 to :37) at "<module>"("record.py":101:22 to :57))))
      "stream.yield"(%13, %3) : (!stream.resource<external>, index) -> () loc(fused["jit(shift)/scatter"(callsite("shift"("record.py":34:11 to :37) at "<module>"("record.py":101:22 to :57))), "jit(shift)/add"(callsite("shift"("record.py":33:11 to :16) at "<module>"("record.py":101:22 to :57)))])
    }) : (!stream.resource<external>, index, index) -> (!stream.resource<external>, !stream.timepoint) loc(fused["jit(shift)/scatter"(callsite("shift"("record.py":34:11 to :37) at "<module>"("record.py":101:22 to :57))), "jit(shift)/add"(callsite("shift"("record.py":33:11 to :16) at "<module>"("record.py":101:22 to :57)))])
    %10 = "stream.timepoint.await"(%9#0, %3, %9#1) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (!stream.resource<external>, index, !stream.timepoint) -> !stream.resource<external> loc(fused["jit(shift)/scatter"(callsite("shift"("record.py":34:11 to :37) at "<module>"("record.py":101:22 to :57))), "jit(shift)/add"(callsite("shift"("record.py":33:11 to :16) at "<module>"("record.py":101:22 to :57)))])
    %11 = "stream.tensor.export"(%10, %3) <{affinity = #hal.device.affinity<@__device_0>, source_encoding = tensor<1x8x16xf32>}> : (!stream.resource<external>, index) -> !hal.buffer_view loc(unknown)
    "util.return"(%11) : (!hal.buffer_view) -> () loc(unknown)
  }) {iree.abi.stub, iree.reflection = {iree.abi.declaration = "sync func @main(%input0: tensor<8x16xf32>) -> (%output0: tensor<1x8x16xf32>)"}} : () -> () loc(unknown)
}) {stream.affinity.default = #hal.device.affinity<@__device_0>} : () -> () loc(unknown)

// -----// IR Dump After LayoutSlicesPass: iree-stream-layout-slices //----- //
"util.func"() <{function_type = (!hal.buffer_view) -> !hal.buffer_view, sym_name = "main"}> ({
^bb0(%arg0: !hal.buffer_view loc(unknown)):
  %0 = "arith.constant"() <{value = 64 : index}> : () -> index loc("jit(shift)/scatter"(callsite("shift"("record.py":34:11 to :37) at "<module>"("record.py":101:22 to :57))))
  %1 = "arith.constant"() <{value = 448 : index}> : () -> index loc("jit(shift)/slice"(callsite("shift"("record.py":34:27 to :36) at "<module>"("record.py":101:22 to :57))))
  %2 = "arith.constant"() <{value = 0 : index}> : () -> index loc(unknown)
  %3 = "arith.constant"() <{value = 512 : index}> : () -> index loc(unknown)
  %4 = "arith.constant"() <{value = 8 : index}> : () -> index loc(unknown)
  %5 = "arith.constant"() <{value = 16 : index}> : () -> index loc(unknown)
  %6 = "hal.element_type"() <{type = f32}> : () -> i32 loc(unknown)
  %7 = "hal.encoding_type"() : () -> i32 loc(unknown)
  "hal.buffer_view.assert"(%arg0, %6, %7, %4, %5) <{message = "input0"}> : (!hal.buffer_view, i32, i32, index, index) -> () loc(unknown)
  %8 = "stream.tensor.import"(%arg0, %3) <{affinity = #hal.device.affinity<@__device_0>, result_encoding = tensor<8x16xf32>}> : (!hal.buffer_view, index) -> !stream.resource<external> loc(unknown)
  %9 = "arith.constant"() <{value = 0 : index}> : () -> index loc(fused["jit(shift)/scatter"(callsite("shift"("record.py":34:11 to :37) at "<module>"("record.py":101:22 to :57))), "jit(shift)/add"(callsite("shift"("record.py":33:11 to :16) at "<module>"("record.py":101:22 to :57)))])
  %10:2 = "stream.resource.alloca"(%3) <{affinity = #hal.device.affinity<@__device_0>}> : (index) -> (!stream.resource<external>, !stream.timepoint) loc("jit(shift)/add"(callsite("shift"("record.py":33:11 to :16) at "<module>"("record.py":101:22 to :57))))
  %11 = "stream.cmd.execute"(%8, %10#0, %3, %3, %10#1) <{affinity = #hal.device.affinity<@__device_0>, operandSegmentSizes = array<i32: 2, 2, 1>}> ({
  ^bb0(%arg1: !stream.resource<external> loc(fused["jit(shift)/scatter"(callsite("shift"("record.py":34:11 to :37) at "<module>"("record.py":101:22 to :57))), "jit(shift)/add"(callsite("shift"("record.py":33:11 to :16) at "<module>"("record.py":101:22 to :57)))]), %arg2: !stream.resource<external> loc("jit(shift)/add"(callsite("shift"("record.py":33:11 to :16) at "<module>"("record.py":101:22 to :57))))):
    "stream.cmd.dispatch"(%arg1, %arg2, %3, %3, %2, %9, %3, %3) <{entry_points = [@main_dispatch_0::@main_dispatch_0_elementwise_128_f32], operandSegmentSizes = array<i32: 0, 0, 2, 2, 2, 2>, resource_accesses = [1 : i32, 2 : i32]}> : (!stream.resource<external>, !stream.resource<external>, index, index, index, index, index, index) -> () loc("jit(shift)/add"(callsite("shift"("record.py":33:11 to :16) at "<module>"("record.py":101:22 to :57))))
    "stream.cmd.copy"(%arg2, %3, %2, %arg2, %3, %0, %1) : (!stream.resource<external>, index, index, !stream.resource<external>, index, index, index) -> () loc("jit(shift)/scatter"(callsite("shift"("record.py":34:11 to :37) at "<module>"("record.py":101:22 to :57))))
    "stream.yield"() : () -> () loc(fused["jit(shift)/scatter"(callsite("shift"("record.py":34:11 to :37) at "<module>"("record.py":101:22 to :57))), "jit(shift)/add"(callsite("shift"("record.py":33:11 to :16) at "<module>"("record.py":101:22 to :57)))])
  }) : (!stream.resource<external>, !stream.resource<external>, index, index, !stream.timepoint) -> !stream.timepoint loc(fused["jit(shift)/scatter"(callsite("shift"("record.py":34:11 to :37) at "<module>"("record.py":101:22 to :57))), "jit(shift)/add"(callsite("shift"("record.py":33:11 to :16) at "<module>"("record.py":101:22 to :57)))])
  %12 = "stream.timepoint.await"(%10#0, %3, %11) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (!stream.resource<external>, index, !stream.timepoint) -> !stream.resource<external> loc(fused["jit(shift)/scatter"(callsite("shift"("record.py":34:11 to :37) at "<module>"("record.py":101:22 to :57))), "jit(shift)/add"(callsite("shift"("record.py":33:11 to :16) at "<module>"("record.py":101:22 to :57)))])
  %13 = "stream.tensor.export"(%12, %3) <{affinity = #hal.device.affinity<@__device_0>, source_encoding = tensor<1x8x16xf32>}> : (!stream.resource<external>, index) -> !hal.buffer_view loc(unknown)
  "util.return"(%13) : (!hal.buffer_view) -> () loc(unknown)
}) {iree.abi.stub, iree.reflection = {iree.abi.declaration = "sync func @main(%input0: tensor<8x16xf32>) -> (%output0: tensor<1x8x16xf32>)"}} : () -> () loc(unknown)

