#include "progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "rlx/error.h"
#include "rlx/log.h"

namespace rlx::cli {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kQuiet(1000), kStep(100);
constexpr int kWidth = 30;

}  // namespace

std::string bar_text(std::string_view doing, double done, double seconds) {
  std::string out(doing);
  if (done >= 0) {
    const double part = std::clamp(done, 0.0, 1.0);
    const int full = static_cast<int>(std::lround(part * kWidth));
    char percent[16];
    std::snprintf(percent, sizeof percent, "%3.0f %%", part * 100);
    out += str(" [", std::string(static_cast<size_t>(full), '='), full < kWidth ? ">" : "",
               std::string(static_cast<size_t>(std::max(0, kWidth - full - 1)), ' '), "] ", percent);
  }
  return out + str("  ", static_cast<int64_t>(seconds), " s");
}

ProgressBar::ProgressBar() {
  if (!isatty(STDERR_FILENO)) return;
  thread_ = std::thread([this] { draw_until_stopped(); });
  set_progress([this](std::string_view doing, double done) {
    const std::lock_guard lock(mutex_);
    doing_ = doing;
    done_ = done;
    if (doing.empty()) wipe();  // something else is written now
  });
}

ProgressBar::~ProgressBar() {
  if (!thread_.joinable()) return;
  set_progress({});
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
  wipe();
}

void ProgressBar::write(std::string_view text) {
  const std::lock_guard lock(mutex_);
  wipe();
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void ProgressBar::draw_until_stopped() {
  const Clock::time_point start = Clock::now();
  std::unique_lock lock(mutex_);
  if (wake_.wait_for(lock, kQuiet, [this] { return stopping_; })) return;
  while (!wake_.wait_for(lock, kStep, [this] { return stopping_; })) {
    if (doing_.empty()) continue;
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    std::fprintf(stderr, "\r\x1b[K%s", bar_text(doing_, done_, seconds).c_str());
    std::fflush(stderr);
    is_drawn_ = true;
  }
}

void ProgressBar::wipe() {
  if (is_drawn_) {
    std::fputs("\r\x1b[K", stderr);
    std::fflush(stderr);
  }
  is_drawn_ = false;
}

}  // namespace rlx::cli
