// RUN: plan-opt %s -p canonicalize,cse --print-ir-after cse -o /dev/null 2>&1 | filecheck %s
// RUN: plan-opt %s -p canonicalize,cse --print-ir-after all -o /dev/null 2>&1 | filecheck %s --check-prefix=ALL

// CHECK-NOT: IR Dump After canonicalize
// CHECK:     // -----// IR Dump After cse //----- //
// CHECK:     func.func @f() {
// ALL:       // -----// IR Dump After canonicalize //----- //
// ALL:       // -----// IR Dump After cse //----- //
func.func @f() {
  func.return
}
