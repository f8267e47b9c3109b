/// Finds the files of a split model, checks that they belong together, and reads them as one.
///
/// Source: the GGUF naming convention ("NAME-00001-of-00003.gguf") and the split.* metadata that
/// gguf-split writes: split.count, split.no from 0, split.tensors.count over all files.
#include <fmt/format.h>
#include <sodium/crypto_hash_sha256.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/model/gguf/gguf.hpp"

namespace leasehold {
namespace {

constexpr std::uint32_t kMaxParts = 1024;

std::string part_suffix(std::uint32_t number, std::uint32_t n_parts) {
  return fmt::format("-{:05}-of-{:05}.gguf", number + 1, n_parts);
}

/// The path without "-00001-of-0000N.gguf".
Result<std::string> split_stem(const std::string& path, std::uint32_t number,
                               std::uint32_t n_parts) {
  const std::string suffix = part_suffix(number, n_parts);
  if (path.ends_with(suffix)) return path.substr(0, path.size() - suffix.size());
  return fail(Errc::FileCorrupt,
              fmt::format("{}: is part {} of {} of a split model, so its name must end with {}; "
                          "restore the published file names",
                          path, number + 1, n_parts, suffix));
}

std::uint64_t first_bytes(const unsigned char* hash) {
  std::uint64_t number;
  std::memcpy(&number, hash, sizeof number);
  return number >> 1;  // fits a signed 64-bit column
}

FileIdentity combined_identity(std::span<const FileIdentity> parts) {
  std::vector<std::uint64_t> numbers;
  FileIdentity all{.device = parts.front().device, .inode = 0, .size_bytes = 0, .mtime_ns = 0};
  for (const FileIdentity& part : parts) {
    all.size_bytes += part.size_bytes;
    numbers.insert(numbers.end(), {part.device, part.inode, part.size_bytes,
                                   static_cast<std::uint64_t>(part.mtime_ns),
                                   static_cast<std::uint64_t>(part.ctime_ns)});
  }
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash;
  crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(numbers.data()),
                     numbers.size() * sizeof numbers.front());
  all.inode = first_bytes(hash.data());
  all.mtime_ns = static_cast<std::int64_t>(first_bytes(hash.data() + sizeof(std::uint64_t)));
  return all;
}

/// Adds the part number to a FileNotFound error.
Result<GgufFile> with_part_context(Result<GgufFile> part, std::uint32_t number,
                                   std::uint32_t n_parts) {
  if (part || part.error().code != Errc::FileNotFound) return part;
  return fail(Errc::FileNotFound, fmt::format("{} (part {} of {}; put all parts in one folder)",
                                              part.error().detail, number + 1, n_parts));
}

Result<void> check_part(const GgufFile& part, std::uint32_t number, std::uint32_t n_parts) {
  const auto count = TRY(part.get_or<std::uint32_t>("split.count", 1));
  const auto says = TRY(part.get_or<std::uint32_t>("split.no", 0));
  if (count == n_parts && says == number) return {};
  return fail(Errc::FileCorrupt, fmt::format("{}: is part {} of {}, expected part {} of {}",
                                             part.path(), says + 1, count, number + 1, n_parts));
}

}  // namespace

Result<GgufFile> GgufFile::open_split(GgufFile one, std::uint32_t n_parts) {
  if (n_parts > kMaxParts)
    return fail(Errc::UnsupportedModel,
                fmt::format("{}: split.count is {}; this build reads {} parts at most", one.path_,
                            n_parts, kMaxParts));
  const auto number = TRY(one.get<std::uint32_t>("split.no"));
  if (number >= n_parts)
    return fail(Errc::FileCorrupt,
                fmt::format("{}: split.no is {} of {} parts", one.path_, number, n_parts));
  const std::string stem = TRY(split_stem(one.path_, number, n_parts));
  std::vector<GgufFile> parts;
  for (std::uint32_t i = 0; i < n_parts; ++i) {
    if (i == number) continue;
    parts.push_back(
        TRY(with_part_context(open_single(stem + part_suffix(i, n_parts)), i, n_parts)));
    TRY(check_part(parts.back(), i, n_parts));
  }
  parts.insert(parts.begin() + number, std::move(one));
  GgufFile whole = std::move(parts.front());
  const auto n_tensors = TRY(whole.get_or<std::uint64_t>("split.tensors.count", 0));
  for (std::uint32_t i = 1; i < n_parts; ++i) TRY(whole.add_part(std::move(parts[i])));
  if (n_tensors != 0 && n_tensors != whole.tensors().size())
    return fail(Errc::FileCorrupt,
                fmt::format("{}: split.tensors.count is {}, and its {} parts have {}", whole.path_,
                            n_tensors, n_parts, whole.tensors().size()));
  whole.identity_ = TRY(whole.identity_now());
  TRY(whole.check_unchanged());
  return whole;
}

Result<void> GgufFile::add_part(GgufFile part) {
  const auto number = static_cast<std::uint32_t>(other_parts_.size() + 1);
  for (GgufTensor& tensor : part.directory_.tensors) {
    tensor.part = number;
    const auto [entry, is_new] =
        directory_.tensor_index.emplace(tensor.name, directory_.tensors.size());
    if (!is_new)
      return fail(Errc::FileCorrupt,
                  fmt::format("{}: tensor {} is also in {}", part.path_, tensor.name, path_));
    directory_.tensors.push_back(std::move(tensor));
  }
  part.directory_.tensors.clear();
  other_parts_.push_back(std::move(part));
  return {};
}

Result<FileIdentity> GgufFile::opened_identity_now() const {
  if (other_parts_.empty()) return opened_part_identity();
  std::vector<FileIdentity> parts{TRY(opened_part_identity())};
  for (const GgufFile& other : other_parts_) parts.push_back(TRY(other.opened_part_identity()));
  return combined_identity(parts);
}

Result<FileIdentity> GgufFile::identity_now() const {
  if (other_parts_.empty()) return FileIdentity::of_path(path_);
  std::vector<FileIdentity> parts{TRY(FileIdentity::of_path(path_))};
  for (const GgufFile& other : other_parts_)
    parts.push_back(TRY(FileIdentity::of_path(other.path_)));
  return combined_identity(parts);
}

}  // namespace leasehold
