#include "backends/webgpu/kernel_source.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "rlx/error.h"

namespace rlx::webgpu {

namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

std::string file_text(std::string_view name, const std::string& folder) {
  if (!folder.empty())
    if (std::ifstream file(std::filesystem::path(folder) / str(name, ".wgsl")); file)
      return {std::istreambuf_iterator<char>(file), {}};
  for (const KernelText& k : all_kernels())
    if (k.name == name) return k.text;
  fail(ErrorKind::kInternal, str("There is no WGSL file '", name, ".wgsl'."));
}

template <class F>
void for_lines(std::string_view text, const F& f) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    f(text.substr(0, end));
    text = end == text.npos ? "" : text.substr(end + 1);
  }
}

// Pastes includes in, each once, and leaves comments out.
void expand(std::string_view text, const KernelKey& key, const std::string& folder, std::vector<std::string>& seen,
            std::string& out) {
  constexpr std::string_view kInclude = "// @include \"";
  for_lines(text, [&](std::string_view line) {
    if (!line.starts_with(kInclude)) {
      out += line.substr(0, line.find("//"));
      out += '\n';
      return;
    }
    std::string name(line.substr(kInclude.size(), line.find(".wgsl") - kInclude.size()));
    for (const auto& [from, to] : key.includes)
      if (name == from) name = to;
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) return;
    seen.push_back(name);
    expand(file_text(name, folder), key, folder, seen, out);
  });
}

// "alias T = f32;" gives T and f32; the words after `keyword` up to one of `ends`.
std::string_view word_after(std::string_view line, std::string_view keyword) {
  line = trim(line.substr(keyword.size()));
  size_t n = 0;
  while (n < line.size() && is_word(line[n])) ++n;
  return line.substr(0, n);
}

std::string set_declarations(const std::string& text, const KernelKey& key) {
  std::string out;
  out.reserve(text.size());
  std::vector<bool> type_set(key.types.size()), constant_set(key.constants.size());
  for_lines(text, [&](std::string_view line) {
    if (line.starts_with("alias ")) {
      const std::string_view name = word_after(line, "alias ");
      for (size_t i = 0; i < key.types.size(); ++i)
        if (key.types[i].first == name) {
          out += str("alias ", name, " = ", key.types[i].second, ";\n");
          type_set[i] = true;
          return;
        }
    } else if (line.starts_with("override ")) {
      const std::string_view name = word_after(line, "override ");
      const std::string_view type = word_after(line.substr(line.find(':') + 1), "");
      for (size_t i = 0; i < key.constants.size(); ++i)
        if (key.constants[i].first == name) {
          constant_set[i] = true;
          out += str("const ", name, ": ", type, " = ");
          if (type == "bool")
            out += key.constants[i].second != 0 ? "true" : "false";
          else if (type == "i32")
            out += str(static_cast<int32_t>(key.constants[i].second));
          else
            out += str(key.constants[i].second, "u");
          out += ";\n";
          return;
        }
      // The default, as a constant: naga refuses overrides where an array's size is asked for.
      out += str("const ", line.substr(std::string_view("override ").size()), "\n");
      return;
    }
    out += line;
    out += '\n';
  });
  for (size_t i = 0; i < type_set.size(); ++i)
    if (!type_set[i])
      fail(ErrorKind::kInternal, str("Kernel '", key.kernel, "' has no alias ", key.types[i].first, "."));
  for (size_t i = 0; i < constant_set.size(); ++i)
    if (!constant_set[i])
      fail(ErrorKind::kInternal, str("Kernel '", key.kernel, "' has no override ", key.constants[i].first, "."));
  return out;
}

// Every word, or only where it is a binding: an array is indexed, or its address is taken. (A parameter of an included
// function may have the same name.)
enum class Where { kEverywhere, kBinding };
std::string replace_word(const std::string& text, std::string_view from, std::string_view to, Where where) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (!is_word(text[i])) {
      out += text[i++];
      continue;
    }
    size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string_view word = std::string_view(text).substr(i, end - i);
    const char before = i == 0 ? ' ' : text[i - 1], after = end < text.size() ? text[end] : ' ';
    // p.x is not x.
    const bool meant = where == Where::kEverywhere || ((after == '[' || before == '&') && before != '.');
    out += word == from && meant ? to : word;
    i = end;
  }
  return out;
}

// round_f16 is not f16, which a device may not have.
bool has_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

// The aliases' meanings put in for their names: "vec4<T>" is "vec4<f16>".
std::string resolve_type(std::string type, const std::string& text) {
  for_lines(text, [&](std::string_view line) {
    if (!line.starts_with("alias ")) return;
    const size_t equals = line.find('='), end = line.find(';');
    type = replace_word(type, word_after(line, "alias "), trim(line.substr(equals + 1, end - equals - 1)),
                        Where::kEverywhere);
  });
  return type;
}

uint32_t number_after(std::string_view line, std::string_view mark) {
  const size_t at = line.find(mark);
  if (at == line.npos) return 0;
  uint32_t n = 0;
  for (size_t i = at + mark.size(); i < line.size() && std::isdigit(static_cast<unsigned char>(line[i])); ++i)
    n = n * 10 + static_cast<uint32_t>(line[i] - '0');
  return n;
}

}  // namespace

