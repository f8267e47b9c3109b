/// OpenSSL's SHA-256 of bytes that arrive in pieces; it uses the CPU's SHA instructions.
///
/// Errors: SystemError for lack of memory, and where the machine's OpenSSL configuration forbids
/// SHA-256. Threads: one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "common/content_digest.hpp"
#include "common/result.hpp"

struct evp_md_ctx_st;

namespace leasehold {

class Sha256 {
 public:
  static Result<Sha256> start();

  Result<void> add(std::span<const std::byte> bytes);
  /// Nothing may be added afterwards.
  Result<ContentDigest> finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };

  Sha256();

  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace leasehold
