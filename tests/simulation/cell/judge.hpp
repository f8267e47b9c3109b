/// Checks the promises of a cell from outside: it sees etcd's data, what the hosts' workers may run
/// and commit, and what clients read, and no state of any agent.
#pragma once

#include <memory>
#include <vector>

#include "tests/simulation/cell/model_host.hpp"
#include "tools/cell/decide/ledger.hpp"

namespace leasehold::cell::simulation {

class Judge {
 public:
  Judge(Network& network, const Terms& terms, const std::vector<std::unique_ptr<ModelHost>>& hosts)
      : network_(network), terms_(terms), hosts_(hosts), tenants_(terms.tenants.size()) {}

  /// The law, at each revision of etcd: the counting parts are at most the limits.
  void check_revision();
  /// At each event: hosts run within the limits, each within a part that counts, and none after a
  /// revocation has ended. A part and its replacement count once; together they compute at most
  /// twice the limits.
  void check_running();
  /// A worker commits a token under the part of this owner.
  void committed(std::size_t tenant, const PartOwner& owner);
  /// A client reads a token at this position.
  void delivered(std::uint32_t expected, std::uint32_t position) const;
  /// A client gets the error that the cell does not serve the tenant.
  void refused(std::size_t tenant) const;

  /// The operator begins to revoke the first tenant.
  void revocation_begins() { revocation_ = Revocation::Begun; }
  /// The `--wait` of the operator has returned: no host may run the tenant from now on.
  void revocation_ends() { revocation_ = Revocation::Ended; }

  [[noreturn]] void broken(const std::string& what) const;

 private:
  enum class Revocation : std::uint8_t { None, Begun, Ended };
  struct TenantRecord {
    etcd::Revision ledger_modified;
    Ledger ledger;
  };

  void read_members();
  void read_ledger_of(std::size_t tenant);
  void check_law(const TenantRecord& record) const;
  void check_tenant(std::size_t tenant);

  Network& network_;
  const Terms& terms_;
  const std::vector<std::unique_ptr<ModelHost>>& hosts_;
  etcd::Revision seen_;  // of what follows
  std::vector<TenantRecord> tenants_;
  Incarnations members_;
  Revocation revocation_ = Revocation::None;
  std::vector<Running> running_;  // of one tenant, while it is checked
};

}  // namespace leasehold::cell::simulation
