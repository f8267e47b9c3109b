/// The adapters that operators have registered: the newest version of each name.
///
/// A version number of a name is never used again, so the entry of a removed adapter is kept. Pure.
/// Threads: one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "broker/books/rows.hpp"

namespace leasehold {

class AdapterRegistry {
 public:
  /// Registers the next version of the name; `version` and `digest` of the argument are ignored.
  /// Returns the new version. Errors: BadRequest for a name that has another owner; QuotaAdapters
  /// beyond kMaxAdaptersPerOwner and kMaxAdapters.
  Result<std::uint32_t> add(journal::AdapterRow adapter);
  /// Does nothing for an unknown name.
  void remove(const AdapterName& name);
  /// Keeps the digest of the newest version. Precondition: `find(name)` is not null.
  void pin(const AdapterName& name, const std::string& digest) {
    adapters_.at(name).digest = digest;
  }
  void restore(const journal::AdapterRow& row) { adapters_.insert_or_assign(row.id, row); }

  /// Null for a name that is unknown or removed.
  const journal::AdapterRow* find(const AdapterName& name) const;
  /// Null unless the tenant may use the adapter: it is the tenant's, or shared. Without a tenant,
  /// only a shared one.
  const journal::AdapterRow* find_for(const std::optional<TenantId>& tenant,
                                      const AdapterName& name) const;
  /// The names of one owner; an empty tenant owns the shared ones.
  std::vector<AdapterName> of(const TenantId& owner) const;
  /// All entries, those of removed adapters too.
  const std::map<AdapterName, journal::AdapterRow>& all() const { return adapters_; }

  /// Counts an `adapter.open` that was refused, since the broker started.
  void count_refusal(Errc code) { ++refusals_[code]; }
  const std::map<Errc, std::uint64_t>& refusals() const { return refusals_; }

 private:
  std::map<Errc, std::uint64_t> refusals_;
  std::map<AdapterName, journal::AdapterRow> adapters_;
};

/// The error for a name that a tenant may not use; the same whether or not the name exists.
Error unknown_adapter(const AdapterName& name);

}  // namespace leasehold
