#include <algorithm>
#include <utility>

#include "rlx/error.h"
#include "text/jinja/ast.h"
#include "text/jinja/expression_parser.h"
#include "text/jinja/lexer.h"

namespace rlx::jinja {
namespace {

class Parser : ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Body run() {
    Body body = statements({});
    if (peek().kind != TokenKind::kEnd) error("A block ends that did not begin.");
    return body;
  }

 private:
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

  int block_depth_ = 0, loop_depth_ = 0;
};

}  // namespace

Body parse(std::string_view source) { return Parser(lex(source)).run(); }

}  // namespace rlx::jinja
