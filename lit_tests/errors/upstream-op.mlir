// RUN: not plan-opt %s 2>&1 | filecheck %s
// RUN: mkdir -p %t && echo 'func.func @f() { "scf.forall"() ({}) : () -> () func.return }' > %t/generic.mlir
// RUN: plan-opt %t/generic.mlir

// CHECK: upstream-op.mlir:7:3: error: operation scf.forall is not registered; did you mean 'scf.for'?; lower it with mlir-opt to linalg on memrefs, or give the generic form (mlir-opt -mlir-print-op-generic)
func.func @f() {
  scf.forall (%i) in (8) {
  }
  func.return
}