static KernelFacts facts_from(const KernelKey& key, const std::string& folder) {
  KernelFacts facts;
  std::string expanded;
  std::vector<std::string> seen;
  expand(key.source ? *key.source : file_text(key.kernel, folder), key, folder, seen, expanded);
  facts.text = set_declarations(expanded, key);
  bool in_params = false;
  for_lines(facts.text, [&](std::string_view line) {
    line = trim(line);
    if (line.starts_with("struct Params")) {
      in_params = true;
      line = trim(line.substr(line.find('{') + 1));
    }
    if (in_params) {
      while (true) {
        const size_t colon = line.find(':');
        if (colon == line.npos) break;
        facts.params.emplace_back(trim(line.substr(0, colon)));
        const size_t comma = line.find(',', colon);
        line = comma == line.npos ? "" : trim(line.substr(comma + 1));
      }
      if (line.find('}') != line.npos) in_params = false;
      return;
    }
    if (line.find("@binding(") == line.npos) return;
    const uint32_t index = number_after(line, "@binding(");
    if (line.find("var<uniform>") != line.npos) {
      facts.params_binding = index;
      return;
    }
    const size_t close = line.find('>', line.find("var<"));
    const size_t colon = line.find(':', close);
    const size_t array = line.find("array<", colon);
    RLX_ASSERT(array != line.npos);
    const size_t end = line.rfind('>');
    facts.bindings.push_back(
        {.name = std::string(trim(line.substr(close + 1, colon - close - 1))),
         .element = resolve_type(std::string(trim(line.substr(array + 6, end - array - 6))), facts.text),
         .writes = line.find("read_write") != line.npos,
         .index = index});
  });
  std::sort(facts.bindings.begin(), facts.bindings.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  return facts;
}

KernelFacts kernel_facts(const KernelKey& key, const std::string& folder) {
  KernelFacts facts = facts_from(key, folder);
  if (folder.empty()) return facts;
  const KernelFacts own = facts_from(key, {});
  const auto same = [](const auto& a, const auto& b) {
    return a.name == b.name && a.element == b.element && a.writes == b.writes && a.index == b.index;
  };
  if (facts.params != own.params || facts.params_binding != own.params_binding ||
      !std::equal(facts.bindings.begin(), facts.bindings.end(), own.bindings.begin(), own.bindings.end(), same))
    fail(ErrorKind::kInvalid, str("Kernel '", key.kernel, "' of ", folder,
                                  " has other bindings or Params than the one rlx was built with."));
  return facts;
}

void check_kernel_folder(const std::string& folder) {
  if (!std::filesystem::is_directory(folder))
    fail(ErrorKind::kInvalid, str("There is no folder ", folder, " with kernels (RLX_WGPU_KERNELS)."));
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".wgsl") continue;
    const std::string name = entry.path().stem().string();
    const auto known = all_kernels();
    if (std::none_of(known.begin(), known.end(), [&](const KernelText& k) { return k.name == name; }))
      fail(ErrorKind::kInvalid, str(entry.path().string(), " has the name of no kernel of rlx (RLX_WGPU_KERNELS)."));
  }
}

uint32_t element_bytes(std::string_view type) {
  const auto inner = [&](size_t prefix) { return type.substr(prefix, type.size() - prefix - 1); };
  if (type == "f32" || type == "i32" || type == "u32") return 4;
  if (type == "f16") return 2;
  if (type.starts_with("atomic<")) return element_bytes(inner(7));
  if (type.starts_with("vec2<")) return 2 * element_bytes(inner(5));
  if (type.starts_with("vec4<")) return 4 * element_bytes(inner(5));
  if (type == "vec2f") return 8;
  if (type == "vec4f" || type == "vec4u" || type == "vec4i") return 16;
  fail(ErrorKind::kInternal, str("A binding holds '", type, "', whose size is not known."));
}

std::string specialize(const KernelFacts& facts, std::span<const BindingUse> uses) {
  RLX_ASSERT(uses.size() == facts.bindings.size());
  std::string out;
  for_lines(facts.text, [&](std::string_view line) {
    if (line.find("@binding(") != line.npos && line.find("var<storage") != line.npos) {
      const uint32_t index = number_after(line, "@binding(");
      for (size_t i = 0; i < uses.size(); ++i) {
        if (facts.bindings[i].index != index) continue;
        if (uses[i].shares >= 0) return;  // dropped
        if (uses[i].writable && !facts.bindings[i].writes) {
          const size_t at = line.find("read>");
          RLX_ASSERT(at != line.npos);
          out += str(line.substr(0, at), "read_write>", line.substr(at + 5), "\n");
          return;
        }
      }
    }
    out += line;
    out += '\n';
  });
  for (size_t i = 0; i < uses.size(); ++i)
    if (uses[i].shares >= 0)
      out = replace_word(out, facts.bindings[i].name, facts.bindings[static_cast<size_t>(uses[i].shares)].name,
                         Where::kBinding);
  // Directives stand first; that of subgroups depends on the library (Device::pipeline).
  if (has_word(out, "f16")) out = "enable f16;\n" + out;
  return out;
}

}  // namespace rlx::webgpu
