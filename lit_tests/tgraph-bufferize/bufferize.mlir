// RUN: plan-opt %s -p tgraph-bufferize --split-input-file 2>/dev/null | filecheck %s

// A result is computed into its argument; temporaries are allocated and freed after
// their last use; a result overwrites an operand that is dead after it.
// CHECK-LABEL: func.func @chain(
// CHECK-SAME:    %a: memref<4x4xf32, "cpu:0">, %[[R:[0-9]+]]: memref<4x4xf32, "cpu:0"> {tgraph.result = 0 : i32}) {
// CHECK-NEXT:    %x = memref.alloc() : memref<4x4xf32, "cpu:0">
// CHECK-NEXT:    tgraph.exponential %a outs(%x)
// CHECK-NEXT:    tgraph.negate %x outs(%x)
// CHECK-NEXT:    tgraph.dot_general %x, %a outs(%[[R]])
// CHECK-NEXT:    memref.dealloc %x
// CHECK-NEXT:    func.return
func.func @chain(%a: tensor<4x4xf32, "cpu:0">) -> tensor<4x4xf32, "cpu:0"> {
  %x = tgraph.exponential %a : tensor<4x4xf32, "cpu:0">
  %y = tgraph.negate %x : tensor<4x4xf32, "cpu:0">
  %z = tgraph.dot_general %y, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<4x4xf32, "cpu:0">
  func.return %z : tensor<4x4xf32, "cpu:0">
}

// -----

// An operand with a later reader keeps its buffer.
// CHECK-LABEL: func.func @read_again
// CHECK:         tgraph.exponential %a outs(%x)
// CHECK-NEXT:    %y = memref.alloc()
// CHECK-NEXT:    tgraph.negate %x outs(%y)
// CHECK-NEXT:    tgraph.add %x, %y outs(%{{.*}})
// CHECK-NEXT:    memref.dealloc %x
// CHECK-NEXT:    memref.dealloc %y
func.func @read_again(%a: tensor<4xf32, "cpu:0">) -> tensor<4xf32, "cpu:0"> {
  %x = tgraph.exponential %a : tensor<4xf32, "cpu:0">
  %y = tgraph.negate %x : tensor<4xf32, "cpu:0">
  %z = tgraph.add %x, %y : tensor<4xf32, "cpu:0">
  func.return %z : tensor<4xf32, "cpu:0">
}

// -----

// Views allocate nothing.
// CHECK-LABEL: func.func @views
// CHECK-NEXT:    %s = memref.reinterpret_cast %a to offset: [9], sizes: [3, 2], strides: [8, 2] : memref<4x8xf32, "cpu:0"> to memref<3x2xf32, strided<[8, 2], offset: 9>, "cpu:0">
// CHECK-NEXT:    tgraph.negate %s outs(%{{.*}})
// CHECK-NEXT:    %t = memref.reinterpret_cast %a to offset: [0], sizes: [8, 4], strides: [1, 8] : memref<4x8xf32, "cpu:0"> to memref<8x4xf32, strided<[1, 8]>, "cpu:0">
// CHECK-NEXT:    tgraph.negate %t outs(%{{.*}})
// CHECK-NEXT:    func.return
func.func @views(%a: tensor<4x8xf32, "cpu:0">) -> (tensor<3x2xf32, "cpu:0">, tensor<8x4xf32, "cpu:0">) {
  %s = tgraph.slice %a {start_indices = array<i64: 1, 1>, limit_indices = array<i64: 4, 5>, strides = array<i64: 1, 2>} : (tensor<4x8xf32, "cpu:0">) -> tensor<3x2xf32, "cpu:0">
  %0 = tgraph.negate %s : tensor<3x2xf32, "cpu:0">
  %t = tgraph.transpose %a {permutation = array<i64: 1, 0>} : (tensor<4x8xf32, "cpu:0">) -> tensor<8x4xf32, "cpu:0">
  %1 = tgraph.negate %t : tensor<8x4xf32, "cpu:0">
  func.return %0, %1 : tensor<3x2xf32, "cpu:0">, tensor<8x4xf32, "cpu:0">
}

