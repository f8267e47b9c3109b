#include "tests/checks/soak/models/models_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tests/checks/soak/models/models_system.hpp"

namespace leasehold::soak {
namespace {

/// The next step runs after this time even without new tokens.
constexpr Duration kIdleTimeout = std::chrono::milliseconds(500);
/// Timeout for each tenant's undisturbed text, and for its last one.
constexpr Duration kTextsTimeout = std::chrono::minutes(3);

class ModelsRun {
 public:
  ModelsRun(const ModelsSettings& settings, ModelsSystem& system)
      : settings_(settings), system_(system), random_(settings.seed) {}

  Result<void> run() {
    TRY(await_texts("undisturbed"));
    const TimePoint until = clock_.now() + std::chrono::seconds(settings_.seconds);
    while (clock_.now() < until) TRY(run_step(next_model_step(random_)));
    for (LogPipe& log : system_.logs()) log.resume();
    for (ModelWorker& worker : system_.workers()) TRY(restore(worker));
    const std::uint64_t before = whole_texts();
    TRY(await_texts("last"));
    system_.history().calm_texts = whole_texts() - before;
    return {};
  }

 private:
  std::uint64_t whole_texts() {
    std::uint64_t texts = 0;
    for (const ModelTenant& tenant : system_.tenants()) texts += tenant.whole_texts;
    return texts;
  }

  /// Waits until every tenant got one more text from its beginning to its end.
  Result<void> await_texts(const char* which) {
    const TimePoint deadline = clock_.now() + kTextsTimeout;
    std::vector<std::uint64_t> wanted;
    // A text that runs already may have been disturbed, so it does not count.
    for (ModelTenant& tenant : system_.tenants())
      wanted.push_back(tenant.whole_texts + (tenant.process.has_process() ? 2 : 1));
    const auto all_came = [&] {
      for (std::size_t i = 0; i < wanted.size(); ++i)
        if (system_.tenants()[i].whole_texts < wanted[i]) return false;
      return true;
    };
    while (!all_came()) {
      TRY(system_.poll(true));
      if (clock_.now() > deadline)
        return fail(Errc::TimedOut, fmt::format("the {} texts did not end", which));
    }
    return {};
  }

  /// Waits for the step's number of tokens, then runs it.
  Result<void> run_step(const ModelStep& step) {
    const std::uint64_t wanted = system_.tokens_received() + step.after_tokens;
    const TimePoint enough = clock_.now() + kIdleTimeout;
    do {
      TRY(system_.poll(true));
    } while (system_.tokens_received() < wanted && clock_.now() < enough);
    if (!TRY(act(step))) return {};
    ++system_.history().actions[static_cast<std::size_t>(step.action)];
    for (LogPipe& log : system_.logs()) log.count_step();
    return {};
  }

  /// Returns false if the step has no possible target now.
  Result<bool> act(const ModelStep& step) {
    auto& workers = system_.workers();
    ModelWorker& worker = workers[step.which % workers.size()];
    if (changes_file(step.action)) return change_file(step, worker);
    switch (step.action) {
      case ModelAction::RevokeLease:
        return revoke(step, wire::LeaseScope::Tenant, "");
      case ModelAction::RevokeWeights:
        return revoke(step, wire::LeaseScope::Engine, worker.name);
      case ModelAction::KillWorker:
        if (!worker.process.is_running()) return false;
        worker.process.kill();
        return true;
      default:
        system_.logs()[step.which % system_.logs().size()].stop(step.for_steps);
        return true;
    }
  }

  Result<bool> change_file(const ModelStep& step, ModelWorker& chosen) {
    ModelWorker* const worker = step.action == ModelAction::RestoreFile ? damaged() : &chosen;
    if (worker == nullptr) return false;
    if (step.action == ModelAction::RestoreFile) {
      TRY(restore(*worker));
    } else {
      TRY(change(step.action, worker->file));
    }
    // A worker that lost its weights holds no lease on them, and tries to restore them by itself.
    (void)TRY(revoke(step, wire::LeaseScope::Engine, worker->name));
    return true;
  }

  /// Restores the worker's file. A worker that started with other values serves them until its next
  /// start.
  static Result<void> restore(ModelWorker& worker) {
    if (!worker.file.is_whole()) TRY(worker.file.copy());
    if (!worker.serves_original && worker.process.is_running()) worker.process.kill();
    return {};
  }

  ModelWorker* damaged() {
    const auto found = std::ranges::find_if(system_.workers(), [](const ModelWorker& worker) {
      return !worker.file.is_whole() || !worker.serves_original;
    });
    return found == system_.workers().end() ? nullptr : &*found;
  }

  static Result<void> change(ModelAction action, ModelFile& file) {
    switch (action) {
      case ModelAction::ReplaceFile:
        return file.replace();
      case ModelAction::RewriteFile:
        return file.rewrite();
      case ModelAction::TruncateFile:
        return file.truncate();
      case ModelAction::RemoveFile:
        return file.remove();
      default:
        return file.copy();
    }
  }

  /// Revokes one lease, of this worker unless the name is empty. Errors: those of a broker that
  /// does not answer, for example because it waits for the reader of its log.
  Result<bool> revoke(const ModelStep& step, wire::LeaseScope scope, const std::string& worker) {
    auto leases = TRY(system_.broker().leases());
    std::erase_if(leases, [&](const wire::LeaseView& lease) {
      return lease.scope != scope || lease.state != LeaseState::Live ||
             (!worker.empty() && lease.worker != worker);
    });
    if (leases.empty()) return false;
    const wire::LeaseRevoke command{.lease = leases[step.which % leases.size()].lease};
    if (!system_.broker().command(command)) return false;  // it ended meanwhile
    if (std::ranges::any_of(system_.logs(), &LogPipe::is_stopped))
      ++system_.history().revoked_without_reader;
    return true;
  }

  const ModelsSettings& settings_;
  ModelsSystem& system_;
  SystemClock clock_;
  SeededRandom random_;
};

}  // namespace

Result<ModelsHistory> run_models(const ModelsSettings& settings, const demo::Poller& poller,
                                 const std::filesystem::path& directory) {
  const auto system = TRY(ModelsSystem::create(settings, poller, directory));
  TRY(ModelsRun(settings, *system).run());
  return std::move(system->history());
}

}  // namespace leasehold::soak
