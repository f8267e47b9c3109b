/// The API keys that the broker accepted lately. A request with one of them is checked at once,
/// while keys that are not known wait for the rate of their source: they may be guesses.
///
/// A known key is still checked by the broker, which alone says whether it is valid. So the end of
/// a key needs no message, and a key that is forgotten costs a wait. The hash is compared, so the
/// time of a lookup says nothing about a key.
///
/// Pure. Threads: one.
#pragma once

#include <string>
#include <string_view>

#include "common/ids.hpp"
#include "common/owned_queue.hpp"
#include "ipc/control/api_key.hpp"

namespace leasehold::http {

class KnownKeys {
 public:
  /// Beyond it the tenant with the most loses its oldest.
  static constexpr std::size_t kMaxKeys = 4096;

  bool contains(std::string_view key) const { return keys_.contains(hash_of_api_key(key)); }
  void accepted(std::string_view key, const TenantId& tenant) {
    (void)keys_.push({.owner = tenant, .key = hash_of_api_key(key)});
  }
  void refused(std::string_view key) { (void)keys_.erase(hash_of_api_key(key)); }

 private:
  OwnedQueue<TenantId, std::string> keys_{kMaxKeys};
};

}  // namespace leasehold::http
