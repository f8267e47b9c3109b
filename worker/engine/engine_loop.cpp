#include "worker/engine/engine_loop.hpp"

namespace leasehold {
namespace {

// How long the loop waits for a command when requests wait but none can run. The delay affects only
// how late a waiting request's deadline is noticed.
constexpr auto kIdlePollInterval = std::chrono::milliseconds(20);
constexpr auto kServedInterval = std::chrono::seconds(1);
// How often a busy loop looks for drained leases, because it examines every lease.
constexpr auto kDrainedInterval = std::chrono::milliseconds(10);

}  // namespace

void EngineLoop::post(Command command) {
  {
    const std::scoped_lock lock(mutex_);
    commands_.push_back(std::move(command));
  }
  wake_.notify_one();
}

void EngineLoop::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
}

std::vector<EngineLoop::Command> EngineLoop::take_commands(bool may_wait) {
  std::unique_lock lock(mutex_);
  if (may_wait) wait(lock);
  return std::exchange(commands_, {});
}

void EngineLoop::wait(std::unique_lock<std::mutex>& lock) {
  const auto has_command = [this] { return stopping_ || !commands_.empty(); };
  std::optional<Duration> limit = max_wait();
  if (next_between_ != kNever)
    limit = std::min(limit.value_or(Duration::max()), next_between_ - engine_->now());
  if (limit) {
    wake_.wait_for(lock, *limit, has_command);
  } else {
    wake_.wait(lock, has_command);
  }
}

/// How long the loop waits for a command at most, apart from `between_steps`.
std::optional<Duration> EngineLoop::max_wait() const {
  if (engine_->has_work()) return kIdlePollInterval;
  if (missing_) return restore_interval_;
  if (const auto idle_until = sleep_.idle_until()) return *idle_until - engine_->now();
  return std::nullopt;
}

void EngineLoop::run_command(Command& command) {
  command(*engine_);
  (void)note_arrival();
}

/// Returns true if a request has arrived.
bool EngineLoop::note_arrival() {
  if (!engine_->submissions().take_arrival()) return false;
  sleep_.on_arrival();
  return true;
}

Result<void> EngineLoop::run() {
  bool busy = false;
  sleep_when_idle();  // the idle time begins with the service
  while (true) {
    for (Command& command : take_commands(!busy)) run_command(command);
    {
      const std::scoped_lock lock(mutex_);
      if (stopping_) return {};
    }
    const TimePoint began = engine_->now();
    busy = step_once();
    const Duration took = engine_->now() - began;
    if (const auto fault = engine_->device_fault()) {
      end_all(*fault);
      return std::unexpected(*fault);
    }
    report_usage();
    report_drained(busy);
    engine_->report_kv_changes();
    report_served(busy);
    if (hooks_.between_steps)
      next_between_ = hooks_.between_steps(busy ? std::optional(took) : std::nullopt);
    report_filled();  // last, because a load that fails between two steps may end a fill
    if (note_arrival()) busy = true;  // a request whose adapter is loaded now does not wait
    sleep_when_idle();
  }
}

/// Reports the ends found between two steps at once; they do not wait for the next forward pass.
void EngineLoop::report_stopped() {
  engine_->end_stopped();
  std::vector<SchedulerEvent> ended = engine_->take_events();
  if (!ended.empty()) hooks_.on_report({.events = std::move(ended)});
}

bool EngineLoop::step_once() {
  report_stopped();
  Result<StepReport> report = engine_->step();
  if (!report && engine_->device_fault()) return false;
  if (!report) return recover();
  restore_window_.close();
  const bool has_worked = report->ran || report->awaits_masks;
  hooks_.on_report(std::move(*report));
  std::vector<GrowthRequest> growth_requests = engine_->take_growth_requests();
  if (!growth_requests.empty()) hooks_.on_growth(std::move(growth_requests));
  return has_worked;
}

/// Returns true when the next step can run at once. When it returns false, the loop runs commands
/// before the next attempt, because the attempt may depend on one.
bool EngineLoop::recover() {
  hooks_.on_report({.events = engine_->take_events()});
  const bool is_waking = sleep_.phase() == SleepPhase::Waking;
  if (!is_waking && engine_->weights().is_put_to_sleep()) fall_asleep();  // the order is on its way
  if (sleep_.is_asleep()) return sleep_on();
  const auto part = engine_->weights().first_revoked_part();
  if (part) end_if(restore_window_.on_lost(*part, engine_->now()));
  const Result<void> restored = hooks_.on_weights_lost(*engine_);
  if (!restored) restore_failed(restored.error());
  if (restored && part) restore_window_.on_restored(*part);
  if (restored && !engine_->weights().first_revoked_part()) {
    set_missing(std::nullopt);
    if (sleep_.end_waking()) sleep_changed();
  }
  if (!engine_->has_work()) restore_window_.close();
  return restored.has_value();
}

