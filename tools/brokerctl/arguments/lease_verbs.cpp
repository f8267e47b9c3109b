#include <fmt/format.h>

#include "common/cli/command_line.hpp"
#include "tools/brokerctl/arguments/commands.hpp"

namespace leasehold::brokerctl {
namespace {

constexpr int kMaxWait_ms = 86'400'000;

/// The values of revoke, drain and undrain.
struct TargetValues {
  std::string lease, tenant, part, worker, adapter;
  std::int64_t grace_ms = 30'000, timeout_ms = 30'000;
  bool wait = false;
};

void add_lease_or_tenant(CLI::App& verb, TargetValues& values) {
  auto* lease = verb.add_option("lease", values.lease, "One lease, e.g. 17.4");
  add_name(verb, "--tenant", values.tenant, "All leases of this tenant")->excludes(lease);
}

/// Fills the members that revoke and drain share. `other` is the option that names no lease or
/// tenant.
template <class Message>
Result<Message> set_target(const TargetValues& values, RequestId request_id, const char* other,
                           Message message) {
  message.lease = TRY(parse_optional<LeaseId>(values.lease));
  message.tenant = TRY(parse_optional<TenantId>(values.tenant));
  message.request_id = std::move(request_id);
  if (!message.lease && !message.tenant) {
    return fail(
        Errc::BadRequest,
        fmt::format("no lease or tenant given; name a lease, or use --tenant or {}", other));
  }
  return message;
}

void add_revoke(Commands& commands) {
  const auto values = std::make_shared<TargetValues>();
  auto* revoke = commands.add_verb(
      {"revoke", "Revoke leases now",
       "brokerctl revoke 17.4 --wait\nbrokerctl revoke --tenant alice\nbrokerctl revoke --part "
       "blk.1 --worker w1\nbrokerctl revoke --adapter support"},
      [&commands, values]() -> Result<Verb> {
        wire::LeaseRevoke message;
        RequestId id = TRY(commands.request_id());
        if (!values->adapter.empty()) {
          message.adapter = TRY(AdapterName::parse(values->adapter));
          message.tenant = TRY(parse_optional<TenantId>(values->tenant));
          message.request_id = std::move(id);
        } else if (values->part.empty()) {
          message = TRY(set_target(*values, std::move(id), "--part", std::move(message)));
        } else {
          message.part = values->part;
          message.request_id = std::move(id);
          if (!values->worker.empty()) message.worker = values->worker;
        }
        return Revoke{.message = message, .wait = values->wait, .timeout_ms = values->timeout_ms};
      });
  add_lease_or_tenant(*revoke, *values);
  auto* part = add_sentence(*revoke, "--part", values->part,
                            "Weights: a tensor, or a layer such as blk.1; "
                            "`brokerctl leases` lists the parts");
  part->excludes(revoke->get_option("lease"))->excludes(revoke->get_option("--tenant"));
  add_name(*revoke, "--worker", values->worker, "With --part: on this worker only")->needs(part);
  add_name(*revoke, "--adapter", values->adapter,
           "Memory of this adapter on all workers, and texts published under it; the next request "
           "loads the adapter again. With --tenant: only if it is the owner")
      ->excludes(revoke->get_option("lease"))
      ->excludes(part);
  revoke->add_flag("--wait", values->wait, "Wait until fenced and print the four clocks");
  add_number_option(*revoke, "--timeout-ms", values->timeout_ms,
                    "With --wait: longest time to wait", 1, kMaxWait_ms);
  commands.add_request_id(*revoke);
}

void add_drain(Commands& commands) {
  const auto values = std::make_shared<TargetValues>();
  auto* drain = commands.add_verb(
      {"drain", "Admit nothing new; revoke what still runs after --grace-ms",
       "brokerctl drain --tenant alice --grace-ms 5000\nbrokerctl drain --worker w1 --wait"},
      [&commands, values]() -> Result<Verb> {
        wire::LeaseDrain message{.grace_ms = values->grace_ms};
        RequestId id = TRY(commands.request_id());
        if (values->worker.empty()) {
          message = TRY(set_target(*values, std::move(id), "--worker", std::move(message)));
        } else {
          message.worker = values->worker;
          message.request_id = std::move(id);
        }
        return Drain{.message = message, .wait = values->wait, .timeout_ms = values->timeout_ms};
      });
  add_lease_or_tenant(*drain, *values);
  add_name(*drain, "--worker", values->worker,
           "All leases of tenants on this worker; a new process of its name serves again")
      ->excludes(drain->get_option("lease"))
      ->excludes(drain->get_option("--tenant"));
  add_number_option(*drain, "--grace-ms", values->grace_ms,
                    "Time to finish; what still runs then is revoked", 0, kMaxWait_ms);
  drain->add_flag("--wait", values->wait,
                  "Wait until the leases have ended; fail if one was cut off or the worker is not "
                  "empty");
  add_number_option(
      *drain, "--timeout-ms", values->timeout_ms,
      "With --wait: longest time from a revocation or the end of the grace to a fence", 1,
      kMaxWait_ms);
  commands.add_request_id(*drain);
}

void add_undrain(Commands& commands) {
  const auto values = std::make_shared<TargetValues>();
  auto* undrain = commands.add_verb(
      {"undrain", "Give a drained tenant or worker new leases again",
       "brokerctl undrain --tenant alice\nbrokerctl undrain --worker w1"},
      [&commands, values]() -> Result<Verb> {
        if (values->tenant.empty() && values->worker.empty())
          return fail(Errc::BadRequest, "no tenant or worker given; use --tenant or --worker");
        wire::LeaseUndrain message{.tenant = TRY(parse_optional<TenantId>(values->tenant))};
        if (!values->worker.empty()) message.worker = values->worker;
        message.request_id = TRY(commands.request_id());
        return message;
      });
  auto* tenant = add_name(*undrain, "--tenant", values->tenant, "The tenant");
  add_name(*undrain, "--worker", values->worker, "The worker")->excludes(tenant);
  commands.add_request_id(*undrain);
}

/// The values of events and watch.
struct EventValues {
  std::string lease, tenant;
  std::optional<std::uint64_t> after;
  ListEvents list;
  wire::StepWatch step_watch;
  bool steps = false;
};

void add_filters(CLI::App& verb, EventValues& values, const std::string& limit_help) {
  verb.add_option("--limit", values.list.limit, limit_help)
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32));
  verb.add_option("--lease", values.lease, "Only events that name this lease");
  add_name(verb, "--tenant", values.tenant, "Only events that name this tenant");
}

