// Runs an element-wise program over a tensor: one pass over memory, in blocks, by all threads.
#pragma once

#include "backends/cpu/elementwise/layout.h"
#include "backends/cpu/elementwise/program.h"

namespace rlx {
class ThreadPool;
}

namespace rlx::cpu {

// Element 0 of every input, as the layout's strides count from there. The result is dense; it may be the very bytes of
// an operand of as many elements of its size.
void run_program(const Program& program, const Layout& layout, const std::byte* const* inputs, std::byte* result,
                 ThreadPool& pool, std::byte* scratch);

}  // namespace rlx::cpu
