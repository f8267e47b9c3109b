#include "kernels/model/gguf/digest_cache.hpp"

#include <fmt/format.h>

#include <chrono>

#include "common/checksum.hpp"
#include "common/machine/replace_file.hpp"
#include "common/machine/text_file.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kMaxBytes = 16 << 10;  // a path has at most 4096
constexpr auto kMinAge = std::chrono::seconds(2);

std::uint64_t checksum_of(const std::string& text) {
  return Checksum::of(text.data(), text.size());
}

/// Everything that must be equal for a cached digest to be used.
std::string key_of(const GgufFile& file) {
  const FileIdentity& id = file.identity();
  return fmt::format(
      "leasehold-digest 1 parts={} device={} inode={} size={} mtime_ns={} ctime_ns={} path={}",
      file.part_count(), id.device, id.inode, id.size_bytes, id.mtime_ns, id.ctime_ns, file.path());
}

std::string entry_of(const GgufFile& file, const ContentDigest& digest) {
  const std::string content = fmt::format("{}\n{}\n", key_of(file), digest.hex());
  return fmt::format("{}{:016x}\n", content, checksum_of(content));
}

bool is_settled(const GgufFile& file) {
  const auto written = std::chrono::nanoseconds(file.identity().mtime_ns);
  return std::chrono::system_clock::now().time_since_epoch() - written > kMinAge;
}

}  // namespace

std::string DigestCache::path_of(const GgufFile& file) const {
  return fmt::format("{}/{:016x}.digest", directory_, checksum_of(file.path()));
}

std::optional<ContentDigest> DigestCache::find(const GgufFile& file) const {
  const auto text = read_trusted_file(path_of(file), kMaxBytes);
  if (!text) return std::nullopt;
  const std::size_t begin = key_of(file).size() + 1;
  if (text->size() < begin) return std::nullopt;
  const auto digest = ContentDigest::from_hex(
      std::string_view(*text).substr(begin, 2 * sizeof(ContentDigest::bytes)));
  // Build the entry again, so that every byte is compared.
  if (!digest || *text != entry_of(file, *digest)) return std::nullopt;
  return digest;
}

Result<void> DigestCache::store(const GgufFile& file, const ContentDigest& digest) const {
  if (!is_settled(file)) return {};
  // After a power cut the checksum of the entry shows whether its bytes were written.
  return replace_file(path_of(file), entry_of(file, digest), {.survives_power_cut = false});
}

}  // namespace leasehold
