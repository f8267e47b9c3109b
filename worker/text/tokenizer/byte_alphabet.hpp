/// The alphabet that byte-level vocabularies use to write bytes as visible characters.
///
/// Bytes that are visible in Latin-1 map to themselves; the others, in order, to U+0100 and up. A
/// space is "Ġ", a line feed "Ċ". Source: GPT-2's encoder (Radford et al. 2019).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace leasehold {

/// Returns the bytes of `text`, or nothing if a character is not in the alphabet.
std::optional<std::string> decode_byte_alphabet(std::string_view text);

}  // namespace leasehold
