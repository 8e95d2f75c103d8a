#include "text/jinja/expression_parser.h"

#include <algorithm>
#include <charconv>

#include "rlx/error.h"
#include "text/unicode.h"

namespace rlx::jinja {

static std::vector<ExprPtr> pair(ExprPtr a, ExprPtr b) {
  std::vector<ExprPtr> args;
  args.push_back(std::move(a));
  args.push_back(std::move(b));
  return args;
}
static std::vector<ExprPtr> single(ExprPtr a) {
  std::vector<ExprPtr> args;
  args.push_back(std::move(a));
  return args;
}

const Token& ExpressionParser::peek(size_t ahead) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
Token ExpressionParser::take() {
  Token token = peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}
void ExpressionParser::error(std::string_view message) const { fail_at(peek().line, message); }

bool ExpressionParser::is_operator(std::string_view text) const {
  return peek().kind == TokenKind::kOperator && peek().text == text;
}
bool ExpressionParser::is_name(std::string_view text) const {
  return peek().kind == TokenKind::kName && peek().text == text;
}
bool ExpressionParser::accept(std::string_view text) {
  if (!is_operator(text)) return false;
  take();
  return true;
}
bool ExpressionParser::accept_name(std::string_view text) {
  if (!is_name(text)) return false;
  take();
  return true;
}
void ExpressionParser::expect(std::string_view text) {
  if (!accept(text)) error(str("'", text, "' is missing."));
}
std::string ExpressionParser::expect_name() {
  if (peek().kind != TokenKind::kName) error("A name is missing.");
  return take().text;
}

ExprPtr ExpressionParser::node(ExprKind kind, std::vector<ExprPtr> args, std::string name) {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = peek().line;
  expr->name = std::move(name);
  for (const ExprPtr& arg : args)
    if (arg != nullptr) expr->depth = std::max(expr->depth, arg->depth + 1);
  expr->args = std::move(args);
  check_depth(*expr);
  return expr;
}
void ExpressionParser::check_depth(const Expr& expr) const {
  if (expr.depth > kDeepestExpr) error("An expression is nested too deep.");
}
void ExpressionParser::append(Expr& expr, ExprPtr arg) {
  expr.depth = std::max(expr.depth, arg->depth + 1);
  check_depth(expr);
  expr.args.push_back(std::move(arg));
}

// One expression, or several with commas between them: a list.
ExprPtr ExpressionParser::tuple(bool choices) {
  ExprPtr first = choices ? expression() : or_expression();
  if (!is_operator(",")) return first;
  ExprPtr list = node(ExprKind::kList, single(std::move(first)), "tuple");
  while (accept(",")) {
    if (peek().kind == TokenKind::kBlockEnd || peek().kind == TokenKind::kOutputEnd || is_operator(")")) break;
    append(*list, choices ? expression() : or_expression());
  }
  return list;
}

ExprPtr ExpressionParser::expression() {
  if (++expr_depth_ > kDeepestExpr) error("An expression is nested too deep.");
  ExprPtr then = or_expression();
  while (accept_name("if")) {
    ExprPtr condition = or_expression();
    ExprPtr otherwise = accept_name("else") ? expression() : nullptr;
    std::vector<ExprPtr> args = pair(std::move(condition), std::move(then));
    args.push_back(std::move(otherwise));
    then = node(ExprKind::kChoice, std::move(args));
  }
  --expr_depth_;
  return then;
}

ExprPtr ExpressionParser::or_expression() {
  ExprPtr left = and_expression();
  while (accept_name("or")) left = node(ExprKind::kOr, pair(std::move(left), and_expression()));
  return left;
}

ExprPtr ExpressionParser::and_expression() {
  ExprPtr left = not_expression();
  while (accept_name("and")) left = node(ExprKind::kAnd, pair(std::move(left), not_expression()));
  return left;
}

ExprPtr ExpressionParser::not_expression() {
  size_t count = 0;
  while (is_name("not")) take(), ++count;
  ExprPtr expr = compare();
  for (; count > 0; --count) expr = node(ExprKind::kNot, single(std::move(expr)));
  return expr;
}

ExprPtr ExpressionParser::compare() {
  ExprPtr first = sum();
  ExprPtr chain;
  while (true) {
    std::string op;
    if (is_name("in")) {
      op = take().text;
    } else if (is_name("not") && peek(1).kind == TokenKind::kName && peek(1).text == "in") {
      take();
      take();
      op = "not in";
    } else if (is_operator("==") || is_operator("!=") || is_operator("<") || is_operator("<=") || is_operator(">") ||
               is_operator(">=")) {
      op = take().text;
    } else {
      return chain == nullptr ? std::move(first) : std::move(chain);
    }
    if (chain == nullptr) chain = node(ExprKind::kCompare, single(std::move(first)));
    append(*chain, sum());
    chain->operators.push_back(std::move(op));
  }
}

ExprPtr ExpressionParser::sum() {
  ExprPtr left = concat();
  while (is_operator("+") || is_operator("-")) {
    std::string op = take().text;
    left = node(ExprKind::kBinary, pair(std::move(left), concat()), std::move(op));
  }
  return left;
}

ExprPtr ExpressionParser::concat() {
  ExprPtr first = product();
  if (!is_operator("~")) return first;
  ExprPtr all = node(ExprKind::kConcat, single(std::move(first)));
  while (accept("~")) append(*all, product());
  return all;
}

ExprPtr ExpressionParser::product() {
  ExprPtr left = power();
  while (is_operator("*") || is_operator("/") || is_operator("//") || is_operator("%")) {
    std::string op = take().text;
    left = node(ExprKind::kBinary, pair(std::move(left), power()), std::move(op));
  }
  return left;
}

ExprPtr ExpressionParser::power() {
  ExprPtr left = unary(true);
  while (accept("**")) left = node(ExprKind::kBinary, pair(std::move(left), unary(true)), "**");
  return left;
}

ExprPtr ExpressionParser::unary(bool with_filters) {
  if (++expr_depth_ > kDeepestExpr) error("An expression is nested too deep.");
  ExprPtr expr;
  if (accept("-"))
    expr = node(ExprKind::kNegate, single(unary(false)));
  else if (accept("+"))
    expr = unary(false);
  else
    expr = primary();
  expr = postfix(std::move(expr));
  if (with_filters) expr = filters_and_tests(std::move(expr));
  --expr_depth_;
  return expr;
}

ExprPtr ExpressionParser::literal(Value value) {
  ExprPtr expr = node(ExprKind::kLiteral);
  expr->value = std::move(value);
  return expr;
}

ExprPtr ExpressionParser::primary() {
  const Token token = take();
  switch (token.kind) {
    case TokenKind::kName:
      if (token.text == "true" || token.text == "True") return literal(true);
      if (token.text == "false" || token.text == "False") return literal(false);
      if (token.text == "none" || token.text == "None") return literal(None{});
      return node(ExprKind::kName, {}, token.text);
    case TokenKind::kString: {
      std::string text = token.text;
      while (peek().kind == TokenKind::kString) text += take().text;
      return literal(std::move(text));
    }
    case TokenKind::kInteger: {
      int64_t number = 0;
      if (std::from_chars(token.text.data(), token.text.data() + token.text.size(), number).ec != std::errc())
        fail_at(token.line, str("The number ", text::excerpt(token.text), " is too large."));
      return literal(number);
    }
    case TokenKind::kFloat: {
      double number = 0;
      std::from_chars(token.text.data(), token.text.data() + token.text.size(), number);
      return literal(number);
    }
    default: break;
  }
  return list_or_dict(token);
}

ExprPtr ExpressionParser::list_or_dict(const Token& token) {
  if (token.kind == TokenKind::kOperator && token.text == "(") {
    if (accept(")")) return node(ExprKind::kList, {}, "tuple");
    ExprPtr inner = tuple();
    expect(")");
    return inner;
  }
  if (token.kind == TokenKind::kOperator && token.text == "[") {
    ExprPtr list = node(ExprKind::kList);
    while (!accept("]")) {
      append(*list, expression());
      if (!is_operator("]")) expect(",");
    }
    return list;
  }
  if (token.kind == TokenKind::kOperator && token.text == "{") {
    ExprPtr dict = node(ExprKind::kDict);
    while (!accept("}")) {
      append(*dict, expression());
      expect(":");
      append(*dict, expression());
      if (!is_operator("}")) expect(",");
    }
    return dict;
  }
  fail_at(token.line, "An expression is missing.");
}

ExprPtr ExpressionParser::postfix(ExprPtr expr) {
  while (true) {
    if (accept(".")) {
      if (peek().kind == TokenKind::kInteger) {
        ExprPtr index = primary();
        expr = node(ExprKind::kItem, pair(std::move(expr), std::move(index)));
      } else {
        std::string name = expect_name();
        expr = node(ExprKind::kAttribute, single(std::move(expr)), std::move(name));
      }
    } else if (accept("[")) {
      expr = subscript(std::move(expr));
    } else if (is_operator("(")) {
      expr = call(node(ExprKind::kCall, single(std::move(expr))));
    } else {
      return expr;
    }
  }
}

ExprPtr ExpressionParser::subscript(ExprPtr object) {
  std::vector<ExprPtr> parts = single(std::move(object));
  bool is_slice = false;
  const auto part = [&] { return is_operator(":") || is_operator("]") ? nullptr : expression(); };
  parts.push_back(part());
  while (parts.size() < 4 && accept(":")) {
    is_slice = true;
    parts.push_back(part());
  }
  expect("]");
  if (is_slice) {
    parts.resize(4);
    return node(ExprKind::kSlice, std::move(parts));
  }
  if (parts[1] == nullptr) error("An index is missing.");
  return node(ExprKind::kItem, std::move(parts));
}

// The arguments in brackets, added to a call, filter or test.
ExprPtr ExpressionParser::call(ExprPtr expr) {
  expect("(");
  while (!accept(")")) {
    if (peek().kind == TokenKind::kName && peek(1).kind == TokenKind::kOperator && peek(1).text == "=") {
      std::string name = take().text;
      take();
      ExprPtr value = expression();
      expr->depth = std::max(expr->depth, value->depth + 1);
      check_depth(*expr);
      expr->named.emplace_back(std::move(name), std::move(value));
    } else {
      append(*expr, expression());
    }
    if (!is_operator(")")) expect(",");
  }
  return expr;
}

// name(args) | name …, the first bar taken already. A null expression stands for the text of a block.
ExprPtr ExpressionParser::filters(ExprPtr expr) {
  do {
    ExprPtr filter = node(ExprKind::kFilter, {}, expect_name());
    filter->args.push_back(nullptr);
    if (expr != nullptr) {
      filter->depth = expr->depth + 1;
      check_depth(*filter);
    }
    filter->args[0] = std::move(expr);
    expr = is_operator("(") ? call(std::move(filter)) : std::move(filter);
  } while (accept("|"));
  return expr;
}

ExprPtr ExpressionParser::filters_and_tests(ExprPtr expr) {
  while (true) {
    if (accept("|")) {
      expr = filters(std::move(expr));
    } else if (accept_name("is")) {
      expr = test(std::move(expr));
    } else if (is_operator("(")) {
      expr = call(node(ExprKind::kCall, single(std::move(expr))));
    } else {
      return expr;
    }
  }
}

ExprPtr ExpressionParser::test(ExprPtr expr) {
  const bool negated = accept_name("not");
  ExprPtr result = node(ExprKind::kTest, single(std::move(expr)), expect_name());
  result->negated = negated;
  if (is_operator("(")) return call(std::move(result));
  const Token& next = peek();
  const bool is_argument =
      next.kind == TokenKind::kString || next.kind == TokenKind::kInteger || next.kind == TokenKind::kFloat ||
      is_operator("[") || is_operator("{") ||
      (next.kind == TokenKind::kName && next.text != "else" && next.text != "or" && next.text != "and" &&
       next.text != "is" && next.text != "if" && next.text != "in" && next.text != "not");
  if (is_argument) append(*result, postfix(primary()));
  return result;
}

}  // namespace rlx::jinja
