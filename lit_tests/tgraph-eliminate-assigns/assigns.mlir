// RUN: plan-opt %s -p tgraph-eliminate-assigns 2>/dev/null | filecheck %s
// RUN: plan-opt %s -p tgraph-eliminate-assigns 2>&1 >/dev/null | filecheck %s --check-prefix=REMARK

// The update reads the old contents elementwise, so it may overwrite them.
// CHECK-LABEL: func.func @update
// CHECK:         %n = tgraph.subtract %w, %g outs(%v) : tensor<4xf32>
// CHECK-NEXT:    func.return %n
// REMARK: remark: assign is eliminated: tgraph.subtract writes the variable
func.func @update(%v: !tgraph.variable<tensor<4xf32>>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %w = tgraph.read %v : tensor<4xf32>
  %n = tgraph.subtract %w, %g : tensor<4xf32>
  tgraph.assign %v, %n : tensor<4xf32>
  func.return %n : tensor<4xf32>
}

// The old contents are read after the new contents are computed.
// CHECK-LABEL: func.func @read_later
// CHECK:         %n = tgraph.subtract %w, %g : tensor<4xf32>
// CHECK:         tgraph.assign %v, %n
// REMARK: assigns.mlir:{{[0-9]+}}:3: remark: assign stays a copy: tgraph.add reads the old contents later
func.func @read_later(%v: !tgraph.variable<tensor<4xf32>>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %w = tgraph.read %v : tensor<4xf32>
  %n = tgraph.subtract %w, %g : tensor<4xf32>
  %o = tgraph.add %w, %n : tensor<4xf32>
  tgraph.assign %v, %n : tensor<4xf32>
  func.return %o : tensor<4xf32>
}

// The old contents are read in another order than the new contents are written.
// CHECK-LABEL: func.func @through_a_view
// CHECK:         tgraph.assign %v, %n
// REMARK: remark: assign stays a copy: tgraph.add needs the old contents while it writes the new ones
func.func @through_a_view(%v: !tgraph.variable<tensor<4xf32>>) {
  %w = tgraph.read %v : tensor<4xf32>
  %r = tgraph.reverse %w {dimensions = array<i64: 0>} : tensor<4xf32>
  %n = tgraph.add %w, %r : tensor<4xf32>
  tgraph.assign %v, %n : tensor<4xf32>
  func.return
}

// A product reads a whole row or column of its operand for each element.
// CHECK-LABEL: func.func @product
// CHECK:         tgraph.assign %v, %n
// REMARK: remark: assign stays a copy: tgraph.dot_general needs the old contents while it writes the new ones
func.func @product(%v: !tgraph.variable<tensor<4x4xf32>>, %a: tensor<4x4xf32>) {
  %w = tgraph.read %v : tensor<4x4xf32>
  %n = tgraph.dot_general %w, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<4x4xf32>
  tgraph.assign %v, %n : tensor<4x4xf32>
  func.return
}

// A variable without a later reader of its old contents can hold any result.
// CHECK-LABEL: func.func @overwrite
// CHECK:         tgraph.dot_general %a, %a outs(%v)
// CHECK-NEXT:    func.return
func.func @overwrite(%v: !tgraph.variable<tensor<4x4xf32>>, %a: tensor<4x4xf32>) {
  %n = tgraph.dot_general %a, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<4x4xf32>
  tgraph.assign %v, %n : tensor<4x4xf32>
  func.return
}

// A swap is a cycle: one of the old contents must be saved.
// CHECK-LABEL: func.func @swap
// CHECK:         tgraph.assign %a, %y
// CHECK-NEXT:    tgraph.assign %b, %x
// REMARK-COUNT-2: remark: assign stays a copy: no operation of this block computes the value
func.func @swap(%a: !tgraph.variable<tensor<4xf32>>, %b: !tgraph.variable<tensor<4xf32>>) {
  %x = tgraph.read %a : tensor<4xf32>
  %y = tgraph.read %b : tensor<4xf32>
  tgraph.assign %a, %y : tensor<4xf32>
  tgraph.assign %b, %x : tensor<4xf32>
  func.return
}

// A variable is assigned its own contents: nothing to do.
// CHECK-LABEL: func.func @unchanged
// CHECK-NEXT:    func.return
// REMARK: remark: assign is removed: the variable already holds the value
func.func @unchanged(%v: !tgraph.variable<tensor<4xf32>>) {
  %x = tgraph.read %v : tensor<4xf32>
  tgraph.assign %v, %x : tensor<4xf32>
  func.return
}

