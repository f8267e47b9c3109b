#include "tools/brokerctl/arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "common/random.hpp"
#include "common/version.hpp"
#include "tools/cli/suggest.hpp"

namespace leasehold::brokerctl {
namespace {

/// The words as typed; `parse_verb` turns those of the chosen verb into a Verb.
struct Typed {
  std::string socket, output = "table", request_id;
  std::string lease, tenant, part, worker, state, tier = "standard", memory, reason;
  std::uint64_t after = 0;
  wire::TenantAdmit admit;
  std::uint32_t uid = 0;
  std::int64_t max_lifetime_ms = 0;
  ListEvents events;
  ListOperatorActions actions;
  std::int64_t grace_ms = 30'000, timeout_ms = 30'000;
  bool wait = false;
};

struct CommandLine {
  CLI::App app{"Shows and steers a Leasehold broker.", "brokerctl"};
  Typed typed;
  CLI::Option* uid = nullptr;
  CLI::Option* max_lifetime = nullptr;
  CLI::Option* watch_after = nullptr;
};

struct Targets {
  CLI::Option* lease;
  CLI::Option* tenant;
};

Targets add_lease_or_tenant(CLI::App* verb, Typed& typed) {
  auto* lease = verb->add_option("lease", typed.lease, "One lease, e.g. 17.4");
  auto* tenant = verb->add_option("--tenant", typed.tenant, "All leases of this tenant");
  return {lease, tenant->excludes(lease)};
}

void add_revoke(CLI::App* revoke, Typed& typed) {
  const Targets others = add_lease_or_tenant(revoke, typed);
  auto* part = revoke->add_option("--part", typed.part,
                                  "Weights: a tensor, or a layer and all in it, e.g. blk.1; "
                                  "`brokerctl leases` shows the parts there are");
  part->excludes(others.lease)->excludes(others.tenant);
  revoke->add_option("--worker", typed.worker, "With --part: on this worker only")->needs(part);
  revoke->add_flag("--wait", typed.wait, "Wait until fenced and show the four clocks");
  revoke->add_option("--timeout-ms", typed.timeout_ms, "With --wait: for how long at most")
      ->check(CLI::Range(1, 86'400'000));
}

void add_lists(CommandLine& line) {
  Typed& typed = line.typed;
  line.app.add_subcommand("status", "Memory by state, numbers of leases, workers and tenants");
  line.app.add_subcommand("tenants", "Who may hold leases, and how much");
  line.app.add_subcommand("extents", "Every piece of memory, its state and its lease");
  line.app.add_subcommand("workers", "Who serves");
  auto* leases = line.app.add_subcommand("leases", "Every lease, its state and its clocks");
  leases->add_option("--tenant", typed.tenant, "Only this tenant's");
  leases->add_option("--state", typed.state, "Only these")
      ->check(CLI::IsMember({"Live", "Revoked", "Fenced"}, CLI::ignore_case));
  line.app.add_subcommand("fences", "Memory that was touched after it was taken back");
  auto* audit = line.app.add_subcommand("audit", "What operators did, newest first");
  audit->add_option("--limit", typed.actions.limit, "So many at most")->check(CLI::Range(1, 1000));
  auto* timeline = line.app.add_subcommand("timeline", "One revocation, step by step, with clocks");
  timeline->add_option("lease", typed.lease, "Which lease, e.g. 17.4")->required();
}

void add_events(CommandLine& line) {
  Typed& typed = line.typed;
  auto* events = line.app.add_subcommand("events", "What happened, oldest first");
  events->add_option("--after", typed.after, "Only events with a larger sequence number");
  events->add_flag("--follow", typed.events.follow, "Go on showing new ones until interrupted");
  auto* watch = line.app.add_subcommand("watch", "What happens, as it happens, until interrupted");
  line.watch_after = watch->add_option("--after", typed.after, "Begin after this event, not now");
  for (auto* verb : {events, watch}) {
    verb->add_option("--limit", typed.events.limit, "End after so many events")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32));
    verb->add_option("--lease", typed.lease, "Only events that name this lease");
    verb->add_option("--tenant", typed.tenant, "Only events that name this tenant");
  }
}