// -----

// A broadcast that a reduction reads is a view with stride 0.
// CHECK-LABEL: func.func @broadcast
// CHECK-NEXT:    memref.reinterpret_cast %a to offset: [0], sizes: [1024, 8], strides: [0, 1]
// CHECK-NEXT:    tgraph.reduce
func.func @broadcast(%a: tensor<8xf32, "cpu:0">) -> tensor<8xf32, "cpu:0"> {
  %b = tgraph.broadcast_in_dim %a {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32, "cpu:0">) -> tensor<1024x8xf32, "cpu:0">
  %s = tgraph.reduce %b {kind = "add", dimensions = array<i64: 0>} : (tensor<1024x8xf32, "cpu:0">) -> tensor<8xf32, "cpu:0">
  func.return %s : tensor<8xf32, "cpu:0">
}

// -----

// No strides can express the reshape of a transpose, so it is stored once.
// CHECK-LABEL: func.func @reshaped_transpose
// CHECK-NEXT:    %f = memref.alloc() : memref<32xf32, "cpu:0">
// CHECK-NEXT:    %t = memref.reinterpret_cast %a
// CHECK-NEXT:    %[[V:.*]] = memref.reinterpret_cast %f to offset: [0], sizes: [8, 4], strides: [4, 1]
// CHECK-NEXT:    "memref.copy"(%t, %[[V]])
// CHECK-NEXT:    tgraph.negate %f
func.func @reshaped_transpose(%a: tensor<4x8xf32, "cpu:0">) -> tensor<32xf32, "cpu:0"> {
  %t = tgraph.transpose %a {permutation = array<i64: 1, 0>} : (tensor<4x8xf32, "cpu:0">) -> tensor<8x4xf32, "cpu:0">
  %f = tgraph.reshape %t : (tensor<8x4xf32, "cpu:0">) -> tensor<32xf32, "cpu:0">
  %n = tgraph.negate %f : tensor<32xf32, "cpu:0">
  func.return %n : tensor<32xf32, "cpu:0">
}

// -----

// A returned reshape that is not a view is stored in the result.
// CHECK-LABEL: func.func @returned_transpose
// CHECK-SAME:    %[[R:[0-9]+]]: memref<32xf32, "cpu:0"> {tgraph.result = 0 : i32})
// CHECK-NEXT:    %t = memref.reinterpret_cast %a
// CHECK-NEXT:    %[[V:.*]] = memref.reinterpret_cast %[[R]] to offset: [0], sizes: [8, 4], strides: [4, 1]
// CHECK-NEXT:    "memref.copy"(%t, %[[V]])
// CHECK-NEXT:    func.return
func.func @returned_transpose(%a: tensor<4x8xf32, "cpu:0">) -> tensor<32xf32, "cpu:0"> {
  %t = tgraph.transpose %a {permutation = array<i64: 1, 0>} : (tensor<4x8xf32, "cpu:0">) -> tensor<8x4xf32, "cpu:0">
  %f = tgraph.reshape %t : (tensor<8x4xf32, "cpu:0">) -> tensor<32xf32, "cpu:0">
  func.return %f : tensor<32xf32, "cpu:0">
}

// -----

