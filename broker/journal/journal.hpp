/// Where decisions are written down, so that a broker that starts again knows what it had decided.
///
/// The performer of effects calls it; deciders only say which rows (effect::Journal). Threads: one.
#pragma once

#include <vector>

#include "broker/books/rows.hpp"
#include "common/result.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold::journal {

class Journal {
 public:
  virtual ~Journal() = default;

  /// Writes the batch. After an error nothing is lost: the rows wait in memory and go with the next
  /// write, so callers may carry on wherever carrying on is safe (a fence), and must undo where it
  /// is not (a grant).
  /// Errors: DiskFull, SystemError. Only a batch that grants is refused for want of space while
  /// the reserve lasts.
  virtual Result<void> write(const Batch& batch) = 0;

  /// What operators did, newest first. Errors: BadRequest where nothing is kept; those of the
  /// file.
  virtual Result<std::vector<wire::OperatorActionView>> newest_operator_actions(
      std::size_t at_most) = 0;
};

/// For a broker without a state directory: nothing is kept.
class NullJournal final : public Journal {
 public:
  Result<void> write(const Batch&) override { return {}; }
  Result<std::vector<wire::OperatorActionView>> newest_operator_actions(std::size_t) override {
    return fail(Errc::BadRequest,
                "this broker keeps no audit, for it runs without --state-dir; see operator_action "
                "in `brokerctl events`");
  }
};

}  // namespace leasehold::journal
