/// One page of a list: as many items as fit into one message, and at least one item, because an
/// empty page means the end of the list.
///
/// Errors: none. A single item longer than a message would make a reply that cannot be sent, so the
/// size of items is limited where they enter the broker. Threads: one.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace leasehold {

class Page {
 public:
  static constexpr std::uint64_t kMaxItems = 1000;
  static constexpr std::size_t kMaxBytes = 1 << 19;  ///< Half the largest message.

  explicit Page(std::uint64_t limit) : limit_(limit) {}

  /// Returns false when the item belongs on the next page.
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
