// Writing a file so that nobody ever sees half of it.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>

namespace rlx {

// Writes the parts, one after the other, to a new file beside `path`, which then takes its place; to a device or a pipe
// itself. When that fails, Error(kUnavailable) names the path and the reason, a file that was there before is untouched
// and nothing is left over.
void write_file(const std::string& path, std::initializer_list<std::span<const std::byte>> parts);
// The same for what is made while it is written: `parts` calls what it is given with one part after the other.
using WritePart = std::function<void(std::span<const std::byte>)>;
void write_file(const std::string& path, const std::function<void(const WritePart&)>& parts);

}  // namespace rlx
