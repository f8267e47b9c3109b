/// A text that records the origin of its bytes. The name of a control token means the token only
/// where the chat template wrote the whole name. In the bytes of a client the name is plain text,
/// wherever the template puts those bytes.
///
/// Cheap: a text of one origin has at most one range. Lifetime: a value. Threads: as std::string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold {

enum class TextOrigin : std::uint8_t { Client, Template };

class MarkedText {
 public:
  /// The bytes from `begin` up to `end`.
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
    bool operator==(const Range&) const = default;
  };

  MarkedText() = default;
  MarkedText(std::string bytes, TextOrigin origin);

  const std::string& bytes() const { return bytes_; }
  std::string take_bytes() && { return std::move(bytes_); }
  std::size_t size() const { return bytes_.size(); }

  /// The ranges that the template wrote, in order. None is empty, and they neither touch nor
  /// overlap.
  std::span<const Range> from_template() const { return from_template_; }

  /// Returns Template if the template wrote all of `part`, which is a view into bytes().
  TextOrigin origin_of(std::string_view part) const;

  void append(std::string_view bytes, TextOrigin origin);
  void append(const MarkedText& other) { append_part(other, other.bytes_); }
  /// `part` is a view into the bytes of `other`.
  void append_part(const MarkedText& other, std::string_view part);

  /// Returns a copy of `part`, which is a view into bytes().
  MarkedText part(std::string_view part) const;

  bool operator==(const MarkedText&) const = default;

 private:
  std::span<const Range> ranges_over(std::size_t begin, std::size_t end) const;
  void mark(std::size_t begin, std::size_t end);

  std::string bytes_;
  std::vector<Range> from_template_;
};

}  // namespace leasehold
