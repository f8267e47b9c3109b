#include "kernels/model/gguf/sha256.hpp"

#include <openssl/evp.h>

#include "common/expects.hpp"

namespace leasehold {
namespace {

std::unexpected<Error> failed() {
  return fail(Errc::SystemError, "OpenSSL cannot compute a SHA-256; check its configuration");
}

}  // namespace

Sha256::Sha256() : context_(::EVP_MD_CTX_new()) {}

void Sha256::Free::operator()(evp_md_ctx_st* context) const {
  ::EVP_MD_CTX_free(context);
}

Result<Sha256> Sha256::start() {
  Sha256 hash;
  if (hash.context_ && ::EVP_DigestInit_ex(hash.context_.get(), ::EVP_sha256(), nullptr) == 1)
    return hash;
  return failed();
}

Result<void> Sha256::add(std::span<const std::byte> bytes) {
  if (::EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1) return {};
  return failed();
}

Result<ContentDigest> Sha256::finish() {
  ContentDigest digest;
  unsigned size_bytes = 0;
  if (::EVP_DigestFinal_ex(context_.get(), digest.bytes.data(), &size_bytes) != 1) return failed();
  ensures(size_bytes == digest.bytes.size(), "a SHA-256 has 32 bytes");
  return digest;
}

}  // namespace leasehold
