/// The ledger of one tenant: which host may use how much of the tenant's limits.
///
/// A part counts if its host still has the part's incarnation. **Law: the counting parts together
/// are at most the limits**, at every revision of etcd.
///
/// A part with `instead_of` replaces that of a host whose text has moved away while it may still
/// run. Such parts count once with the one they replace. When that one no longer counts, they count
/// by themselves.
///
/// Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "tools/cell/decide/names.hpp"
#include "tools/cell/decide/records.hpp"

namespace leasehold::cell {

struct Part {
  PartOwner owner;
  Share share;
  Share demand;          ///< What the host could use, for the division.
  etcd::Revision as_of;  ///< Revision of `tenants/T` that the host has applied.
  std::optional<PartOwner> instead_of;
  bool operator==(const Part&) const = default;
};

struct Ledger {
  static constexpr std::size_t kMaxParts = 64;

  std::vector<Part> parts;  ///< At most one per owner.
  bool operator==(const Ledger&) const = default;

  const Part* find(const PartOwner& owner) const;
};

/// The current incarnation of each host that has a part and is a member.
using Incarnations = std::map<HostName, Incarnation>;

/// "h1 (17)": the host and its incarnation.
std::string name_of(const PartOwner& owner);
/// The error of a ledger that is wrong, with what an operator does about it.
std::unexpected<Error> wrong_ledger(std::string_view key, std::string_view why);

bool counts(const PartOwner& owner, const Incarnations& members);

/// What the parts have that replace the one of `owner`.
Share replacements_of(const PartOwner& owner, const Ledger& ledger);
/// The part is counted together with another one.
bool is_paired(const Part& part, const Ledger& ledger);

/// The sum of the counting parts, which the law limits.
Share counting_sum(const Ledger& ledger, const Incarnations& members);

/// Errors: BadRequest, which names `key` and what is wrong: more than kMaxParts, an owner with two
/// parts, a replaced part that is itself a replacement or of the same owner.
Result<Ledger> read_ledger(std::string_view key, std::string_view value);
std::string text_of(const Ledger& ledger);

}  // namespace leasehold::cell
