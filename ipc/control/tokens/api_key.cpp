#include "ipc/control/tokens/api_key.hpp"

#include <sodium.h>

#include <algorithm>
#include <array>

#include "common/expects.hpp"
#include "common/hex.hpp"

namespace leasehold {
namespace {

constexpr std::string_view kPrefix = "lh-";
constexpr std::string_view kBatchPrefix = "lhb-";
constexpr std::size_t kIdDigits = 16;
using Bytes = std::array<unsigned char, 32>;

}  // namespace

std::string mint_api_key() {
  ensures(::sodium_init() >= 0, "libsodium starts");
  Bytes secret{};
  ::randombytes_buf(secret.data(), secret.size());
  return std::string(kPrefix) + to_hex(secret);
}

bool is_api_key(std::string_view text) {
  const std::string_view digits = text.substr(std::min(text.size(), kPrefix.size()));
  return text.starts_with(kPrefix) && digits.size() == 2 * Bytes{}.size() &&
         digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string hash_of_api_key(std::string_view key) {
  Bytes hash{};
  ::crypto_generichash(hash.data(), hash.size(), reinterpret_cast<const unsigned char*>(key.data()),
                       key.size(), nullptr, 0);
  return to_hex(hash);
}

ApiKeyId api_key_id(std::string_view hash) {
  return {std::string(hash.substr(0, kIdDigits))};
}

/// The hash is part of the input, so the batch key reveals neither the hash nor the key.
std::string batch_key_of_hash(std::string_view hash) {
  const std::string proof = hash_of_api_key("batch key of " + std::string(hash));
  return std::string(kBatchPrefix) + api_key_id(hash).value + "-" + proof;
}

std::optional<ApiKeyId> key_of_batch_key(std::string_view batch_key) {
  if (!batch_key.starts_with(kBatchPrefix)) return std::nullopt;
  return ApiKeyId{std::string(batch_key.substr(kBatchPrefix.size(), kIdDigits))};
}

}  // namespace leasehold
