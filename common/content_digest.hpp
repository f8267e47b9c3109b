/// The SHA-256 of the files of a model or an adapter, which identifies their content wherever the
/// files are.
///
/// Equal digests mean equal bytes, so a copy on another file system is the same model, and other
/// content under the same path is another model.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold {

struct ContentDigest {
  std::array<std::uint8_t, 32> bytes{};

  /// 64 lower-case hex digits.
  std::string hex() const;
  /// The inverse of `hex`. Returns nothing for any other text.
  static std::optional<ContentDigest> from_hex(std::string_view text);

  auto operator<=>(const ContentDigest&) const = default;
};

}  // namespace leasehold
