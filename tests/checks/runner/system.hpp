/// Keeps a broker, workers and tenants running as processes, and records what they print and how
/// they end.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "tests/checks/local_system/broker_view.hpp"
#include "tests/checks/local_system/fd_store.hpp"
#include "tests/checks/local_system/program_starter.hpp"
#include "tests/checks/runner/poller.hpp"
#include "tests/checks/runner/process_slot.hpp"
#include "tests/checks/runner/record.hpp"

namespace leasehold::runner {

/// A request of a tenant.
struct TenantSpec {
  std::string name;
  std::string prompt;
  std::string temperature = "0.8";
  std::uint64_t seed = 0;  ///< Seed for sampling.
  std::uint32_t max_tokens = 0;
  std::uint32_t blocks = 0;  ///< KV blocks to acquire; 0: one extent's worth.
  std::string model = {};    ///< Selects a model; empty: any.
  std::string adapter = {};  ///< Name of an adapter; empty: the base model.
  bool rebind = true;
  bool chat = false;  ///< The prompt is a question that uses the model's chat template.
  /// The text outlives its process: the next process resumes it with the same request id.
  bool is_resumable = false;
  /// Longest lifetime of a lease; texts move to another lease before it ends.
  std::optional<std::int64_t> max_lifetime_ms = {};
  wire::Tier tier = wire::Tier::Standard;
  std::optional<uid_t> uid = {};
  std::vector<std::int32_t> undisturbed = {};
};

struct Tenant {
  TenantSpec spec;
  ProcessSlot process = {};
  LineBuffer lines = {};
  TenantRecord record = {};  ///< Of the last process.
  std::uint64_t texts = 0;   ///< Texts that ended; also the number of the text in progress.
  std::uint64_t starts = 0;  ///< Processes started.
  TimePoint started = {};

  std::string request_id() const;  ///< Empty unless the text is resumable.
};

struct Worker {
  std::string name;
  std::string model_path;
  std::vector<std::string> arguments = {};
  ProcessSlot process = {};
  std::size_t instance = 0;  ///< Index in the record.
  bool ready = false;        ///< As the broker listed it last.
  TimePoint started = {};
};

/// Whether a poll starts the tenants that have no process.
enum class Starts { Tenants, NoTenants };

struct SystemConfig {
  std::string bin_dir;              ///< Directory of leasehold-broker, -worker and -tenant.
  std::filesystem::path directory;  ///< Directory of sockets and logs; must exist.
  std::vector<std::string> broker_arguments;
  std::optional<int> server_nice = {};  ///< Nice value of broker and workers.
  /// Start a broker or worker again that ends by itself. Killed ones are always started again.
  bool restarts_broker = false, restarts_workers = false;
  bool has_store = false;       ///< Keep the broker's descriptors, and give it a journal.
  bool logs_events = false;     ///< Make brokers and workers write event logs.
  bool samples_status = false;  ///< Sample the broker's status in each poll.
  Duration start_interval{};    ///< Shortest time between two starts of a worker or tenant.
  /// Called after each connection to a broker; after an error the system connects again.
  std::function<Result<void>(BrokerView&)> on_connected = {};
  std::function<bool(const Tenant&)> may_start = {};  ///< Empty: always.
  std::function<void(const Worker&)> on_worker_start = {};
  std::function<Result<void>(Starts)> on_poll = {};  ///< Called at the end of each poll.
};

/// Describes what a wait still lacks; nothing when it is over.
using Missing = std::optional<std::string>;
Missing missing_unless(bool is_done, const std::string& what);

/// Lifetime: the destructor ends the processes; the poller outlives the object. Threads: one.
class System {
 public:
  System(SystemConfig config, const Poller& poller);

  void add_worker(std::string name, std::string model_path, std::vector<std::string> arguments);
  void add_tenant(TenantSpec spec);

  /// Waits for output, reads it, records exits, and starts missing processes.
  /// Errors: TimedOut after Ctrl-C; those of starting programs; MalformedMessage; of a broker or
  /// worker that ended, that of its exit code, else ConnectionLost, with the end of its log.
  Result<void> poll(Starts starts);
  /// Polls until `missing` returns nothing. Errors: those of poll; TimedOut with what is missing.
  Result<void> poll_until(const std::function<Missing()>& missing, Duration timeout, Starts starts);
  /// Polls until the broker answers and lists every worker as ready, or only until the broker
  /// answers. Errors: as poll_until, with the ends of the logs.
  Result<void> await_ready(Duration timeout);
  Result<void> await_broker(Duration timeout);

  /// Precondition: the tenant has no process.
  Result<void> start_tenant(Tenant& tenant);
  /// Resumes every stopped process, and cancels later kills.
  void resume_all();
  /// Counts one action for every stopped process.
  void count_action();

  BrokerView* view();               ///< Null while the broker does not answer.
  Result<BrokerView*> connected();  ///< Errors: BrokerLost.

  const SystemConfig& config() const { return config_; }
  const ProgramStarter& programs() const { return programs_; }
  const Poller& poller() const { return poller_; }
  const SystemClock& clock() const { return clock_; }
  ProcessSlot& broker() { return broker_; }
  std::vector<Worker>& workers() { return workers_; }
  std::vector<Tenant>& tenants() { return tenants_; }
  bool any_worker_ready();
  bool all_workers_ready();
  bool any_tenant_running() const;
  std::uint64_t tokens_received() const { return tokens_received_; }
  TimePoint last_output() const { return last_output_; }
  Record& record() { return record_; }

  /// Makes the first whole text of each tenant its undisturbed one, also of the texts recorded so
  /// far.
  void keep_undisturbed();
  /// Adds the event logs of brokers and workers to the record.
  Result<void> collect_event_logs();

 private:
  Result<void> read(Tenant& tenant);
  Result<void> collect_exits();
  Result<void> note_end(const std::string& program, const ProcessSlot& slot, int status,
                        bool may_end);
  void record_text(Tenant& tenant, int status);
  Result<void> start_missing(Starts starts);
  Result<void> start_broker();
  Result<void> connect_broker();
  Result<void> start_worker(Worker& worker);
  void refresh_workers();
  void sample_status();
  void for_each_process(void (ProcessSlot::*act)());
  StartOptions server_options(std::vector<std::string> arguments, const std::string& name) const;
  std::string event_log(const std::string& name) const {
    return programs_.directory() / (name + ".jsonl");
  }

  SystemConfig config_;
  const Poller& poller_;
  SystemClock clock_;
  std::unique_ptr<FdStore> store_;  ///< Null without a store.
  ProgramStarter programs_;
  /// For each broker process, the index of its instance in the record.
  std::vector<std::size_t> broker_instances_;
  ProcessSlot broker_;
  std::optional<BrokerView> view_;
  std::vector<Worker> workers_;
  std::vector<Tenant> tenants_;
  std::uint64_t tokens_received_ = 0;
  TimePoint last_output_;
  Record record_;
};

/// The number of whole texts of this tenant in the record.
std::uint64_t whole_texts(const Record& record, const std::string& tenant);

/// Polls until every tenant got one more text from its beginning to its end. Returns the number of
/// texts that ended whole meanwhile. Errors: those of poll_until.
Result<std::uint64_t> await_texts(System& system, const char* which, Duration timeout);

}  // namespace leasehold::runner
