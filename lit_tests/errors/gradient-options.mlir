// RUN: not plan-opt %s -p 'tgraph-gradient{wrt=w}' 2>&1 | filecheck %s --check-prefix=NAME
// RUN: not plan-opt %s -p 'tgraph-gradient{wrt=2}' 2>&1 | filecheck %s --check-prefix=NUMBER
// RUN: not plan-opt %s -p 'tgraph-gradient{wrt=n}' 2>&1 | filecheck %s --check-prefix=INTEGER
// RUN: not plan-opt %s -p 'tgraph-gradient{of=1}' 2>&1 | filecheck %s --check-prefix=RESULT
// RUN: not plan-opt %s -p 'tgraph-gradient{of=0 function=f}' 2>&1 | filecheck %s --check-prefix=FUNCTION
// RUN: not plan-opt %s -p 'tgraph-gradient{mirror=all}' 2>&1 | filecheck %s --check-prefix=MIRROR
// RUN: not plan-opt %s -p 'tgraph-gradient{of=x}' 2>&1 | filecheck %s --check-prefix=KIND

// NAME:     error: @main has no argument 'w'; the arguments are x, n
// NUMBER:   error: @main has no argument 2, expected 0 to 1
// INTEGER:  error: argument n has type tensor<i32>, expected elements of a float type
// RESULT:   error: @main has no result 1, expected 0
// FUNCTION: error: no function @f on tensors; those on tensors are @main
// MIRROR:   error: pass tgraph-gradient: mirror is 'all', expected one of none, cheap, attribute
// KIND:     error: pass tgraph-gradient: option 'of' is 'x'
func.func @main(%x: tensor<f32>, %n: tensor<i32>) -> tensor<f32> {
  func.return %x : tensor<f32>
}
