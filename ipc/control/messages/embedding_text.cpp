#include "ipc/control/messages/embedding_text.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <bit>
#include <cstring>

namespace leasehold::wire {

static_assert(std::endian::native == std::endian::little);

std::string embedding_text(std::span<const float> embedding) {
  constexpr int kVariant = sodium_base64_VARIANT_ORIGINAL;
  std::string text(sodium_base64_encoded_len(embedding.size_bytes(), kVariant), '\0');
  const auto* bytes = reinterpret_cast<const unsigned char*>(embedding.data());
  ::sodium_bin2base64(text.data(), text.size(), bytes, embedding.size_bytes(), kVariant);
  text.pop_back();  // the zero at the end
  return text;
}

Result<std::vector<float>> embedding_of(std::string_view text) {
  std::vector<unsigned char> bytes(text.size());
  std::size_t size_bytes = 0;
  const int rc = ::sodium_base642bin(bytes.data(), bytes.size(), text.data(), text.size(), nullptr,
                                     &size_bytes, nullptr, sodium_base64_VARIANT_ORIGINAL);
  if (rc != 0 || size_bytes == 0 || size_bytes % sizeof(float) != 0) {
    return fail(Errc::MalformedMessage,
                fmt::format("a text of {} bytes is not the base64 of floats", text.size()));
  }
  std::vector<float> embedding(size_bytes / sizeof(float));
  std::memcpy(embedding.data(), bytes.data(), size_bytes);
  return embedding;
}

}  // namespace leasehold::wire
