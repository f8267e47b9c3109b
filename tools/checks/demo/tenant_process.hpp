/// Tenants at work: their processes, and what they tell while they run.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/child_process.hpp"
#include "tools/checks/demo/observation.hpp"
#include "tools/checks/demo/stage.hpp"

namespace leasehold::demo {

/// One leasehold-tenant process. Threads: one.
class Player {
 public:
  /// Errors: those of Child::start.
  static Result<std::unique_ptr<Player>> start(const Stage& stage, const Actor& actor);

  const Actor& actor() const { return actor_; }
  const TenantRecord& record() const { return record_; }
  /// Its output has ended: it exited or was killed.
  bool is_over() const { return record_.gone; }
  int output() const { return child_.output().get(); }

  /// Takes in what can be read now. Errors: MalformedMessage.
  Result<void> read();

  Result<void> kill();

 private:
  Player(Actor actor, Child child) : actor_(std::move(actor)), child_(std::move(child)) {
    record_.name = actor_.name;
  }

  Actor actor_;
  Child child_;
  LineBuffer lines_;
  TenantRecord record_;
};

using Players = std::vector<std::unique_ptr<Player>>;

/// Listens to all of them until all are over, and calls `after_each_round` whenever something was
/// told, and at least every 20 ms.
/// Errors: those of the call, of check_alive; TimedOut when nobody tells anything for 5 minutes.
Result<void> listen(Stage& stage, const Players& players,
                    const std::function<Result<void>()>& after_each_round);

}  // namespace leasehold::demo