// A returned view of a computed value is copied to the result at its definition, and
// later reads use the result: the live range of the value ends there.
// CHECK-LABEL: func.func @returned_view
// CHECK-SAME:    %[[S:[0-9]+]]: memref<4x2xf32, "cpu:0"> {tgraph.result = 0 : i32}
// CHECK-SAME:    %[[T:[0-9]+]]: memref<2x4xf32, "cpu:0"> {tgraph.result = 1 : i32}
// CHECK-NEXT:    %e = memref.alloc()
// CHECK-NEXT:    tgraph.exponential %a outs(%e)
// CHECK-NEXT:    %s = memref.reinterpret_cast %e
// CHECK-NEXT:    "memref.copy"(%s, %[[S]])
// CHECK-NEXT:    memref.dealloc %e
// CHECK-NEXT:    %t = memref.reinterpret_cast %[[S]]
// CHECK-NEXT:    "memref.copy"(%t, %[[T]])
// CHECK-NEXT:    tgraph.negate %[[S]] outs(%{{.*}})
// CHECK-NEXT:    func.return
func.func @returned_view(%a: tensor<4x8xf32, "cpu:0">) -> (tensor<4x2xf32, "cpu:0">, tensor<2x4xf32, "cpu:0">, tensor<4x2xf32, "cpu:0">) {
  %e = tgraph.exponential %a : tensor<4x8xf32, "cpu:0">
  %s = tgraph.slice %e {start_indices = array<i64: 0, 6>, limit_indices = array<i64: 4, 8>, strides = array<i64: 1, 1>} : (tensor<4x8xf32, "cpu:0">) -> tensor<4x2xf32, "cpu:0">
  %t = tgraph.transpose %s {permutation = array<i64: 1, 0>} : (tensor<4x2xf32, "cpu:0">) -> tensor<2x4xf32, "cpu:0">
  %n = tgraph.negate %s : tensor<4x2xf32, "cpu:0">
  func.return %s, %t, %n : tensor<4x2xf32, "cpu:0">, tensor<2x4xf32, "cpu:0">, tensor<4x2xf32, "cpu:0">
}

// -----

// A reshaped value that is returned is computed directly into the result.
// CHECK-LABEL: func.func @reshaped_result
// CHECK-SAME:    %[[R:[0-9]+]]: memref<32xf32, "cpu:0"> {tgraph.result = 0 : i32})
// CHECK-NEXT:    %[[V:.*]] = memref.reinterpret_cast %[[R]] to offset: [0], sizes: [4, 8], strides: [8, 1]
// CHECK-NEXT:    tgraph.exponential %a outs(%[[V]])
// CHECK-NEXT:    func.return
func.func @reshaped_result(%a: tensor<4x8xf32, "cpu:0">) -> tensor<32xf32, "cpu:0"> {
  %e = tgraph.exponential %a : tensor<4x8xf32, "cpu:0">
  %f = tgraph.reshape %e : (tensor<4x8xf32, "cpu:0">) -> tensor<32xf32, "cpu:0">
  func.return %f : tensor<32xf32, "cpu:0">
}

// -----

// The variable is updated in place; result 0 is its contents, result 1 the sum.
// CHECK-LABEL: func.func @update(
// CHECK-SAME:    %v: memref<4xf32, "cpu:0"> {tgraph.result = 0 : i32, tgraph.variable}
// CHECK-SAME:    {tgraph.result = 1 : i32})
// CHECK-NEXT:    tgraph.subtract %v, %g outs(%v)
// CHECK-NEXT:    tgraph.reduce %v
// CHECK-NEXT:    func.return
func.func @update(%v: !tgraph.variable<tensor<4xf32, "cpu:0">> {tgraph.result = 0 : i32}, %g: tensor<4xf32, "cpu:0">) -> tensor<f32, "cpu:0"> {
  %w = tgraph.read %v : tensor<4xf32, "cpu:0">
  %n = tgraph.subtract %w, %g outs(%v) : tensor<4xf32, "cpu:0">
  %s = tgraph.reduce %n {kind = "add", dimensions = array<i64: 0>} : (tensor<4xf32, "cpu:0">) -> tensor<f32, "cpu:0">
  func.return %s : tensor<f32, "cpu:0">
}

// -----

