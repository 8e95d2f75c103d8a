// Expressions of a template, from tokens to a tree; what statements are made of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace rlx::jinja {

constexpr int kDeepestExpr = 200, kDeepestBlock = 50;

class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  const Token& peek(size_t ahead = 0) const;
  Token take();
  [[noreturn]] void error(std::string_view message) const;
  bool is_operator(std::string_view text) const;
  bool is_name(std::string_view text) const;
  bool accept(std::string_view text);  // an operator
  bool accept_name(std::string_view text);
  void expect(std::string_view text);
  std::string expect_name();

  ExprPtr expression();
  ExprPtr tuple(bool choices = true);  // one expression, or several with commas between them
  ExprPtr filters(
      ExprPtr expr);  // name(args) | name …, the first bar taken already; null stands for the text of a block

 private:
  ExprPtr node(ExprKind kind, std::vector<ExprPtr> args = {}, std::string name = {});  // counts its depth
  void check_depth(const Expr& expr) const;
  void append(Expr& expr, ExprPtr arg);
  ExprPtr literal(Value value);

  // From the operator that binds least to what stands alone.
  ExprPtr or_expression();
  ExprPtr and_expression();
  ExprPtr not_expression();
  ExprPtr compare();
  ExprPtr sum();
  ExprPtr concat();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary(bool with_filters);
  ExprPtr primary();
  ExprPtr list_or_dict(const Token& bracket);
  ExprPtr postfix(ExprPtr expr);
  ExprPtr subscript(ExprPtr object);
  ExprPtr call(ExprPtr expr);  // the arguments in brackets, added to a call, filter or test
  ExprPtr filters_and_tests(ExprPtr expr);
  ExprPtr test(ExprPtr expr);

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int expr_depth_ = 0;
};

}  // namespace rlx::jinja
