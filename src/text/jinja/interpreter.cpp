#include "text/jinja/interpreter.h"

#include <algorithm>
#include <cmath>

#include "rlx/error.h"
#include "text/jinja/lexer.h"
#include "text/unicode.h"

namespace rlx::jinja {

constexpr size_t kMostSteps = 2'000'000;
constexpr int kDeepestRun = 400;

// Counts how deep the interpreter is in its own calls: recursive macros must not use up the stack.
class Interpreter::Deeper {
 public:
  explicit Deeper(Interpreter& in) : in_(in) {
    require(++in_.depth_ <= kDeepestRun, "The chat template calls itself too deep.");
  }
  ~Deeper() { --in_.depth_; }
  Deeper(const Deeper&) = delete;

 private:
  Interpreter& in_;
};

void Interpreter::charge(size_t work) {
  steps_ += 1 + work / 64;
  require(steps_ <= kMostSteps, "The chat template does not end within ", kMostSteps, " steps.");
}

void Interpreter::charge_search(std::string_view text, std::string_view part) {
  charge(text.size() + text.size() * (part.size() / 16));
}

std::string Interpreter::text_of(const Value& value) {
  charge(value.weight());
  return value.text();
}

Value Interpreter::checked(std::string text) {
  require(text.size() <= kLongestText, "The chat template makes a text of more than ", kLongestText, " bytes.");
  charge(text.size());
  return Value(std::move(text));
}

Value Interpreter::checked(std::vector<Value> items) {
  require(items.size() <= kLongestList, "The chat template makes a list of more than ", kLongestList, " items.");
  charge(items.size() * 8);
  return Value::list(std::move(items));
}

std::string Interpreter::run(const Body& program) {
  run_body(program);
  for (Dict& space : namespaces_) space.entries.clear();
  return std::move(out_);
}

Interpreter::Flow Interpreter::run_body(const Body& body) {
  const Deeper deeper(*this);
  for (const auto& statement : body) {
    charge(0);
    Flow flow;
    try {
      flow = run_statement(*statement);
    } catch (Error& e) {
      if (e.kind() != ErrorKind::kInvalid || e.message().starts_with("Line ")) throw;
      fail_at(statement->line, e.message());  // the innermost statement names its line
    }
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

std::string Interpreter::run_to_text(const Body& body) {
  std::string outer = std::exchange(out_, {});
  run_body(body);
  return std::exchange(out_, std::move(outer));
}

Interpreter::Flow Interpreter::run_statement(const Stmt& s) {
  switch (s.kind) {
    case StmtKind::kText:
      charge(s.text.size());
      out_ += s.text;
      break;
    case StmtKind::kOutput: out_ += text_of(evaluate(*s.expr)); break;
    case StmtKind::kIf:
      for (const auto& [condition, body] : s.branches)
        if (condition == nullptr || evaluate(*condition).truth()) return run_body(body);
      break;
    case StmtKind::kFor: return run_for(s);
    case StmtKind::kSet:
    case StmtKind::kSetBlock: run_set(s); break;
    case StmtKind::kMacro:
      frames_.back().insert_or_assign(s.macro->name, Value(static_cast<const Macro*>(s.macro.get())));
      break;
    case StmtKind::kFilterBlock: {
      const Value text = run_to_text(s.body);
      out_ += text_of(evaluate_filter(*s.expr, &text));
      break;
    }
    case StmtKind::kScope: {
      Frame frame;
      for (const auto& [name, expr] : s.bindings) frame.insert_or_assign(name, evaluate(*expr));
      frames_.push_back(std::move(frame));
      const Flow flow = run_body(s.body);
      frames_.pop_back();
      return flow;
    }
    case StmtKind::kBreak: return Flow::kBreak;
    case StmtKind::kContinue: return Flow::kContinue;
  }
  require(out_.size() <= kLongestText, "The chat template makes a text of more than ", kLongestText, " bytes.");
  charge(0);
  return Flow::kNext;
}

void Interpreter::assign(const std::vector<std::string>& targets, const Value& value) {
  if (targets.size() == 1) {
    frames_.back().insert_or_assign(targets[0], value);
    return;
  }
  const std::vector<Value> parts = iterate(value);
  require(parts.size() == targets.size(), parts.size(), " values are given to ", targets.size(), " names.");
  for (size_t i = 0; i < parts.size(); ++i) frames_.back().insert_or_assign(targets[i], parts[i]);
}

Interpreter::Flow Interpreter::run_for(const Stmt& s) {
  std::vector<Value> items = iterate(evaluate(*s.expr));
  if (s.condition != nullptr) {
    std::vector<Value> kept;
    for (Value& item : items) {
      frames_.emplace_back();
      assign(s.targets, item);
      if (evaluate(*s.condition).truth()) kept.push_back(std::move(item));
      frames_.pop_back();
    }
    items = std::move(kept);
  }
  if (items.empty()) return run_body(s.otherwise);
  auto list = std::make_shared<List>();
  list->items = std::move(items);
  Loop loop{list, 0, 1};
  for (; loop.index < list->items.size(); ++loop.index) {
    charge(0);
    frames_.emplace_back();  // what a loop sets is gone in its next turn
    frames_.back().insert_or_assign("loop", Value(loop));
    assign(s.targets, list->items[loop.index]);
    const Flow flow = run_body(s.body);
    frames_.pop_back();
    if (flow == Flow::kBreak) break;
  }
  return Flow::kNext;
}

void Interpreter::run_set(const Stmt& s) {
  Value value;
  if (s.kind == StmtKind::kSet) {
    value = evaluate(*s.expr);
  } else {
    value = run_to_text(s.body);
    if (s.expr != nullptr) value = evaluate_filter(*s.expr, &value);
  }
  if (s.object.empty()) return assign(s.targets, value);
  const Value object = lookup(s.object);
  Dict* const* space = object.get<Dict*>();
  require(space != nullptr, "'", s.object, "' is not a namespace, so that its attributes cannot be set.");
  (*space)->set(s.targets[0], std::move(value));
}

Value Interpreter::lookup(const std::string& name) {
  charge(frames_.size() * 8);
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame)
    if (const auto found = frame->find(name); found != frame->end()) return found->second;
  if (find_function(name) != nullptr) return Function{name};
  return Value::undefined(name);
}

Value Interpreter::evaluate(const Expr& e) {
  charge(0);
  const Deeper deeper(*this);
  switch (e.kind) {
    case ExprKind::kLiteral: return e.value;
    case ExprKind::kName: {
      // Function's name must outlive the value: it is the tree's.
      const Value found = lookup(e.name);
      return found.get<Function>() != nullptr ? Value(Function{e.name}) : found;
    }
    case ExprKind::kList: {
      std::vector<Value> items;
      for (const ExprPtr& arg : e.args) items.push_back(evaluate(*arg));
      if (e.name == "tuple") return Value::list(std::move(items), true);
      return checked(std::move(items));
    }
    case ExprKind::kDict: {
      std::vector<std::pair<std::string, Value>> entries;
      for (size_t i = 0; i + 1 < e.args.size(); i += 2) {
        const Value key = evaluate(*e.args[i]);
        require(key.string() != nullptr, "The key of a dictionary is not a string.");
        charge(entries.size() * 8);  // the key is looked for among those before it
        entries.emplace_back(*key.string(), evaluate(*e.args[i + 1]));
      }
      return Value::dict(std::move(entries));
    }
    case ExprKind::kAttribute: return attribute(evaluate(*e.args[0]), e.name);
    case ExprKind::kItem: {
      const Value object = evaluate(*e.args[0]);
      return item(object, evaluate(*e.args[1]));
    }
    case ExprKind::kSlice: return evaluate_slice(e);
    case ExprKind::kCall: return evaluate_call(e);
    case ExprKind::kFilter: return evaluate_filter(e, nullptr);
    case ExprKind::kTest: {
      const Value value = evaluate(*e.args[0]);
      return call_test(e.name, value, arguments(e)) != e.negated;
    }
    case ExprKind::kNegate: {
      const Value value = evaluate(*e.args[0]);
      if (const double* d = value.get<double>()) return -*d;
      return binary("-", int64_t{0}, value);
    }
    case ExprKind::kNot: return !evaluate(*e.args[0]).truth();
    case ExprKind::kAnd: {
      Value left = evaluate(*e.args[0]);
      return left.truth() ? evaluate(*e.args[1]) : left;
    }
    case ExprKind::kOr: {
      Value left = evaluate(*e.args[0]);
      return left.truth() ? left : evaluate(*e.args[1]);
    }
    case ExprKind::kBinary: {
      const Value left = evaluate(*e.args[0]);
      return binary(e.name, left, evaluate(*e.args[1]));
    }
    case ExprKind::kCompare: return evaluate_compare(e);
    case ExprKind::kConcat: {
      std::string text;
      for (const ExprPtr& arg : e.args) text += text_of(evaluate(*arg));
      return checked(std::move(text));
    }
    case ExprKind::kChoice:
      if (evaluate(*e.args[0]).truth()) return evaluate(*e.args[1]);
      return e.args[2] == nullptr ? Value() : evaluate(*e.args[2]);
  }
  RLX_ASSERT(false);
}

Arguments Interpreter::arguments(const Expr& e) {
  Arguments args;
  for (size_t i = 1; i < e.args.size(); ++i) args.values.push_back(evaluate(*e.args[i]));
  for (const auto& [name, expr] : e.named) args.named.emplace_back(name, evaluate(*expr));
  return args;
}

Value Interpreter::evaluate_filter(const Expr& e, const Value* block_text) {
  if (e.args[0] == nullptr) {
    require(block_text != nullptr, "A filter has no value.");
    return call_filter(e.name, *block_text, arguments(e));
  }
  Value value = block_text != nullptr && e.args[0]->kind == ExprKind::kFilter ? evaluate_filter(*e.args[0], block_text)
                                                                              : evaluate(*e.args[0]);
  return call_filter(e.name, std::move(value), arguments(e));
}

Value Interpreter::evaluate_call(const Expr& e) {
  const Expr& callee = *e.args[0];
  if (callee.kind == ExprKind::kAttribute) {  // a method, or a macro in a namespace
    const Value object = evaluate(*callee.args[0]);
    if (Dict* const* space = object.get<Dict*>()) {
      const Value* member = (*space)->find(callee.name);
      if (member != nullptr && member->get<const Macro*>() != nullptr)
        return call_macro(**member->get<const Macro*>(), arguments(e));
    }
    return call_method(object, callee.name, arguments(e));
  }
  const Value function = evaluate(callee);
  if (const Macro* const* macro = function.get<const Macro*>()) return call_macro(**macro, arguments(e));
  const Function* builtin = function.get<Function>();
  if (builtin == nullptr) {
    if (const Undefined* u = function.get<Undefined>()) require(false, "'", u->name, "' is undefined.");
    require(false, "A value of type ", function.type_name(), " is called.");
  }
  return find_function(builtin->name)(*this, arguments(e));
}

Value Interpreter::call_macro(const Macro& macro, const Arguments& args) {
  require(args.size() <= macro.parameters.size(), "The macro '", macro.name, "' takes ", macro.parameters.size(),
          " arguments, but gets ", args.size(), ".");
  Frame frame;
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const auto& [name, otherwise] = macro.parameters[i];
    const Value* given = args.find(i, name);
    frame.insert_or_assign(name, given != nullptr       ? *given
                                 : otherwise != nullptr ? evaluate(*otherwise)
                                                        : Value::undefined(name));
  }
  // A macro sees the template's own variables and its arguments.
  std::deque<Frame> inner;
  std::swap(inner, frames_);
  frames_.push_back(std::move(inner.front()));
  frames_.push_back(std::move(frame));
  const auto restore = [&] {
    inner.front() = std::move(frames_.front());
    std::swap(inner, frames_);
  };
  try {
    std::string text = run_to_text(macro.body);
    restore();
    return checked(std::move(text));
  } catch (...) {
    restore();
    throw;
  }
}

Value Interpreter::evaluate_compare(const Expr& e) {
  Value left = evaluate(*e.args[0]);
  for (size_t i = 0; i < e.operators.size(); ++i) {
    Value right = evaluate(*e.args[i + 1]);
    const std::string& op = e.operators[i];
    bool holds = false;
    if (op != "in" && op != "not in") charge_compare(left, right);
    if (op == "==")
      holds = equal(left, right);
    else if (op == "!=")
      holds = !equal(left, right);
    else if (op == "<")
      holds = less(left, right);
    else if (op == ">")
      holds = less(right, left);
    else if (op == "<=")
      holds = !less(right, left);
    else if (op == ">=")
      holds = !less(left, right);
    else
      holds = contains(right, left) == (op == "in");
    if (!holds) return false;
    left = std::move(right);
  }
  return true;
}

bool Interpreter::contains(const Value& container, const Value& value) {
  if (const std::string* text = container.string()) {
    require(value.string() != nullptr, "A value of type ", value.type_name(), " is looked for in a string.");
    charge_search(*text, *value.string());
    return text->find(*value.string()) != std::string::npos;
  }
  charge(container.weight());
  if (const Dict* dict = container.dict()) return value.string() != nullptr && dict->find(*value.string()) != nullptr;
  if (Dict* const* space = container.get<Dict*>())
    return value.string() != nullptr && (*space)->find(*value.string()) != nullptr;
  const List* list = container.list();
  if (container.is_undefined()) return false;
  require(list != nullptr, "A value of type ", container.type_name(), " holds no others.");
  return std::any_of(list->items.begin(), list->items.end(), [&](const Value& item) { return equal(item, value); });
}

}  // namespace rlx::jinja
