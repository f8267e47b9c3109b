#include "tests/fault/scenario.hpp"

#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "common/machine/process.hpp"
#include "ipc/control/event_file.hpp"

namespace leasehold::testing {

TenantSpec ann() {
  return {.tenant = "ann", .prompt = "Once upon a time", .max_tokens = 80};
}

TenantSpec bob() {
  return {.tenant = "bob", .prompt = "The little fox", .max_tokens = 80, .rebind = true};
}

TenantSpec cat() {
  return {.tenant = "cat", .prompt = "One morning", .max_tokens = 240};
}

const std::vector<std::int32_t>& undisturbed(const TenantSpec& spec) {
  static std::map<std::string, std::vector<std::int32_t>> texts;
  if (texts.empty()) {
    System undisturbed_system({.worker_arguments = {}});
    for (const TenantSpec& each : {ann(), bob(), cat()}) {
      undisturbed_system.admit(each.tenant);
      texts[each.tenant] = undisturbed_system.undisturbed(each);
    }
  }
  return texts.at(spec.tenant);
}

// -----------------------------------------------------------------------------------------
// FaultTarget

bool FaultTarget::is_down() const {
  return has_exited(child_->pidfd()) || (action_ == Action::Stop && is_stopped(child_->pid()));
}

bool FaultTarget::wait_until_down() const {
  return eventually([this] { return is_down(); });
}

bool FaultTarget::read(Tenant& tenant, std::size_t tokens) const {
  return tenant.read_until([&](const runner::TenantRecord& record) {
    return record.tokens.size() >= tokens || is_down();
  });
}

bool FaultTarget::ends_by_sigkill() {
  return exit_status_of(*child_) == 128 + SIGKILL;
}

// ------------------------------------------------------------------------------------------
// FaultScenario

Tenant& FaultScenario::start(const TenantSpec& spec) {
  tenants_.push_back({spec, system_.start_tenant(spec)});
  return *tenants_.back().process;
}

void FaultScenario::keep_memory(LeaseId lease) {
  auto kept = runner::open_extents(system_.view(), lease);
  if (!kept) return;
  for (runner::OpenedExtent& extent : *kept) kept_.push_back(std::move(extent));
}

bool FaultScenario::kept_memory_is_zero_and_free() {
  return kept_.empty() || eventually([this] { return all_zero_and_free(kept_); });
}

std::size_t FaultScenario::revoke_all_on(const std::string& worker) {
  std::size_t revoked = 0;
  const auto leases = system_.view().leases();
  REQUIRE(leases);
  for (const wire::LeaseView& lease : *leases) {
    if (lease.worker != worker || lease.state != LeaseState::Live) continue;
    system_.brokerctl({"revoke", to_string(lease.lease)});
    ++revoked;
  }
  return revoked;
}

void FaultScenario::check_serves_again(const std::string& worker) {
  for (Started& started : tenants_) started.exit_code = started.process->finish();
  TenantSpec again = ann();
  again.more = {"--worker", worker};
  const int code = start(again).finish();
  CHECK(code == 0);
  CHECK(system_.pool_is_fully_free());
  sample_status();
  for (const runner::Check& check : runner::judge(history())) {
    INFO(check.promise << ": " << check.seen);
    CHECK(check.ok);
  }
}

void FaultScenario::on_new_broker() {
  samples_before_.push_back(std::exchange(samples_, {}));
}

runner::Record FaultScenario::history() {
  runner::Record history;
  for (const EventLogFile& log : system_.event_logs()) {
    auto events = events::read_event_file(log.path).value_or(std::vector<events::StampedEvent>{});
    if (log.name == "broker") {
      history.brokers.push_back({.events = std::move(events), .samples = {}});
    } else {
      history.workers.push_back({.broker = log.broker, .steps = std::move(events)});
    }
  }
  for (std::size_t i = 0; i < samples_before_.size(); ++i) {
    history.brokers.at(i).samples = samples_before_[i];
    history.brokers.at(i).ended_early = true;
  }
  history.brokers.back().samples = samples_;
  history.last = samples_.back();
  for (Started& started : tenants_) {
    const std::optional<int> status = started.process->child().status();
    history.texts.push_back({.tenant = started.spec.tenant,
                             .record = started.process->record(),
                             .undisturbed = undisturbed(started.spec),
                             .was_killed = status == 128 + SIGKILL});
  }
  return history;
}

}  // namespace leasehold::testing
