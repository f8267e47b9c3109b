#include "tools/brokerctl/arguments/arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/cli/version.hpp"
#include "common/expects.hpp"
#include "common/random.hpp"
#include "ipc/control/messages/json_fields.hpp"
#include "tools/brokerctl/arguments/audit_arguments.hpp"
#include "tools/brokerctl/arguments/event_arguments.hpp"
#include "tools/brokerctl/arguments/key_arguments.hpp"
#include "tools/brokerctl/arguments/prefix_arguments.hpp"
#include "tools/brokerctl/arguments/requested_output.hpp"
#include "tools/brokerctl/arguments/tenant_arguments.hpp"
#include "tools/brokerctl/arguments/worker_arguments.hpp"
#include "tools/brokerctl/examples.hpp"
#include "tools/brokerctl/local_commands.hpp"
#include "tools/brokerctl/memory_name.hpp"
#include "tools/cli/unknown_command.hpp"

namespace leasehold::brokerctl {
namespace {

/// The option values that CLI11 stores; `parse_verb` turns those of the chosen command into a Verb.
struct OptionValues {
  std::string socket, output = "table", request_id;
  std::string lease, tenant, part, worker, state, memory, reason;
  TenantArguments tenants;
  EventArguments events;
  PrefixArguments prefix;
  WorkerArguments worker_verbs;
  KeyArguments keys;
  AuditArguments audit;
  LocalCommands local;
  ListOperatorActions actions;
  std::int64_t grace_ms = 30'000, timeout_ms = 30'000;
  bool wait = false, watch = false;
  std::int64_t watch_interval_ms = 2000;
  ShowTop top;
};

struct CommandLine {
  CLI::App app{"Query and control a Leasehold broker", "brokerctl"};
  OptionValues values;
};

constexpr const char* kNouns = "Nouns (a noun alone lists)";
constexpr const char* kVerbs = "Verbs";

/// Adds an option or a positional that takes a name.
CLI::Option* add_name(CLI::App* app, const std::string& option, std::string& value,
                      const std::string& help) {
  return app->add_option(option, value, help)->check(check_name);
}

/// Adds an option that takes free text on one line (TextRule::Sentence).
CLI::Option* add_sentence(CLI::App* app, const std::string& option, std::string& value,
                          const std::string& help) {
  const auto check = [](const std::string& text) { return check_text(TextRule::Sentence, text); };
  return app->add_option(option, value, help)->check(check);
}

CLI::App* add_verb(CommandLine& line, const std::string& name, const std::string& help) {
  return line.app.add_subcommand(name, help)->group(kVerbs);
}

/// Adds a verb to a noun. Sets the group, because a subcommand otherwise inherits the noun's.
CLI::App* add_verb_of(CLI::App* noun, const std::string& name, const std::string& help) {
  return noun->add_subcommand(name, help)->group(kVerbs);
}

/// Adds --watch to a command that prints a list or a state.
void add_watch(CLI::App* app, OptionValues& values) {
  auto* watch = app->add_flag("--watch", values.watch, "Repeat until interrupted");
  app->add_option("--interval-ms", values.watch_interval_ms, "With --watch: time between two lists")
      ->needs(watch)
      ->check(CLI::Range(100, 3'600'000))
      ->capture_default_str();
}

CLI::App* add_noun(CommandLine& line, const std::string& name, const std::string& help) {
  CLI::App* noun = line.app.add_subcommand(name, help)->group(kNouns)->require_subcommand(0, 1);
  CLI::App* list = add_verb_of(noun, "list", help);
  for (CLI::App* app : {noun, list}) add_watch(app, line.values);
  return noun;
}

/// Adds --request-id. A repeated call with the same id has the same effect as one call.
void add_request_id(CLI::App* verb, OptionValues& values) {
  add_name(verb, "--request-id", values.request_id,
           "Id that makes a repeated call harmless; default: a new one");
}

void add_lists(CommandLine& line) {
  OptionValues& values = line.values;
  CLI::App* leases = add_noun(line, "leases", "Leases with state, memory and clocks");
  for (CLI::App* app : {leases, leases->get_subcommand("list")}) {
    add_name(app, "--tenant", values.tenant, "List the leases of this tenant only");
    app->add_option("--state", values.state, "List the leases in this state only")
        ->check(CLI::IsMember({"Live", "Revoked", "Fenced"}, CLI::ignore_case));
  }
  add_noun(line, "extents", "Extents of memory with state and lease");
  auto* workers =
      add_noun(line, "workers", "Workers with state, drain, model, arithmetic and address");
  workers->alias("worker");
  add_request_id(values.worker_verbs.add_replace(*workers), values);
  CLI::App* actions =
      add_noun(line, "actions", "Operator actions, newest first; needs a broker with --state-dir");
  for (CLI::App* app : {actions, actions->get_subcommand("list")}) {
    app->add_option("--limit", values.actions.limit, "List at most this number of actions")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
  }
}

void add_tenants(CommandLine& line) {
  OptionValues& values = line.values;
  CLI::App* tenants = add_noun(line, "tenants", "Tenants with limits, usage and drain");
  for (CLI::App* verb : values.tenants.add_verbs(*tenants)) add_request_id(verb, values);
}

void add_quarantine(CommandLine& line) {
  OptionValues& values = line.values;
  CLI::App* quarantine = add_noun(line, "quarantine", "Memory whose teardown is unproven");
  auto* release = add_verb_of(quarantine, "release", "Clear quarantined memory and make it free");
  release->add_option("memory", values.memory, "Memory as listed, e.g. extent:5 or region:3")
      ->required();
  add_sentence(release, "--reason", values.reason, "Reason for the record, 1 to 200 bytes")
      ->required();
  add_request_id(release, values);
}

void add_lease_or_tenant(CLI::App* verb, OptionValues& values) {
  auto* lease = verb->add_option("lease", values.lease, "One lease, e.g. 17.4");
  add_name(verb, "--tenant", values.tenant, "All leases of this tenant")->excludes(lease);
}

void add_revoke_and_drain(CommandLine& line) {
  OptionValues& values = line.values;
  auto* revoke = add_verb(line, "revoke", "Revoke leases now");
  add_lease_or_tenant(revoke, values);
  auto* part = add_sentence(revoke, "--part", values.part,
                            "Weights: a tensor, or a layer such as blk.1; "
                            "`brokerctl leases` lists the parts");
  part->excludes(revoke->get_option("lease"))->excludes(revoke->get_option("--tenant"));
  add_name(revoke, "--worker", values.worker, "With --part: on this worker only")->needs(part);
  revoke->add_flag("--wait", values.wait, "Wait until fenced and print the four clocks");
  revoke->add_option("--timeout-ms", values.timeout_ms, "With --wait: longest time to wait")
      ->check(CLI::Range(1, 86'400'000))
      ->capture_default_str();
  add_request_id(revoke, values);

  auto* drain =
      add_verb(line, "drain", "Admit nothing new; revoke what still runs after --grace-ms");
  add_lease_or_tenant(drain, values);
  add_name(drain, "--worker", values.worker,
           "All leases of tenants on this worker; a new process of its name serves again")
      ->excludes(drain->get_option("lease"))
      ->excludes(drain->get_option("--tenant"));
  drain
      ->add_option("--grace-ms", values.grace_ms, "Time to finish; what still runs then is revoked")
      ->check(CLI::Range(0, 86'400'000))
      ->capture_default_str();
  drain->add_flag("--wait", values.wait,
                  "Wait until the leases have ended; fail if one was cut off or the worker is not "
                  "empty");
  drain
      ->add_option("--timeout-ms", values.timeout_ms,
                   "With --wait: longest time from a revocation or the end of the grace to a fence")
      ->check(CLI::Range(1, 86'400'000))
      ->capture_default_str();
  add_request_id(drain, values);

  auto* undrain = add_verb(line, "undrain", "Give a drained tenant or worker new leases again");
  auto* tenant = add_name(undrain, "--tenant", values.tenant, "The tenant");
  add_name(undrain, "--worker", values.worker, "The worker")->excludes(tenant);
  add_request_id(undrain, values);
}

void add_events(CommandLine& line) {
  OptionValues& values = line.values;
  add_verb(line, "timeline", "Steps of one revocation, with clocks")
      ->add_option("lease", values.lease, "Lease, e.g. 17.4")
      ->required();
  values.events.add_events(*add_verb(line, "events", "Past events, oldest first"));
  values.events.add_watch(
      *add_verb(line, "watch", "Same as `events --follow`, from now on; --steps: engine steps"));
}

void add_top(CommandLine& line) {
  ShowTop& top = line.values.top;
  auto* verb = add_verb(line, "top",
                        "Show tenants with tokens per second, memory, workers and revoked leases, "
                        "live; press q to quit");
  verb->add_option("--interval-ms", top.interval_ms, "Time between two updates")
      ->check(CLI::Range(100, 3'600'000))
      ->capture_default_str();
  verb->add_flag("--once", top.once, "Print one update and exit");
}

void add_common(CommandLine& line) {
  line.app.require_subcommand(1);
  line.app.fallthrough();
  line.app.set_version_flag("--version", "brokerctl " + std::string(version()));
  line.app
      .add_option("--socket,--broker", line.values.socket,
                  "Broker socket; default: $LEASEHOLD_BROKER, else "
                  "$XDG_RUNTIME_DIR/leasehold/broker.sock, else /run/leasehold/broker.sock")
      ->check(check_socket_path);
  line.app
      .add_option("-o,--output", line.values.output,
                  "Format: table, wide for more columns, or json for programs")
      ->check(CLI::IsMember({"table", "wide", "json"}))
      ->capture_default_str();
}

void add_commands(CommandLine& line) {
  add_watch(add_verb(line, "status",
                     "Memory, leases, workers, isolation, device, and p50, p99 and max of the four "
                     "clocks"),
            line.values);
  add_top(line);
  add_revoke_and_drain(line);
  add_events(line);
  add_lists(line);
  add_tenants(line);
  add_quarantine(line);
  CLI::App* prefix = add_noun(line, "prefix", "Published texts with lease, name and worker");
  add_request_id(line.values.prefix.add_publish(*prefix), line.values);
  line.values.keys.add_verbs(*add_noun(line, "keys", "API keys of HTTP clients, with tenant"));
  line.values.audit.add_verbs(
      *add_noun(line, "audit",
                "Records of finished requests and revocations; needs a broker with --state-dir"));
  line.values.local.add(line.app);
  add_examples(line.app);
}

template <class Id>
Result<std::optional<Id>> parse_optional(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return TRY(Id::parse(text));
}

Result<RequestId> request_id(const OptionValues& values) {
  return RequestId::parse(values.request_id.empty() ? mint_request_id() : values.request_id);
}

/// Fills the members that revoke and drain share.
template <class Message>
Result<Message> set_target(const OptionValues& values, Message message) {
  message.lease = TRY(parse_optional<LeaseId>(values.lease));
  message.tenant = TRY(parse_optional<TenantId>(values.tenant));
  message.request_id = TRY(request_id(values));
  if (!message.lease && !message.tenant) {
    constexpr bool kDrains = std::is_same_v<Message, wire::LeaseDrain>;
    return fail(Errc::BadRequest,
                fmt::format("no lease or tenant given; name a lease, or use --tenant or {}",
                            kDrains ? "--worker" : "--part"));
  }
  return message;
}

Result<wire::LeaseRevoke> parse_revoke(const OptionValues& values) {
  if (values.part.empty()) return set_target(values, wire::LeaseRevoke{});
  wire::LeaseRevoke revoke{.part = values.part};
  revoke.request_id = TRY(request_id(values));
  if (!values.worker.empty()) revoke.worker = values.worker;
  return revoke;
}

Result<wire::LeaseDrain> parse_drain(const OptionValues& values) {
  wire::LeaseDrain drain{.grace_ms = values.grace_ms};
  if (values.worker.empty()) return set_target(values, std::move(drain));
  drain.worker = values.worker;
  drain.request_id = TRY(request_id(values));
  return drain;
}

Result<wire::LeaseUndrain> parse_undrain(const OptionValues& values) {
  if (values.tenant.empty() && values.worker.empty())
    return fail(Errc::BadRequest, "no tenant or worker given; use --tenant or --worker");
  wire::LeaseUndrain undrain{.tenant = TRY(parse_optional<TenantId>(values.tenant))};
  if (!values.worker.empty()) undrain.worker = values.worker;
  undrain.request_id = TRY(request_id(values));
  return undrain;
}

Result<ListLeases> parse_leases(const OptionValues& values) {
  ListLeases list{.tenant = TRY(parse_optional<TenantId>(values.tenant))};
  for (const LeaseState state : {LeaseState::Live, LeaseState::Revoked, LeaseState::Fenced}) {
    const std::string state_name(name(state));
    if (CLI::detail::to_lower(state_name) == CLI::detail::to_lower(values.state))
      list.state = state;
  }
  return list;
}

Result<Verb> tenant_verb(const OptionValues& values, const std::string& verb) {
  const RequestId id = TRY(request_id(values));
  return values.tenants.verb(verb, id);
}

Result<wire::QuarantineRelease> parse_quarantine_release(const OptionValues& values) {
  wire::QuarantineRelease release{.reason = values.reason};
  TRY(name_memory(values.memory, release));
  release.request_id = TRY(request_id(values));
  return release;
}

/// Returns nothing for a command that does not list.
Result<std::optional<Verb>> parse_list(const std::string& noun, const OptionValues& values) {
  if (noun == "leases") return TRY(parse_leases(values));
  if (noun == "extents") return Show::Extents;
  if (noun == "workers") return Show::Workers;
  if (noun == "actions") return values.actions;
  if (noun == "tenants") return Show::Tenants;
  if (noun == "quarantine") return Show::Quarantine;
  if (noun == "prefix") return Show::Prefixes;
  return std::nullopt;
}

Result<Verb> parse_verb(const CommandLine& line) {
  const CLI::App* command = line.app.get_subcommands().front();
  const auto verbs = command->get_subcommands();
  const std::string verb = verbs.empty() ? "list" : verbs.front()->get_name();
  const std::string name = command->get_name();
  const OptionValues& values = line.values;
  if (auto local = TRY(values.local.verb(line.app, name))) return *std::move(local);
  if (name == "keys") return TRY(values.keys.verb(verb));
  if (name == "audit") return TRY(values.audit.verb(verb));
  if (verb == "admit" || verb == "remove") return tenant_verb(values, verb);
  if (verb == "release") return TRY(parse_quarantine_release(values));
  if (verb == "replace") return values.worker_verbs.replace(TRY(request_id(values)));
  if (verb == "publish") return values.prefix.publish(TRY(request_id(values)));
  if (verb == "list") {
    if (auto list = TRY(parse_list(name, values))) return *std::move(list);
  }
  if (name == "status") return Show::Status;
  if (name == "top") return values.top;
  if (name == "events") return values.events.events();
  if (name == "watch") return values.events.watch();
  if (name == "timeline") return ShowTimeline{TRY(LeaseId::parse(values.lease))};
  if (name == "drain") {
    const wire::LeaseDrain message = TRY(parse_drain(values));
    return Drain{.message = message, .wait = values.wait, .timeout_ms = values.timeout_ms};
  }
  if (name == "undrain") return TRY(parse_undrain(values));
  expects(name == "revoke", "every command of the list in add_commands is parsed");
  const wire::LeaseRevoke message = TRY(parse_revoke(values));
  return Revoke{.message = message, .wait = values.wait, .timeout_ms = values.timeout_ms};
}

bool is_list(const Verb& verb) {
  return std::holds_alternative<Show>(verb) || std::holds_alternative<ListLeases>(verb) ||
         std::holds_alternative<ListOperatorActions>(verb) ||
         std::holds_alternative<ListAudit>(verb);
}

Output output_of(const std::string& word) {
  if (word == "json") return Output::Json;
  return word == "wide" ? Output::Wide : Output::Table;
}

}  // namespace

std::expected<Arguments, UsageWithOutput> parse_arguments(std::span<const std::string> words) {
  CommandLine line;
  add_common(line);
  add_commands(line);
  const std::vector<std::string> arguments = cli::options_behind_command(line.app, words);
  const Output output = requested_output(arguments);
  if (auto text = cli::unknown_command(line.app, arguments))
    return std::unexpected(UsageWithOutput{{.text = *std::move(text)}, output});
  if (auto usage = parse_cli_arguments(line.app, arguments))
    return std::unexpected(UsageWithOutput{*std::move(usage), output});
  auto verb = parse_verb(line);
  if (!verb)
    return std::unexpected(UsageWithOutput{{.text = std::move(verb).error().detail}, output});
  if (line.values.watch && !is_list(*verb)) {
    return std::unexpected(
        UsageWithOutput{{.text = "--watch works with lists and status only; remove it"}, output});
  }
  Arguments parsed{.output = output_of(line.values.output), .verb = *std::move(verb)};
  if (line.values.watch) parsed.watch_ms = line.values.watch_interval_ms;
  if (!line.values.socket.empty()) parsed.socket = line.values.socket;
  return parsed;
}

}  // namespace leasehold::brokerctl