void add_commands(CommandLine& line) {
  Typed& typed = line.typed;
  auto* admit = line.app.add_subcommand("admit", "Create a tenant, or change its limits");
  admit->add_option("tenant", typed.tenant, "Its name")->required();
  admit->add_option("--max-concurrent", typed.admit.max_concurrent, "Requests running at once")
      ->check(CLI::Range(1, 64));
  admit->add_option("--max-blocks", typed.admit.max_blocks, "KV blocks over all its leases")
      ->check(CLI::Range(1, 1 << 20));
  admit->add_option("--weight", typed.admit.weight, "Its share of the worker's time")
      ->check(CLI::Range(1, 1000));
  admit->add_option("--tier", typed.tier, "Who is a victim first when memory is short")
      ->check(CLI::IsMember({"guaranteed", "standard", "scavenger"}));
  admit->add_option("--ttl-ms", typed.admit.ttl_ms, "How long a lease lives without renewal")
      ->check(CLI::Range(100, 86'400'000));
  line.max_lifetime = admit->add_option("--max-lifetime-ms", typed.max_lifetime_ms,
                                        "No renewal keeps a lease longer; default: no end");
  line.max_lifetime->check(CLI::Range(std::int64_t{100}, std::int64_t{1'000'000'000'000}));
  line.uid = admit->add_option("--uid", typed.uid, "Only this user may act for it");

  auto* revoke = line.app.add_subcommand("revoke", "Take leases back, now");
  add_revoke(revoke, typed);

  auto* drain = line.app.add_subcommand("drain", "No new work; take leases back after a grace");
  add_lease_or_tenant(drain, typed);
  drain->add_option("--grace-ms", typed.grace_ms, "How long running work may go on")
      ->check(CLI::Range(0, 86'400'000));

  auto* quarantine_release =
      line.app.add_subcommand("quarantine_release", "Give quarantined memory back");
  quarantine_release
      ->add_option("memory", typed.memory, "extent:5 or region:3, see `brokerctl quarantine list`")
      ->required();
  quarantine_release->add_option("--reason", typed.reason, "Why, for the record; 1 to 200 bytes")
      ->required();

  for (auto* verb : {admit, revoke, drain, quarantine_release}) {
    verb->add_option("--request-id", typed.request_id,
                     "The same id gives the same answer; minted when not given");
  }
}

void add_common(CommandLine& line) {
  line.app.require_subcommand(1);
  line.app.fallthrough();
  line.app.set_version_flag("--version", "brokerctl " + std::string(version()));
  line.app.add_option("--socket", line.typed.socket,
                      "The broker's socket; default: LEASEHOLD_BROKER, else "
                      "$XDG_RUNTIME_DIR/leasehold/broker.sock, else /run/leasehold/broker.sock");
  line.app.add_option("-o,--output", line.typed.output, "table for people, json for programs")
      ->check(CLI::IsMember({"table", "json"}));
}

template <class Id>
Result<std::optional<Id>> parse_optional(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return TRY(Id::parse(text));
}

Result<RequestId> request_id(const Typed& typed) {
  return RequestId::parse(typed.request_id.empty() ? mint_request_id() : typed.request_id);
}

/// Fills the three members that revoke and drain share.
template <class Message>
Result<Message> set_target(const Typed& typed, Message message) {
  message.lease = TRY(parse_optional<LeaseId>(typed.lease));
  message.tenant = TRY(parse_optional<TenantId>(typed.tenant));
  message.request_id = TRY(request_id(typed));
  if (!message.lease && !message.tenant) {
    return fail(Errc::BadRequest, "name one lease, or all of a tenant with --tenant");
  }
  return message;
}

Result<wire::LeaseRevoke> parse_revoke(const Typed& typed) {
  if (typed.part.empty()) return set_target(typed, wire::LeaseRevoke{});
  wire::LeaseRevoke revoke{.part = typed.part};
  revoke.request_id = TRY(request_id(typed));
  if (!typed.worker.empty()) revoke.worker = typed.worker;
  return wire::LeaseRevoke::from_json(revoke.to_json());  // the names' rules are the message's
}

Result<ListLeases> parse_leases(const Typed& typed) {
  ListLeases list{.tenant = TRY(parse_optional<TenantId>(typed.tenant))};
  for (const LeaseState state : {LeaseState::Live, LeaseState::Revoked, LeaseState::Fenced}) {
    if (CLI::detail::to_lower(std::string(name(state))) == CLI::detail::to_lower(typed.state)) {
      list.state = state;
    }
  }
  return list;
}

Result<wire::TenantAdmit> parse_admit(const CommandLine& line) {
  wire::TenantAdmit admit = line.typed.admit;
  admit.tenant = TRY(TenantId::parse(line.typed.tenant));
  for (const auto tier : {wire::Tier::Guaranteed, wire::Tier::Standard, wire::Tier::Scavenger}) {
    if (wire::name(tier) == line.typed.tier) admit.tier = tier;
  }
  if (line.uid->count() > 0) admit.uid = line.typed.uid;
  if (line.max_lifetime->count() > 0) admit.max_lifetime_ms = line.typed.max_lifetime_ms;
  admit.request_id = TRY(request_id(line.typed));
  return admit;
}

