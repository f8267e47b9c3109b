/// Runs an engine on the calling thread: commands in, events out, steps in between.
///
/// Threads: `post` and `stop` from any; `run` and every command and hook on one, the engine's.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "worker/engine/engine.hpp"

namespace leasehold {

class EngineLoop {
 public:
  using Command = std::move_only_function<void(Engine&)>;

  struct Hooks {
    std::function<void(StepReport)> on_report;
    std::function<void(std::vector<GrowthRequest>)> on_growth;
    /// The engine lacks a part of its weights. Restores one, or says why it cannot; asked again
    /// while one is missing, commands are heard in between. Patience is shown with WeightsLoading,
    /// EngineLeaseFenced and LeaseRevoked; with any other error every request ends with it, and the
    /// hook is asked again at the next command.
    std::function<Result<void>(Engine&)> on_weights_lost;
  };

  EngineLoop(Engine& engine, Hooks hooks) : engine_(&engine), hooks_(std::move(hooks)) {}

  /// Runs `command` between two steps.
  void post(Command command);

  /// Returns after `stop`, once the step in progress is over. Errors: the device's fault, with
  /// which every request has ended; nothing runs in this process any more.
  Result<void> run();
  void stop();

 private:
  std::vector<Command> take_commands(bool may_wait);
  bool step_once();
  bool recover();
  void end_all(const Error& error);

  Engine* engine_;
  Hooks hooks_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Command> commands_;
  bool stopping_ = false;
  int restore_attempts_ = 0;  // to restore weights since the last step that worked
};

}  // namespace leasehold
