#include "common/hex.hpp"

#include <sodium.h>

#include <vector>

namespace leasehold {

std::string to_hex(std::span<const std::uint8_t> bytes) {
  std::vector<char> digits(2 * bytes.size() + 1);  // sodium_bin2hex ends the text with a zero
  return ::sodium_bin2hex(digits.data(), digits.size(), bytes.data(), bytes.size());
}

}  // namespace leasehold
