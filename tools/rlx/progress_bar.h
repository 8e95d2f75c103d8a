// A line on the terminal that says how far a long command is.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace rlx::cli {

// Listens to rlx::progress() and draws on stderr, but only on a terminal and only once a second has passed: short
// commands and pipes see nothing. A thread of its own draws, so that the bar moves while a single step takes long.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();  // wipes the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Writes to stderr with the line out of the way.
  void write(std::string_view text);

 private:
  void draw_until_stopped();
  void wipe();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::string doing_;
  double done_ = -1;
  bool is_drawn_ = false, stopping_ = false;
  std::thread thread_;  // only on a terminal
};

// What is drawn: "compiling [=======>            ]  37 %  4 s", without the bar when `done` is less than 0.
std::string bar_text(std::string_view doing, double done, double seconds);

}  // namespace rlx::cli