// A swap saves one of the old contents.
// CHECK-LABEL: func.func @swap
// CHECK-NEXT:    %x = memref.alloc()
// CHECK-NEXT:    "memref.copy"(%a, %x)
// CHECK-NEXT:    "memref.copy"(%b, %a)
// CHECK-NEXT:    "memref.copy"(%x, %b)
// CHECK-NEXT:    memref.dealloc %x
func.func @swap(%a: !tgraph.variable<tensor<4xf32, "cpu:0">>, %b: !tgraph.variable<tensor<4xf32, "cpu:0">>) {
  %x = tgraph.read %a : tensor<4xf32, "cpu:0">
  %y = tgraph.read %b : tensor<4xf32, "cpu:0">
  tgraph.assign %a, %y : tensor<4xf32, "cpu:0">
  tgraph.assign %b, %x : tensor<4xf32, "cpu:0">
  func.return
}

// -----

// Old contents are saved once for all their readers, as late as possible.
// CHECK-LABEL: func.func @saved_late
// CHECK-NEXT:    %n = memref.alloc()
// CHECK-NEXT:    tgraph.exponential %v outs(%n)
// CHECK-NEXT:    %w = memref.alloc()
// CHECK-NEXT:    "memref.copy"(%v, %w)
// CHECK-NEXT:    "memref.copy"(%n, %v)
// CHECK-NEXT:    memref.dealloc %n
// CHECK-NEXT:    tgraph.add %w, %v outs
// CHECK-NEXT:    %[[R:.*]] = memref.reinterpret_cast %w
// CHECK-NEXT:    tgraph.add %[[R]], %w outs
// CHECK-NEXT:    memref.dealloc %w
// CHECK-NEXT:    func.return
func.func @saved_late(%v: !tgraph.variable<tensor<4xf32, "cpu:0">>) -> (tensor<4xf32, "cpu:0">, tensor<4xf32, "cpu:0">) {
  %w = tgraph.read %v : tensor<4xf32, "cpu:0">
  %again = tgraph.read %v : tensor<4xf32, "cpu:0">
  %r = tgraph.reverse %again {dimensions = array<i64: 0>} : tensor<4xf32, "cpu:0">
  %n = tgraph.exponential %w : tensor<4xf32, "cpu:0">
  tgraph.assign %v, %n : tensor<4xf32, "cpu:0">
  %x = tgraph.read %v : tensor<4xf32, "cpu:0">
  %s = tgraph.add %w, %x : tensor<4xf32, "cpu:0">
  %t = tgraph.add %r, %again : tensor<4xf32, "cpu:0">
  func.return %s, %t : tensor<4xf32, "cpu:0">, tensor<4xf32, "cpu:0">
}

// -----

// Returned old contents are saved directly in the result.
// CHECK-LABEL: func.func @saved_result(
// CHECK-SAME:    %[[R:[0-9]+]]: memref<4xf32, "cpu:0"> {tgraph.result = 0 : i32})
// CHECK-NEXT:    "memref.copy"(%v, %[[R]])
// CHECK-NEXT:    "memref.copy"(%g, %v)
// CHECK-NEXT:    func.return
func.func @saved_result(%v: !tgraph.variable<tensor<4xf32, "cpu:0">>, %g: tensor<4xf32, "cpu:0">) -> tensor<4xf32, "cpu:0"> {
  %w = tgraph.read %v : tensor<4xf32, "cpu:0">
  tgraph.assign %v, %g : tensor<4xf32, "cpu:0">
  func.return %w : tensor<4xf32, "cpu:0">
}

// -----

