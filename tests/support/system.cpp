#include "tests/support/system.hpp"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <stdexcept>

#include "common/random.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold::testing {
namespace {

constexpr int kTimeout_ms = 60'000;
constexpr Duration kTimeout = std::chrono::milliseconds(kTimeout_ms);

/// Waits for a readable descriptor.
void wait(int fd, int at_most_ms) {
  pollfd entry{fd, POLLIN, 0};
  ::poll(&entry, 1, at_most_ms);
}

StartOptions options_of(std::vector<std::string> arguments, const std::string& fault) {
  StartOptions options{.arguments = std::move(arguments)};
  if (!fault.empty()) options.environment.push_back("LEASEHOLD_FAULT=" + fault);
  return options;
}

}  // namespace

// ----------------------------------------------------------------------------------------- Tenant

bool Tenant::read_until(const std::function<bool(const runner::TenantRecord&)>& holds) {
  for (int rounds = 0; rounds < kTimeout_ms / 100; ++rounds) {
    const bool ended = read();
    if (holds(record_)) return true;
    if (ended) return false;
    wait(child_.output().get(), 100);
  }
  return false;
}

bool Tenant::read_tokens(std::size_t count) {
  return read_until([count](const auto& record) { return record.tokens.size() >= count; });
}

int Tenant::finish() {
  if (read_until([](const auto&) { return false; }); !read()) {
    throw std::runtime_error("a tenant does not end within a minute");
  }
  return exit_status_of(child_);
}

// ----------------------------------------------------------------------------------------- System

System::System(SystemSpec spec)
    : spec_(std::move(spec)),
      local_(required(
          LocalSystem::create({.name = "test", .bin_dir = program_dir(), .store = spec_.store}))) {
  if (!start_broker(spec_.broker_fault)) throw std::runtime_error("the broker does not listen");
  if (spec_.start_worker) start_ready_worker("w1", spec_.worker_fault);
  for (const std::string& tenant : spec_.tenants) admit(tenant);
}

bool System::start_broker(const std::string& fault) {
  ++brokers_;
  const auto& more = spec_.broker_arguments;
  std::vector<std::string> arguments{"--capacity", spec_.capacity, "--allow-memory-check",
                                     "--event-log", add_event_log("broker")};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const bool use_default_timeout = std::ranges::find(more, "--fence-timeout-ms") == more.end();
  if (use_default_timeout) arguments.insert(arguments.end(), {"--fence-timeout-ms", "600000"});
  return local_->start_broker(options_of(std::move(arguments), fault), kTimeout).has_value();
}

std::string System::add_event_log(const std::string& name) {
  const std::string file = name + "-" + std::to_string(event_logs_.size()) + ".jsonl";
  event_logs_.push_back({name, brokers_ - 1, directory() / file});
  return event_logs_.back().path;
}

void System::start_worker(const std::string& name, const std::string& fault,
                          const std::vector<std::string>& more) {
  const std::string model =
      spec_.model_name.empty() ? bundled_model_path() : (directory() / spec_.model_name).string();
  if (!std::filesystem::exists(model)) std::filesystem::copy_file(bundled_model_path(), model);
  start_worker_on(model, name, fault, more);
}

void System::start_worker_on(const std::string& model, const std::string& name,
                             const std::string& fault, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = spec_.worker_arguments;
  arguments.insert(arguments.end(), more.begin(), more.end());
  arguments.insert(arguments.end(), {"--event-log", add_event_log(name)});
  required(local_->start_worker(name, model, options_of(std::move(arguments), fault)));
}

void System::start_ready_worker(const std::string& name, const std::string& fault,
                                const std::vector<std::string>& more) {
  start_worker(name, fault, more);
  await_ready(name);
}

void System::start_ready_worker_on(const std::string& model, const std::string& name,
                                   const std::vector<std::string>& more) {
  start_worker_on(model, name, {}, more);
  await_ready(name);
}

/// Another thread writes the log, in order: this line shows that earlier lines are written, too.
void System::await_ready(const std::string& name) {
  required(local_->await_worker(name, kTimeout));
  if (!eventually([&] { return worker_reports_ready(name); }))
    throw std::runtime_error("the log of worker " + name + " does not say that it is ready");
}

bool System::worker_reports_ready(const std::string& name) const {
  return worker_log(name).find("ready name=" + name) != std::string::npos;
}