Result<ListEvents> filtered(const EventValues& values) {
  ListEvents list = values.list;
  list.lease = TRY(parse_optional<LeaseId>(values.lease));
  list.tenant = TRY(parse_optional<TenantId>(values.tenant));
  return list;
}

void add_events(Commands& commands) {
  const auto values = std::make_shared<EventValues>();
  auto* events = commands.add_verb(
      {"events", "Past events, oldest first",
       "brokerctl events --lease 17.4\nbrokerctl events --follow --tenant alice -o json"},
      [values]() -> Result<Verb> {
        ListEvents list = TRY(filtered(*values));
        list.after = values->after.value_or(0);
        return list;
      });
  events->add_option("--after", values->after, "Only events with a larger sequence number");
  events->add_flag("--follow", values->list.follow, "Continue with new events until interrupted");
  add_filters(*events, *values, "Stop after this number of events");
}

void add_watch(Commands& commands) {
  const auto values = std::make_shared<EventValues>();
  auto* watch = commands.add_verb(
      {"watch", "Same as `events --follow`, from now on; --steps: engine steps",
       "brokerctl watch --tenant alice\nbrokerctl watch --steps --interval-ms 500"},
      [values]() -> Result<Verb> {
        if (values->steps)
          return WatchSteps{.message = values->step_watch, .limit = values->list.limit};
        ListEvents list = TRY(filtered(*values));
        list.after = values->after;
        list.follow = true;
        return list;
      });
  watch->add_option("--after", values->after, "Start after this sequence number, not now");
  add_filters(*watch, *values, "Stop after this number of events or steps");
  auto* steps =
      watch->add_flag("--steps", values->steps, "Sampled engine steps of all workers, not events");
  for (const char* other : {"--after", "--lease", "--tenant"})
    steps->excludes(watch->get_option(other));
  watch
      ->add_option("--interval-ms", values->step_watch.interval_ms,
                   "With --steps: shortest time between two samples of a worker")
      ->needs(steps)
      ->check(CLI::Range(wire::kMinStepInterval_ms, wire::kMaxStepInterval_ms))
      ->capture_default_str();
}

void add_top(Commands& commands) {
  const auto top = std::make_shared<ShowTop>();
  auto* verb =
      commands.add_verb({"top",
                         "Show tenants with tokens per second, memory, workers and revoked "
                         "leases, live; press q to quit",
                         "brokerctl top\nbrokerctl top --once"},
                        [top] { return *top; });
  add_number_option(*verb, "--interval-ms", top->interval_ms, "Time between two updates", 100,
                    3'600'000);
  verb->add_flag("--once", top->once, "Print one update and exit");
}

void add_timeline(Commands& commands) {
  const auto lease = std::make_shared<std::string>();
  commands
      .add_verb({"timeline", "Steps of one revocation, with clocks", "brokerctl timeline 17.4"},
                [lease]() -> Result<Verb> { return ShowTimeline{TRY(LeaseId::parse(*lease))}; })
      ->add_option("lease", *lease, "Lease, e.g. 17.4")
      ->required();
}

void add_describe(Commands& commands) {
  CLI::App* describe = commands.add_verb(
      {"describe", "Show everything known about one thing, and what may come next",
       "brokerctl describe lease 17.4\nbrokerctl describe tenant alice\nbrokerctl describe worker "
       "w1 -o json"},
      MakeVerb{});
  describe->require_subcommand(1);
  const auto name = std::make_shared<std::string>();
  const auto add = [&](const std::string& noun, const std::string& help,
                       const std::string& example) {
    CLI::App* verb = commands.add_verb(
        *describe, {noun, help, "brokerctl describe " + noun + " " + example},
        [noun, name]() -> Result<Verb> { return Describe{.noun = noun, .name = *name}; });
    verb->alias(noun + "s");
    add_name(*verb, noun, *name, "Its name, from `brokerctl get " + noun + "`")->required();
  };
  add("lease", "State, memory, timeline, extents and events of a lease", "17.4");
  add("tenant", "Policy, usage, leases, keys and events of a tenant", "alice");
  add("worker", "State, leases and events of a worker", "w1");
  add("key", "Tenant and fields of an API key", "0011223344556677");
  add("adapter", "Version, owner, memory, leases and events of an adapter", "support");
  add("extent", "State, lease and quarantine of an extent of memory", "5");
}

}  // namespace

void add_lease_verbs(Commands& commands) {
  commands.add_watch(*commands.add_verb(
      {"status",
       "Memory, leases, workers, isolation, device, and p50, p99 and max of the four clocks",
       "brokerctl status\nbrokerctl status -o json"},
      [] { return Show::Status; }));
  add_top(commands);
  add_revoke(commands);
  add_drain(commands);
  add_undrain(commands);
  add_timeline(commands);
  add_describe(commands);
  add_events(commands);
  add_watch(commands);
}

}  // namespace leasehold::brokerctl
