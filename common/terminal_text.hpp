/// Characters that a terminal obeys, or that change the order in which it shows others.
///
/// Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace leasehold {

/// Size of the character that `text` begins with if it is one of U+0080 to U+009F, which some
/// terminals obey, or of U+202A to U+202E and U+2066 to U+2069, which reverse what follows them; 0
/// for all others. Source: Unicode Standard Annex 9, explicit formatting characters.
std::size_t wide_control_bytes(std::string_view text);

/// The JSON text with those characters and U+007F as escapes. JSON escapes U+0000 to U+001F anyway.
std::string escape_controls(std::string json);

}  // namespace leasehold
