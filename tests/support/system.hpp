/// A broker, workers and tenants as real processes, for tests.
///
/// Every wait has a condition and a timeout; no test asserts on a duration. Failures that a test
/// does not expect are exceptions.
#pragma once

#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/control/transport/client.hpp"
#include "tests/checks/local_system/local_system.hpp"
#include "tests/checks/runner/memory_check.hpp"
#include "tests/checks/runner/tenant_record.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/required.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold::testing {

/// One leasehold-tenant process and what it has printed.
class Tenant {
 public:
  explicit Tenant(Child child) : child_(std::move(child)) {}

  /// Reads what can be read now. True at the end of the output.
  bool read() { return required(runner::read_available(child_.output(), lines_, record_)); }
  /// Reads until `holds`; false when the output ends or a minute passes first.
  bool read_until(const std::function<bool(const runner::TenantRecord&)>& holds);
  bool read_tokens(std::size_t count);
  /// Reads to the end and reaps. Returns the exit code, or 128 + signal.
  int finish();
  const runner::TenantRecord& record() const { return record_; }
  Child& child() { return child_; }

 private:
  Child child_;
  runner::LineBuffer lines_;
  runner::TenantRecord record_;
};

struct TenantSpec {
  std::string tenant;
  std::string prompt = "Once upon a time";
  std::uint32_t max_tokens = 120;
  bool rebind = false;
  bool ignore_eos = true;  ///< False for a request with a grammar.
  std::vector<std::string> more;
  std::string fault;  ///< LEASEHOLD_FAULT of its process; empty: none.
};

struct SystemSpec {
  std::string capacity = "64MiB";  ///< Of the broker.
  std::vector<std::string> broker_arguments;
  std::vector<std::string> worker_arguments = {"--slow-motion-us", "30"};
  std::string broker_fault;  ///< LEASEHOLD_FAULT of the first broker; empty: none.
  std::string worker_fault;  ///< LEASEHOLD_FAULT of the first worker; empty: none.
  bool start_worker = true;
  std::vector<std::string> tenants;  ///< Admitted once the worker is ready.
  std::string model_name;    ///< Copies the model to this name in the directory; empty: no copy.
  FdStore* store = nullptr;  ///< Keeps the broker's descriptors; outlives the system.
};

/// The --event-log of one process.
struct EventLogFile {
  std::string name;        ///< The worker's name, or "broker".
  std::size_t broker = 0;  ///< Number of the broker that ran at its start, from 0.
  std::string path;
};

class System {
 public:
  explicit System(SystemSpec spec = {});
  std::string broker_socket() const { return local_->programs().broker_socket(); }
  std::string worker_socket(const std::string& name) const {
    return local_->programs().worker_socket(name);
  }
  const std::filesystem::path& directory() const { return local_->programs().directory(); }

  Child& broker() { return local_->broker(); }
  /// Replaces the broker; kills it first if it still runs. False when the new one does not listen.
  bool start_broker(const std::string& fault = {});
  Child& worker(const std::string& name = "w1") { return local_->worker(name); }
  void start_worker(const std::string& name, const std::string& fault = {},
                    const std::vector<std::string>& more = {});
  /// Also waits until it is ready.
  void start_ready_worker(const std::string& name, const std::string& fault = {},
                          const std::vector<std::string>& more = {});
  /// The same with a model file of its own.
  void start_ready_worker_on(const std::string& model, const std::string& name,
                             const std::vector<std::string>& more = {});
  /// According to the broker.
  bool worker_is_ready(const std::string& name = "w1") {
    return local_->worker_is_ready(name).value();
  }
  /// According to the worker's log, for when the broker cannot be asked.
  bool worker_reports_ready(const std::string& name = "w1") const;
  /// The stderr of all workers with this name.
  std::string worker_log(const std::string& name = "w1") const { return log("worker-" + name); }
  std::string broker_log() const { return log("broker"); }
  void remove_worker(const std::string& name) { local_->kill_worker(name); }

