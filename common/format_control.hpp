/// Characters that show nothing and change how a terminal or a page shows others: U+202E, for
/// example, turns what follows around, so that a name reads as another one.
/// Source: Unicode Standard Annex #9, and the list of Default_Ignorable_Code_Point.
#pragma once

#include <cstdint>
#include <string_view>

namespace leasehold {

/// The bytes of the character at the beginning of `text` if it is U+0080 to U+009F, which terminals
/// obey as they do ESC, a mark or an override of the direction, a separator of lines, or invisible.
/// 0 for every other one. Joiners are none: scripts and emoji need them. Pure.
constexpr std::size_t format_control_bytes(std::string_view text) {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const std::uint32_t two = byte(0) << 8 | byte(1);
  if ((two >= 0xC280 && two <= 0xC29F) || two == 0xD89C) return 2;  // C1, U+061C
  const std::uint32_t three = two << 8 | byte(2);
  const bool is_mark = three == 0xE2808E || three == 0xE2808F;           // U+200E, U+200F
  const bool is_override = three >= 0xE280A8 && three <= 0xE280AE;       // U+2028 to U+202E
  const bool is_invisible = (three >= 0xE281A0 && three <= 0xE281A4) ||  // U+2060 to U+2064
                            three == 0xEFBBBF;                           // U+FEFF
  const bool is_isolate = three >= 0xE281A6 && three <= 0xE281A9;        // U+2066 to U+2069
  return is_mark || is_override || is_invisible || is_isolate ? 3 : 0;
}

}  // namespace leasehold
