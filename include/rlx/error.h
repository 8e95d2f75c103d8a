// rlx::Error, the one exception the library throws, and the small text builder its messages are made with.
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

// What went wrong, for callers that react differently; the message is for people.
enum class ErrorKind {
  kInvalid,      // a bad file, graph, argument, name, shape or dtype
  kUnsupported,  // well-formed, but something rlx cannot do
  kUnavailable,  // a device, library or file is not there
  kMemory,       // the host or the device is out of memory
  kRuntime,      // found while running: an index out of range, a singular matrix, a lost device
  kInternal,     // a fault of rlx itself
};

// A message, and the context added while the error travels up ("importing node 'x' (Softmax)").
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message);

  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const std::vector<std::string>& context() const { return context_; }

  // Adds what was being done, innermost first: "running node '%7' (softmax)".
  void add_context(std::string doing);

  // The message, then a line "  - while <context>" for each context.
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  ErrorKind kind_;
  std::string message_;
  std::vector<std::string> context_;
  std::string what_;
};

// append_text writes one value as text; a type takes part in messages by offering an overload beside it.
inline void append_text(std::string& out, std::string_view text) { out += text; }
inline void append_text(std::string& out, const char* text) { out += text; }
inline void append_text(std::string& out, const std::string& text) { out += text; }
inline void append_text(std::string& out, char c) { out += c; }
inline void append_text(std::string& out, bool b) { out += b ? "true" : "false"; }
void append_text(std::string& out, double number);  // the shortest text that reads back as the same double
void append_text(std::string& out, float number);
template <std::integral I>
void append_text(std::string& out, I number) {
  out += std::to_string(number);
}
template <class T>
void append_text(std::string& out, const std::vector<T>& items) {
  out += '[';
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    append_text(out, items[i]);
  }
  out += ']';
}

// The parts, one after the other, as text.
template <class... Parts>
std::string str(const Parts&... parts) {
  std::string out;
  (append_text(out, parts), ...);
  return out;
}

[[noreturn]] void fail(ErrorKind kind, std::string message);

// Throws Error(kInvalid) unless the condition holds. Messages are whole sentences, the value in parentheses.
template <class... Parts>
void require(bool condition, const Parts&... message) {
  if (!condition) [[unlikely]]
    fail(ErrorKind::kInvalid, str(message...));
}

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace rlx

// States what rlx's own code guarantees. It cannot be reached from input; it throws Error(kInternal), it does not
// abort.
#define RLX_ASSERT(condition)                                  \
  do {                                                         \
    if (!(condition)) [[unlikely]]                             \
      ::rlx::assertion_failed(#condition, __FILE__, __LINE__); \
  } while (false)
