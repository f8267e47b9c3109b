/// The values of 4-bit codes that are not spread evenly.
///
/// Source: ggml's types IQ4_NL and IQ4_XS; Open Compute Project, Microscaling Formats (MX) 1.0
/// (MXFP4: the numbers of sign, two bits of exponent and one of mantissa). C++20-clean.
#pragma once

#include <cstdint>

namespace leasehold {

enum class CodeTable : std::uint8_t {
  None,  ///< A code's value is the code.
  Iq4,   ///< IQ4_NL and IQ4_XS.
  Mxfp4  ///< Twice the value, so that it is an integer.
};

/// The value of a code plus the offset, which makes it positive.
inline constexpr std::uint8_t kIq4Offset = 128;
inline constexpr std::uint8_t kMxfp4Offset = 12;
/// Code c's value plus the offset.
struct CodeValues {
  std::uint8_t of[16];
};
constexpr CodeValues code_values(CodeTable table) {
  if (table == CodeTable::Iq4)
    return {{1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241}};
  return {{12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0}};
}

/// For device code, which cannot call constexpr functions.
template <CodeTable kTable>
struct ValuesOf {
  static constexpr CodeValues kCodes = code_values(kTable);
};

}  // namespace leasehold
