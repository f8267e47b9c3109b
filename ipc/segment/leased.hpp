/// A pointer into leased memory that can be dereferenced only with a permit.
///
/// `Leased<T>` can be stored, compared, offset and re-typed. Only a `LaunchPermit`
/// (ipc/segment/thread_gate.hpp) turns it into a `T*`, and only a gate makes permits. So code that
/// has not polled cannot reach the bytes.
///
/// Lifetime: a handle does not keep the memory mapped; the memory is mapped while its lease is
/// live. C++20-clean.
#pragma once

#include <cstddef>
#include <type_traits>

namespace leasehold {

template <class T>
class Leased {
 public:
  Leased() = default;

  /// `Leased<T>` converts to `Leased<const T>`, but not back.
  template <class U>
    requires std::is_same_v<const U, T>
  Leased(Leased<U> writable) : address_(writable.address_) {}

  Leased operator+(std::ptrdiff_t elements) const { return Leased(address_ + elements); }
  explicit operator bool() const { return address_ != nullptr; }
  bool operator==(const Leased&) const = default;

  /// The same address as another type. Adds const if asked, never drops it.
  template <class U>
    requires(std::is_const_v<U> || !std::is_const_v<T>)
  Leased<U> as() const {
    using Void = std::conditional_t<std::is_const_v<U>, const void, void>;
    return Leased<U>(static_cast<U*>(static_cast<Void*>(address_)));
  }

 private:
  template <class>
  friend class Leased;
  friend class LaunchPermit;
  friend class LeasedMapping;

  explicit Leased(T* address) : address_(address) {}

  T* address_ = nullptr;
};

}  // namespace leasehold
