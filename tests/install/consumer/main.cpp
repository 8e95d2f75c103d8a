// What somebody writes who has installed rlx: a graph with a softmax and an add, printed.
#include <iostream>

#include "rlx/graph.h"
#include "rlx/ops.h"

int main() {
  try {
    rlx::Graph graph("consumer");
    const rlx::Value x = graph.input("x", {{4, 8}, rlx::DType::F32});
    const rlx::Value bias = graph.param("bias", {{8}, rlx::DType::F32});
    graph.output(rlx::ops::add(rlx::ops::softmax(x, {.axis = -1}), bias), "y");
    rlx::verify(graph);
    std::cout << rlx::print(graph);
    return graph.type(graph.outputs()[0].value) == rlx::TensorType{{4, 8}, rlx::DType::F32} ? 0 : 1;
  } catch (const rlx::Error& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
