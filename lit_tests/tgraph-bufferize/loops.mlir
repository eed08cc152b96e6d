// RUN: plan-opt %s -p 'tgraph-place-devices{default="cpu:0"},tgraph-eliminate-assigns,tgraph-bufferize' --split-input-file | filecheck %s

// The loop runs in the memory of the result: only the initial value is copied, and each
// iteration overwrites the previous value in place.
// CHECK-LABEL: @in_place
// CHECK-SAME:    (%[[X:.*]]: memref<4xf32, "cpu:0">, %[[W:.*]]: memref<4xf32, "cpu:0">, %[[R:.*]]: memref<4xf32, "cpu:0"> {tgraph.result
// CHECK:         "memref.copy"(%[[X]], %[[R]])
// CHECK-NEXT:    %[[FLAG:.*]] = memref.alloc() : memref<i1, "cpu:0">
// CHECK-NEXT:    scf.while () : () -> () {
// CHECK:           tgraph.reduce {{.*}} outs(%[[FLAG]])
// CHECK-NEXT:      memref.dealloc
// CHECK-NEXT:      %[[LOADED:.*]] = memref.load %[[FLAG]][]
// CHECK-NEXT:      scf.condition(%[[LOADED]])
// CHECK-NEXT:    } do {
// CHECK-NEXT:      tgraph.multiply %[[R]], %[[W]] outs(%[[R]]) : memref<4xf32, "cpu:0">
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    memref.dealloc %[[FLAG]]
func.func @in_place(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.while %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%v: !tgraph.variable<tensor<4xf32>>, %f: tensor<4xf32>):
    %1 = tgraph.read %v : tensor<4xf32>
    %2 = tgraph.compare %1, %f {direction = "LT"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %3 = tgraph.reduce %2 {kind = "and", dimensions = array<i64: 0>} : (tensor<4xi1>) -> tensor<i1>
    tgraph.yield %3 : tensor<i1>
  } do {
  ^bb0(%v: !tgraph.variable<tensor<4xf32>>, %f: tensor<4xf32>):
    %1 = tgraph.read %v : tensor<4xf32>
    %2 = tgraph.multiply %1, %f : tensor<4xf32>
    tgraph.assign %v, %2 : tensor<4xf32>
    tgraph.yield
  }
  func.return %0 : tensor<4xf32>
}

// -----

// The loop runs in a donated argument, whose old contents have no later reader. The
// constant that the other carried value starts from is written into its buffer.
// CHECK-LABEL: @donated
// CHECK-SAME:    (%[[V:.*]]: memref<4xf32, "cpu:0"> {tgraph.variable}, %[[R:.*]]: memref<4xf32, "cpu:0"> {tgraph.result
// CHECK:         tgraph.constant<0.000000e+00 : f32> outs(%[[R]])
// CHECK-NOT:     memref.copy
// CHECK:         scf.while
// CHECK:         } do {
// CHECK-NEXT:      tgraph.add %[[V]], %[[R]] outs(%[[V]])
// CHECK-NEXT:      tgraph.negate %[[R]] outs(%[[R]])
// CHECK-NEXT:      scf.yield
func.func @donated(%v: !tgraph.variable<tensor<4xf32>>) -> tensor<4xf32> {
  %x = tgraph.read %v : tensor<4xf32>
  %z = tgraph.constant<0.0 : f32> : tensor<4xf32>
  %0, %1 = tgraph.while %x, %z : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: !tgraph.variable<tensor<4xf32>>, %b: !tgraph.variable<tensor<4xf32>>):
    %2 = tgraph.constant<false> : tensor<i1>
    tgraph.yield %2 : tensor<i1>
  } do {
  ^bb0(%a: !tgraph.variable<tensor<4xf32>>, %b: !tgraph.variable<tensor<4xf32>>):
    %2 = tgraph.read %a : tensor<4xf32>
    %3 = tgraph.read %b : tensor<4xf32>
    %4 = tgraph.add %2, %3 : tensor<4xf32>
    %5 = tgraph.negate %3 : tensor<4xf32>
    tgraph.assign %a, %4 : tensor<4xf32>
    tgraph.assign %b, %5 : tensor<4xf32>
    tgraph.yield
  }
  tgraph.assign %v, %0 : tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// -----

// Both branches write the same buffer.
// CHECK-LABEL: @branch
// CHECK-SAME:    %[[X:[a-z]+]]: memref<4xf32, "cpu:0">, %[[R:[0-9]+]]: memref<4xf32, "cpu:0"> {tgraph.result
// CHECK-NEXT:    %[[P:.*]] = memref.load %{{.*}}[] : memref<i1, "cpu:0">
// CHECK-NEXT:    scf.if %[[P]] {
// CHECK-NEXT:      tgraph.negate %[[X]] outs(%[[R]])
// CHECK-NEXT:    } else {
// CHECK-NEXT:      "memref.copy"(%[[X]], %[[R]])
// CHECK-NEXT:    }
func.func @branch(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.if %p, %x : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = tgraph.negate %a : tensor<4xf32>
    tgraph.yield %1 : tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>):
    tgraph.yield %a : tensor<4xf32>
  }
  func.return %0 : tensor<4xf32>
}

