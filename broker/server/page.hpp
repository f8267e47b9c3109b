/// What of a list goes into one answer: as much as fits into a line, and at least one item, for
/// whoever asks page after page takes an empty page for the end.
///
/// Errors: none. An item that alone is longer than a line makes an answer that cannot be sent; what
/// the lists show is bounded where it comes in. Threads: one.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace leasehold {

class Page {
 public:
  static constexpr std::uint64_t kMaxItems = 1000;
  static constexpr std::size_t kMaxBytes = 1 << 19;  ///< Half a line, of items beyond the first.

  explicit Page(std::uint64_t limit) : limit_(limit) {}

  /// False when the item, and with it what follows, belongs on the next page.
  bool add(nlohmann::json item) {
    if (items_.size() >= limit_) return false;
    const std::size_t bytes =
        item.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).size();
    if (!items_.empty() && size_bytes_ + bytes > kMaxBytes) return false;
    size_bytes_ += bytes;
    items_.push_back(std::move(item));
    return true;
  }

  std::size_t size() const { return items_.size(); }
  nlohmann::json take() && { return std::move(items_); }

 private:
  std::uint64_t limit_;
  std::size_t size_bytes_ = 0;
  nlohmann::json items_ = nlohmann::json::array();
};

}  // namespace leasehold
