// The text form (spec 10, 3.7), read by recursive descent. Every fault names the line and column it was found at.
#include <charconv>
#include <limits>
#include <map>

#include "core/convert.h"
#include "ir/text.h"
#include "rlx/graph.h"
#include "rlx/ops/leaves.h"

namespace rlx {

namespace {

constexpr int kMaxDepth = 32;  // of regions inside regions

// A constant's value before its type is known: bytes in hex, or numbers.
struct Literal {
  bool present = false;
  bool is_hex = false;
  std::vector<uint8_t> bytes;
  std::vector<std::string> numbers;
};

class Parser {
 public:
  Parser(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  Graph module() {
    Graph graph = graph_body();
    skip_space();
    if (at_ < text_.size()) bad("Text follows the end of the graph.");
    return graph;
  }

 private:
  // ---- characters and tokens ----

  template <class... Parts>
  [[noreturn]] void bad(const Parts&... parts) {
    int64_t line = 1, column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
      ++column;
      if (text_[i] == '\n') {
        ++line;
        column = 1;
      }
    }
    fail(ErrorKind::kInvalid, str(where_, ":", line, ":", column, ": ", parts...));
  }

  // Spaces, line ends, and comments from '#' to the end of the line.
  void skip_space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        ++at_;
      } else {
        return;
      }
    }
  }

  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  std::string next_token_text() {
    skip_space();
    if (at_ >= text_.size()) return "the end of the text";
    size_t end = at_ + 1;
    while (end < text_.size() && end < at_ + 20 && is_word(text_[end]) && is_word(text_[at_])) ++end;
    return str("'", text_.substr(at_, end - at_), "'");
  }

  void expect(char c) {
    if (!accept(c)) bad("Expected '", c, "', found ", next_token_text(), ".");
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  static bool is_word(char c) { return is_letter(c) || is_digit(c); }

  std::string_view word() {
    skip_space();
    const size_t begin = at_;
    if (at_ < text_.size() && is_letter(text_[at_]))
      while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  bool accept_word(std::string_view expected) {
    skip_space();
    const size_t begin = at_;
    if (word() == expected) return true;
    at_ = begin;
    return false;
  }

  void expect_word(std::string_view expected) {
    if (!accept_word(expected)) bad("Expected '", expected, "', found ", next_token_text(), ".");
  }

  // The characters of a number: sign, digits, point, exponent; or nan, inf, -inf.
  std::string_view number_text() {
    skip_space();
    const size_t begin = at_;
    if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) ++at_;
    while (at_ < text_.size() &&
           (is_word(text_[at_]) || text_[at_] == '.' ||
            ((text_[at_] == '-' || text_[at_] == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E'))))
      ++at_;
    if (at_ == begin) bad("Expected a number, found ", next_token_text(), ".");
    return text_.substr(begin, at_ - begin);
  }

  template <class T>
  T to_number(std::string_view text, std::string_view what) {
    T value{};
    const char* first = text.data() + (!text.empty() && text[0] == '+' ? 1 : 0);
    const auto [end, error] = std::from_chars(first, text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range && std::is_floating_point_v<T>) {
      // from_chars leaves the value alone; too small or too large for T.
      return static_cast<T>(std::strtod(std::string(text).c_str(), nullptr));
    }
    if (error == std::errc::result_out_of_range) bad("Number (", text, ") does not fit ", what, ".");
    if (error != std::errc() || end != text.data() + text.size()) bad("'", text, "' is not ", what, ".");
    return value;
  }

  int64_t integer() { return to_number<int64_t>(number_text(), "a 64-bit integer"); }

  uint32_t symbol_id() {
    expect('?');
    const size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return to_number<uint32_t>(text_.substr(begin, at_ - begin), "a symbol's number");
  }

  int hex_digit(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    bad("'", c, "' is not a hexadecimal digit.");
  }

  std::string quoted_text() {
    expect('"');
    std::string out;
    for (;;) {
      if (at_ >= text_.size() || text_[at_] == '\n') bad("A string is not closed.");
      const char c = text_[at_++];
      if (c == '"') return out;
      if (c != '\\') {
        out += c;
        continue;
      }
      if (at_ >= text_.size()) bad("A string is not closed.");
      const char escaped = text_[at_++];
      if (escaped == 'x') {
        if (at_ + 2 > text_.size()) bad("A string is not closed.");
        out += static_cast<char>(hex_digit(text_[at_]) * 16 + hex_digit(text_[at_ + 1]));
        at_ += 2;
      } else if (escaped == '"' || escaped == '\\') {
        out += escaped;
      } else {
        bad("Escape '\\", escaped, "' is not known.");
      }
    }
  }

  std::vector<uint8_t> hex_bytes() {
    const std::string digits = quoted_text();
    if (digits.size() % 2 != 0) bad("Number of hexadecimal digits (", digits.size(), ") is odd.");
    std::vector<uint8_t> out(digits.size() / 2);
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<uint8_t>(hex_digit(digits[2 * i]) * 16 + hex_digit(digits[2 * i + 1]));
    return out;
  }

  // A plain or a quoted name.
  std::string name() {
    if (peek() == '"') return quoted_text();
    const size_t begin = at_;
    while (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] == '.' || text_[at_] == '/' || text_[at_] == ':'))
      ++at_;
    const std::string_view text = text_.substr(begin, at_ - begin);
    if (!is_plain_name(text))
      bad("Expected a name, found ", text.empty() ? next_token_text() : str("'", text, "'"), ".");
    return std::string(text);
  }

  // ---- types ----

  Dim dim() {
    if (peek() != '?') return Dim(integer());
    const uint32_t id = symbol_id();
    int64_t scale = 1, offset = 0;
    if (at_ < text_.size() && text_[at_] == '*') {
      ++at_;
      scale = integer_here();
    }
    if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) {
      const bool negative = text_[at_++] == '-';
      offset = integer_here();
      if (negative) offset = -offset;
    }
    if (scale < 1) bad("Scale (", scale, ") of symbol ?", id, " is not positive.");
    return Dim::symbol(id, scale, offset);
  }

  // Digits that follow without a space.
  int64_t integer_here() {
    const size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return to_number<int64_t>(text_.substr(begin, at_ - begin), "a 64-bit integer");
  }

  template <class F>
  void list(char open, char close, const F& item) {
    expect(open);
    if (accept(close)) return;
    do item();
    while (accept(','));
    expect(close);
  }

  DType dtype() {
    const std::string_view text = word();
    const auto d = parse_dtype(text);
    if (!d) bad(text.empty() ? next_token_text() : str("'", text, "'"), " is not a dtype.");
    return *d;
  }

  TensorType type() {
    TensorType t;
    list('[', ']', [&] {
      const Dim d = dim();
      if (d.is_static() && d.value() < 0) bad("Size (", d, ") is negative.");
      t.shape.push_back(d);
    });
    t.dtype = dtype();
    return t;
  }

  // ---- attributes ----

  struct FieldParser {
    Parser& p;
    Literal& literal;

    void operator()(bool* v) const {
      if (p.accept_word("true"))
        *v = true;
      else if (p.accept_word("false"))
        *v = false;
      else
        p.bad("Expected true or false, found ", p.next_token_text(), ".");
    }
    void operator()(int64_t* v) const { *v = p.integer(); }
    void operator()(uint64_t* v) const { *v = p.to_number<uint64_t>(p.number_text(), "an unsigned 64-bit integer"); }
    void operator()(float* v) const { *v = p.to_number<float>(p.number_text(), "a number"); }
    void operator()(DType* v) const { *v = p.dtype(); }
    void operator()(Dim* v) const { *v = p.dim(); }
    void operator()(std::string* v) const { *v = p.quoted_text(); }
    void operator()(Bytes* v) const { v->data = p.hex_bytes(); }
    template <class T>
    void operator()(std::vector<T>* v) const {
      v->clear();
      p.list('[', ']', [&] {
        T item{};
        (*this)(&item);
        v->push_back(std::move(item));
      });
    }
    template <class T>
    void operator()(std::optional<T>* v) const {
      if (p.accept_word("none")) {
        v->reset();
        return;
      }
      T value{};
      (*this)(&value);
      *v = value;
    }
    void operator()(Tensor*) const {
      literal.present = true;
      if (p.peek() == '"') {
        literal.is_hex = true;
        literal.bytes = p.hex_bytes();
      } else if (p.peek() == '[') {
        p.list('[', ']', [&] { literal.numbers.emplace_back(p.number_text()); });
      } else {
        literal.numbers.emplace_back(p.number_text());
      }
    }
    void operator()(ChainStep* step) const {
      const std::string_view op = p.word();
      step->op = find_op(op);
      if (step->op == nullptr) p.bad("There is no op '", op, "'.");
      p.list('(', ')', [&] {
        const std::string text(p.word());
        const auto to = parse_dtype(text);
        if (to) {
          step->to = *to;
        } else if (text.size() >= 2 && (text[0] == 'i' || text[0] == 's')) {
          step->operands.push_back(
              {text[0] == 's', p.to_number<int32_t>(std::string_view(text).substr(1), "an operand's number")});
        } else {
          p.bad("Expected an operand (i0, s0) of a chain, found '", text, "'.");
        }
      });
    }
    void operator()(GraphPtr* v) const {
      if (p.accept_word("none"))
        v->reset();
      else
        *v = std::make_shared<const Graph>(p.graph_body());
    }
    void operator()(EnumField v) const {
      const std::string_view text = p.word();
      for (size_t i = 0; i < v.names.size(); ++i)
        if (v.names[i] == text) {
          *v.value = static_cast<int32_t>(i);
          return;
        }
      std::string known;
      for (const std::string_view n : v.names) known += str(known.empty() ? "" : ", ", n);
      p.bad("'", text, "' is not one of ", known, ".");
    }
  };

  Attrs attributes(const OpDef& op, Literal& literal) {
    const std::shared_ptr<void> value = op.attrs->make();
    std::vector<Field> fields;
    op.attrs->fields(value.get(), fields);
    std::vector<bool> seen(fields.size());
    if (peek() == '{')
      list('{', '}', [&] {
        const std::string_view key = word();
        size_t i = 0;
        while (i < fields.size() && fields[i].name != key) ++i;
        if (i == fields.size()) {
          std::string known;
          for (const Field& f : fields) known += str(known.empty() ? "" : ", ", f.name);
          bad("Op '", op.name, "' has no attribute '", key, "'",
              known.empty() ? std::string("; it has none.") : str("; it has: ", known, "."));
        }
        if (seen[i]) bad("Attribute '", key, "' is given twice.");
        seen[i] = true;
        expect('=');
        std::visit(FieldParser{*this, literal}, fields[i].ref);
      });
    return Attrs(*op.attrs, value);
  }

  Tensor tensor(const Literal& literal, const TensorType& t) {
    if (!t.shape.is_static()) bad("The type ", t, " of a constant has a symbol.");
    const auto elements = t.shape.try_elements();
    if (!elements) bad("Size of ", t, " does not fit 64 bits.");
    const int64_t n = *elements;
    const auto given =
        static_cast<int64_t>(literal.is_hex ? literal.bytes.size() / size_of(t.dtype) : literal.numbers.size());
    if (given != n || (literal.is_hex && literal.bytes.size() % size_of(t.dtype) != 0))
      bad("Constant of type ", t, " has ", n, " elements, ", given, " are given.");
    Tensor out(t.dtype, t.shape.sizes());
    const std::span<std::byte> bytes = out.mutable_bytes();
    if (literal.is_hex) {
      std::transform(literal.bytes.begin(), literal.bytes.end(), bytes.begin(), [](uint8_t b) { return std::byte(b); });
      return out;
    }
    const auto store = store_fn(t.dtype);
    const auto store_int = store_int_fn(t.dtype);
    for (int64_t i = 0; i < n; ++i) {
      const std::string& text = literal.numbers[static_cast<size_t>(i)];
      if (t.dtype == DType::F32) {
        out.mutable_values<float>()[static_cast<size_t>(i)] = to_number<float>(text, "a number");  // one rounding
      } else if (t.dtype == DType::U64) {
        out.mutable_values<uint64_t>()[static_cast<size_t>(i)] = to_number<uint64_t>(text, "an integer of u64");
      } else if (is_int(t.dtype)) {
        const auto value = to_number<int64_t>(text, "an integer");
        store_int(bytes.data(), i, value);
        if (load_int_fn(t.dtype)(bytes.data(), i) != value) bad("Number (", text, ") does not fit ", t.dtype, ".");
      } else {
        store(bytes.data(), i, to_number<double>(text, "a number"));
      }
    }
    return out;
  }

  // ---- graphs ----

  // Values of the graph being read, by label.
  struct Scope {
    Graph& graph;
    std::map<std::string, ValueId> labels;
  };

  // %x, %7, %"a b": the text after '%', and whether it is a name.
  std::pair<std::string, bool> label() {
    expect('%');
    if (at_ < text_.size() && is_digit(text_[at_])) {
      const size_t begin = at_;
      while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
      return {std::string(text_.substr(begin, at_ - begin)), false};
    }
    return {name(), true};
  }

  ValueId use(const Scope& scope) {
    skip_space();
    const size_t begin = at_;
    const auto [text, named] = label();
    const auto it = scope.labels.find((named ? "n" : "i") + text);
    if (it == scope.labels.end()) {
      at_ = begin;
      bad("Value %", text, " is not defined above.");
    }
    if (at_ >= text_.size() || text_[at_] != '#') return it->second;
    ++at_;
    const int64_t result = integer_here();
    const Node& node = scope.graph.node_of(it->second);
    if (result >= static_cast<int64_t>(node.results.size()))
      bad("%", text, " (", node.op->name, ") has ", node.results.size(), " results, not a result ", result, ".");
    return node.results[static_cast<size_t>(result)].id;
  }

  void symbol(Graph& graph) {
    const uint32_t id = symbol_id();
    expect('=');
    if (peek() == '"') {
      graph.symbols().set_name(id, quoted_text());
      return;
    }
    DerivedDim def{DerivedDim::Kind::kSum, dim(), {}};
    if (accept('*'))
      def.kind = DerivedDim::Kind::kProduct;
    else if (accept('/'))
      def.kind = DerivedDim::Kind::kQuotient;
    else
      expect('+');
    def.rhs = dim();
    for (const Dim& d : {def.lhs, def.rhs})
      if (!d.is_static() && d.symbol_id() >= id) bad("Symbol ?", id, " is defined by a later symbol (", d, ").");
    graph.symbols().define(id, def);
  }

  void constraint(Graph& graph) {
    const Dim d = dim();
    expect_word("in");
    expect('{');
    if (integer() != 1) bad("Expected {1, n}.");
    expect(',');
    graph.symbols().require_one_or(d, integer());
    expect('}');
  }

  void node(Scope& scope) {
    skip_space();
    const size_t begin = at_;
    const auto [text, named] = label();
    const std::string key = (named ? "n" : "i") + text;
    if (scope.labels.contains(key)) {
      at_ = begin;
      bad("Value %", text, " is defined twice.");
    }
    expect('=');
    skip_space();
    const size_t op_at = at_;
    const std::string_view op_name = word();
    const OpDef* op = find_op(op_name);
    if (op == nullptr) {
      at_ = op_at;
      bad("There is no op '", op_name, "'.");
    }
    std::vector<ValueId> inputs;
    list('(', ')', [&] { inputs.push_back(use(scope)); });
    Literal literal;
    Attrs attrs = attributes(*op, literal);
    std::vector<TensorType> types;
    if (accept(':')) do
        types.push_back(type());
      while (accept(','));
    if (op == &ops::constant) {
      if (types.size() != 1) bad("A constant states one type.");
      attrs = ops::ConstantAttrs{tensor(literal, types[0])};
    }
    if (&attrs.type() == &attrs_type<ops::LeafAttrs> && attrs.as<ops::LeafAttrs>().name.empty() && named)
      attrs = ops::LeafAttrs{text};
    if (types.empty()) {
      std::vector<TensorType> input_types;
      for (const ValueId id : inputs) input_types.push_back(scope.graph.type(id));
      try {
        types = infer_types(*op, input_types, attrs, scope.graph.symbols());
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::kInvalid) throw;
        at_ = begin;
        bad(e.message(), " (", op->name, ")");
      }
    }
    scope.labels[key] =
        scope.graph.add_node(*op, std::move(inputs), std::move(attrs), std::move(types), named ? text : "").id();
  }

  void outputs(Scope& scope) {
    if (peek() == '}') return;
    do {
      std::string output_name;
      if (peek() != '%') {
        output_name = name();
        expect('=');
      }
      skip_space();
      const ValueId id = use(scope);
      if (output_name.empty()) output_name = default_output_name(scope.graph, id);
      scope.graph.output(scope.graph.value(id), output_name);
    } while (accept(','));
  }

  Graph graph_body() {
    if (++depth_ > kMaxDepth) bad("Regions are nested more than ", kMaxDepth, " deep.");
    expect_word("graph");
    expect('@');
    Graph graph(name());
    Scope scope{graph, {}};
    expect('{');
    for (;;) {
      if (peek() == '%')
        node(scope);
      else if (accept_word("symbol"))
        symbol(graph);
      else if (accept_word("require"))
        constraint(graph);
      else if (accept_word("update")) {
        const ValueId state = use(scope);
        expect('=');
        const ValueId value = use(scope);
        graph.update(graph.value(state), graph.value(value));
      } else if (accept_word("return")) {
        outputs(scope);
        break;
      } else {
        bad("Expected a node, symbol, require, update or return, found ", next_token_text(), ".");
      }
    }
    expect('}');
    --depth_;
    return graph;
  }

  std::string_view text_, where_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Graph parse(std::string_view text, std::string_view where) {
  Graph graph = Parser(text, where).module();
  try {
    verify(graph);
  } catch (Error& e) {
    e.add_context(str("reading ", where));
    throw;
  }
  return graph;
}

}  // namespace rlx
