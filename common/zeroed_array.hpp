/// An array of zeros that uses physical memory only where it was written to.
///
/// For scratch memory sized for the worst case: unused parts cost nothing. calloc gets large arrays
/// from the kernel as untouched pages; std::vector would write every zero. Errors: std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace leasehold {

template <class T>
  requires std::is_arithmetic_v<T>
class ZeroedArray {
 public:
  ZeroedArray() = default;
  explicit ZeroedArray(std::size_t size) : size_(size) {
    if (size == 0) return;
    data_.reset(static_cast<T*>(std::calloc(size, sizeof(T))));
    if (!data_) throw std::bad_alloc();
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }

 private:
  std::unique_ptr<T[], void (*)(void*)> data_{nullptr, std::free};
  std::size_t size_ = 0;
};

}  // namespace leasehold
