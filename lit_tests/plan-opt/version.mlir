// RUN: plan-opt --version | filecheck %s

// CHECK: plan-opt {{[0-9.]+}} (xdsl 0.{{[0-9.]+}}, Python 3.{{[0-9.]+}})
