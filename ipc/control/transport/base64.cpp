#include "ipc/control/transport/base64.hpp"

#include <sodium.h>

namespace leasehold::control {
namespace {

constexpr int kVariant = sodium_base64_VARIANT_ORIGINAL;

}  // namespace

std::string to_base64(std::string_view bytes) {
  // The length includes the terminating zero, which std::string has room for.
  std::string text(sodium_base64_encoded_len(bytes.size(), kVariant) - 1, '\0');
  sodium_bin2base64(text.data(), text.size() + 1,
                    reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), kVariant);
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes(text.size() / 4 * 3, '\0');
  std::size_t size = 0;
  const char* end = nullptr;
  const int failed = sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(),
                                       text.data(), text.size(), nullptr, &size, &end, kVariant);
  if (failed != 0 || end != text.data() + text.size()) return std::nullopt;
  bytes.resize(size);
  return bytes;
}

}  // namespace leasehold::control
