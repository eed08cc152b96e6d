// operandSegmentSizes that are not those of the operands: plan-check asked for an operand
// that is not there.
"func.func"() <{function_type = (f32, memref<8xf32>) -> (), sym_name = "f"}> ({
^bb0(%f: f32, %x: memref<8xf32>):
  "linalg.fill"(%f, %x) <{operandSegmentSizes = array<i32: 2147483648, 1>}> ({
  ^bb0(%in: f32, %out: f32):
    "linalg.yield"(%in) : (f32) -> ()
  }) : (f32, memref<8xf32>) -> ()
  "bufferization.dealloc"(%x) <{operandSegmentSizes = array<i32: 1000000000, 0, 0>}> : (memref<8xf32>) -> ()
  "func.return"() : () -> ()
}) : () -> ()
