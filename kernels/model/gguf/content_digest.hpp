/// The SHA-256 of a model's files, which identifies its content wherever the files are.
///
/// Equal digests mean equal bytes, so a copy on another file system is the same model, and other
/// content under the same path is another model. A FileIdentity shows neither.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "kernels/model/gguf/gguf.hpp"

namespace leasehold {

struct ContentDigest {
  std::array<std::uint8_t, 32> bytes{};

  /// 64 lower-case hex digits.
  std::string hex() const;
  /// The inverse of `hex`. Returns nothing for any other text.
  static std::optional<ContentDigest> from_hex(std::string_view text);

  auto operator<=>(const ContentDigest&) const = default;
};

/// Reads all bytes of the model's files, in the order of the parts of a split model. For a single
/// file the digest is what `sha256sum FILE` prints. Blocks until the whole file is read: about half
/// a second per GB if the file is in memory. It copies with pread and never touches the mapping.
/// Errors: FileCorrupt if a file became shorter or changed since it was opened; SystemError if one
/// cannot be read; Draining if `stop` was requested. Threads: any.
Result<ContentDigest> content_digest(const GgufFile& file, const std::stop_token& stop = {});

}  // namespace leasehold
