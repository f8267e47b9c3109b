/// From a template's text to its tree.
///
/// Source: Jinja 3.1, "Template Designer Documentation"; the loop controls extension; Hugging Face
/// "Templates for chat models" for `generation`.
/// Errors: UnsupportedModel naming the construct and its line, for what is wrong as for what we
/// lack.
#pragma once

#include "worker/text/chat/jinja/syntax.hpp"
#include "worker/text/chat/jinja/token_stream.hpp"

namespace leasehold::jinja {

Result<Body> parse_template(std::string_view source);

/// Where an expression stands decides what may belong to it.
enum class ExpressionForm : std::uint8_t {
  Conditional,  ///< `a if b else c` may come.
  Plain,        ///< An `if` belongs to somebody else: a loop's filter.
};

Result<ExpressionPtr> parse_expression(TokenStream& tokens,
                                       ExpressionForm allowed = ExpressionForm::Conditional);

/// One expression, or several with commas, which make a tuple.
Result<ExpressionPtr> parse_tuple(TokenStream& tokens,
                                  ExpressionForm allowed = ExpressionForm::Conditional);

/// What stands between the brackets of a call, both included.
Result<ArgumentExpressions> parse_arguments(TokenStream& tokens);

/// `name`, `name(arguments)`, and what follows after further bars.
Result<std::vector<FilterCall>> parse_filters(TokenStream& tokens);

}  // namespace leasehold::jinja
