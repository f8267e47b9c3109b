#include "kernels/model/gguf/content_digest.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <sodium/utils.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "common/expects.hpp"
#include "common/hex.hpp"

namespace leasehold {
namespace {

constexpr std::uint64_t kPieceBytes = 1 << 20;

/// OpenSSL's SHA-256, which uses the CPU's SHA instructions. Each call can fail only for lack of
/// memory, or where the machine's OpenSSL configuration forbids SHA-256.
class Sha256 {
 public:
  static Result<Sha256> start() {
    Sha256 hash;
    if (hash.context_ && ::EVP_DigestInit_ex(hash.context_.get(), ::EVP_sha256(), nullptr) == 1)
      return hash;
    return failed();
  }

  Result<void> add(std::span<const std::byte> bytes) {
    if (::EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1) return {};
    return failed();
  }

  Result<ContentDigest> finish() {
    ContentDigest digest;
    unsigned size_bytes = 0;
    if (::EVP_DigestFinal_ex(context_.get(), digest.bytes.data(), &size_bytes) != 1)
      return failed();
    ensures(size_bytes == digest.bytes.size(), "a SHA-256 has 32 bytes");
    return digest;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { ::EVP_MD_CTX_free(context); }
  };

  static std::unexpected<Error> failed() {
    return fail(Errc::SystemError, "OpenSSL cannot compute a SHA-256; check its configuration");
  }

  std::unique_ptr<EVP_MD_CTX, Free> context_{::EVP_MD_CTX_new()};
};

Result<void> add_part(Sha256& hash, const GgufFile& file, std::uint32_t part,
                      const std::stop_token& stop) {
  std::vector<std::byte> piece;
  const std::uint64_t size_bytes = file.part_size_bytes(part);
  for (std::uint64_t done = 0; done < size_bytes; done += piece.size()) {
    if (stop.stop_requested()) {
      return fail(Errc::Draining, fmt::format("{}: the digest of the file was stopped after {} of "
                                              "{} bytes",
                                              file.path(), done, size_bytes));
    }
    piece.resize(std::min(kPieceBytes, size_bytes - done));
    TRY(file.read_part(part, done, piece));
    TRY(hash.add(piece));
  }
  return {};
}

}  // namespace

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

Result<ContentDigest> content_digest(const GgufFile& file, const std::stop_token& stop) {
  Sha256 hash = TRY(Sha256::start());
  for (std::uint32_t part = 0; part < file.part_count(); ++part)
    TRY(add_part(hash, file, part, stop));
  // If the file was written meanwhile, the bytes read may mix two contents.
  TRY(file.check_unchanged());
  return hash.finish();
}

}  // namespace leasehold
