#include <algorithm>
#include <charconv>

#include "rlx/error.h"
#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"
#include "text/unicode.h"

namespace rlx::jinja {
namespace {

constexpr int kDeepestExpr = 200, kDeepestBlock = 50;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Body run() {
    Body body = statements({});
    if (peek().kind != TokenKind::kEnd) error("A block ends that did not begin.");
    return body;
  }

 private:
  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  Token take() {
    Token token = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  [[noreturn]] void error(std::string_view message) const { fail_at(peek().line, message); }

  bool is_operator(std::string_view text) const { return peek().kind == TokenKind::kOperator && peek().text == text; }
  bool is_name(std::string_view text) const { return peek().kind == TokenKind::kName && peek().text == text; }
  bool accept(std::string_view text) {
    if (!is_operator(text)) return false;
    take();
    return true;
  }
  bool accept_name(std::string_view text) {
    if (!is_name(text)) return false;
    take();
    return true;
  }
  void expect(std::string_view text) {
    if (!accept(text)) error(str("'", text, "' is missing."));
  }
  std::string expect_name() {
    if (peek().kind != TokenKind::kName) error("A name is missing.");
    return take().text;
  }
  void end_block() {
    if (peek().kind != TokenKind::kBlockEnd) error("A tag has more than it should.");
    take();
  }

  // Statements up to a block whose name is one of `ends`; it is left for the caller, at its name.
  Body statements(std::initializer_list<std::string_view> ends) {
    if (++block_depth_ > kDeepestBlock) error("Blocks are nested too deep.");
    Body body;
    const int line = peek().line;
    while (true) {
      const Token& token = peek();
      if (token.kind == TokenKind::kEnd) {
        if (ends.size() > 0) fail_at(line, str("A block has no end ({% ", *(ends.end() - 1), " %})."));
        break;
      }
      if (token.kind == TokenKind::kText) {
        auto statement = make(StmtKind::kText);
        statement->text = take().text;
        body.push_back(std::move(statement));
      } else if (token.kind == TokenKind::kOutputStart) {
        take();
        auto statement = make(StmtKind::kOutput);
        statement->expr = tuple();
        if (peek().kind != TokenKind::kOutputEnd) error("An expression has more than it should.");
        take();
        body.push_back(std::move(statement));
      } else {
        if (token.kind != TokenKind::kBlockStart) error("A tag is not where it can be.");
        const Token& name = peek(1);
        if (name.kind == TokenKind::kName && std::find(ends.begin(), ends.end(), name.text) != ends.end()) {
          take();
          break;
        }
        if (name.kind == TokenKind::kName && name.text.starts_with("end")) break;  // run() says that it did not begin
        take();
        block(body);
      }
    }
    --block_depth_;
    return body;
  }

  std::unique_ptr<Stmt> make(StmtKind kind) const {
    auto statement = std::make_unique<Stmt>();
    statement->kind = kind;
    statement->line = peek().line;
    return statement;
  }

  void block(Body& body) {
    const std::string name = expect_name();
    if (name == "if") return body.push_back(if_block());
    if (name == "for") return body.push_back(for_block());
    if (name == "set") return body.push_back(set_block());
    if (name == "macro") return body.push_back(macro_block());
    if (name == "filter") return body.push_back(filter_block());
    if (name == "with") return body.push_back(with_block());
    if (name == "break" || name == "continue") {
      if (loop_depth_ == 0) error(str("'", name, "' stands outside of a loop."));
      body.push_back(make(name == "break" ? StmtKind::kBreak : StmtKind::kContinue));
      return end_block();
    }
    if (name == "generation") {  // marks what the model writes; the text is the same
      end_block();
      for (auto& statement : statements({"endgeneration"})) body.push_back(std::move(statement));
      take();
      return end_block();
    }
    error(str("The block '", name, "' is not one that rlx knows."));
  }

  std::unique_ptr<Stmt> if_block() {
    auto statement = make(StmtKind::kIf);
    ExprPtr condition = expression();
    while (true) {
      end_block();
      Body body = statements({"elif", "else", "endif"});
      statement->branches.emplace_back(std::move(condition), std::move(body));
      const std::string next = take().text;
      if (next == "endif") break;
      const bool is_else = statement->branches.back().first == nullptr;
      if (is_else) error("A block follows 'else'.");
      condition = next == "elif" ? expression() : nullptr;
    }
    end_block();
    return statement;
  }

  std::vector<std::string> targets(std::string_view end) {
    std::vector<std::string> names;
    const bool bracket = accept("(");
    do {
      if (is_name(end) || is_operator(end)) break;
      names.push_back(expect_name());
    } while (accept(","));
    if (bracket) expect(")");
    if (names.empty()) error("A name is missing.");
    return names;
  }

  std::unique_ptr<Stmt> for_block() {
    auto statement = make(StmtKind::kFor);
    statement->targets = targets("in");
    if (!accept_name("in")) error("'in' is missing.");
    statement->expr = tuple(false);
    if (accept_name("if")) statement->condition = expression();
    if (is_name("recursive")) error("Recursive loops are not supported.");
    end_block();
    ++loop_depth_;
    statement->body = statements({"else", "endfor"});
    --loop_depth_;
    if (take().text == "else") {
      end_block();
      statement->otherwise = statements({"endfor"});
      take();
    }
    end_block();
    return statement;
  }

  std::unique_ptr<Stmt> set_block() {
    auto statement = make(StmtKind::kSet);
    statement->targets = targets("=");
    if (statement->targets.size() == 1 && accept(".")) {
      statement->object = std::move(statement->targets[0]);
      statement->targets[0] = expect_name();
    }
    if (accept("=")) {
      statement->expr = tuple();
      end_block();
      return statement;
    }
    statement->kind = StmtKind::kSetBlock;  // {% set x %}text{% endset %}, through filters
    if (accept("|")) statement->expr = filters(nullptr);
    end_block();
    statement->body = statements({"endset"});
    take();
    end_block();
    return statement;
  }

  std::unique_ptr<Stmt> macro_block() {
    auto statement = make(StmtKind::kMacro);
    statement->macro = std::make_unique<Macro>();
    statement->macro->name = expect_name();
    expect("(");
    while (!accept(")")) {
      std::string name = expect_name();
      ExprPtr otherwise = accept("=") ? expression() : nullptr;
      statement->macro->parameters.emplace_back(std::move(name), std::move(otherwise));
      if (!is_operator(")")) expect(",");
    }
    end_block();
    const int loops = std::exchange(loop_depth_, 0);
    statement->macro->body = statements({"endmacro"});
    loop_depth_ = loops;
    take();
    if (peek().kind == TokenKind::kName) take();  // {% endmacro name %}
    end_block();
    return statement;
  }

  std::unique_ptr<Stmt> filter_block() {
    auto statement = make(StmtKind::kFilterBlock);
    statement->expr = filters(nullptr);
    end_block();
    statement->body = statements({"endfilter"});
    take();
    end_block();
    return statement;
  }

  std::unique_ptr<Stmt> with_block() {
    auto statement = make(StmtKind::kScope);
    while (peek().kind == TokenKind::kName) {
      std::string name = take().text;
      expect("=");
      statement->bindings.emplace_back(std::move(name), expression());
      if (!accept(",")) break;
    }
    end_block();
    statement->body = statements({"endwith"});
    take();
    end_block();
    return statement;
  }

  // Expressions. `node` counts their depth.
  ExprPtr node(ExprKind kind, std::vector<ExprPtr> args = {}, std::string name = {}) {
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
  void check_depth(const Expr& expr) const {
    if (expr.depth > kDeepestExpr) error("An expression is nested too deep.");
  }
  void append(Expr& expr, ExprPtr arg) {
    expr.depth = std::max(expr.depth, arg->depth + 1);
    check_depth(expr);
    expr.args.push_back(std::move(arg));
  }
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

  // One expression, or several with commas between them: a list.
  ExprPtr tuple(bool choices = true) {
    ExprPtr first = choices ? expression() : or_expression();
    if (!is_operator(",")) return first;
    ExprPtr list = node(ExprKind::kList, single(std::move(first)), "tuple");
    while (accept(",")) {
      if (peek().kind == TokenKind::kBlockEnd || peek().kind == TokenKind::kOutputEnd || is_operator(")")) break;
      append(*list, choices ? expression() : or_expression());
    }
    return list;
  }

  ExprPtr expression() {
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

  ExprPtr or_expression() {
    ExprPtr left = and_expression();
    while (accept_name("or")) left = node(ExprKind::kOr, pair(std::move(left), and_expression()));
    return left;
  }

  ExprPtr and_expression() {
    ExprPtr left = not_expression();
    while (accept_name("and")) left = node(ExprKind::kAnd, pair(std::move(left), not_expression()));
    return left;
  }

  ExprPtr not_expression() {
    size_t count = 0;
    while (is_name("not")) take(), ++count;
    ExprPtr expr = compare();
    for (; count > 0; --count) expr = node(ExprKind::kNot, single(std::move(expr)));
    return expr;
  }

  ExprPtr compare() {
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
      } else if (is_operator("==") || is_operator("!=") || is_operator("<") || is_operator("<=") || is_operator(">") || is_operator(">=")) {
        op = take().text;
      } else {
        return chain == nullptr ? std::move(first) : std::move(chain);
      }
      if (chain == nullptr) chain = node(ExprKind::kCompare, single(std::move(first)));
      append(*chain, sum());
      chain->operators.push_back(std::move(op));
    }
  }

  ExprPtr sum() {
    ExprPtr left = concat();
    while (is_operator("+") || is_operator("-")) {
      std::string op = take().text;
      left = node(ExprKind::kBinary, pair(std::move(left), concat()), std::move(op));
    }
    return left;
  }

  ExprPtr concat() {
    ExprPtr first = product();
    if (!is_operator("~")) return first;
    ExprPtr all = node(ExprKind::kConcat, single(std::move(first)));
    while (accept("~")) append(*all, product());
    return all;
  }

  ExprPtr product() {
    ExprPtr left = power();
    while (is_operator("*") || is_operator("/") || is_operator("//") || is_operator("%")) {
      std::string op = take().text;
      left = node(ExprKind::kBinary, pair(std::move(left), power()), std::move(op));
    }
    return left;
  }

  ExprPtr power() {
    ExprPtr left = unary(true);
    while (accept("**")) left = node(ExprKind::kBinary, pair(std::move(left), unary(true)), "**");
    return left;
  }

  ExprPtr unary(bool with_filters) {
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

  ExprPtr literal(Value value) {
    ExprPtr expr = node(ExprKind::kLiteral);
    expr->value = std::move(value);
    return expr;
  }

  ExprPtr primary() {
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

  ExprPtr postfix(ExprPtr expr) {
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

  ExprPtr subscript(ExprPtr object) {
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
  ExprPtr call(ExprPtr expr) {
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
  ExprPtr filters(ExprPtr expr) {
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

  ExprPtr filters_and_tests(ExprPtr expr) {
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

  ExprPtr test(ExprPtr expr) {
    const bool negated = accept_name("not");
    ExprPtr result = node(ExprKind::kTest, single(std::move(expr)), expect_name());
    result->negated = negated;
    if (is_operator("(")) return call(std::move(result));
    const Token& next = peek();
    const bool is_argument = next.kind == TokenKind::kString || next.kind == TokenKind::kInteger || next.kind == TokenKind::kFloat ||
                             is_operator("[") || is_operator("{") ||
                             (next.kind == TokenKind::kName && next.text != "else" && next.text != "or" && next.text != "and" && next.text != "is" &&
                              next.text != "if" && next.text != "in" && next.text != "not");
    if (is_argument) append(*result, postfix(primary()));
    return result;
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int block_depth_ = 0, expr_depth_ = 0, loop_depth_ = 0;
};

}  // namespace

Body parse(std::string_view source) { return Parser(lex(source)).run(); }

}  // namespace rlx::jinja
