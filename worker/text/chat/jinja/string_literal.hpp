/// String literals with Python's escapes.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold::jinja {

/// The size of the literal at the start of `text`, with its quotes; 0 without a closing quote.
std::size_t literal_size(std::string_view text);

/// Resolves the escapes between the quotes. Escapes that Python does not define are kept.
/// Errors: UnsupportedModel, without a line, for an escape that is not a character.
Result<std::string> unescape_literal(std::string_view between_quotes);

}  // namespace leasehold::jinja