// -----

// One branch yields %a, which the other does not read and which is dead afterwards: the
// result is in its memory.
// CHECK-LABEL: @branch_forwards
// CHECK-SAME:    %[[X:[a-z]+]]: memref<4xf32, "cpu:0">
// CHECK-NEXT:    %[[A:.*]] = memref.alloc()
// CHECK-NEXT:    tgraph.sine %[[X]] outs(%[[A]])
// CHECK-NEXT:    %[[P:.*]] = memref.load %{{.*}}[] : memref<i1, "cpu:0">
// CHECK-NEXT:    scf.if %[[P]] {
// CHECK-NEXT:      tgraph.negate %[[X]] outs(%[[A]])
// CHECK-NEXT:    } else {
// CHECK-NEXT:    }
// CHECK-NEXT:    tgraph.cosine %[[A]] outs(%{{.*}})
// CHECK-NEXT:    memref.dealloc %[[A]]
func.func @branch_forwards(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %a = tgraph.sine %x : tensor<4xf32>
  %r = tgraph.if %p, %a, %x : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%b: tensor<4xf32>, %y: tensor<4xf32>):
    %0 = tgraph.negate %y : tensor<4xf32>
    tgraph.yield %0 : tensor<4xf32>
  } else {
  ^bb0(%b: tensor<4xf32>, %y: tensor<4xf32>):
    tgraph.yield %b : tensor<4xf32>
  }
  %s = tgraph.cosine %r : tensor<4xf32>
  func.return %s : tensor<4xf32>
}

// -----

// The other branch may read %a until it overwrites it with the result, as its last
// operation is elementwise.
// CHECK-LABEL: @branch_reads_before
// CHECK:         tgraph.sine %{{.*}} outs(%[[A:.*]])
// CHECK:         scf.if
// CHECK-NEXT:      %[[T:.*]] = memref.alloc()
// CHECK-NEXT:      tgraph.negate %[[A]] outs(%[[T]])
// CHECK-NEXT:      tgraph.add %[[T]], %[[A]] outs(%[[A]])
// CHECK-NEXT:      memref.dealloc %[[T]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:    }
// CHECK-NEXT:    tgraph.cosine %[[A]] outs(%{{.*}})
func.func @branch_reads_before(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %a = tgraph.sine %x : tensor<4xf32>
  %r = tgraph.if %p, %a : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%b: tensor<4xf32>):
    %0 = tgraph.negate %b : tensor<4xf32>
    %1 = tgraph.add %0, %b : tensor<4xf32>
    tgraph.yield %1 : tensor<4xf32>
  } else {
  ^bb0(%b: tensor<4xf32>):
    tgraph.yield %b : tensor<4xf32>
  }
  %s = tgraph.cosine %r : tensor<4xf32>
  func.return %s : tensor<4xf32>
}

// -----

// A branch that reads %a through a view, in another order, must not overwrite it.
// CHECK-LABEL: @branch_reads_a_view
// CHECK:         tgraph.sine %{{.*}} outs(%[[A:.*]])
// CHECK:         scf.if
// CHECK:           tgraph.add %{{.*}}, %[[A]] outs(%[[R:[a-z]+]])
// CHECK:         } else {
// CHECK-NEXT:      "memref.copy"(%[[A]], %[[R]])
func.func @branch_reads_a_view(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %a = tgraph.sine %x : tensor<4xf32>
  %r = tgraph.if %p, %a : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%b: tensor<4xf32>):
    %0 = tgraph.reverse %b {dimensions = array<i64: 0>} : tensor<4xf32>
    %1 = tgraph.add %0, %b : tensor<4xf32>
    tgraph.yield %1 : tensor<4xf32>
  } else {
  ^bb0(%b: tensor<4xf32>):
    tgraph.yield %b : tensor<4xf32>
  }
  %s = tgraph.cosine %r : tensor<4xf32>
  func.return %s : tensor<4xf32>
}

// -----

