/// The alphabet in which byte-level vocabularies write bytes as visible characters.
///
/// Bytes that are visible in Latin-1 stand for themselves; the others, in order, are U+0100
/// upwards. So a space is "Ġ", a line feed "Ċ". Source: GPT-2's encoder (Radford et al. 2019).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace leasehold {

/// The bytes that `text` spells; nothing where it holds anything but characters of the alphabet.
std::optional<std::string> decode_byte_alphabet(std::string_view text);

}  // namespace leasehold
