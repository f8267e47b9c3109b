/// Text from outside, shortened for a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace leasehold {

/// The whole characters at the beginning of `text` that take at most `max_bytes`, as one printable
/// line. Bytes that are not UTF-8 become U+FFFD.
std::string printable_line(std::string_view text, std::size_t max_bytes);

}  // namespace leasehold
