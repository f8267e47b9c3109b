#include "tests/support/system.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "tools/local_system/fd_store.hpp"

namespace leasehold::testing {
namespace {

constexpr int kPatience_ms = 60'000;

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().detail);
  return *std::move(result);
}

/// Waits for a readable descriptor; with none, just for a moment.
void wait(int fd, int at_most_ms) {
  pollfd entry{fd, POLLIN, 0};
  ::poll(&entry, fd < 0 ? 0 : 1, at_most_ms);
}

std::filesystem::path fresh_directory() {
  std::string pattern = std::filesystem::temp_directory_path() / "leasehold-test-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
  return pattern;
}

}  // namespace

// ----------------------------------------------------------------------------------------- Tenant

bool Tenant::read() {
  char bytes[4096];
  while (true) {
    const ssize_t n = ::read(child_.output().get(), bytes, sizeof(bytes));
    if (n == 0) return true;
    if (n < 0) return false;
    lines_.append({bytes, static_cast<std::size_t>(n)});
    while (const auto line = lines_.next()) {
      const Result<void> noted = demo::note(record_, *line);
      if (!noted) throw std::runtime_error(noted.error().detail);
    }
  }
}

bool Tenant::read_until(const std::function<bool(const demo::TenantRecord&)>& holds) {
  for (int rounds = 0; rounds < kPatience_ms / 100; ++rounds) {
    const bool over = read();
    if (holds(record_)) return true;
    if (over) return false;
    wait(child_.output().get(), 100);
  }
  return false;
}

bool Tenant::read_tokens(std::size_t count) {
  return read_until([count](const auto& record) { return record.tokens.size() >= count; });
}

int Tenant::finish() {
  if (read_until([](const auto&) { return false; }); !read()) {
    throw std::runtime_error("a tenant does not end");
  }
  std::optional<int> status;
  eventually([&] { return (status = child_.status()).has_value(); });
  return status.value_or(-1);
}

// ----------------------------------------------------------------------------------------- System

System::System(SystemSpec spec) : spec_(std::move(spec)), directory_(fresh_directory()) {
  if (!start_broker(spec_.broker_fault)) throw std::runtime_error("the broker does not listen");
  if (!spec_.start_worker) return;
  start_worker("w1", spec_.worker_fault);
  if (!eventually([this] { return worker_is_ready(); })) {
    throw std::runtime_error("the worker is not ready");
  }
}

bool System::start_broker(const std::string& fault) {
  view_.reset();
  broker_.reset();
  std::vector<std::string> arguments{"--socket", broker_socket(), "--capacity", "64MiB",
                                     "--allow-memory-check"};
  ++brokers_;
  const auto history = event_log_arguments("broker");
  arguments.insert(arguments.end(), history.begin(), history.end());
  const auto& more = spec_.broker_arguments;
  arguments.insert(arguments.end(), more.begin(), more.end());
  const bool use_default_timeout = std::ranges::find(more, "--fence-timeout-ms") == more.end();
  if (use_default_timeout) arguments.insert(arguments.end(), {"--fence-timeout-ms", "600000"});
  broker_.emplace(start("leasehold-broker", arguments, fault, false));
  return eventually([this] {
    auto connected = client::BrokerView::connect(broker_socket());
    if (!connected) return false;
    view_.emplace(*std::move(connected));
    return true;
  });
}

