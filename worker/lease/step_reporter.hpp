/// Reports sampled steps to the broker while it asks for them.
///
/// One report is on its way at a time. Until its reply the newest sample waits in the StepSampler.
/// Threads: `deliver` on the engine's; the rest on the I/O thread. Lifetime: the sampler and what
/// `post` and `send` use outlive it, and no posted work runs after it.
#pragma once

#include <functional>

#include "ipc/control/messages_steps.hpp"
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

  /// `step.sample` of the broker.
  void set_sampling(const wire::StepSampling& sampling);
  /// The broker asks again after a reconnect if an operator still watches.
  void connection_lost() { deps_.sampler->set_interval(Duration::zero()); }

  void deliver(StepSample sample);

 private:
  void send_newest();

  Dependencies deps_;
  bool awaits_reply_ = false;
};

}  // namespace leasehold