// Two results never share a buffer that both branches could yield, and no branch
// overwrites a value that it yields as another result.
// CHECK-LABEL: @branch_forwards_twice
// CHECK:         %[[A:.*]] = memref.alloc()
// CHECK:         scf.if
// CHECK-NEXT:      tgraph.negate %[[A]] outs(%[[R:.*]])
// CHECK-NEXT:      "memref.copy"(%[[A]], %[[S:.*]])
// CHECK-NEXT:    } else {
// CHECK-NEXT:      "memref.copy"(%[[A]], %[[R]])
// CHECK-NEXT:      "memref.copy"(%[[A]], %[[S]])
// CHECK-NEXT:    }
func.func @branch_forwards_twice(%p: tensor<i1>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = tgraph.sine %x : tensor<4xf32>
  %r:2 = tgraph.if %p, %a : (tensor<i1>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%b: tensor<4xf32>):
    %0 = tgraph.negate %b : tensor<4xf32>
    tgraph.yield %0, %b : tensor<4xf32>, tensor<4xf32>
  } else {
  ^bb0(%b: tensor<4xf32>):
    tgraph.yield %b, %b : tensor<4xf32>, tensor<4xf32>
  }
  %s = tgraph.cosine %r#0 : tensor<4xf32>
  %t = tgraph.cosine %r#1 : tensor<4xf32>
  func.return %s, %t : tensor<4xf32>, tensor<4xf32>
}

// -----

// Both branches compute into the variable; its old contents, which one of them reads,
// are saved before.
// CHECK-LABEL: @branch_into_variable
// CHECK-SAME:    %[[X:[a-z]+]]: memref<4xf32, "cpu:0">, %[[V:[a-z]+]]: memref<4xf32, "cpu:0"> {tgraph.variable}
// CHECK-NEXT:    %[[OLD:.*]] = memref.alloc()
// CHECK-NEXT:    "memref.copy"(%[[V]], %[[OLD]])
// CHECK-NEXT:    %[[P:.*]] = memref.load %{{.*}}[] : memref<i1, "cpu:0">
// CHECK-NEXT:    scf.if %[[P]] {
// CHECK-NEXT:      tgraph.negate %[[OLD]] outs(%[[V]])
// CHECK-NEXT:    } else {
// CHECK-NEXT:      "memref.copy"(%[[X]], %[[V]])
// CHECK-NEXT:    }
// CHECK-NEXT:    memref.dealloc %[[OLD]]
func.func @branch_into_variable(%p: tensor<i1>, %x: tensor<4xf32>, %v: !tgraph.variable<tensor<4xf32>>) {
  %old = tgraph.read %v : tensor<4xf32>
  %0 = tgraph.if %p, %x, %old outs(%v) : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %1 = tgraph.negate %b : tensor<4xf32>
    tgraph.yield %1 : tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    tgraph.yield %a : tensor<4xf32>
  }
  func.return
}

// -----

// The variable lies in the memory of the result, which has another shape: copies to it
// write a view.
// CHECK-LABEL: @reshaped_result
// CHECK-SAME:    %[[X:[a-z]+]]: memref<2x4xf32, "cpu:0">, {{.*}}, %[[R:[0-9]+]]: memref<1x2x4xf32, "cpu:0"> {tgraph.result
// CHECK:         %[[V:.*]] = memref.reinterpret_cast %[[R]] to offset: [0], sizes: [2, 4]
// CHECK-NEXT:    "memref.copy"(%[[X]], %[[V]])
// CHECK:         } do {
// CHECK:           "memref.copy"(%{{.*}}, %[[V]]) : (memref<2x4xf32, strided<[-4, 1], offset: 4>, "cpu:0">, memref<2x4xf32, "cpu:0">)
func.func @reshaped_result(%x: tensor<2x4xf32>, %n: tensor<i32>) -> tensor<1x2x4xf32> {
  %r, %i = tgraph.while %x, %n : (tensor<2x4xf32>, tensor<i32>)
      -> (tensor<2x4xf32>, tensor<i32>) {
  ^bb0(%v: !tgraph.variable<tensor<2x4xf32>>, %c: !tgraph.variable<tensor<i32>>):
    %0 = tgraph.read %c : tensor<i32>
    %1 = tgraph.constant<0 : i32> : tensor<i32>
    %2 = tgraph.compare %0, %1 {direction = "GT"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %2 : tensor<i1>
  } do {
  ^bb0(%v: !tgraph.variable<tensor<2x4xf32>>, %c: !tgraph.variable<tensor<i32>>):
    %0 = tgraph.read %v : tensor<2x4xf32>
    %1 = tgraph.reverse %0 {dimensions = array<i64: 0>} : tensor<2x4xf32>
    %2 = tgraph.read %c : tensor<i32>
    %3 = tgraph.constant<1 : i32> : tensor<i32>
    %4 = tgraph.subtract %2, %3 : tensor<i32>
    tgraph.assign %v, %1 : tensor<2x4xf32>
    tgraph.assign %c, %4 : tensor<i32>
    tgraph.yield
  }
  %y = tgraph.reshape %r : (tensor<2x4xf32>) -> tensor<1x2x4xf32>
  func.return %y : tensor<1x2x4xf32>
}
