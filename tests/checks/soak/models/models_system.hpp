/// A broker, two workers of each of two models, and tenants of both: keeps them running, and
/// collects their texts. Each worker has a model file of its own, and each program's log is a pipe.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "ipc/client/broker_view.hpp"
#include "tests/checks/demo/poller.hpp"
#include "tests/checks/local_system/program_starter.hpp"
#include "tests/checks/soak/models/log_pipe.hpp"
#include "tests/checks/soak/models/model_file.hpp"
#include "tests/checks/soak/models/models_history.hpp"
#include "tests/checks/soak/models/settings.hpp"
#include "tests/checks/soak/process_slot.hpp"

namespace leasehold::soak {

/// A model that is served: its original bytes, and the name that selects this content.
struct ServedModel {
  std::vector<std::byte> bytes;
  std::string selector;  ///< "sha256:" and the digest of `bytes`.
};

struct ModelWorker {
  std::string name;
  std::size_t model = 0;  ///< Index of its ServedModel.
  ModelFile file;
  ProcessSlot process = {};
  bool serves_original = false;  ///< The file was whole when the process started.
  TimePoint started = {};
};

struct ModelTenant {
  std::string name;
  std::size_t model = 0;  ///< Index of its ServedModel.
  std::string prompt;
  std::uint64_t seed = 0;
  std::vector<std::int32_t> undisturbed = {};  ///< Empty until the first text ended.
  ProcessSlot process = {};
  demo::LineBuffer lines = {};
  demo::TenantRecord record = {};
  std::uint64_t whole_texts = 0;
  TimePoint started = {};
};

/// Lifetime: processes end with it; `settings` and `poller` outlive it. Threads: one.
class ModelsSystem {
 public:
  /// Writes the model files and starts the broker. Errors: those of reading the model, of writing
  /// the files and of starting programs; TimedOut.
  static Result<std::unique_ptr<ModelsSystem>> create(const ModelsSettings& settings,
                                                      const demo::Poller& poller,
                                                      std::filesystem::path directory);

  /// Waits for output, reads it, records ends, and starts workers, and tenants if `tenants`.
  /// Errors: TimedOut after Ctrl-C; those of starting programs; MalformedMessage.
  Result<void> poll(bool tenants);

  std::vector<ModelWorker>& workers() { return workers_; }
  std::vector<ModelTenant>& tenants() { return tenants_; }
  std::vector<LogPipe>& logs() { return logs_; }  ///< The broker's first.
  client::BrokerView& broker() { return *broker_view_; }
  std::uint64_t tokens_received() const { return tokens_received_; }
  ModelsHistory& history() { return history_; }

 private:
  ModelsSystem(const ModelsSettings& settings, const demo::Poller& poller,
               std::filesystem::path directory);
  Result<void> add_models();
  Result<void> add_workers();
  Result<void> start_broker();
  Result<void> admit_tenants();
  Result<void> start_worker(ModelWorker& worker);
  Result<void> start_tenant(ModelTenant& tenant);
  Result<void> collect_ends();
  void record_text(ModelTenant& tenant, int status);

  const ModelsSettings& settings_;
  const demo::Poller& poller_;
  SystemClock clock_;
  ProgramStarter programs_;
  std::vector<ServedModel> models_;
  std::vector<LogPipe> logs_;
  ProcessSlot broker_;
  std::optional<client::BrokerView> broker_view_;
  std::vector<ModelWorker> workers_;
  std::vector<ModelTenant> tenants_;
  std::uint64_t tokens_received_ = 0;
  ModelsHistory history_;
};

}  // namespace leasehold::soak