  void admit(const std::string& tenant, std::vector<std::string> more = {});
  std::unique_ptr<Tenant> start_tenant(const TenantSpec& spec);
  /// Also reads its first tokens.
  std::unique_ptr<Tenant> start_streaming(const TenantSpec& spec, std::size_t tokens);
  /// The tokens of the request when it runs without a fault. Throws if it fails.
  std::vector<std::int32_t> undisturbed(const TenantSpec& spec);
  /// The same in a system of its own.
  static std::vector<std::int32_t> alone(const TenantSpec& spec);
  /// Runs `action` while the worker is stopped by SIGSTOP, so that requests stay in the middle of a
  /// step.
  void while_worker_stopped(const std::function<void()>& action, const std::string& name = "w1");
  /// Revokes the tenant's live lease while w1 is stopped.
  void revoke_mid_request(const std::string& tenant);
  void revoke_mid_request(LeaseId lease);
  /// Returns the exit code of brokerctl.
  int brokerctl(std::vector<std::string> arguments);
  Child start_brokerctl(std::vector<std::string> arguments);
  /// Of every broker and worker, in the order of their starts.
  const std::vector<EventLogFile>& event_logs() const { return event_logs_; }

  BrokerView& view() { return local_->view(); }
  /// Events of one kind that the broker recorded, oldest first.
  template <class Event>
  std::vector<Event> recorded() {
    std::vector<Event> found;
    const auto all = view().events().value();
    for (const events::StampedEvent& stamped : all)
      if (const auto* event = std::get_if<Event>(&stamped.event)) found.push_back(*event);
    return found;
  }
  wire::StatusView status() { return required(view().status()); }
  wire::LeaseView lease(LeaseId lease);
  std::vector<wire::LeaseView> leases_of(const std::string& tenant);
  std::vector<wire::LeaseView> engine_leases();
  bool eventually_fenced(LeaseId lease);
  /// Waits until all KV memory is free.
  bool pool_is_fully_free();

 private:
  void start_worker_on(const std::string& model, const std::string& name, const std::string& fault,
                       const std::vector<std::string>& more);
  std::string add_event_log(const std::string& name);
  void await_ready(const std::string& name);
  std::string log(const std::string& log_name) const;

  SystemSpec spec_;
  std::unique_ptr<LocalSystem> local_;
  std::size_t brokers_ = 0;
  std::vector<EventLogFile> event_logs_;
};

/// A new lease of the tenant, on `worker` if it is named. Throws if it is refused.
wire::LeaseAcquired acquire(control::Client& broker, const std::string& tenant,
                            const std::optional<std::string>& worker = std::nullopt);
/// An authenticated connection to the worker of the lease. Fails the test if it is refused.
control::Client connect_to_worker(const wire::LeaseAcquired& lease);
/// Another one, whose notifications are passed on.
std::shared_ptr<control::Peer> connect_peer(
    boost::asio::io_context& io, const wire::LeaseAcquired& lease,
    std::function<void(const std::string& method, const control::Payload& params)> on_notification,
    std::function<void(const Error&)> on_closed = [](const Error&) {});

/// Checks that the tenant exits with 0 and has received exactly these tokens.
inline void check_whole(Tenant& tenant, const std::vector<std::int32_t>& tokens) {
  CHECK(tenant.finish() == 0);
  CHECK((tenant.record().tokens == tokens));
}

/// True when `whole` starts with `part`.
bool is_prefix(const std::vector<std::int32_t>& part, const std::vector<std::int32_t>& whole);

/// How often `text` contains `part`.
std::size_t count_of(std::string_view text, std::string_view part);

/// True when every extent reads as zero and has no memory allocated.
bool all_zero_and_free(const std::vector<runner::OpenedExtent>& extents);

}  // namespace leasehold::testing
