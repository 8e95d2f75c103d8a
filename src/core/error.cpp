#include "rlx/error.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace rlx {

// Names from files may hold anything: what would end the text or move a terminal's cursor is written as \x1b.
static std::string printable(std::string text) {
  const auto is_control = [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
  };
  if (std::none_of(text.begin(), text.end(), is_control)) return text;
  std::string out;
  for (const char c : text) {
    if (!is_control(c)) {
      out += c;
      continue;
    }
    constexpr std::string_view kDigits = "0123456789abcdef";
    out += {'\\', 'x', kDigits[static_cast<unsigned char>(c) >> 4], kDigits[c & 15]};
  }
  return out;
}

Error::Error(ErrorKind kind, std::string message)
    : kind_(kind), message_(printable(std::move(message))), what_(message_) {}

void Error::add_context(std::string doing) {
  doing = printable(std::move(doing));
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
