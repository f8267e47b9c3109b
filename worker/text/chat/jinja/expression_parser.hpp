/// Parses expressions into their trees.
///
/// expression_parser.cpp has operators; value_parser.cpp has values, attributes, subscripts, calls,
/// filters and tests.
#pragma once

#include <charconv>

#include "worker/text/chat/jinja/syntax.hpp"
#include "worker/text/chat/jinja/token_stream.hpp"

namespace leasehold::jinja {

/// Which forms an expression may have at its position.
enum class ExpressionForm : std::uint8_t {
  Conditional,  ///< `a if b else c` is allowed.
  Plain,        ///< A following `if` is the filter of a loop.
};

class ExpressionParser {
 public:
  /// Lifetime: `tokens` outlives the parser.
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  Result<ExpressionPtr> expression(ExpressionForm allowed = ExpressionForm::Conditional);
  /// One expression, or a tuple of several separated by commas.
  Result<ExpressionPtr> tuple(ExpressionForm allowed = ExpressionForm::Conditional);
  /// `name` or `name(arguments)`, and more of them after `|`.
  Result<std::vector<FilterCall>> filters();

 private:
  template <class Kind>
  Result<ExpressionPtr> node(Kind kind, int line, std::uint32_t height_below) {
    TRY(tokens_.check_nesting(height_below + 1));
    return std::make_unique<const Expression>(
        Expression{.kind = std::move(kind), .line = line, .height = height_below + 1});
  }

  Result<ExpressionPtr> list_node(std::vector<ExpressionPtr> items, bool is_tuple, int line);
  bool at_tuple_end() const;
  /// The arguments of a call, including both brackets.
  Result<ArgumentExpressions> arguments();
  Result<FilterCall> filter_name_and_arguments();
  Result<ExpressionPtr> disjunction() { return logical(false); }
  /// A chain of `and`, or of `or` whose operands are such chains.
  Result<ExpressionPtr> logical(bool is_and);
  Result<ExpressionPtr> negation();

  /// Takes a comparison operator. Returns an empty text if none comes next.
  std::string comparison_operator();
  Result<ExpressionPtr> comparison();

  /// The next token if it is an operator of this level; otherwise empty.
  std::string_view operation_of(std::size_t level) const;
  Result<ExpressionPtr> arithmetic(std::size_t level);
  Result<ExpressionPtr> concatenation(ExpressionPtr first, std::size_t level);
  Result<ExpressionPtr> unary(bool with_filters);
  Result<ExpressionPtr> postfix(ExpressionPtr value);
  Result<ExpressionPtr> filtered(ExpressionPtr value);
  Result<ExpressionPtr> attribute(ExpressionPtr object);
  Result<ExpressionPtr> subscript(ExpressionPtr object);
  Result<ExpressionPtr> slice_bound();
  Result<ExpressionPtr> call(ExpressionPtr callee);
  Result<void> argument(ArgumentExpressions& given);
  Result<std::string> dotted_name();
  Result<ExpressionPtr> filter(ExpressionPtr subject);
  Result<ExpressionPtr> test(ExpressionPtr subject);

  /// A test may have one argument without brackets: `x is divisibleby 3`.
  bool at_bare_argument() const;
  Result<ExpressionPtr> primary();
  Result<ExpressionPtr> name();
  Result<ExpressionPtr> literal(Value value, int line);

  /// Concatenates adjacent strings.
  Result<ExpressionPtr> text();

  template <class Number>
  Result<ExpressionPtr> number() {
    const Token token = tokens_.take();
    const char* const end = token.text.data() + token.text.size();
    Number value{};
    const auto read = std::from_chars(token.text.data(), end, value);
    if (read.ec == std::errc{} && read.ptr == end) return literal(Value(value), token.line);
    return syntax_error(token.line,
                        fmt::format("the number '{}' is too large", printable_excerpt(token.text)));
  }

  Result<ExpressionPtr> parenthesized();
  Result<ExpressionPtr> list();
  Result<ExpressionPtr> dict();

  TokenStream& tokens_;
};

/// 0 for an omitted expression.
std::uint32_t height_of(const ExpressionPtr& expression);
std::uint32_t height_of(const ArgumentExpressions& arguments);

}  // namespace leasehold::jinja
