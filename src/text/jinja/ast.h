// A template as a tree.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace rlx::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

enum class ExprKind {
  kLiteral,
  kName,
  kList,
  kDict,
  kAttribute,
  kItem,
  kSlice,
  kCall,
  kFilter,
  kTest,
  kNegate,
  kNot,
  kAnd,
  kOr,
  kBinary,
  kCompare,
  kConcat,
  kChoice
};

struct Expr {
  ExprKind kind;
  int line = 0;
  int depth = 1;              // bounded by the parser, so that walking it cannot run out of stack
  std::string name;           // variable, attribute, filter, test, operator; "tuple" of a kList in round brackets
  Value value;                // kLiteral
  std::vector<ExprPtr> args;  // operands; kDict: key, value, …; kSlice: object, start, stop, step (null where left
                              // out); kChoice: condition, then, else (null: undefined)
  std::vector<std::pair<std::string, ExprPtr>> named;  // name=value arguments
  std::vector<std::string> operators;                  // kCompare: between the operands
  bool negated = false;                                // kTest: is not
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

enum class StmtKind { kText, kOutput, kIf, kFor, kSet, kSetBlock, kMacro, kFilterBlock, kScope, kBreak, kContinue };

struct Macro {
  std::string name;
  std::vector<std::pair<std::string, ExprPtr>> parameters;  // with their defaults, or null
  Body body;
};

struct Stmt {
  StmtKind kind;
  int line = 0;
  std::string text;                  // kText
  ExprPtr expr;                      // output, iterated value, assigned value, filter of a block
  ExprPtr condition;                 // kFor: … if condition
  std::vector<std::string> targets;  // names that kFor and kSet give values
  std::string object;                // kSet: the namespace whose attribute (targets[0]) is set; empty: a variable
  std::vector<std::pair<ExprPtr, Body>> branches;  // kIf: else has no condition
  Body body, otherwise;                            // kFor: otherwise, where nothing was iterated
  std::unique_ptr<Macro> macro;
  std::vector<std::pair<std::string, ExprPtr>> bindings;  // kScope: {% with a = 1 %}
};

Body parse(std::string_view source);

}  // namespace rlx::jinja
