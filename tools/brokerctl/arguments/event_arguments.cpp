#include "tools/brokerctl/arguments/event_arguments.hpp"

#include <CLI/CLI.hpp>

#include "common/cli/command_line.hpp"

namespace leasehold::brokerctl {

void EventArguments::add_events(CLI::App& verb) {
  verb.add_option("--after", after_, "Only events with a larger sequence number");
  verb.add_flag("--follow", list_.follow, "Continue with new events until interrupted");
  add_filters(verb, "Stop after this number of events");
}

void EventArguments::add_watch(CLI::App& verb) {
  verb.add_option("--after", after_, "Start after this sequence number, not now");
  add_filters(verb, "Stop after this number of events or steps");
  auto* steps = verb.add_flag("--steps", steps_, "Sampled engine steps of all workers, not events");
  for (const char* other : {"--after", "--lease", "--tenant"}) {
    steps->excludes(verb.get_option(other));
  }
  verb.add_option("--interval-ms", step_watch_.interval_ms,
                  "With --steps: shortest time between two samples of a worker")
      ->needs(steps)
      ->check(CLI::Range(wire::kMinStepInterval_ms, wire::kMaxStepInterval_ms))
      ->capture_default_str();
}

void EventArguments::add_filters(CLI::App& verb, const std::string& limit_help) {
  verb.add_option("--limit", list_.limit, limit_help)
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32));
  verb.add_option("--lease", lease_, "Only events that name this lease");
  verb.add_option("--tenant", tenant_, "Only events that name this tenant")->check(check_name);
}

Result<ListEvents> EventArguments::filtered() const {
  ListEvents list = list_;
  if (!lease_.empty()) list.lease = TRY(LeaseId::parse(lease_));
  if (!tenant_.empty()) list.tenant = TRY(TenantId::parse(tenant_));
  return list;
}

Result<Verb> EventArguments::events() const {
  ListEvents list = TRY(filtered());
  list.after = after_.value_or(0);
  return list;
}

Result<Verb> EventArguments::watch() const {
  if (steps_) return WatchSteps{.message = step_watch_, .limit = list_.limit};
  ListEvents list = TRY(filtered());
  list.after = after_;
  list.follow = true;
  return list;
}

}  // namespace leasehold::brokerctl
