#include "tests/checks/runner/system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "common/errc.hpp"
#include "ipc/control/event_file.hpp"

namespace leasehold::runner {
namespace {

constexpr Duration kPollInterval = std::chrono::milliseconds(10);
constexpr const char* kEventLogBytes = "64GiB";  // the judge reads every event

std::vector<std::string> arguments_of(const Tenant& tenant) {
  const TenantSpec& spec = tenant.spec;
  std::vector<std::string> arguments{"--temperature",
                                     spec.temperature,
                                     "--seed",
                                     std::to_string(spec.seed),
                                     "--max-tokens",
                                     std::to_string(spec.max_tokens),
                                     spec.chat ? "--chat" : "--ignore-eos"};
  const auto add = [&arguments](bool is_set, std::vector<std::string> more) {
    if (is_set) arguments.insert(arguments.end(), more.begin(), more.end());
  };
  add(spec.rebind, {"--rebind"});
  add(!spec.model.empty(), {"--model", spec.model});
  add(!spec.adapter.empty(), {"--adapter", spec.adapter});
  add(spec.blocks > 0, {"--blocks", std::to_string(spec.blocks)});
  add(spec.is_resumable, {"--resumable", "--request-id", tenant.request_id()});
  return arguments;
}

}  // namespace

std::string Tenant::request_id() const {
  return spec.is_resumable ? fmt::format("{}-{}", spec.name, texts) : "";
}

System::System(SystemConfig config, const Poller& poller)
    : config_(std::move(config)),
      poller_(poller),
      store_(config_.has_store ? std::make_unique<FdStore>() : nullptr),
      programs_(config_.bin_dir, config_.directory, store_.get()) {}

void System::add_worker(std::string name, std::string model_path,
                        std::vector<std::string> arguments) {
  workers_.push_back({.name = std::move(name),
                      .model_path = std::move(model_path),
                      .arguments = std::move(arguments)});
}

void System::add_tenant(TenantSpec spec) {
  if (spec.max_lifetime_ms)
    record_.lifetimes[spec.name] = std::chrono::milliseconds(*spec.max_lifetime_ms);
  tenants_.push_back({.spec = std::move(spec)});
}

Result<void> System::poll(Starts starts) {
  std::vector<int> outputs;
  for (Tenant& tenant : tenants_)
    if (tenant.process.is_running()) outputs.push_back(tenant.process.output().get());
  if (!TRY(poller_.wait(outputs, kPollInterval)).empty()) last_output_ = clock_.now();
  for (Tenant& tenant : tenants_) TRY(read(tenant));
  for_each_process(&ProcessSlot::count_poll);
  TRY(collect_exits());
  TRY(start_missing(starts));
  if (config_.samples_status) sample_status();
  return config_.on_poll ? config_.on_poll(starts) : Result<void>{};
}

Missing missing_unless(bool is_done, const std::string& what) {
  return is_done ? std::nullopt : Missing(what);
}

Result<void> System::poll_until(const std::function<Missing()>& missing, Duration timeout,
                                Starts starts) {
  const TimePoint deadline = clock_.now() + timeout;
  while (const auto what = missing()) {
    if (clock_.now() > deadline) {
      return fail(Errc::TimedOut,
                  fmt::format("{}; the logs are in {}", *what, programs_.directory().string()));
    }
    TRY(poll(starts));
  }
  return {};
}

Result<void> System::await_broker(Duration timeout) {
  auto answers =
      poll_until([this] { return missing_unless(view() != nullptr, "the broker does not answer"); },
                 timeout, Starts::NoTenants);
  if (!answers) answers.error().detail += "; " + programs_.end_of_log("broker");
  return answers;
}

Result<void> System::await_ready(Duration timeout) {
  TRY(await_broker(timeout));
  auto ready =
      poll_until([this] { return missing_unless(all_workers_ready(), "the worker is not ready"); },
                 timeout, Starts::NoTenants);
  const auto late = std::ranges::find(workers_, false, &Worker::ready);
  if (!ready && late != workers_.end())
    ready.error().detail += "; " + programs_.end_of_log("worker-" + late->name);
  return ready;
}

BrokerView* System::view() {
  return view_ && broker_.is_running() && !broker_.is_stopped() ? &*view_ : nullptr;
}

Result<BrokerView*> System::connected() {
  BrokerView* const broker = view();
  if (broker == nullptr) return fail(Errc::BrokerLost, "the broker does not answer");
  return broker;
}

// ------------------------------------------------------------------------------------------ exits

Result<void> System::read(Tenant& tenant) {
  if (!tenant.process.has_process()) return {};
  const std::size_t before = tenant.record.tokens.size();
  tenant.record.gone = TRY(read_available(tenant.process.output(), tenant.lines, tenant.record));
  tokens_received_ += tenant.record.tokens.size() - before;
  return {};
}

Result<void> System::collect_exits() {
  if (const auto status = broker_.take_exit_status()) {
    record_.brokers.back().ended_early = store_ == nullptr;
    view_.reset();
    for (Worker& worker : workers_) worker.ready = false;  // they must attach to the next broker
    TRY(note_end("broker", broker_, *status, config_.restarts_broker));
  }
  for (Worker& worker : workers_) {
    if (const auto status = worker.process.take_exit_status())
      TRY(note_end(worker.name, worker.process, *status, config_.restarts_workers));
  }
  for (Tenant& tenant : tenants_) {
    if (!tenant.process.has_process() || tenant.process.is_running()) continue;
    TRY(read(tenant));  // the last output of the process
    record_text(tenant, tenant.process.take_exit_status().value_or(0));
  }
  return {};
}

Result<void> System::note_end(const std::string& program, const ProcessSlot& slot, int status,
                              bool may_end) {
  if (slot.was_killed()) return {};
  record_.ends.push_back({program, status});
  if (may_end) return {};
  const bool is_broker = &slot == &broker_;
  return fail(errc_from_exit_code(status).value_or(Errc::ConnectionLost),
              fmt::format("the {} ended with {}; {}", is_broker ? "broker" : "worker", status,
                          programs_.end_of_log(is_broker ? program : "worker-" + program)));
}

void System::record_text(Tenant& tenant, int status) {
  const bool was_killed = tenant.process.was_killed();
  const std::string request_id = tenant.request_id();
  const bool is_asked_again = was_killed && !tenant.record.completed;
  if (!is_asked_again || request_id.empty()) ++tenant.texts;
  record_.texts.push_back({.tenant = tenant.spec.name,
                           .record = tenant.record,
                           .undisturbed = tenant.spec.undisturbed,
                           .was_killed = was_killed,
                           .request_id = request_id,
                           .model = tenant.spec.model,
                           .exit_status = status});
}

void System::keep_undisturbed() {
  for (Tenant& tenant : tenants_) {
    for (Text& text : record_.texts) {
      if (text.tenant != tenant.spec.name) continue;
      if (text.record.completed && tenant.spec.undisturbed.empty())
        tenant.spec.undisturbed = text.record.tokens;
      text.undisturbed = tenant.spec.undisturbed;
    }
  }
}

// ----------------------------------------------------------------------------------------- starts

Result<void> System::start_missing(Starts starts) {
  if (!broker_.has_process()) TRY(start_broker());
  if (!view_) TRY(connect_broker());
  if (view() == nullptr) return {};
  // A process that ends at once is not started in a tight loop.
  const TimePoint now = clock_.now();
  const auto is_due = [&](const auto& each) {
    return !each.process.has_process() && now - each.started >= config_.start_interval;
  };
  for (Worker& worker : workers_)
    if (is_due(worker)) TRY(start_worker(worker));
  if (starts == Starts::NoTenants || !any_worker_ready()) return {};
  for (Tenant& tenant : tenants_)
    if (is_due(tenant) && (!config_.may_start || config_.may_start(tenant)))
      TRY(start_tenant(tenant));
  return {};
}

StartOptions System::server_options(std::vector<std::string> arguments,
                                    const std::string& name) const {
  StartOptions options{.arguments = std::move(arguments), .nice = config_.server_nice};
  if (!config_.logs_events) return options;
  options.log_name = name;
  options.arguments.insert(options.arguments.end(),
                           {"--event-log", event_log(name), "--event-log-bytes", kEventLogBytes});
  return options;
}

/// With a store, the new broker continues the state and lease ids of its predecessor.
Result<void> System::start_broker() {
  if (store_ && !record_.brokers.empty()) {
    record_.brokers.back().restarts.push_back(clock_.now());
  } else {
    record_.brokers.emplace_back();
  }
  StartOptions options =
      server_options(config_.broker_arguments, fmt::format("broker-{}", broker_instances_.size()));
  broker_instances_.push_back(record_.brokers.size() - 1);
  if (store_) {
    const std::filesystem::path state = programs_.directory() / "state";
    std::error_code ignored;  // the broker reports it
    std::filesystem::create_directory(state, ignored);
    options.arguments.insert(options.arguments.end(), {"--state-dir", state});
  }
  broker_.adopt(TRY(programs_.start_broker(std::move(options))));
  return {};
}

/// Tries to connect once. A failure is not an error, because a new broker needs time to listen.
Result<void> System::connect_broker() {
  auto connected = BrokerView::connect(programs_.broker_socket());
  if (connected && (!config_.on_connected || config_.on_connected(*connected)))
    view_.emplace(*std::move(connected));
  return {};
}

Result<void> System::start_worker(Worker& worker) {
  worker.instance = record_.workers.size();
  worker.ready = false;
  worker.started = clock_.now();
  if (config_.on_worker_start) config_.on_worker_start(worker);
  record_.workers.push_back({.broker = record_.brokers.size() - 1, .steps = {}});
  worker.process.adopt(TRY(programs_.start_worker(
      worker.name, worker.model_path,
      server_options(worker.arguments, fmt::format("worker-{}", worker.instance)))));
  return {};
}

Result<void> System::start_tenant(Tenant& tenant) {
  ++tenant.starts;
  tenant.lines = {};
  tenant.record = {.name = tenant.spec.name};
  tenant.started = clock_.now();
  tenant.process.adopt(
      TRY(programs_.start_tenant(tenant.spec.name, tenant.spec.prompt,
                                 {.arguments = arguments_of(tenant), .uid = tenant.spec.uid})));
  return {};
}

// ---------------------------------------------------------------------------------------- status

bool System::any_worker_ready() {
  refresh_workers();
  return std::ranges::any_of(workers_, &Worker::ready);
}

bool System::all_workers_ready() {
  refresh_workers();
  return std::ranges::all_of(workers_, &Worker::ready);
}

bool System::any_tenant_running() const {
  return std::ranges::any_of(tenants_,
                             [](const Tenant& tenant) { return tenant.process.has_process(); });
}

void System::refresh_workers() {
  const bool known = std::ranges::all_of(
      workers_, [](Worker& worker) { return worker.ready && worker.process.is_running(); });
  BrokerView* broker = known ? nullptr : view();
  if (broker == nullptr) return;
  const auto listed = broker->workers();
  if (!listed) return;
  for (Worker& worker : workers_) {
    worker.ready = worker.process.is_running() &&
                   std::ranges::any_of(*listed, [&](const wire::WorkerView& view) {
                     return view.worker == worker.name && view.state == "ready" &&
                            view.pid == worker.process.pid();
                   });
  }
}

void System::sample_status() {
  BrokerView* broker = view();
  if (broker == nullptr) return;
  if (auto status = broker->status())  // otherwise it died or stopped
    record_.brokers.back().samples.push_back(*std::move(status));
}

void System::for_each_process(void (ProcessSlot::*act)()) {
  (broker_.*act)();
  for (Worker& worker : workers_) (worker.process.*act)();
  for (Tenant& tenant : tenants_) (tenant.process.*act)();
}

void System::resume_all() {
  for_each_process(&ProcessSlot::resume);
  for_each_process(&ProcessSlot::spare);
}

void System::count_action() {
  for_each_process(&ProcessSlot::count_action);
}

Result<void> System::collect_event_logs() {
  for (std::size_t i = 0; i < broker_instances_.size(); ++i) {
    auto reported = TRY(events::read_event_file(event_log(fmt::format("broker-{}", i))));
    auto& events = record_.brokers[broker_instances_[i]].events;
    events.insert(events.end(), std::make_move_iterator(reported.begin()),
                  std::make_move_iterator(reported.end()));
  }
  for (std::size_t i = 0; i < record_.workers.size(); ++i) {
    // A worker that ended during its start has no event log.
    auto steps = events::read_event_file(event_log(fmt::format("worker-{}", i)));
    if (steps)
      record_.workers[i].steps = *std::move(steps);
    else if (steps.error().code != Errc::FileNotFound)
      return std::unexpected(steps.error());
  }
  return {};
}

std::uint64_t whole_texts(const Record& record, const std::string& tenant) {
  return static_cast<std::uint64_t>(std::ranges::count_if(record.texts, [&](const Text& text) {
    return text.tenant == tenant && text.record.completed;
  }));
}

Result<std::uint64_t> await_texts(System& system, const char* which, Duration timeout) {
  const Record& record = system.record();
  std::vector<std::pair<std::string, std::uint64_t>> wanted;
  // A text that runs already may have been disturbed, so it does not count.
  for (const Tenant& tenant : system.tenants())
    wanted.emplace_back(tenant.spec.name, whole_texts(record, tenant.spec.name) +
                                              (tenant.process.has_process() ? 2 : 1));
  const std::size_t before = record.texts.size();
  TRY(system.poll_until(
      [&]() -> Missing {
        for (const auto& [tenant, texts] : wanted)
          if (whole_texts(record, tenant) < texts)
            return fmt::format("the {} text of {} did not end", which, tenant);
        return std::nullopt;
      },
      timeout, Starts::Tenants));
  const auto later = std::span(record.texts).subspan(before);
  return static_cast<std::uint64_t>(std::ranges::count_if(
      later, [](const Text& text) { return text.record.completed.has_value(); }));
}

}  // namespace leasehold::runner
