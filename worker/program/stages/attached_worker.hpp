/// A worker that is attached to its broker. From then on the broker's calls arrive.
///
/// Lifetime: `opened` outlives it. Threads: attached and destroyed on the main thread; the parts
/// have their own rules.
#pragma once

#include <memory>

#include "worker/program/broker_events.hpp"
#include "worker/program/stages/opened_worker.hpp"

namespace leasehold {

class AttachedWorker {
 public:
  /// Waits for the broker. Errors: those of BrokerSession::open.
  static Result<std::unique_ptr<AttachedWorker>> attach(OpenedWorker& opened);

  AttachedWorker(const AttachedWorker&) = delete;
  AttachedWorker& operator=(const AttachedWorker&) = delete;
  ~AttachedWorker() { opened_->stop_io(); }

  OpenedWorker& opened() { return *opened_; }
  BrokerEvents& events() { return events_; }
  BrokerSession& broker() { return *broker_; }

 private:
  explicit AttachedWorker(OpenedWorker& opened) : opened_(&opened), events_(opened.io.context()) {}

  OpenedWorker* opened_;
  BrokerEvents events_;
  std::unique_ptr<BrokerSession> broker_;  // set by `attach`
};

}  // namespace leasehold
