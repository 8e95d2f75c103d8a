// The thread pools of host programs: one per number of threads, shared by all programs that use it.
#pragma once

#include <memory>

#include "core/thread_pool.h"

namespace rlx::host {

// `threads` counts the caller; 0: as many as the machine has. The pool's threads end with its last program.
std::shared_ptr<ThreadPool> shared_pool(int threads);

}  // namespace rlx::host
