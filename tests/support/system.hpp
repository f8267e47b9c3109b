/// A real broker, real workers and real tenants, each a process, in a directory of their own.
///
/// Waiting is bounded and by condition; no test asserts on how long anything took.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/child_process.hpp"
#include "tests/support/test_paths.hpp"
#include "tools/checks/demo/memory_check.hpp"
#include "tools/checks/demo/tenant_record.hpp"
#include "tools/client/broker_view.hpp"

namespace leasehold {
class FdStore;
}

namespace leasehold::testing {

/// One leasehold-tenant, and what it told so far.
class Tenant {
 public:
  explicit Tenant(Child child) : child_(std::move(child)) {}

  /// Reads what is there; true once its output has ended.
  bool read();
  /// Reads until `holds`; false when the output ends or a minute passes first.
  bool read_until(const std::function<bool(const demo::TenantRecord&)>& holds);
  bool read_tokens(std::size_t count);
  /// Reads to the end and reaps. Its exit code, or 128 + signal.
  int finish();
  const demo::TenantRecord& record() const { return record_; }
  Child& child() { return child_; }

 private:
  Child child_;
  demo::LineBuffer lines_;
  demo::TenantRecord record_;
};

struct TenantSpec {
  std::string tenant;
  std::string prompt = "Once upon a time";
  std::uint32_t max_tokens = 120;
  bool rebind = false;
  bool ignore_eos = true;  ///< Which a grammar cannot have.
  std::vector<std::string> more;
  std::string fault;  ///< LEASEHOLD_FAULT of its process; empty for none.
};

struct SystemSpec {
  std::vector<std::string> broker_arguments;
  std::vector<std::string> worker_arguments = {"--slow-motion-us", "30"};
  std::string broker_fault;  ///< LEASEHOLD_FAULT of the first broker; empty for none.
  std::string worker_fault;  ///< LEASEHOLD_FAULT of the first worker; empty for none.
  bool start_worker = true;
  std::string model_name;    ///< A copy of the model in the directory; empty: the one in the tree.
  FdStore* store = nullptr;  ///< The broker's, should it be started again; outlives the system.
};

/// Where a program wrote what happened (--event-log), and which broker that was under.
struct EventLogFile {
  std::string name;  ///< Of the worker; "broker" for the broker's own.
  std::size_t broker = 0;
  std::string path;
};

class System {
 public:
  explicit System(SystemSpec spec = {});
  ~System();
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  std::string broker_socket() const { return directory_ / "broker.sock"; }
  std::string worker_socket(const std::string& name) const { return directory_ / (name + ".sock"); }
  const std::filesystem::path& directory() const { return directory_; }

  Child& broker() { return *broker_; }
  /// Takes the place of one that has ended, or ends it first. False when it does not listen.
  bool start_broker(const std::string& fault = {});
  Child& worker(const std::string& name = "w1") { return workers_.at(name); }
  void start_worker(const std::string& name, const std::string& fault = {});
  bool worker_is_ready(const std::string& name = "w1");
  /// As it says itself: for when the broker cannot be asked.
  bool worker_reports_ready(const std::string& name = "w1") const;
  /// What it wrote to stderr until now.
  std::string worker_log(const std::string& name = "w1") const;
  /// Kills it and forgets it.
  void remove_worker(const std::string& name);

  void admit(const std::string& tenant, std::vector<std::string> more = {});
  std::unique_ptr<Tenant> start_tenant(const TenantSpec& spec);
  /// What the tenant says when nobody disturbs it.
  std::vector<std::int32_t> undisturbed(const TenantSpec& spec);
  /// Does it while w1 stands still, so that everybody is in the middle of whatever he was seen to
  /// do.
  void while_worker_stopped(const std::function<void()>& action);
  /// Takes the tenant's live lease back in that way.
  void revoke_mid_request(const std::string& tenant);
  void revoke_mid_request(LeaseId lease);
  /// Exit code of brokerctl with these arguments.
  int brokerctl(std::vector<std::string> arguments);
  Child start_brokerctl(std::vector<std::string> arguments);
  /// Of every broker and worker that was started, in that order.
  const std::vector<EventLogFile>& event_logs() const { return event_logs_; }

  client::BrokerView& view() { return *view_; }
  wire::StatusView status();
  wire::LeaseView lease(LeaseId lease);
  std::vector<wire::LeaseView> leases_of(const std::string& tenant);
  std::vector<wire::LeaseView> engine_leases();
  bool eventually_fenced(LeaseId lease);
  /// All KV memory is free again, and no byte is missing.
  bool pool_is_fully_free();

 private:
  Child start(const std::string& program, std::vector<std::string> arguments,
              const std::string& fault, bool read_output);
  std::vector<std::string> event_log_arguments(const std::string& name);

  SystemSpec spec_;
  std::filesystem::path directory_;
  int programs_ = 0;
  std::string last_log_;
  std::size_t brokers_ = 0;
  std::vector<EventLogFile> event_logs_;
  std::map<std::string, Child> workers_;
  std::map<std::string, std::string> worker_logs_;
  std::optional<Child> broker_;
  std::optional<client::BrokerView> view_;
};

/// What was told is the beginning of what would have been told.
bool is_prefix(const std::vector<std::int32_t>& part, const std::vector<std::int32_t>& whole);

/// Every kept extent reads as zero and has no memory behind it.
bool all_zero_and_free(const std::vector<demo::OpenedExtent>& extents);

}  // namespace leasehold::testing
