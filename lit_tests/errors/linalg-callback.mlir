// RUN: not plan-opt %s -p convert-tgraph-to-linalg 2>&1 | filecheck %s

// CHECK: linalg-callback.mlir:[[#]]:{{.*}}: error: tgraph.host_callback calls a Python function, which has no equivalent in MLIR
func.func @f(%a: memref<4xf32>) {
  tgraph.host_callback %a {callback = 0 : i64, has_side_effect} : (memref<4xf32>) -> ()
  func.return
}
