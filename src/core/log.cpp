#include "rlx/log.h"

#include <atomic>
#include <memory>
#include <mutex>

namespace rlx {

namespace {
std::mutex mutex;
std::shared_ptr<const LogCallback> current;
std::shared_ptr<const ProgressCallback> listener;
std::atomic<bool> is_listening = false;
}  // namespace

void set_log(LogCallback callback) {
  auto next = std::make_shared<const LogCallback>(std::move(callback));
  const std::lock_guard lock(mutex);
  current = std::move(next);
}

void log(LogLevel level, std::string_view text) {
  std::shared_ptr<const LogCallback> callback;
  {
    const std::lock_guard lock(mutex);
    callback = current;
  }
  if (callback && *callback) (*callback)(level, text);
}

void set_progress(ProgressCallback callback) {
  auto next = std::make_shared<const ProgressCallback>(std::move(callback));
  const std::lock_guard lock(mutex);
  is_listening = static_cast<bool>(*next);
  listener = std::move(next);
}

void progress(std::string_view doing, double done) {
  if (!is_listening.load(std::memory_order_relaxed)) return;
  std::shared_ptr<const ProgressCallback> callback;
  {
    const std::lock_guard lock(mutex);
    callback = listener;
  }
  if (callback && *callback) (*callback)(doing, done);
}

}  // namespace rlx