// Attributes stay; a copy is on the stream of the operation that needs it, a dealloc on
// the stream of the last reader.
// CHECK-LABEL: func.func @streams
// CHECK:         tgraph.exponential %a outs(%x) {my.note = "kept", tgraph.stream = 1 : i32}
// CHECK-NEXT:    tgraph.reduce %x
// CHECK-NEXT:    memref.dealloc %x {tgraph.stream = 2 : i32}
// CHECK-NEXT:    "memref.copy"(%a, %v) {tgraph.stream = 3 : i32}
func.func @streams(%v: !tgraph.variable<tensor<4xf32, "cpu:0">>, %a: tensor<4xf32, "cpu:0">) -> tensor<f32, "cpu:0"> {
  %x = tgraph.exponential %a {my.note = "kept", tgraph.stream = 1 : i32} : tensor<4xf32, "cpu:0">
  %s = tgraph.reduce %x {kind = "add", dimensions = array<i64: 0>, tgraph.stream = 2 : i32} : (tensor<4xf32, "cpu:0">) -> tensor<f32, "cpu:0">
  tgraph.assign %v, %a {tgraph.stream = 3 : i32} : tensor<4xf32, "cpu:0">
  func.return %s : tensor<f32, "cpu:0">
}

// -----

// Small constants become globals, one for each distinct value; large ones are fills.
// CHECK:         "memref.global"() <{sym_name = "constant_0"
// CHECK-SAME:      initial_value = dense<[1, 2]> : tensor<2xi32>
// CHECK-NOT:     memref.global
// CHECK-LABEL: func.func @constants
// CHECK-NEXT:    %a = memref.get_global @constant_0
// CHECK-NEXT:    tgraph.add %a, %a
// CHECK-NEXT:    %c = memref.alloc() : memref<1024xf32, "cpu:0">
// CHECK-NEXT:    tgraph.constant<1.000000e+00 : f32> outs(%c)
// CHECK-NEXT:    tgraph.reduce %c
func.func @constants() -> (tensor<2xi32, "cpu:0">, tensor<f32, "cpu:0">) {
  %a = tgraph.constant<dense<[1, 2]> : tensor<2xi32>> : tensor<2xi32, "cpu:0">
  %b = tgraph.constant<dense<[1, 2]> : tensor<2xi32>> : tensor<2xi32, "cpu:0">
  %s = tgraph.add %a, %b : tensor<2xi32, "cpu:0">
  %c = tgraph.constant<1.0 : f32> : tensor<1024xf32, "cpu:0">
  %r = tgraph.reduce %c {kind = "add", dimensions = array<i64: 0>} : (tensor<1024xf32, "cpu:0">) -> tensor<f32, "cpu:0">
  func.return %s, %r : tensor<2xi32, "cpu:0">, tensor<f32, "cpu:0">
}

// -----

// A copy between devices becomes a memref.copy between memory spaces.
// CHECK-LABEL: func.func @device_copy
// CHECK-NEXT:    "memref.copy"(%a, %{{.*}}) : (memref<4xf32, "cpu:0">, memref<4xf32, "gpu:0">) -> ()
func.func @device_copy(%a: tensor<4xf32, "cpu:0">) -> tensor<4xf32, "gpu:0"> {
  %b = tgraph.device_copy %a : (tensor<4xf32, "cpu:0">) -> tensor<4xf32, "gpu:0">
  func.return %b : tensor<4xf32, "gpu:0">
}

// -----

// A returned argument is copied, and so is a value that is returned twice.
// CHECK-LABEL: func.func @copies
// CHECK:         tgraph.negate %a outs(%[[X:.*]])
// CHECK-NEXT:    "memref.copy"(%a, %{{.*}})
// CHECK-NEXT:    "memref.copy"(%[[X]], %{{.*}})
// CHECK-NEXT:    func.return
func.func @copies(%a: tensor<4xf32, "cpu:0">) -> (tensor<4xf32, "cpu:0">, tensor<4xf32, "cpu:0">, tensor<4xf32, "cpu:0">) {
  %x = tgraph.negate %a : tensor<4xf32, "cpu:0">
  func.return %a, %x, %x : tensor<4xf32, "cpu:0">, tensor<4xf32, "cpu:0">, tensor<4xf32, "cpu:0">
}
