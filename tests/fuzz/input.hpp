/// Shared by the fuzz targets: a reader of their input, and a check that ends the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

namespace leasehold::fuzz {

/// Ends the run when the input broke a promise of our own code.
inline void check(bool holds) {
  if (!holds) std::abort();
}

struct Delivery {
  std::string_view bytes;
  bool with_descriptor = false;
};

/// Reads an input from its front; past its end every value is zero or empty.
class Input {
 public:
  explicit Input(std::span<const std::uint8_t> data) : data_(data) {}

  bool empty() const { return data_.empty(); }
  std::uint8_t byte() { return number<std::uint8_t>(); }

  template <class T>
  T number() {
    T value{};
    const std::size_t size = data_.size() < sizeof(T) ? data_.size() : sizeof(T);
    if (size > 0) std::memcpy(&value, take(size).data(), size);
    return value;
  }

  std::span<const std::uint8_t> rest() { return take(data_.size()); }

  /// Bytes up to a 0x01 or 0x02, which is dropped; 0x02 adds a descriptor.
  Delivery delivery() {
    std::size_t size = 0;
    while (size < data_.size() && data_[size] != 1 && data_[size] != 2) ++size;
    const bool with_descriptor = size < data_.size() && data_[size] == 2;
    const auto bytes = take(size);
    if (!data_.empty()) take(1);
    return {{reinterpret_cast<const char*>(bytes.data()), bytes.size()}, with_descriptor};
  }

 private:
  std::span<const std::uint8_t> take(std::size_t size) {
    const auto taken = data_.first(size);
    data_ = data_.subspan(size);
    return taken;
  }

  std::span<const std::uint8_t> data_;
};

}  // namespace leasehold::fuzz
