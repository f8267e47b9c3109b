#include "kernels/model/gguf/content_digest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kernels/model/gguf/sha256.hpp"

namespace leasehold {
namespace {

constexpr std::uint64_t kPieceBytes = 256 << 10;  // stays in a core's cache

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

Result<ContentDigest> content_digest(const GgufFile& file, const std::stop_token& stop) {
  Sha256 hash = TRY(Sha256::start());
  for (std::uint32_t part = 0; part < file.part_count(); ++part)
    TRY(add_part(hash, file, part, stop));
  // If the file was written meanwhile, the bytes read may mix two contents.
  TRY(file.check_unchanged());
  return hash.finish();
}

}  // namespace leasehold
