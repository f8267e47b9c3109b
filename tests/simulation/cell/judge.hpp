/// Checks the promises of a cell from outside: it sees etcd's data and what the hosts' workers may
/// run, and no state of any agent.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tests/simulation/cell/model_host.hpp"

namespace leasehold::cell::simulation {

class Judge {
 public:
  Judge(Network& network, const Terms& terms, const std::vector<std::unique_ptr<ModelHost>>& hosts)
      : network_(network), terms_(terms), hosts_(hosts) {}

  /// The law, at each revision of etcd: the counting parts are at most the limits.
  void check_revision();
  /// At each event: hosts run within the limits, each within a part that counts, and none after a
  /// revocation has ended.
  void check_running() const;
  /// Long after the last fault: every host is a member and has what the division gives it.
  void check_end() const;

  /// The `--wait` of an operator has returned: no host may run the tenant from now on.
  void revocation_ended() { is_revoked_ = true; }
  bool is_revoked() const { return is_revoked_; }

 private:
  void read();
  [[noreturn]] void broken(const std::string& what) const;

  Network& network_;
  const Terms& terms_;
  const std::vector<std::unique_ptr<ModelHost>>& hosts_;
  etcd::Revision seen_;  // of what follows
  Ledger ledger_;
  Incarnations members_;
  bool is_revoked_ = false;
};

}  // namespace leasehold::cell::simulation
