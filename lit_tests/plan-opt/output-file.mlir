// RUN: plan-opt %s -o %t
// RUN: filecheck %s < %t
// A failed run leaves the output file unchanged.
// RUN: not plan-opt %t.no-such-file -o %t
// RUN: filecheck %s < %t
// A path that is not a regular file is written to, not replaced.
// RUN: plan-opt %s -o /dev/stdout | filecheck %s

// CHECK: func.func @f() {
func.func @f() {
  func.return
}
