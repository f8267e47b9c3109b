/// Reports sampled steps to the broker.
///
/// One report is in flight at a time. Until its reply the newest sample waits in the StepSampler.
/// Threads: `deliver` on the engine's; replies arrive on the I/O thread. Lifetime: the sampler and
/// everything that `post` and `send` use outlive the reporter, and no posted work runs after its
/// destruction.
#pragma once

#include <functional>

#include "ipc/control/messages/steps.hpp"
#include "worker/engine/step_sampler.hpp"

namespace leasehold {

class StepReporter {
 public:
  struct Dependencies {
    StepSampler* sampler = nullptr;
    /// Runs the work on the I/O thread.
    std::function<void(std::function<void()> work)> post;
    /// Sends `step.report`; calls `on_reply` once, also after an error.
    std::function<void(const wire::WorkerStep&, std::function<void()> on_reply)> send;
  };
  explicit StepReporter(Dependencies dependencies) : deps_(std::move(dependencies)) {}

  void deliver(StepSample sample);

 private:
  void send_newest();

  Dependencies deps_;
  bool awaits_reply_ = false;
};

}  // namespace leasehold