// One value for two variables is computed into the first variable.
// CHECK-LABEL: func.func @two_variables
// CHECK-NEXT:    %n = tgraph.negate %g outs(%a)
// CHECK-NEXT:    tgraph.assign %b, %n
// REMARK: remark: assign stays a copy: the value is computed into another variable
func.func @two_variables(%a: !tgraph.variable<tensor<4xf32>>, %b: !tgraph.variable<tensor<4xf32>>, %g: tensor<4xf32>) {
  %n = tgraph.negate %g : tensor<4xf32>
  tgraph.assign %a, %n : tensor<4xf32>
  tgraph.assign %b, %n : tensor<4xf32>
  func.return
}

// A read between the computation and the assign returns the old contents.
// CHECK-LABEL: func.func @read_between
// CHECK:         tgraph.assign %v, %n
// REMARK: remark: assign stays a copy: func.return reads the old contents later
func.func @read_between(%v: !tgraph.variable<tensor<4xf32>>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %n = tgraph.negate %g : tensor<4xf32>
  %w = tgraph.read %v : tensor<4xf32>
  tgraph.assign %v, %n : tensor<4xf32>
  func.return %w : tensor<4xf32>
}

// The copy moves after the last reader of the old contents, so nothing is saved.
// CHECK-LABEL: func.func @moved
// CHECK:         tgraph.exponential %w
// CHECK-NEXT:    tgraph.assign %v, %n
// CHECK-NEXT:    func.return
// REMARK: remark: assign stays a copy, after tgraph.exponential: tgraph.exponential reads the old contents later
func.func @moved(%v: !tgraph.variable<tensor<4xf32>>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %w = tgraph.read %v : tensor<4xf32>
  %n = tgraph.negate %g : tensor<4xf32>
  tgraph.assign %v, %n : tensor<4xf32>
  %e = tgraph.exponential %w : tensor<4xf32>
  func.return %e : tensor<4xf32>
}

// The copy does not move past a read of the new contents.
// CHECK-LABEL: func.func @not_moved
// CHECK:         tgraph.assign %v, %n
// CHECK-NEXT:    %x = tgraph.read %v
// REMARK: remark: assign stays a copy: tgraph.add reads the old contents later
func.func @not_moved(%v: !tgraph.variable<tensor<4xf32>>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %w = tgraph.read %v : tensor<4xf32>
  %n = tgraph.negate %g : tensor<4xf32>
  tgraph.assign %v, %n : tensor<4xf32>
  %x = tgraph.read %v : tensor<4xf32>
  %e = tgraph.add %w, %x : tensor<4xf32>
  func.return %e : tensor<4xf32>
}

// A shift register with assigns in the wrong order is reordered.
// CHECK-LABEL: func.func @shift
// CHECK:         tgraph.assign %c, %y
// CHECK-NEXT:    tgraph.assign %b, %x
// CHECK-NEXT:    tgraph.assign %a, %g
func.func @shift(%a: !tgraph.variable<tensor<4xf32>>, %b: !tgraph.variable<tensor<4xf32>>, %c: !tgraph.variable<tensor<4xf32>>, %g: tensor<4xf32>) {
  %x = tgraph.read %a : tensor<4xf32>
  %y = tgraph.read %b : tensor<4xf32>
  tgraph.assign %a, %g : tensor<4xf32>
  tgraph.assign %b, %x : tensor<4xf32>
  tgraph.assign %c, %y : tensor<4xf32>
  func.return
}

// Only the last of several assigns counts, unless the contents in between are read.
// CHECK-LABEL: func.func @several
// CHECK-NEXT:    tgraph.negate %g outs(%v)
// CHECK-NEXT:    %x = tgraph.read %v
// CHECK-NEXT:    tgraph.add %x, %g outs(%v)
// CHECK-NEXT:    func.return
// REMARK: remark: assign is removed: tgraph.assign overwrites it, and nothing reads it
func.func @several(%v: !tgraph.variable<tensor<4xf32>>, %g: tensor<4xf32>) {
  tgraph.assign %v, %g : tensor<4xf32>
  %n = tgraph.negate %g : tensor<4xf32>
  tgraph.assign %v, %n : tensor<4xf32>
  %x = tgraph.read %v : tensor<4xf32>
  %m = tgraph.add %x, %g : tensor<4xf32>
  tgraph.assign %v, %m : tensor<4xf32>
  func.return
}