System::~System() {
  workers_.clear();
  broker_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

Child System::start(const std::string& program, std::vector<std::string> arguments,
                    const std::string& fault, bool read_output) {
  std::vector<std::string> argv;
  if (!fault.empty()) argv = {"/usr/bin/env", "LEASEHOLD_FAULT=" + fault};
  argv.push_back(program_path(program));
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  last_log_ = directory_ / (program + "-" + std::to_string(++programs_) + ".log");
  ChildConfig config{.argv = std::move(argv), .log_path = last_log_, .read_output = read_output};
  const bool is_kept = spec_.store != nullptr && program == "leasehold-broker";
  return must(is_kept ? spec_.store->start(std::move(config)) : Child::start(config));
}

std::vector<std::string> System::event_log_arguments(const std::string& name) {
  const std::string file = name + "-" + std::to_string(event_logs_.size()) + ".jsonl";
  event_logs_.push_back({name, brokers_ - 1, directory_ / file});
  return {"--event-log", event_logs_.back().path};
}

void System::start_worker(const std::string& name, const std::string& fault) {
  const std::string model =
      spec_.model_name.empty() ? bundled_model_path() : (directory_ / spec_.model_name).string();
  if (!std::filesystem::exists(model)) std::filesystem::copy_file(bundled_model_path(), model);
  std::vector<std::string> arguments{"--broker", broker_socket(), "--name",   name,
                                     "--model",  model,           "--listen", worker_socket(name)};
  arguments.insert(arguments.end(), spec_.worker_arguments.begin(), spec_.worker_arguments.end());
  const auto history = event_log_arguments(name);
  arguments.insert(arguments.end(), history.begin(), history.end());
  workers_.erase(name);
  workers_.emplace(name, start("leasehold-worker", arguments, fault, false));
  worker_logs_[name] = last_log_;
}

bool System::worker_reports_ready(const std::string& name) const {
  return worker_log(name).find("ready name=" + name) != std::string::npos;
}

std::string System::worker_log(const std::string& name) const {
  std::ifstream file(worker_logs_.at(name));
  return {std::istreambuf_iterator<char>(file), {}};
}

bool System::worker_is_ready(const std::string& name) {
  const auto workers = must(view_->workers());
  return std::ranges::any_of(workers, [&](const wire::WorkerView& worker) {
    return worker.worker == name && worker.state == "ready";
  });
}

void System::remove_worker(const std::string& name) {
  workers_.erase(name);
}

void System::admit(const std::string& tenant, std::vector<std::string> more) {
  std::vector<std::string> arguments{"tenants", "admit", tenant, "--max-concurrent", "8"};
  if (std::ranges::find(more, "--max-blocks") == more.end()) {
    more.insert(more.end(), {"--max-blocks", "2000"});
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  if (brokerctl(arguments) != 0) throw std::runtime_error("admit failed");
}

std::unique_ptr<Tenant> System::start_tenant(const TenantSpec& spec) {
  std::vector<std::string> arguments{
      "--socket", broker_socket(), "--tenant",     spec.tenant,
      "--prompt", spec.prompt,     "--max-tokens", std::to_string(spec.max_tokens),
      "-o",       "json"};
  if (spec.ignore_eos) arguments.push_back("--ignore-eos");
  if (spec.rebind) arguments.push_back("--rebind");
  arguments.insert(arguments.end(), spec.more.begin(), spec.more.end());
  return std::make_unique<Tenant>(start("leasehold-tenant", arguments, spec.fault, true));
}

std::vector<std::int32_t> System::undisturbed(const TenantSpec& spec) {
  const auto tenant = start_tenant(spec);
  if (tenant->finish() != 0) throw std::runtime_error("the undisturbed run failed");
  return tenant->record().tokens;
}

void System::while_worker_stopped(const std::function<void()>& action) {
  const pid_t pid = worker().pid();
  if (!worker().signal(SIGSTOP) || !eventually([pid] { return is_stopped(pid); }))
    throw std::runtime_error("the worker does not stop");
  action();
  if (!worker().signal(SIGCONT)) throw std::runtime_error("the worker does not go on");
}

void System::revoke_mid_request(const std::string& tenant) {
  while_worker_stopped([&] {
    // Nothing to revoke is no error of brokerctl's.
    const auto is_live = [](const auto& lease) { return lease.state == LeaseState::Live; };
    if (std::ranges::none_of(leases_of(tenant), is_live))
      throw std::runtime_error("the text of " + tenant + " was over before");
    if (brokerctl({"revoke", "--tenant", tenant}) != 0)
      throw std::runtime_error("the lease of " + tenant + " was not revoked");
  });
}

void System::revoke_mid_request(LeaseId lease) {
  while_worker_stopped([&] {
    if (brokerctl({"revoke", to_string(lease)}) != 0)
      throw std::runtime_error("lease " + to_string(lease) + " was not revoked");
  });
}

Child System::start_brokerctl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--socket", broker_socket()});
  return start("brokerctl", arguments, {}, false);
}

int System::brokerctl(std::vector<std::string> arguments) {
  Child child = start_brokerctl(std::move(arguments));
  std::optional<int> status;
  eventually([&] { return (status = child.status()).has_value(); });
  return status.value_or(-1);
}

wire::StatusView System::status() {
  return must(view_->status());
}

wire::LeaseView System::lease(LeaseId lease) {
  for (wire::LeaseView& view : must(view_->leases())) {
    if (view.lease == lease) return view;
  }
  throw std::runtime_error("no lease " + to_string(lease));
}

std::vector<wire::LeaseView> System::leases_of(const std::string& tenant) {
  auto leases = must(view_->leases());
  std::erase_if(leases, [&](const wire::LeaseView& lease) { return lease.tenant != tenant; });
  return leases;
}

std::vector<wire::LeaseView> System::engine_leases() {
  auto leases = must(view_->leases());
  std::erase_if(
      leases, [](const wire::LeaseView& lease) { return lease.scope != wire::LeaseScope::Engine; });
  return leases;
}

bool System::eventually_fenced(LeaseId id) {
  return eventually([&] { return lease(id).state == LeaseState::Fenced; });
}

bool System::pool_is_fully_free() {
  return eventually([this] {
    const wire::StatusView now = status();
    return now.free_bytes == now.capacity_bytes;
  });
}

bool is_prefix(const std::vector<std::int32_t>& part, const std::vector<std::int32_t>& whole) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

bool all_zero_and_free(const std::vector<demo::OpenedExtent>& extents) {
  for (const demo::OpenedExtent& extent : extents) {
    const demo::MemoryReading now = must(demo::read_memory(extent.object));
    if (now.allocated_bytes != 0 || now.nonzero_bytes != 0) return false;
  }
  return !extents.empty();
}

}  // namespace leasehold::testing
