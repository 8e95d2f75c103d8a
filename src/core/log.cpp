#include "rlx/log.h"

#include <memory>
#include <mutex>

namespace rlx {

namespace {
std::mutex mutex;
std::shared_ptr<const LogCallback> current;
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

}  // namespace rlx
