/// Texts of the simulated machine. A token is made from all tokens before it, so a text that
/// continues from anything but its own tokens is another text from there on.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace leasehold::simulation {

inline constexpr std::uint32_t kTextTokens = 8;

/// The beginning of one text, up to all of it.
struct Text {
  std::uint64_t id = 0;  ///< Of the request. Ids of different tenants differ.
  std::uint32_t size = 0;
  std::array<std::uint32_t, kTextTokens> tokens{};  ///< By position.

  bool is_whole() const { return size == kTextTokens; }
  std::span<const std::uint32_t> all() const { return std::span(tokens).first(size); }
  void append(std::uint32_t token) { tokens[size++] = token; }
  /// The next token of the undisturbed text.
  std::uint32_t next() const {
    std::uint64_t mixed = id;
    for (const std::uint32_t token : all()) mixed = (mixed ^ token) * 0x9e3779b97f4a7c15;
    return static_cast<std::uint32_t>(mixed >> 32) + size;
  }
  bool begins(const Text& other) const {
    return id == other.id && size <= other.size &&
           std::ranges::equal(all(), other.all().first(size));
  }
};

/// Its request outlives the connection and the process of its tenant.
inline bool is_resumable(std::uint64_t text) {
  return text % 4 != 0;
}

}  // namespace leasehold::simulation