/// The broker learns of a loss before the clients do, so that it sends them to another worker.
void EngineLoop::restore_failed(const Error& why) {
  const std::optional<Error> end = restore_window_.on_failed(why, engine_->now());
  if (end && end->code == Errc::MissingWeight) set_missing(end);
  if (end) end_all(*end);
  back_to_sleep(why);
}

void EngineLoop::set_missing(const std::optional<Error>& missing) {
  const bool is_known = missing_.has_value() == missing.has_value() &&
                        (!missing || missing->detail == missing_->detail);
  missing_ = missing;
  if (!is_known && hooks_.on_service_changed) hooks_.on_service_changed(missing);
}

// ------------------------------------------------------------------------------------------ sleep

void EngineLoop::set_asleep(bool is_asleep) {
  post([this, is_asleep](Engine&) { is_asleep ? fall_asleep() : begin_waking(); });
}

void EngineLoop::wake_refused(Error why) {
  post([this, why = std::move(why)](Engine&) {
    restore_failed(why);
    sleep_.on_wake_refused(engine_->has_work());
  });
}

void EngineLoop::sleep_refused() {
  post([this](Engine&) { sleep_.on_sleep_refused(engine_->now()); });
}

void EngineLoop::wake_for_requests() {
  post([this](Engine& engine) {
    if (engine.has_work()) sleep_.on_arrival();
  });
}

void EngineLoop::fall_asleep() {
  if (!sleep_.fall_asleep()) return;
  restore_window_.close();
  sleep_changed();
}

void EngineLoop::begin_waking() {
  if (sleep_.begin_waking()) sleep_changed();
}

/// Returns false, as `recover`: the loop waits for a command.
bool EngineLoop::sleep_on() {
  if (sleep_.take_wake()) hooks_.ask_to_wake();
  return false;
}

void EngineLoop::sleep_when_idle() {
  const bool may_sleep = !missing_ && !engine_->weights().first_revoked_part();
  const bool has_work = engine_->has_work();
  if (sleep_.take_idle(has_work || !may_sleep, engine_->now())) hooks_.ask_to_sleep(std::nullopt);
}

/// The requests that woke the worker have ended, so it waits for the next one.
void EngineLoop::back_to_sleep(const Error& why) {
  if (missing_ || engine_->has_work()) return;
  if (sleep_.take_back_to_sleep()) hooks_.ask_to_sleep(why);
}

void EngineLoop::sleep_changed() {
  if (hooks_.on_sleep_changed) hooks_.on_sleep_changed(sleep_.phase());
}

/// Called after failed steps too, because the broker gives other workers the part of a quota that
/// this worker does not use.
void EngineLoop::report_usage() {
  std::vector<wire::TenantUsage> usage = engine_->take_usage();
  if (!usage.empty()) hooks_.on_usage(std::move(usage));
}

void EngineLoop::report_drained(bool busy) {
  const TimePoint now = engine_->now();
  if (busy && now < next_drained_) return;
  next_drained_ = now + kDrainedInterval;
  std::vector<LeaseId> drained = engine_->take_drained();
  if (!drained.empty()) hooks_.on_drained(std::move(drained));
}

void EngineLoop::report_filled() {
  std::vector<PrefixFilled> filled = engine_->take_filled();
  if (!filled.empty() && hooks_.on_filled) hooks_.on_filled(std::move(filled));
}

void EngineLoop::report_served(bool busy) {
  const TimePoint now = engine_->now();
  if (busy && now < next_served_) return;
  next_served_ = now + kServedInterval;
  std::vector<wire::TenantServed> served = engine_->take_served();
  if (!served.empty() && hooks_.on_served) hooks_.on_served(std::move(served));
  if (hooks_.on_observed) hooks_.on_observed(*engine_);
}

void EngineLoop::end_if(const std::optional<Error>& error) {
  if (error) end_all(*error);
}

void EngineLoop::end_all(const Error& error) {
  engine_->end_all(error);
  hooks_.on_report({.events = engine_->take_events()});
}

}  // namespace leasehold
