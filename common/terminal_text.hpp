/// Characters that a terminal obeys, and those that show nothing and change how a terminal or a
/// page shows others. U+202E, for example, turns what follows around, so that a name reads as
/// another one.
/// Source: Unicode Standard Annex #9, and the list of Default_Ignorable_Code_Point.
///
/// Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace leasehold {

/// The bytes of the character at the beginning of `text` if it is U+0080 to U+009F, which terminals
/// obey as they do ESC, a mark or an override of the direction, a separator of lines, or invisible.
/// 0 for every other one. Joiners are none: scripts and emoji need them.
std::size_t format_control_bytes(std::string_view text);

/// The JSON text with those characters and U+007F as escapes. JSON escapes U+0000 to U+001F anyway.
std::string escape_controls(std::string json);

}  // namespace leasehold
