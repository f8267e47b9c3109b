/// The hosts of a cell with the parts of one tenant, for tests. Calls to the modelled etcd arrive
/// at once.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "common/expects.hpp"
#include "tests/simulation/cell/modelled_etcd.hpp"
#include "tools/cell/decide/tenant_part.hpp"

namespace leasehold::cell::one_tenant {

using simulation::ModelledEtcd;

inline const CellKeys kKeys{CellName{"c"}};
inline const TenantId kAnn{"ann"};

inline Share requests(std::uint32_t count) {
  return {.concurrent = count, .blocks = 10 * count};
}

inline PartOwner owner(const std::string& host, std::int64_t incarnation) {
  return {HostName{host}, {incarnation}};
}

inline Part part(PartOwner of, std::uint32_t count, std::optional<PartOwner> instead_of = {}) {
  return {.owner = std::move(of),
          .share = requests(count),
          .demand = {},
          .as_of = {1},
          .instead_of = std::move(instead_of)};
}

struct Cell {
  Cell() { set_policy(requests(8)); }
  void set_policy(const Share& limits) { put(kKeys.tenant(kAnn), text_of(CellPolicy{limits})); }
  void put(const std::string& key, const std::string& value) {
    etcd.execute({.conditions = {}, .success = {etcd::Put{key, value}}, .failure = {}});
  }
  PartOwner join(const std::string& host) {
    put(kKeys.host(HostName{host}), text_of(HostRecord{.beat = {1}, .ttl_ms = 1000}).value());
    return owner(host, etcd.revision().value);
  }
  /// Executes calls until there is none.
  Result<void> run(TenantPart& part) {
    while (auto call = part.next_call()) {
      const auto done = part.replied(etcd.execute(*call));
      if (!done) return done;
    }
    return {};
  }
  Ledger ledger() {
    const auto found = etcd.read(etcd::KeyRange::one(kKeys.ledger(kAnn)));
    return found.empty() ? Ledger() : read_ledger("ledger", found.front().value).value();
  }
  /// Empty: it has none.
  std::string mail(const std::string& host) {
    const auto mails = etcd.read(kKeys.mail_of(HostName{host}));
    return mails.empty() ? "" : mails.front().value;
  }
  bool has_mail(const std::string& host) { return !mail(host).empty(); }
  TenantView view() {
    TenantView view = view_of(etcd.execute(ledger_read(kKeys, kAnn))).value();
    view.members = members_in(kKeys, etcd.execute(members_read(kKeys, view)));
    return view;
  }

  ModelledEtcd etcd;
};

struct Host {
  Host(Cell& in, const std::string& name, std::uint32_t demand) : cell(in), owner(in.join(name)) {
    part.joined(owner);
    part.wants(requests(demand));
  }
  Result<void> run() { return cell.run(part); }
  /// Executes reads up to the next write, which is not executed.
  std::optional<etcd::Transaction> next_write() {
    auto call = part.next_call();
    while (call && call->conditions.empty()) {
      (void)part.replied(cell.etcd.execute(*call));
      call = part.next_call();
    }
    return call;
  }
  /// The broker applies its limit, and nothing more runs.
  void apply() { part.confirmed(part.limit().revision, part.limit().share); }
  Share limit() const { return part.limit().share; }
  Share recorded() {
    const Ledger ledger = cell.ledger();
    const Part* found = ledger.find(owner);
    return found ? found->share : Share();
  }

  Cell& cell;
  PartOwner owner;
  TenantPart part{kKeys, kAnn};
};

/// A cell in which host `a` is alone, and has all of the tenant's limits, as its broker has.
struct HostAlone {
  HostAlone() {
    expects(a.run().has_value(), "a host alone gets its part");
    a.apply();
  }

  Cell cell;
  Host a{cell, "a", 8};
};

}  // namespace leasehold::cell::one_tenant
