// REQUIRES: ortools
// RUN: plan-opt %s -p 'tgraph-rematerialize{budget=48KiB}' 2>&1 | filecheck %s --check-prefix=GREEDY
// RUN: plan-opt %s -p 'tgraph-rematerialize{budget=48KiB exact=true}' 2>&1 | filecheck %s
