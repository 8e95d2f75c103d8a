// Runs a template. Endless templates end with an error: steps, output and nesting are limited.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "text/jinja/ast.h"

namespace rlx::jinja {

// The arguments of a call, a filter or a test, evaluated.
struct Arguments {
  std::vector<Value> values;
  std::vector<std::pair<std::string, Value>> named;

  size_t size() const { return values.size(); }
  const Value* find(size_t index, std::string_view name) const;  // by place or by name
  Value get(size_t index, std::string_view name, Value otherwise) const;
  const std::string& string(size_t index, std::string_view name) const;  // throws where it is no string
  std::string string(size_t index, std::string_view name, std::string_view otherwise) const;
  int64_t integer(size_t index, std::string_view name, int64_t otherwise) const;
};

constexpr size_t kLongestText = size_t{16} << 20, kLongestList = 200'000;

class Interpreter {
 public:
  explicit Interpreter(int64_t now) : now_(now) { frames_.emplace_back(); }

  void set(std::string name, Value value) { frames_.front().insert_or_assign(std::move(name), std::move(value)); }
  std::string run(const Body& program);

  // What filters, tests and methods need of it.
  void charge(size_t work);                                          // counts steps; throws when there were too many
  void charge_search(std::string_view text, std::string_view part);  // at worst all of it at every place
  void charge_compare(const Value& a, const Value& b) { charge(std::min(a.weight(), b.weight())); }
  std::string text_of(const Value& value);  // its text, charged for
  Value checked(std::string text);          // a string of bearable size
  Value checked(std::vector<Value> items);
  Value call_filter(const std::string& name, Value value, const Arguments& args);
  bool call_test(const std::string& name, const Value& value, const Arguments& args);
  Value call_method(const Value& object, const std::string& name, const Arguments& args);
  Value attribute(const Value& object, const std::string& name);  // object.name, where it is no method
  Value item(const Value& object, const Value& index);
  std::vector<Value> iterate(const Value& value);
  int64_t now() const { return now_; }
  Value make_namespace(const Arguments& args);

 private:
  enum class Flow { kNext, kBreak, kContinue };
  using Frame = std::map<std::string, Value, std::less<>>;
  class Deeper;

  Flow run_body(const Body& body);
  Flow run_statement(const Stmt& statement);
  Flow run_for(const Stmt& statement);
  void run_set(const Stmt& statement);
  std::string run_to_text(const Body& body);
  void assign(const std::vector<std::string>& targets, const Value& value);

  Value evaluate(const Expr& expr);
  Value evaluate_filter(const Expr& expr, const Value* block_text);
  Value evaluate_call(const Expr& expr);
  Value evaluate_compare(const Expr& expr);
  Value evaluate_slice(const Expr& expr);
  Value binary(const std::string& op, const Value& a, const Value& b);
  bool contains(const Value& container, const Value& value);
  Arguments arguments(const Expr& expr);  // all but the first
  Value call_macro(const Macro& macro, const Arguments& args);
  Value lookup(const std::string& name);

  int64_t now_;
  std::deque<Frame> frames_;
  std::deque<Dict> namespaces_;  // owned here: they may hold themselves
  std::string out_;
  size_t steps_ = 0;
  int depth_ = 0;
};

// Functions that every template has: range, namespace, dict, raise_exception, strftime_now. Null: there is none of this
// name.
using GlobalFunction = Value (*)(Interpreter&, const Arguments&);
GlobalFunction find_function(std::string_view name);

}  // namespace rlx::jinja
