// RUN: not plan-opt %s -p 'cse,plan-memory{alignment 64}' 2>&1 | filecheck %s

func.func @f() {
  func.return
}

// CHECK-NOT:  Traceback
// CHECK:      plan-opt: error: pass-pipeline:1:27: expected argument name here
// CHECK-NEXT: cse,plan-memory{alignment 64}
// CHECK-NEXT: {{^}}                          ^
// CHECK-NEXT: note: -p takes 'pass,pass{option=1 option=word option="1.5 MiB"}'; all but

// RUN: not plan-opt %s -p 'plan-pipeline{budget=32 KiB}' 2>&1 | filecheck %s --check-prefix=SPACE
// SPACE: pass plan-pipeline has no option 'KiB', expected one of {{.*}}; values with spaces are in double quotes

// RUN: not plan-opt %s plan-pipeline 2>&1 | filecheck %s --check-prefix=STRAY
// STRAY: unknown argument 'plan-pipeline'; there is one FILE, and passes are named by -p: -p 'plan-pipeline{
