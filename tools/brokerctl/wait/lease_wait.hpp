/// Waits for leases by calls of `lease.wait`, and collects the view of each lease when it is over.
///
/// Threads: one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ipc/control/messages/waits/lease_wait.hpp"
#include "tools/brokerctl/run.hpp"

namespace leasehold::brokerctl {

/// See wire::LeaseWait.
struct LeaseWaitRule {
  std::optional<std::string> worker;
  bool until_free = false;
};

class LeaseWait {
 public:
  explicit LeaseWait(std::vector<LeaseId> leases, LeaseWaitRule rule = {})
      : leases_(std::move(leases)), open_(leases_), rule_(std::move(rule)) {}

  /// Makes one call, which ends when all leases are over, after `at_most`, or after 250 ms: a
  /// signal ends a wait only between two calls. Returns whether all leases are over. Errors: those
  /// of the call; MalformedMessage for a reply that does not advance.
  Result<bool> wait(Duration at_most, const Dependencies& dependencies);

  std::size_t over() const { return over_.size(); }
  std::size_t open() const { return open_count_; }
  /// See LeasesWaited. Precondition: the last call returned false.
  const wire::LeaseView& oldest_open() const { return *oldest_open_; }

  /// The views of the leases that are over, in the order of the constructor; then those that the
  /// broker added for the worker.
  std::vector<wire::LeaseView> views() const;

 private:
  std::vector<LeaseId> leases_;
  std::vector<LeaseId> open_;
  std::size_t open_count_ = 0;
  LeaseWaitRule rule_;
  std::optional<wire::LeaseView> oldest_open_;
  std::map<LeaseId, wire::LeaseView> over_;
};

}  // namespace leasehold::brokerctl
