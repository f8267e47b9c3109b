/// Removes the files and batches of tenants that were removed, also if a tenant of the same name
/// was admitted since.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <set>

#include "worker/batch/batch_store.hpp"
#include "worker/http/http_shared.hpp"

namespace leasehold::http {

/// Threads: that of `Shared`.
class FormerTenants {
 public:
  /// The store outlives this object, which outlives its coroutines.
  explicit FormerTenants(batch::BatchStore& store) : store_(store) {}

  /// Asks the broker about the owners of all files, and removes what belongs to those that this
  /// answer and the one before name as gone: a broker that was started with a wrong state directory
  /// names all of them, and the time between two calls is left to correct it. While the broker does
  /// not answer, nothing is removed.
  boost::asio::awaitable<void> sweep(std::shared_ptr<Shared> shared);

 private:
  void remove(const batch::Owner& owner);

  batch::BatchStore& store_;
  std::set<batch::Owner> gone_;  // by the last answer, not yet removed
};

}  // namespace leasehold::http
