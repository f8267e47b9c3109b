#include "tests/checks/soak/models/models_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/model/gguf/content_digest.hpp"
#include "tests/checks/runner/script_runner.hpp"
#include "tests/checks/soak/models/log_pipe.hpp"
#include "tests/checks/soak/models/model_file.hpp"
#include "tools/make_model/write_model.hpp"

namespace leasehold::soak {
namespace {

using runner::ActionKind;
using runner::ScriptAction;
using runner::Starts;

constexpr Duration kStartInterval = std::chrono::milliseconds(100);
constexpr Duration kStartTimeout = std::chrono::seconds(30);
/// Timeout for each tenant's undisturbed text, and for its last one.
constexpr Duration kTextsTimeout = std::chrono::minutes(3);
constexpr std::size_t kWorkersPerModel = 2;
constexpr const char* kCapacity = "256MiB";
constexpr const char* kFenceTimeout_ms = "1500";
constexpr std::array kPrompts{"Once upon a time", "There was a little girl who", "One day a dog"};

/// A model that is served: its original bytes, and the name that selects this content.
struct ServedModel {
  std::vector<std::byte> bytes;
  std::string selector;  ///< "sha256:" and the digest of `bytes`.
};

/// The model file of the worker with the same index.
struct ServedFile {
  ModelFile file;
  bool serves_original = false;  ///< The file was whole when the worker's process started.
};

/// The second model: a shape that computes fast, and a vocabulary of its own.
Result<std::string> write_second_model(const std::filesystem::path& directory) {
  std::string path = directory / "second.gguf";
  const make_model::ModelShape shape = TRY(make_model::named_shape("demo"));
  const make_model::ModelRequest request{.architecture = "qwen2",
                                         .shape = shape,
                                         .type = TensorType::Q8_0,
                                         .seed = 7,
                                         .vocabulary = make_model::Vocabulary::ByteLevel};
  (void)TRY(make_model::write_model(request, path, [](std::uint64_t, std::uint64_t) {}));
  return path;
}

Result<ServedModel> read_model(const std::string& path) {
  const GgufFile file = TRY(GgufFile::open(path));
  std::vector<std::byte> bytes = TRY(read_bytes(path));
  const ContentDigest digest = TRY(content_digest(file));
  return ServedModel{.bytes = std::move(bytes), .selector = "sha256:" + digest.hex()};
}

Result<void> change(ActionKind action, ModelFile& file) {
  switch (action) {
    case ActionKind::ReplaceFile:
      return file.replace();
    case ActionKind::RewriteFile:
      return file.rewrite();
    case ActionKind::TruncateFile:
      return file.truncate();
    case ActionKind::RemoveFile:
      return file.remove();
    default:
      return file.copy();
  }
}

/// The system, its files and logs, and the actions of the script on them.
class ModelsRun final : runner::ScriptRunner {
 public:
  ModelsRun(const Settings& settings, runner::System& system)
      : ScriptRunner(system, kModelScript, settings.seed), settings_(settings), system_(system) {}

  Result<void> prepare() {
    const auto& programs = system_.programs();
    logs_.push_back(TRY(LogPipe::create(programs.log_path("broker"))));
    const std::string second = TRY(write_second_model(programs.directory()));
    for (const std::string& path : {settings_.model_path, second})
      models_.push_back(TRY(read_model(path)));
    for (std::size_t i = 0; i < kWorkersPerModel * models_.size(); ++i)
      TRY(add_worker(fmt::format("w{}", i), models_[i / kWorkersPerModel]));
    for (const ServedModel& model : models_) {
      for (const char* prompt : kPrompts) {
        const std::size_t number = system_.tenants().size();
        system_.add_tenant({.name = fmt::format("t{}", number),
                            .prompt = prompt,
                            .seed = settings_.seed + number,
                            .max_tokens = settings_.max_tokens,
                            .model = model.selector});
      }
    }
    return {};
  }

  Result<void> run() {
    TRY(system_.await_broker(kStartTimeout));
    BrokerView& broker = *TRY(system_.connected());
    for (const runner::Tenant& tenant : system_.tenants()) {
      TRY(broker.command(wire::TenantAdmit{
          .tenant = {tenant.spec.name}, .max_concurrent = 4, .max_blocks = 1000, .ttl_ms = 5000}));
    }
    (void)TRY(runner::await_texts(system_, "undisturbed", kTextsTimeout));
    system_.keep_undisturbed();
    const TimePoint until = system_.clock().now() + std::chrono::seconds(settings_.seconds);
    while (system_.clock().now() < until) {
      if (!TRY(run_next())) continue;
      for (LogPipe& log : logs_) log.count_step();
    }
    for (LogPipe& log : logs_) log.resume();
    for (std::size_t worker = 0; worker < files_.size(); ++worker) TRY(restore(worker));
    system_.record().calm_texts = TRY(runner::await_texts(system_, "last", kTextsTimeout));
    return {};
  }

