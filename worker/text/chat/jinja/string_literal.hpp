/// Text as it is written in a template, between quotes and with Python's escapes.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold::jinja {

/// How many bytes the literal that `text` begins with takes, quotes and all; 0 when it does not
/// end.
std::size_t literal_size(std::string_view text);

/// What stands between the quotes, read. An escape Python does not know stays as it is.
/// Errors: UnsupportedModel, without a line, for an escape that names no character.
Result<std::string> unescape_literal(std::string_view between_quotes);

}  // namespace leasehold::jinja
