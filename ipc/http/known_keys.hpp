/// The API keys that the broker accepted recently. A request with such a key is checked at once.
/// Other keys may be guesses, so they wait for the rate limit of their source.
///
/// The broker still checks every known key, because it alone decides whether a key is valid. So a
/// revoked key needs no message, and a forgotten key only costs a wait. Lookups compare hashes, so
/// their duration reveals nothing about a key.
///
/// Pure. Threads: one.
#pragma once

#include <string>
#include <string_view>

#include "common/fair_bounded_queue.hpp"
#include "common/ids.hpp"
#include "ipc/control/tokens/api_key.hpp"

namespace leasehold::http {

class KnownKeys {
 public:
  /// Beyond this number, the tenant with the most keys loses its oldest one.
  static constexpr std::size_t kMaxKeys = 4096;

  bool contains(std::string_view key) const { return keys_.contains(hash_of_api_key(key)); }
  void accepted(std::string_view key, const TenantId& tenant) {
    (void)keys_.push({.owner = tenant, .key = hash_of_api_key(key)});
  }
  void refused(std::string_view key) { (void)keys_.erase(hash_of_api_key(key)); }

 private:
  FairBoundedQueue<TenantId, std::string> keys_{kMaxKeys};
};

}  // namespace leasehold::http
