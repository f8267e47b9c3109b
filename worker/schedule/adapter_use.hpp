/// A loaded adapter as requests use it, and the interface through which they get it.
///
/// A request holds an AdapterUse from its submission to its end, also while it waits or is
/// preempted. An adapter is idle while only its AdapterService holds the pointer, and only an idle
/// one is evicted.
///
/// Threads: one (the engine's).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/content_digest.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"

namespace leasehold {

class AdapterMatrices;

/// One version of an adapter in leased memory.
struct LoadedAdapter {
  std::string name;
  std::uint32_t version = 0;
  ContentDigest digest;          ///< Of the file.
  LeaseId lease;                 ///< Holds the matrices; a step that reads them depends on it.
  std::uint64_t size_bytes = 0;  ///< Of all matrices.
  /// The addresses lie in the lease's memory. They are read only while the lease is mapped: the
  /// requests that use the adapter end before its memory is unmapped.
  std::shared_ptr<const AdapterMatrices> matrices;
};

using AdapterUse = std::shared_ptr<const LoadedAdapter>;

/// Loads adapters on demand.
class AdapterService {
 public:
  using OnReady = std::move_only_function<void(Result<AdapterUse>)>;

  virtual ~AdapterService() = default;

  /// The leases of the adapters that requests may use. The engine reads their words before a step.
  virtual std::vector<LeaseId> leases() const = 0;

  /// Calls `on_ready` once: before it returns if the adapter is loaded, otherwise between two steps
  /// once it is loaded or cannot be. It never gives a version whose lease is revoked. The caller
  /// may have lost interest by then, and destroys the use. Errors: UnknownAdapter, FileCorrupt,
  /// MissingWeight, UnsupportedModel, QuotaAdapters, PoolExhausted, BrokerLost.
  virtual void use(const TenantId& tenant, const std::string& name, OnReady on_ready) = 0;
};

}  // namespace leasehold
