// RUN: plan-opt %s | plan-opt | filecheck %s
// RUN: plan-opt %s -p canonicalize,cse | filecheck %s --check-prefix=CSE
// RUN: plan-opt %s -p "tgraph-schedule" | filecheck %s --check-prefix=ORDER
// RUN: plan-opt %s -p plan-pipeline | filecheck %s --check-prefix=PLAN

// CHECK-LABEL: @main
// CSE-LABEL: @main
// ORDER-LABEL: @main
// PLAN-LABEL: @main
func.func @main(%x: tensor<16xf32>, %p: tensor<i1>) -> tensor<16xf32> {
  // A call may lack results, and operands.
  // CHECK: tgraph.host_callback %x {callback = 0 : i64, has_side_effect} : (tensor<16xf32>) -> ()
  // CHECK-NEXT: tgraph.host_callback {callback = 1 : i64, has_side_effect} : () -> ()
  // CHECK-NEXT: tgraph.host_callback {callback = 1 : i64, has_side_effect} : () -> ()

  // Equal calls with effects stay, in order.
  // CSE: callback = 0 : i64, has_side_effect
  // CSE-NEXT: callback = 1 : i64, has_side_effect
  // CSE-NEXT: callback = 1 : i64, has_side_effect
  // PLAN: tgraph.host_callback %x {callback = 0 : i64, has_side_effect} : (memref<16xf32, "cpu:0">) -> ()
  // PLAN-NEXT: tgraph.host_callback {callback = 1 : i64, has_side_effect} : () -> ()
  // PLAN-NEXT: tgraph.host_callback {callback = 1 : i64, has_side_effect} : () -> ()
  tgraph.host_callback %x {callback = 0 : i64, has_side_effect} : (tensor<16xf32>) -> ()
  tgraph.host_callback {callback = 1 : i64, has_side_effect} : () -> ()
  tgraph.host_callback {callback = 1 : i64, has_side_effect} : () -> ()

  // Equal pure calls become one, and unused ones go.
  // CSE-COUNT-1: callback = 2
  // CSE-NOT: callback = 2
  // CSE-NOT: callback = 3
  // PLAN-COUNT-1: callback = 2
  // PLAN-NOT: callback = 2
  // PLAN-NOT: callback = 3
  %a = tgraph.host_callback %x {callback = 2 : i64} : tensor<16xf32>
  %b = tgraph.host_callback %x {callback = 2 : i64} : tensor<16xf32>
  %c = tgraph.host_callback %x {callback = 3 : i64} : tensor<16xf32>
  %s = tgraph.add %a, %b : tensor<16xf32>

  // A branch without results stays for its effects. The call that frees no memory does
  // not move before it.
  // CSE: tgraph.if %p
  // CSE: callback = 4
  // CSE: callback = 5
  // ORDER: callback = 0
  // ORDER: callback = 4
  // ORDER: callback = 5
  // PLAN: scf.if
  // PLAN: tgraph.host_callback {{.*}}callback = 4 : i64, has_side_effect
  // PLAN: callback = 5
  tgraph.if %p, %s : (tensor<i1>, tensor<16xf32>) -> () {
  ^bb0(%y: tensor<16xf32>):
    tgraph.host_callback %y {callback = 4 : i64, has_side_effect} : (tensor<16xf32>) -> ()
    tgraph.yield
  } else {
  ^bb0(%y: tensor<16xf32>):
    tgraph.yield
  }
  tgraph.host_callback {callback = 5 : i64, has_side_effect} : () -> ()
  func.return %s : tensor<16xf32>
}
