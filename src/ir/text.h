// Pieces of the text form that printer, parser and comparison share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rlx/graph.h"

namespace rlx {

// {axis=1, shape=[4, ?1]}, fields at their default left out; empty when all are. Regions are indented by `indent`.
std::string print_attrs(const Attrs& attrs, int indent = 0);
std::string print_field(const FieldRef& ref, int indent = 0);  // the value alone: -1, [4, ?1], none

// "text" with quotes, backslashes and control characters escaped.
std::string quoted(std::string_view text);

// Can the name stand unquoted after '%'?
bool is_plain_name(std::string_view name);

// The name of an output that is given none: the value's label without '%'.
std::string default_output_name(const Graph& graph, ValueId id);

std::string bytes_text(int64_t bytes);  // 512 B, 1.5 KB, 3.0 MB, 2.0 GB; base 1024

uint64_t stable_hash(std::string_view text);  // FNV-1a, 64 bits

}  // namespace rlx