/// "extent:5", "region:3"; a bare number is an extent.
Result<wire::QuarantineRelease> parse_quarantine_release(const Typed& typed) {
  const auto colon = typed.memory.find(':');
  const std::string kind = colon == std::string::npos ? "extent" : typed.memory.substr(0, colon);
  const std::string digits = typed.memory.substr(colon == std::string::npos ? 0 : colon + 1);
  std::uint64_t id = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  const bool whole = read.ec == std::errc() && read.ptr == digits.data() + digits.size();
  if (!whole || (kind != "extent" && kind != "region")) {
    return fail(Errc::BadRequest,
                fmt::format("'{}' names no memory; write extent:5 or region:3", typed.memory));
  }
  wire::QuarantineRelease clear{.reason = typed.reason};
  clear.request_id = TRY(request_id(typed));
  if (kind == "extent") clear.extent = ExtentId{id};
  if (kind == "region") clear.region = RegionId{id};
  return wire::QuarantineRelease::from_json(clear.to_json());  // the reason's rule is the message's
}

Result<ListEvents> parse_events(const CommandLine& line, bool watch) {
  ListEvents list = line.typed.events;
  list.after = line.typed.after;
  if (watch && line.watch_after->count() == 0) list.after.reset();
  list.follow = list.follow || watch;
  list.lease = TRY(parse_optional<LeaseId>(line.typed.lease));
  list.tenant = TRY(parse_optional<TenantId>(line.typed.tenant));
  return list;
}

Result<Verb> parse_verb(const CommandLine& line) {
  const std::string verb = line.app.get_subcommands().front()->get_name();
  if (verb == "status") return ShowStatus{};
  if (verb == "tenants") return ListTenants{};
  if (verb == "extents") return ListExtents{};
  if (verb == "workers") return ListWorkers{};
  if (verb == "fences") return ListQuarantine{};
  if (verb == "audit") return line.typed.actions;
  if (verb == "events" || verb == "watch") return TRY(parse_events(line, verb == "watch"));
  if (verb == "timeline") return ShowTimeline{TRY(LeaseId::parse(line.typed.lease))};
  if (verb == "quarantine_release") return TRY(parse_quarantine_release(line.typed));
  if (verb == "leases") return TRY(parse_leases(line.typed));
  if (verb == "admit") return TRY(parse_admit(line));
  if (verb == "drain") {
    return TRY(set_target(line.typed, wire::LeaseDrain{.grace_ms = line.typed.grace_ms}));
  }
  return Revoke{.message = TRY(parse_revoke(line.typed)),
                .wait = line.typed.wait,
                .timeout_ms = line.typed.timeout_ms};
}

/// Also when the rest cannot be understood: a program that reads JSON gets JSON.
Output asked_output(std::span<const std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool value_follows = words[i] == "-o" || words[i] == "--output";
    if (value_follows && i + 1 < words.size() && words[i + 1] == "json") return Output::Json;
    if (words[i] == "-ojson" || words[i] == "--output=json") return Output::Json;
  }
  return Output::Table;
}

/// The first word that stands where a verb should; empty when there is none.
std::string typed_verb(std::span<const std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "-o" || words[i] == "--output" || words[i] == "--socket") {
      ++i;
    } else if (!words[i].starts_with('-')) {
      return words[i];
    }
  }
  return "";
}

/// A verb that does not exist deserves better than "argument not expected".
std::optional<std::string> unknown_verb(const CLI::App& app, std::span<const std::string> words) {
  const std::string typed = typed_verb(words);
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) verbs.push_back(verb->get_name());
  if (typed.empty() || std::ranges::find(verbs, typed) != verbs.end()) return std::nullopt;
  const std::string near = cli::nearest(typed, verbs);
  const std::string hint = near.empty() ? "" : fmt::format(" Did you mean '{}'?", near);
  return fmt::format("there is no verb '{}'.{} Verbs: {}", typed, hint, fmt::join(verbs, ", "));
}

}  // namespace

std::expected<Arguments, UsageWithOutput> parse_arguments(std::span<const std::string> arguments) {
  CommandLine line;
  add_common(line);
  add_lists(line);
  add_events(line);
  add_commands(line);
  const Output output = asked_output(arguments);
  if (auto text = unknown_verb(line.app, arguments)) {
    return std::unexpected(UsageWithOutput{{.text = *std::move(text)}, output});
  }
  if (auto usage = parse_cli_arguments(line.app, arguments)) {
    return std::unexpected(UsageWithOutput{*std::move(usage), output});
  }
  auto verb = parse_verb(line);
  if (!verb) {
    return std::unexpected(UsageWithOutput{{.text = std::move(verb).error().detail}, output});
  }
  Arguments parsed{.output = line.typed.output == "json" ? Output::Json : Output::Table,
                   .verb = *std::move(verb)};
  if (!line.typed.socket.empty()) parsed.socket = line.typed.socket;
  return parsed;
}

}  // namespace leasehold::brokerctl
