#include "rlx/error.h"

#include <charconv>
#include <cmath>

namespace rlx {

Error::Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)), what_(message_) {}

void Error::add_context(std::string doing) {
  what_ += "\n  - while " + doing;
  context_.push_back(std::move(doing));
}

template <class Float>
static void append_float(std::string& out, Float number) {
  if (std::isnan(number)) {
    out += "nan";
    return;
  }
  if (std::isinf(number)) {
    out += number < 0 ? "-inf" : "inf";
    return;
  }
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
  out.append(buffer, end);
}

void append_text(std::string& out, double number) { append_float(out, number); }
void append_text(std::string& out, float number) { append_float(out, number); }

void fail(ErrorKind kind, std::string message) { throw Error(kind, std::move(message)); }

void assertion_failed(const char* condition, const char* file, int line) {
  throw Error(ErrorKind::kInternal,
              str("Internal error: ", condition, " does not hold (", file, ":", line, "). This is a fault of rlx."));
}

}  // namespace rlx