// A splat is filled in at the assign.
// CHECK-LABEL: func.func @reset
// CHECK:         tgraph.multiply %w, %w
// CHECK-NEXT:    tgraph.constant<0.000000e+00 : f32> outs(%v)
// CHECK-NEXT:    func.return
// REMARK: remark: assign becomes a fill
func.func @reset(%v: !tgraph.variable<tensor<4xf32>>) -> tensor<4xf32> {
  %zero = tgraph.constant<0.0 : f32> : tensor<4xf32>
  %w = tgraph.read %v : tensor<4xf32>
  %s = tgraph.multiply %w, %w : tensor<4xf32>
  tgraph.assign %v, %zero : tensor<4xf32>
  func.return %s : tensor<4xf32>
}

// An unused read does not keep an assign from moving after the old contents' reader.
// CHECK-LABEL: func.func @unused
// CHECK-NEXT:    %old = tgraph.read %v
// CHECK-NEXT:    %m = tgraph.minimum %x, %old
// CHECK-NEXT:    tgraph.assign %v, %x
// CHECK-NEXT:    func.return
// REMARK: remark: assign stays a copy, after tgraph.minimum
func.func @unused(%x: tensor<4xf32>, %v: !tgraph.variable<tensor<4xf32>>) -> tensor<4xf32> {
  %old = tgraph.read %v : tensor<4xf32>
  tgraph.assign %v, %x : tensor<4xf32>
  %unused = tgraph.read %v : tensor<4xf32>
  %m = tgraph.minimum %x, %old : tensor<4xf32>
  func.return %m : tensor<4xf32>
}

// A read whose only user is a redundant assign does not keep an assign from moving.
// CHECK-LABEL: func.func @needless
// CHECK-NEXT:    %old = tgraph.read %v
// CHECK-NEXT:    %m = tgraph.minimum %x, %old
// CHECK-NEXT:    tgraph.assign %v, %x
// CHECK-NEXT:    func.return
// REMARK: remark: assign is removed: the variable already holds the value
func.func @needless(%x: tensor<4xf32>, %v: !tgraph.variable<tensor<4xf32>>) -> tensor<4xf32> {
  %old = tgraph.read %v : tensor<4xf32>
  tgraph.assign %v, %x : tensor<4xf32>
  %new = tgraph.read %v : tensor<4xf32>
  %m = tgraph.minimum %x, %old : tensor<4xf32>
  tgraph.assign %v, %new : tensor<4xf32>
  func.return %m : tensor<4xf32>
}

// A chain of updates runs in the variable, where the destination of each update lies.
// CHECK-LABEL: func.func @chain
// CHECK:         %u = tgraph.dynamic_update_slice %w, %a, %i outs(%v)
// CHECK-NEXT:    %n = tgraph.dynamic_update_slice %u, %a, %j outs(%v)
// CHECK-NEXT:    func.return
func.func @chain(%v: !tgraph.variable<tensor<4xf32>>, %a: tensor<2xf32>, %i: tensor<i32>, %j: tensor<i32>) {
  %w = tgraph.read %v : tensor<4xf32>
  %u = tgraph.dynamic_update_slice %w, %a, %i : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
  %n = tgraph.dynamic_update_slice %u, %a, %j : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
  tgraph.assign %v, %n : tensor<4xf32>
  func.return
}

// An update whose result another operation reads later is not computed in the variable.
// CHECK-LABEL: func.func @middle_is_read
// CHECK:         %u = tgraph.dynamic_update_slice %w, %a, %i :
// CHECK-NEXT:    %n = tgraph.dynamic_update_slice %u, %a, %j outs(%v)
func.func @middle_is_read(%v: !tgraph.variable<tensor<4xf32>>, %a: tensor<2xf32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<4xf32> {
  %w = tgraph.read %v : tensor<4xf32>
  %u = tgraph.dynamic_update_slice %w, %a, %i : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
  %n = tgraph.dynamic_update_slice %u, %a, %j : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
  tgraph.assign %v, %n : tensor<4xf32>
  func.return %u : tensor<4xf32>
}
