/// Reads little-endian values from untrusted bytes, with bounds checks.
///
/// Errors: FileCorrupt naming the file, the byte offset, and what was expected there.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold {

static_assert(std::endian::native == std::endian::little,
              "GGUF values are little-endian and are copied unchanged");

class GgufCursor {
 public:
  /// Does not own the bytes or the path; both must outlive the cursor.
  GgufCursor(std::span<const std::byte> bytes, std::string_view path, std::uint64_t position = 0)
      : bytes_(bytes), path_(path), position_(position) {}

  std::uint64_t position() const { return position_; }
  std::uint64_t remaining() const { return bytes_.size() - position_; }

  template <class T>
  Result<T> take(std::string_view what) {
    if (remaining() < sizeof(T)) return truncated(sizeof(T), what);
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  /// Reads a length (uint64) and that many bytes. The view points into the bytes given at
  /// construction.
  Result<std::string_view> take_string(std::string_view what) {
    const std::uint64_t size = TRY(take<std::uint64_t>(what));
    if (size > remaining()) return truncated(size, what);
    const auto* text = reinterpret_cast<const char*>(bytes_.data() + position_);
    position_ += size;
    return std::string_view(text, size);
  }

  /// Checks that `count` elements of at least `element_size_bytes` fit in the remaining bytes.
  Result<void> check_remaining(std::uint64_t count, std::uint64_t element_size_bytes,
                               std::string_view what) const {
    if (count > remaining() / element_size_bytes)
      return corrupt(position_, fmt::format("{} {} cannot fit in the {} bytes that are left", count,
                                            what, remaining()));
    return {};
  }

  Result<void> skip(std::uint64_t count, std::uint64_t element_size_bytes, std::string_view what) {
    TRY(check_remaining(count, element_size_bytes, what));
    position_ += count * element_size_bytes;
    return {};
  }

  std::unexpected<Error> corrupt(std::uint64_t at, std::string_view what) const {
    return fail(Errc::FileCorrupt, fmt::format("{}: at byte {}: {}", path_, at, what));
  }

 private:
  std::unexpected<Error> truncated(std::uint64_t size_bytes, std::string_view what) const {
    return corrupt(position_,
                   fmt::format("{} needs {} bytes and {} are left", what, size_bytes, remaining()));
  }

  std::span<const std::byte> bytes_;
  std::string_view path_;
  std::uint64_t position_;
};

}  // namespace leasehold
