#include "broker/server/start/token_key_file.hpp"

#include <fmt/format.h>

#include "broker/journal/state_file.hpp"

namespace leasehold {
namespace {

Result<TokenKey> create_key(const std::string& path) {
  const TokenKey key = random_token_key();
  TRY(journal::write_state_file(path, [&](const auto&) { return to_hex(key); }));
  return key;
}

}  // namespace

Result<TokenKey> load_or_create_token_key(const std::string& state_dir, bool replace) {
  const std::string path = state_dir + "/token.key";
  const auto text = TRY(journal::read_secret_file(path, 2 * sizeof(TokenKey)));
  if (!text) return create_key(path);
  const auto key = token_key_from_hex(*text);
  if (!key) return fail(Errc::FileCorrupt, fmt::format("{} does not hold a key; remove it", path));
  return replace ? create_key(path) : *key;
}

}  // namespace leasehold
