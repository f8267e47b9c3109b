/// The syntax tree of a template, and its parser. The tree is immutable, so any number of threads
/// may evaluate it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "worker/text/chat/jinja/value.hpp"

namespace leasehold::jinja {

struct Expression;
/// Null for omitted parts.
using ExpressionPtr = std::unique_ptr<const Expression>;

struct ArgumentExpressions {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
};

struct Literal {
  Value value;
};
struct Name {
  std::string name;
};
struct ListLiteral {
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
};
struct DictLiteral {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};
struct Attribute {
  ExpressionPtr object;
  std::string name;
};
struct Subscript {
  ExpressionPtr object, index;
};
struct Slice {
  ExpressionPtr object;
  ExpressionPtr start, stop, step;
};
struct Call {
  ExpressionPtr callee;
  ArgumentExpressions arguments;
};
struct FilterCall {
  ExpressionPtr subject;  ///< Null for filters of a block; their subject is its text.
  std::string name;
  ArgumentExpressions arguments;
};
struct TestCall {
  ExpressionPtr subject;
  std::string name;
  ArgumentExpressions arguments;
  bool negated = false;
};
/// `not`, `-` or `+`.
struct Unary {
  std::string operation;
  ExpressionPtr operand;
};
/// Arithmetic: + - * / // % **
struct Binary {
  std::string operation;
  ExpressionPtr left, right;
};
/// a ~ b ~ c
struct Concat {
  std::vector<ExpressionPtr> parts;
};
/// a < b <= c compares each pair of neighbours. Operations: == != < <= > >= in, not in.
struct Comparison {
  ExpressionPtr first;
  std::vector<std::pair<std::string, ExpressionPtr>> rest;
};
struct Logical {
  bool is_and = true;
  ExpressionPtr left, right;
};
struct Conditional {
  ExpressionPtr condition, then, otherwise;
};

struct Expression {
  using Kind =
      std::variant<Literal, Name, ListLiteral, DictLiteral, Attribute, Subscript, Slice, Call,
                   FilterCall, TestCall, Unary, Binary, Concat, Comparison, Logical, Conditional>;
  Kind kind;
  int line = 1;
  std::uint32_t height = 1;  ///< Height of the tree; at most kMaxNesting.
};

struct Statement;
using Body = std::vector<Statement>;

/// The target of an assignment: one name, several names, or an attribute of a namespace.
struct Target {
  std::vector<std::string> names;
  std::string attribute;  ///< Empty unless it is `names[0].attribute`.
};

struct Data {
  Value text;
};
struct Print {
  ExpressionPtr value;
};
struct If {
  struct Branch {
    ExpressionPtr condition;  ///< Null for `else`.
    Body body;
  };
  std::vector<Branch> branches;
};
struct For {
  Target target;
  ExpressionPtr iterable;
  ExpressionPtr filter;  ///< Null: keeps every element.
  Body body;
  Body otherwise;
};
struct Set {
  Target target;
  ExpressionPtr value;
};
/// `set` without a value, or `filter`: captures the text of the body and applies the filters.
struct CaptureBlock {
  Target target;  ///< Without names, the text is written to the output.
  std::vector<FilterCall> filters;
  Body body;
};
struct Parameter {
  std::string name;
  ExpressionPtr fallback;
};
struct Macro {
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
};
/// `{% call(parameters) callee(arguments) %}`: the macro gets the body as `caller()`.
struct CallBlock {
  ExpressionPtr call;
  std::shared_ptr<const Macro> caller;
};
/// `with` and `generation`: a body with its own scope.
struct ScopeBlock {
  std::vector<std::pair<std::string, ExpressionPtr>> variables;
  Body body;
};
/// How a statement ends; `break` and `continue` do nothing else.
enum class Flow : std::uint8_t { Next, Break, Continue };

struct Statement {
  using Kind = std::variant<Data, Print, If, For, Set, CaptureBlock, std::shared_ptr<const Macro>,
                            CallBlock, ScopeBlock, Flow>;
  Kind kind;
  int line = 1;
};

/// Source: Jinja 3.1, "Template Designer Documentation"; the loop controls extension; Hugging Face
/// "Templates for chat models" for `generation`.
/// Errors: UnsupportedModel naming the construct and its line, for syntax errors and for
/// unsupported constructs.
Result<Body> parse_template(std::string_view source);

}  // namespace leasehold::jinja
