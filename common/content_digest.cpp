#include "common/content_digest.hpp"

#include <sodium/utils.h>

#include "common/hex.hpp"

namespace leasehold {

std::string ContentDigest::hex() const {
  return to_hex(bytes);
}

std::optional<ContentDigest> ContentDigest::from_hex(std::string_view text) {
  ContentDigest digest;
  std::size_t size_bytes = 0;
  const int decoded = ::sodium_hex2bin(digest.bytes.data(), digest.bytes.size(), text.data(),
                                       text.size(), nullptr, &size_bytes, nullptr);
  const bool is_whole = decoded == 0 && size_bytes == digest.bytes.size();
  if (!is_whole || digest.hex() != text) return std::nullopt;
  return digest;
}

}  // namespace leasehold