std::string System::log(const std::string& log_name) const {
  return file_bytes(local_->programs().log_path(log_name));
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
  std::vector<std::string> arguments{"--max-tokens", std::to_string(spec.max_tokens)};
  if (spec.ignore_eos) arguments.push_back("--ignore-eos");
  if (spec.rebind) arguments.push_back("--rebind");
  arguments.insert(arguments.end(), spec.more.begin(), spec.more.end());
  return std::make_unique<Tenant>(required(local_->programs().start_tenant(
      spec.tenant, spec.prompt, options_of(std::move(arguments), spec.fault))));
}

std::unique_ptr<Tenant> System::start_streaming(const TenantSpec& spec, std::size_t tokens) {
  auto tenant = start_tenant(spec);
  if (!tenant->read_tokens(tokens)) throw std::runtime_error("a tenant gets too few tokens");
  return tenant;
}

std::vector<std::int32_t> System::undisturbed(const TenantSpec& spec) {
  const auto tenant = start_tenant(spec);
  if (tenant->finish() != 0) throw std::runtime_error("the undisturbed run failed");
  return tenant->record().tokens;
}

std::vector<std::int32_t> System::alone(const TenantSpec& spec) {
  System calm({.worker_arguments = {}});
  calm.admit(spec.tenant);
  return calm.undisturbed(spec);
}

void System::while_worker_stopped(const std::function<void()>& action, const std::string& name) {
  const pid_t pid = worker(name).pid();
  if (!worker(name).signal(SIGSTOP) || !eventually([pid] { return is_stopped(pid); }))
    throw std::runtime_error(name + " does not stop");
  action();
  if (!worker(name).signal(SIGCONT)) throw std::runtime_error(name + " does not resume");
}

void System::revoke_mid_request(const std::string& tenant) {
  while_worker_stopped([&] {
    if (brokerctl({"revoke", "--tenant", tenant}) != 0)
      throw std::runtime_error("no lease of " + tenant + " was revoked");
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
  return required(local_->programs().start("brokerctl", options_of(std::move(arguments), {})));
}

int System::brokerctl(std::vector<std::string> arguments) {
  Child child = start_brokerctl(std::move(arguments));
  return exit_status_of(child);
}

wire::LeaseView System::lease(LeaseId lease) {
  for (wire::LeaseView& view : required(view().leases())) {
    if (view.lease == lease) return view;
  }
  throw std::runtime_error("no lease " + to_string(lease));
}

std::vector<wire::LeaseView> System::leases_of(const std::string& tenant) {
  auto leases = required(view().leases());
  std::erase_if(leases, [&](const wire::LeaseView& lease) { return lease.tenant != tenant; });
  return leases;
}

std::vector<wire::LeaseView> System::engine_leases() {
  auto leases = required(view().leases());
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

wire::LeaseAcquired acquire(control::Client& broker, const std::string& tenant,
                            const std::optional<std::string>& worker) {
  const wire::LeaseAcquire ask{
      .tenant = {tenant}, .worker = worker, .request_id = {mint_request_id()}};
  const auto reply = required(broker.call("lease.acquire", {.body = ask.to_json()}));
  return required(wire::LeaseAcquired::from_json(reply.body));
}

control::Client connect_to_worker(const wire::LeaseAcquired& lease) {
  control::Client worker = required(control::Client::connect(lease.address));
  const wire::ConnectionAuthenticate authenticate{.token = lease.token};
  (void)required(worker.call(std::string(authenticate.kMethod), {.body = authenticate.to_json()}));
  return worker;
}

std::shared_ptr<control::Peer> connect_peer(
    boost::asio::io_context& io, const wire::LeaseAcquired& lease,
    std::function<void(const std::string&, const control::Payload&)> on_notification,
    std::function<void(const Error&)> on_closed) {
  auto worker = control::Peer::create(required(control::connect_to(io, lease.address)),
                                      {.on_call = nullptr,
                                       .on_notification = std::move(on_notification),
                                       .on_closed = std::move(on_closed)});
  worker->start();
  const wire::ConnectionAuthenticate message{.token = lease.token};
  worker->call(std::string(message.kMethod), {.body = message.to_json()},
               [](const Result<control::Payload>& reply) {
                 if (!reply) throw std::runtime_error(reply.error().detail);
               });
  return worker;
}

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

bool is_prefix(const std::vector<std::int32_t>& part, const std::vector<std::int32_t>& whole) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

bool all_zero_and_free(const std::vector<runner::OpenedExtent>& extents) {
  for (const runner::OpenedExtent& extent : extents) {
    const runner::MemoryReading now = required(runner::read_memory(extent.object));
    if (now.allocated_bytes != 0 || now.nonzero_bytes != 0) return false;
  }
  return !extents.empty();
}

}  // namespace leasehold::testing
