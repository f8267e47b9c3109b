#include "ipc/control/messages/embedding_text.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "ipc/control/transport/base64.hpp"

namespace leasehold::wire {

static_assert(std::endian::native == std::endian::little);

std::string embedding_text(std::span<const float> embedding) {
  return control::to_base64(
      {reinterpret_cast<const char*>(embedding.data()), embedding.size_bytes()});
}

Result<std::vector<float>> embedding_of(std::string_view text) {
  const auto bytes = control::from_base64(text);
  if (!bytes || bytes->empty() || bytes->size() % sizeof(float) != 0) {
    return fail(Errc::MalformedMessage,
                fmt::format("a text of {} bytes is not the base64 of floats", text.size()));
  }
  std::vector<float> embedding(bytes->size() / sizeof(float));
  std::memcpy(embedding.data(), bytes->data(), bytes->size());
  return embedding;
}

}  // namespace leasehold::wire
