#include "tools/brokerctl/arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/random.hpp"

namespace leasehold::brokerctl {
namespace {

/// The words as typed; `understand` turns those of the chosen verb into a Verb.
struct Typed {
  std::string socket, output = "table", request_id;
  std::string lease, tenant, state, tier = "standard";
  wire::TenantAdmit admit;
  std::uint32_t uid = 0;
  ListEvents events;
  std::int64_t grace_ms = 30'000, timeout_ms = 30'000;
  bool wait = false;
};

struct CommandLine {
  CLI::App app{"Shows and steers a Leasehold broker.", "brokerctl"};
  Typed typed;
  CLI::Option* uid = nullptr;
};

void add_lease_or_tenant(CLI::App* verb, Typed& typed) {
  auto* lease = verb->add_option("lease", typed.lease, "One lease, e.g. 17.4");
  verb->add_option("--tenant", typed.tenant, "All leases of this tenant")->excludes(lease);
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
  auto* events = line.app.add_subcommand("events", "What happened, oldest first");
  events->add_option("--after", typed.events.after, "Only events with a larger sequence number");
  events->add_option("--limit", typed.events.limit, "At most so many at a time")
      ->check(CLI::Range(1, 1000));
  events->add_flag("--follow", typed.events.follow, "Go on showing new ones until interrupted");
}

void add_deeds(CommandLine& line) {
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
  line.uid = admit->add_option("--uid", typed.uid, "Only this user may act for it");

  auto* revoke = line.app.add_subcommand("revoke", "Take leases back, now");
  add_lease_or_tenant(revoke, typed);
  revoke->add_flag("--wait", typed.wait, "Wait until fenced and show the four clocks");
  revoke->add_option("--timeout-ms", typed.timeout_ms, "With --wait: for how long at most")
      ->check(CLI::Range(1, 86'400'000));

  auto* drain = line.app.add_subcommand("drain", "No new work; take leases back after a grace");
  add_lease_or_tenant(drain, typed);
  drain->add_option("--grace-ms", typed.grace_ms, "How long running work may go on")
      ->check(CLI::Range(0, 86'400'000));

  for (auto* verb : {admit, revoke, drain}) {
    verb->add_option("--request-id", typed.request_id,
                     "The same id gives the same answer; minted when not given");
  }
}

void add_common(CommandLine& line) {
  line.app.require_subcommand(1);
  line.app.fallthrough();
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
Result<Message> aim(const Typed& typed, Message message) {
  message.lease = TRY(parse_optional<LeaseId>(typed.lease));
  message.tenant = TRY(parse_optional<TenantId>(typed.tenant));
  message.request_id = TRY(request_id(typed));
  if (!message.lease && !message.tenant) {
    return fail(Errc::BadRequest, "name one lease, or all of a tenant with --tenant");
  }
  return message;
}

Result<ListLeases> understand_leases(const Typed& typed) {
  ListLeases list{.tenant = TRY(parse_optional<TenantId>(typed.tenant))};
  for (const LeaseState state : {LeaseState::Live, LeaseState::Revoked, LeaseState::Fenced}) {
    if (CLI::detail::to_lower(std::string(name(state))) == CLI::detail::to_lower(typed.state)) {
      list.state = state;
    }
  }
  return list;
}

Result<wire::TenantAdmit> understand_admit(const CommandLine& line) {
  wire::TenantAdmit admit = line.typed.admit;
  admit.tenant = TRY(TenantId::parse(line.typed.tenant));
  for (const auto tier : {wire::Tier::Guaranteed, wire::Tier::Standard, wire::Tier::Scavenger}) {
    if (wire::name(tier) == line.typed.tier) admit.tier = tier;
  }
  if (line.uid->count() > 0) admit.uid = line.typed.uid;
  admit.request_id = TRY(request_id(line.typed));
  return admit;
}

Result<Verb> understand(const CommandLine& line) {
  const std::string verb = line.app.get_subcommands().front()->get_name();
  if (verb == "status") return ShowStatus{};
  if (verb == "tenants") return ListTenants{};
  if (verb == "extents") return ListExtents{};
  if (verb == "workers") return ListWorkers{};
  if (verb == "events") return line.typed.events;
  if (verb == "leases") return TRY(understand_leases(line.typed));
  if (verb == "admit") return TRY(understand_admit(line));
  if (verb == "drain") {
    return TRY(aim(line.typed, wire::LeaseDrain{.grace_ms = line.typed.grace_ms}));
  }
  return Revoke{.message = TRY(aim(line.typed, wire::LeaseRevoke{})),
                .wait = line.typed.wait,
                .timeout_ms = line.typed.timeout_ms};
}

}  // namespace

std::expected<Arguments, Usage> parse_arguments(std::span<const std::string> arguments) {
  CommandLine line;
  add_common(line);
  add_lists(line);
  add_deeds(line);
  try {
    // CLI11 takes the words last first.
    line.app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    std::ostringstream text;
    const int code = line.app.exit(error, text, text);
    return std::unexpected(Usage{.exit_code = code == 0 ? 0 : 2, .text = text.str()});
  }
  auto verb = understand(line);
  if (!verb) {
    return std::unexpected(Usage{
        .text = fmt::format("{}\nRun with --help for more information.\n", verb.error().detail)});
  }
  Arguments parsed{.output = line.typed.output == "json" ? Output::Json : Output::Table,
                   .verb = *std::move(verb)};
  if (!line.typed.socket.empty()) parsed.socket = line.typed.socket;
  return parsed;
}

}  // namespace leasehold::brokerctl
