#include "ipc/control/tokens/lease_token.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include "common/expects.hpp"

namespace leasehold {
namespace {

static_assert(std::tuple_size_v<TokenKey> == crypto_auth_KEYBYTES);
static_assert(std::tuple_size_v<TokenKey> == crypto_generichash_KEYBYTES);

constexpr std::string_view kVersion = "v1:";
constexpr std::string_view kDerivation = "leasehold worker token key v1";
constexpr std::size_t kMacDigits = 2 * crypto_auth_BYTES;
constexpr std::size_t kMaxTokenBytes = 256;

/// libsodium selects its code for this CPU once; later calls cost one load.
void init_sodium() {
  static const bool ready = ::sodium_init() >= 0;
  ensures(ready, "libsodium starts");
}

std::string mac_of(const TokenKey& key, std::string_view signed_part) {
  init_sodium();
  std::array<unsigned char, crypto_auth_BYTES> mac{};
  ::crypto_auth(mac.data(), reinterpret_cast<const unsigned char*>(signed_part.data()),
                signed_part.size(), key.data());
  return to_hex(mac);
}

/// Little-endian on every machine, because the bytes enter a key.
std::array<unsigned char, 8> bytes_of(std::uint64_t number) {
  std::array<unsigned char, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(number >> (8 * i));
  return bytes;
}

std::unexpected<Error> refuse() {
  // The message does not say what differs, because the sender may be guessing.
  return fail(Errc::BadToken,
              "this worker does not accept the lease token; acquire a lease and use its token");
}

/// Parses the part between version and MAC: "17.4:tenant:". A tenant id may contain ':', a lease id
/// may not.
Result<LeaseClaim> parse_claim(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return refuse();
  const auto lease = LeaseId::parse(text.substr(0, colon));
  const auto tenant = TenantId::parse(text.substr(colon + 1, text.size() - colon - 2));
  if (!lease || !tenant) return refuse();
  return LeaseClaim{*lease, *tenant};
}

}  // namespace

TokenKey random_token_key() {
  init_sodium();
  TokenKey key{};
  ::randombytes_buf(key.data(), key.size());
  return key;
}

TokenKey derive_worker_key(const TokenKey& broker_key, WorkerId worker, std::uint64_t attachment) {
  init_sodium();
  const auto absorb = [](auto& state, const auto& bytes) {
    ::crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(bytes.data()),
                                bytes.size());
  };
  crypto_generichash_state state;
  ::crypto_generichash_init(&state, broker_key.data(), broker_key.size(), TokenKey{}.size());
  absorb(state, kDerivation);
  absorb(state, bytes_of(worker.value));
  absorb(state, bytes_of(attachment));
  TokenKey key{};
  ::crypto_generichash_final(&state, key.data(), key.size());
  return key;
}

Result<TokenKey> token_key_from_hex(std::string_view text) {
  TokenKey key{};
  std::size_t size = 0;
  const int rc =
      ::sodium_hex2bin(key.data(), key.size(), text.data(), text.size(), nullptr, &size, nullptr);
  if (rc != 0 || size != key.size() || text.size() != 2 * key.size()) {
    return fail(Errc::BadRequest,
                fmt::format("expected a token key of {} hex digits, got a text of {} bytes",
                            2 * key.size(), text.size()));
  }
  return key;
}

std::string mint_token(const TokenKey& worker_key, const LeaseClaim& claim) {
  std::string token = fmt::format("{}{}:{}:", kVersion, to_string(claim.lease), claim.tenant.value);
  token += mac_of(worker_key, token);
  return token;
}

Result<LeaseClaim> verify_token_of(const TenantId& tenant, const TokenKey& worker_key,
                                   std::string_view token) {
  LeaseClaim claim = TRY(verify_token(worker_key, token));
  if (claim.tenant != tenant) return refuse();
  return claim;
}

Result<LeaseClaim> verify_token(const TokenKey& worker_key, std::string_view token) {
  if (token.size() <= kVersion.size() + kMacDigits || token.size() > kMaxTokenBytes)
    return refuse();
  const std::string_view signed_part = token.substr(0, token.size() - kMacDigits);
  // Compare the digits, not the bytes, so that upper-case digits are refused.
  const std::string expected = mac_of(worker_key, signed_part);
  if (::sodium_memcmp(expected.data(), token.data() + signed_part.size(), kMacDigits) != 0)
    return refuse();
  if (!signed_part.starts_with(kVersion) || !signed_part.ends_with(':')) return refuse();
  return parse_claim(signed_part.substr(kVersion.size()));
}

}  // namespace leasehold
