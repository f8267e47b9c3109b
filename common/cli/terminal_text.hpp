/// Finds characters that a terminal obeys, and invisible ones that change how a terminal or a page
/// shows other characters. U+202E, for example, reverses the text after it, so that a name looks
/// like another one.
/// Source: Unicode Standard Annex #9, and the list of Default_Ignorable_Code_Point.
///
/// Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace leasehold {

/// Returns the size in bytes of the first character of `text` if it is a control from U+0080 to
/// U+009F, which terminals obey as they do ESC, a mark or override of the text direction, a line
/// separator, or invisible. Returns 0 for every other character, and for joiners, which scripts and
/// emoji need.
std::size_t format_control_bytes(std::string_view text);

/// Returns the JSON text with these characters and U+007F escaped. JSON escapes U+0000 to U+001F
/// anyway.
std::string escape_controls(std::string json);

}  // namespace leasehold
