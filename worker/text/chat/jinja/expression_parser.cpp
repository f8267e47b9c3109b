// Expressions, weakest binding first: if-else, or, and, not, comparisons, + -, ~, * / // %, **.
#include "worker/text/chat/jinja/expression_parser.hpp"

#include <algorithm>
#include <array>

namespace leasehold::jinja {
namespace {

/// Operators of one precedence; later levels bind tighter.
using Level = std::array<std::string_view, 4>;
constexpr std::array kLevels = {Level{"+", "-"}, Level{"~"}, Level{"*", "/", "//", "%"},
                                Level{"**"}};
constexpr std::array<std::string_view, 6> kComparisons = {"==", "!=", "<", "<=", ">", ">="};

}  // namespace

std::uint32_t height_of(const ExpressionPtr& expression) {
  return expression ? expression->height : 0;
}

std::uint32_t height_of(const ArgumentExpressions& arguments) {
  std::uint32_t height = 0;
  for (const auto& argument : arguments.positional) height = std::max(height, height_of(argument));
  for (const auto& argument : arguments.named)
    height = std::max(height, height_of(argument.second));
  return height;
}

Result<ExpressionPtr> ExpressionParser::expression(ExpressionForm allowed) {
  const Nesting nesting = tokens_.nest();
  TRY(tokens_.check_nesting());
  ExpressionPtr value = TRY(disjunction());
  while (allowed == ExpressionForm::Conditional && tokens_.at_name("if")) {
    const int line = tokens_.take().line;
    ExpressionPtr condition = TRY(disjunction());
    ExpressionPtr otherwise;
    if (tokens_.skip_name("else")) otherwise = TRY(expression());
    const auto height = std::max({height_of(value), height_of(condition), height_of(otherwise)});
    value = TRY(node(Conditional{std::move(condition), std::move(value), std::move(otherwise)},
                     line, height));
  }
  return value;
}

Result<ExpressionPtr> ExpressionParser::tuple(ExpressionForm allowed) {
  const int line = tokens_.line();
  std::vector<ExpressionPtr> items;
  items.push_back(TRY(expression(allowed)));
  bool is_tuple = false;
  while (tokens_.skip_operator(",")) {
    is_tuple = true;
    if (at_tuple_end()) break;
    items.push_back(TRY(expression(allowed)));
  }
  if (!is_tuple) return std::move(items.front());
  return list_node(std::move(items), true, line);
}

Result<ArgumentExpressions> ExpressionParser::arguments() {
  TRY(tokens_.expect_operator("("));
  ArgumentExpressions given;
  while (!tokens_.skip_operator(")")) {
    TRY(argument(given));
    if (!tokens_.at_operator(")")) TRY(tokens_.expect_operator(","));
  }
  return given;
}

Result<FilterCall> ExpressionParser::filter_name_and_arguments() {
  FilterCall call;
  call.name = TRY(dotted_name());
  if (tokens_.at_operator("(")) call.arguments = TRY(arguments());
  return call;
}

Result<std::vector<FilterCall>> ExpressionParser::filters() {
  std::vector<FilterCall> filters;
  do {
    filters.push_back(TRY(filter_name_and_arguments()));
  } while (tokens_.skip_operator("|"));
  return filters;
}

Result<ExpressionPtr> ExpressionParser::list_node(std::vector<ExpressionPtr> items, bool is_tuple,
                                                  int line) {
  std::uint32_t height = 0;
  for (const auto& item : items) height = std::max(height, height_of(item));
  return node(ListLiteral{std::move(items), is_tuple}, line, height);
}

bool ExpressionParser::at_tuple_end() const {
  return tokens_.at(TokenKind::BlockEnd) || tokens_.at(TokenKind::PrintEnd) ||
         tokens_.at_operator(")") || tokens_.at_operator("=");
}

Result<ExpressionPtr> ExpressionParser::logical(bool is_and) {
  const auto operand = [&] { return is_and ? negation() : logical(true); };
  ExpressionPtr left = TRY(operand());
  while (tokens_.at_name(is_and ? "and" : "or")) {
    const int line = tokens_.take().line;
    ExpressionPtr right = TRY(operand());
    const auto height = std::max(height_of(left), height_of(right));
    left = TRY(node(Logical{is_and, std::move(left), std::move(right)}, line, height));
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::negation() {
  if (!tokens_.at_name("not")) return comparison();
  const Nesting nesting = tokens_.nest();
  TRY(tokens_.check_nesting());
  const int line = tokens_.take().line;
  ExpressionPtr operand = TRY(negation());
  const auto height = height_of(operand);
  return node(Unary{"not", std::move(operand)}, line, height);
}

std::string ExpressionParser::comparison_operator() {
  const Token& token = tokens_.current();
  if (token.kind == TokenKind::Operator && std::ranges::count(kComparisons, token.text) > 0)
    return tokens_.take().text;
  if (tokens_.skip_name("in")) return "in";
  const bool not_in = tokens_.at_name("not") && tokens_.following().is(TokenKind::Name, "in");
  if (!not_in) return {};
  tokens_.take();
  tokens_.take();
  return "not in";
}

Result<ExpressionPtr> ExpressionParser::comparison() {
  const int line = tokens_.line();
  Comparison chain{.first = TRY(arithmetic(0)), .rest = {}};
  auto height = height_of(chain.first);
  for (std::string sign = comparison_operator(); !sign.empty(); sign = comparison_operator()) {
    ExpressionPtr right = TRY(arithmetic(0));
    height = std::max(height, height_of(right));
    chain.rest.emplace_back(std::move(sign), std::move(right));
  }
  if (chain.rest.empty()) return std::move(chain.first);
  return node(std::move(chain), line, height);
}

std::string_view ExpressionParser::operation_of(std::size_t level) const {
  for (const std::string_view operation : kLevels[level])
    if (!operation.empty() && tokens_.at_operator(operation)) return operation;
  return {};
}

Result<ExpressionPtr> ExpressionParser::arithmetic(std::size_t level) {
  if (level == kLevels.size()) return unary(true);
  ExpressionPtr left = TRY(arithmetic(level + 1));
  if (tokens_.at_operator("~") && !operation_of(level).empty()) {
    return concatenation(std::move(left), level);
  }
  while (true) {
    const std::string operation(operation_of(level));
    if (operation.empty()) return left;
    const int line = tokens_.take().line;
    ExpressionPtr right = TRY(arithmetic(level + 1));
    const auto height = std::max(height_of(left), height_of(right));
    left = TRY(node(Binary{operation, std::move(left), std::move(right)}, line, height));
  }
}

Result<ExpressionPtr> ExpressionParser::concatenation(ExpressionPtr first, std::size_t level) {
  const int line = tokens_.line();
  auto height = height_of(first);
  Concat concat;
  concat.parts.push_back(std::move(first));
  while (tokens_.skip_operator("~")) {
    concat.parts.push_back(TRY(arithmetic(level + 1)));
    height = std::max(height, height_of(concat.parts.back()));
  }
  return node(std::move(concat), line, height);
}

}  // namespace leasehold::jinja
