#include "worker/serve/body_digest.hpp"

#include <sodium.h>

#include <nlohmann/json.hpp>
#include <string>

#include "common/expects.hpp"

namespace leasehold {

BodyDigest digest_of(const wire::RequestSubmit& submission) {
  wire::RequestSubmit body = submission;
  body.token.clear();
  body.emitted.clear();
  body.rebound_from.reset();
  body.asked_at_unix_s.reset();
  if (body.may_shorten) body.max_emitted_tokens = 0;
  const std::string text = body.to_json().dump();
  BodyDigest digest;
  static_assert(digest.size() == crypto_generichash_BYTES);
  const int rc = ::crypto_generichash(
      reinterpret_cast<unsigned char*>(digest.data()), digest.size(),
      reinterpret_cast<const unsigned char*>(text.data()), text.size(), nullptr, 0);
  ensures(rc == 0, "BLAKE2b accepts every text");
  return digest;
}

}  // namespace leasehold