  void read_logs() {
    for (LogPipe& log : logs_) log.read();
  }
  void on_worker_start(const runner::Worker& worker) {
    ServedFile& served = files_[static_cast<std::size_t>(&worker - system_.workers().data())];
    served.serves_original = served.file.is_whole();
  }

 private:
  Result<void> add_worker(const std::string& name, const ServedModel& model) {
    const auto& programs = system_.programs();
    logs_.push_back(TRY(LogPipe::create(programs.log_path("worker-" + name))));
    const std::string path = programs.directory() / (name + ".gguf");
    auto file = TRY(ModelFile::create(path, model.bytes));
    files_.push_back({.file = std::move(file)});
    system_.add_worker(
        name, path,
        {"--threads", "1", "--slow-motion-us", std::to_string(settings_.slow_motion_us)});
    return {};
  }

  Result<bool> act(const ScriptAction& action) override {
    const std::size_t worker = action.which % files_.size();
    switch (action.kind) {
      case ActionKind::KillWorker:
        return ScriptRunner::act(action);
      case ActionKind::RevokeLease:
        return revoke(action, wire::LeaseScope::Tenant, "");
      case ActionKind::RevokeWeights:
        return revoke(action, wire::LeaseScope::Engine, system_.workers()[worker].name);
      case ActionKind::StopReader:
        logs_[action.which % logs_.size()].stop(action.stop_actions);
        return true;
      case ActionKind::RestoreFile: {
        const auto damaged = std::ranges::find_if(files_, [](const ServedFile& served) {
          return !served.file.is_whole() || !served.serves_original;
        });
        if (damaged == files_.end()) return false;
        const auto index = static_cast<std::size_t>(damaged - files_.begin());
        TRY(restore(index));
        return read_again(action, index);
      }
      default:
        TRY(change(action.kind, files_[worker].file));
        return read_again(action, worker);
    }
  }

  /// Revokes the worker's weights. A worker that lost them already holds no lease on them, and
  /// tries to restore them by itself.
  Result<bool> read_again(const ScriptAction& action, std::size_t worker) {
    (void)TRY(revoke(action, wire::LeaseScope::Engine, system_.workers()[worker].name));
    return true;
  }

  /// Restores the worker's file. A worker that started with other values serves them until its next
  /// start.
  Result<void> restore(std::size_t worker) {
    ServedFile& served = files_[worker];
    runner::ProcessSlot& process = system_.workers()[worker].process;
    if (!served.file.is_whole()) TRY(served.file.copy());
    if (!served.serves_original && process.is_running()) process.kill();
    return {};
  }

  Result<bool> revoke(const ScriptAction& action, wire::LeaseScope scope,
                      const std::string& worker) {
    const bool is_revoked = TRY(runner::revoke_lease(system_, scope, action.which, worker));
    if (is_revoked && std::ranges::any_of(logs_, &LogPipe::is_stopped))
      ++system_.record().revoked_without_reader;
    return is_revoked;
  }

  const Settings& settings_;
  runner::System& system_;
  std::vector<ServedModel> models_;
  std::vector<LogPipe> logs_;  ///< The broker's log is the first.
  std::vector<ServedFile> files_;
};

}  // namespace

Result<runner::Record> run_models(const Settings& settings, const runner::Poller& poller,
                                  const std::filesystem::path& directory) {
  std::optional<ModelsRun> run;
  runner::System system(
      {.bin_dir = settings.bin_dir,
       .directory = directory,
       .broker_arguments = {"--capacity", kCapacity, "--fence-timeout-ms", kFenceTimeout_ms},
       .restarts_workers = true,
       .start_interval = kStartInterval,
       .on_worker_start = [&run](const runner::Worker& worker) { run->on_worker_start(worker); },
       .on_poll = [&run](Starts) -> Result<void> {
         run->read_logs();
         return {};
       }},
      poller);
  run.emplace(settings, system);
  TRY(run->prepare());
  TRY(run->run());
  return std::move(system.record());
}

}  // namespace leasehold::soak
