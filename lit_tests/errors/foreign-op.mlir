// RUN: not plan-opt %s 2>&1 | filecheck %s --check-prefix UNKNOWN
// RUN: not plan-opt --allow-unregistered-dialect %s 2>&1 | filecheck %s
// RUN: echo "import os" > %t.py
// RUN: not plan-opt %t.py 2>&1 | filecheck %s --check-prefix PYTHON
// RUN: not plan-opt --allow-unregistered-dialect %t.py 2>&1 | filecheck %s --check-prefix PYTHON

// UNKNOWN: error: operation tosa2.tanh is not registered; lower it with mlir-opt to linalg on memrefs, or give plan-opt --allow-unregistered-dialect
// CHECK:   error: the custom syntax of tosa2.tanh is not known, expected the generic form, "tosa2.tanh"(...) : ...; mlir-opt -mlir-print-op-generic prints it
// PYTHON:  py:1:1: error: expected an operation such as func.func, found 'import'; is this MLIR?
func.func @main(%a: tensor<4xf32>) {
  %0 = tosa2.tanh %a : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
