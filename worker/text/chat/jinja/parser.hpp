/// Parses a template into its syntax tree.
///
/// Source: Jinja 3.1, "Template Designer Documentation"; the loop controls extension; Hugging Face
/// "Templates for chat models" for `generation`.
/// Errors: UnsupportedModel naming the construct and its line, for syntax errors and for
/// unsupported constructs.
#pragma once

#include "worker/text/chat/jinja/syntax.hpp"
#include "worker/text/chat/jinja/token_stream.hpp"

namespace leasehold::jinja {

Result<Body> parse_template(std::string_view source);

/// Which forms an expression may have at its position.
enum class ExpressionForm : std::uint8_t {
  Conditional,  ///< `a if b else c` is allowed.
  Plain,        ///< A following `if` is the filter of a loop.
};

Result<ExpressionPtr> parse_expression(TokenStream& tokens,
                                       ExpressionForm allowed = ExpressionForm::Conditional);

/// One expression, or a tuple of several separated by commas.
Result<ExpressionPtr> parse_tuple(TokenStream& tokens,
                                  ExpressionForm allowed = ExpressionForm::Conditional);

/// The arguments of a call, including both brackets.
Result<ArgumentExpressions> parse_arguments(TokenStream& tokens);

/// `name` or `name(arguments)`, and more of them after `|`.
Result<std::vector<FilterCall>> parse_filters(TokenStream& tokens);

}  // namespace leasehold::jinja
