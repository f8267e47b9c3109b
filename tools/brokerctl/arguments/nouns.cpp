#include <fmt/format.h>

#include <charconv>

#include "common/cli/command_line.hpp"
#include "common/cli/parse_check.hpp"
#include "common/cli/size_option.hpp"
#include "tools/brokerctl/arguments/commands.hpp"

namespace leasehold::brokerctl {
namespace {

void add_leases(Commands& commands) {
  struct Values {
    std::string tenant, state;
  };
  const auto values = std::make_shared<Values>();
  const auto list = [values]() -> Result<Verb> {
    ListLeases query{.tenant = TRY(parse_optional<TenantId>(values->tenant))};
    for (const LeaseState state : {LeaseState::Live, LeaseState::Revoked, LeaseState::Fenced}) {
      const std::string state_name(name(state));
      if (CLI::detail::to_lower(state_name) == CLI::detail::to_lower(values->state))
        query.state = state;
    }
    return query;
  };
  const auto both = commands.add_noun(
      {"leases", "Leases with state, memory and clocks",
       "brokerctl leases -o wide\nbrokerctl leases --tenant alice --state Live --watch", "lease"},
      list);
  for (CLI::App* command : both) {
    add_name(*command, "--tenant", values->tenant, "List the leases of this tenant only");
    command->add_option("--state", values->state, "List the leases in this state only")
        ->check(CLI::IsMember({"Live", "Revoked", "Fenced"}, CLI::ignore_case));
  }
}

void add_wait(CLI::App& list, std::string& state, std::int64_t& timeout_ms) {
  auto* wait =
      list.add_option("--wait", state,
                      "Wait until the workers are in this state, also for a broker that is not "
                      "started yet")
          ->check(CLI::IsMember({"ready"}));
  add_number_option(list, "--timeout-ms", timeout_ms, "With --wait: longest time to wait", 1,
                    86'400'000)
      ->needs(wait);
}

template <class Call>
void add_sleep_verb(Commands& commands, CLI::App& noun, const CommandText& text,
                    const char* wait_help) {
  const auto call = std::make_shared<Call>();
  auto* verb = commands.add_verb(noun, text, [&commands, call]() -> Result<Verb> {
    call->message.request_id = TRY(commands.request_id());
    return *call;
  });
  add_name(*verb, "worker", call->message.worker, "Name of the worker")->required();
  auto* wait = verb->add_flag("--wait", call->wait, wait_help);
  add_number_option(*verb, "--timeout-ms", call->timeout_ms, "With --wait: longest time to wait", 1,
                    86'400'000)
      ->needs(wait);
  commands.add_request_id(*verb);
}

void add_sleep(Commands& commands, CLI::App& noun) {
  add_sleep_verb<SleepWorker>(
      commands, noun,
      {"sleep",
       "Give the memory of a worker's weights to others; its leases and texts wait for its next "
       "request or for wake",
       "brokerctl worker sleep w1\nbrokerctl worker sleep w1 --wait"},
      "Wait until the memory is free and print the four clocks");
  add_sleep_verb<WakeWorker>(commands, noun,
                             {"wake", "Restore the weights of a sleeping worker",
                              "brokerctl worker wake w1\nbrokerctl worker wake w1 --wait"},
                             "Wait until the worker has its weights");
}

void add_workers(Commands& commands) {
  struct Wait {
    std::string state;
    WaitWorkers verb;
  };
  const auto wait = std::make_shared<Wait>();
  const auto all = commands.add_noun(
      {"workers", "Workers with state, drain, model, arithmetic and address",
       "brokerctl workers\nbrokerctl workers -o json\nbrokerctl workers --wait ready", "worker"},
      [wait]() -> Result<Verb> {
        if (wait->state.empty()) return Show::Workers;
        return wait->verb;
      });
  for (CLI::App* command : all) add_wait(*command, wait->state, wait->verb.timeout_ms);
  CLI::App* const noun = all[0];
  const auto replace = std::make_shared<ReplaceWorker>();
  auto* verb = commands.add_verb(
      *noun,
      {"replace",
       "Move the leases of all tenants to another worker of the same model and options, and wait "
       "until the old one may be stopped; `brokerctl undrain --worker OLD` cancels the replacement",
       "brokerctl workers replace w1 w2\nbrokerctl workers replace w1 w2 --grace-ms 60000"},
      [&commands, replace]() -> Result<Verb> {
        replace->message.request_id = TRY(commands.request_id());
        return *replace;
      });
  wire::WorkerReplace& message = replace->message;
  add_name(*verb, "old", message.worker, "Worker to replace")->required();
  add_name(*verb, "new", message.by, "Worker that takes over")->required();
  add_number_option(*verb, "--grace-ms", message.grace_ms,
                    "Time for the holders to move; what is left then is revoked", 0, 86'400'000);
  verb->add_flag("--any-arithmetic", message.any_arithmetic,
                 "Also where the workers compute in different arithmetics; only texts that allow "
                 "it move, and may change from there on");
  add_number_option(*verb, "--timeout-ms", replace->timeout_ms,
                    "Longest time from the end of the grace until no lease is left", 1, 86'400'000);
  commands.add_request_id(*verb);
  add_sleep(commands, *noun);
}

void add_actions(Commands& commands) {
  const auto query = std::make_shared<ListOperatorActions>();
  const auto both = commands.add_noun(
      {"actions", "Operator actions, newest first; needs a broker with --state-dir",
       "brokerctl actions --limit 20"},
      [query] { return *query; });
  for (CLI::App* command : both)
    add_number_option(*command, "--limit", query->limit, "List at most this number of actions", 1,
                      1000);
}

/// The values of `tenants admit` and `tenants remove`.
struct TenantValues {
  std::string tenant, tier, max_adapter_bytes;
  wire::TenantAdmit admit;
  bool revokes = false;
};

void add_limits(CLI::App& admit, TenantValues& values) {
  const auto limit = [&admit](const char* name, auto& value, const char* help, std::int64_t low,
                              std::int64_t high) {
    admit.add_option(name, value, help)->check(CLI::Range(low, high));
  };
  wire::TenantAdmit& limits = values.admit;
  limit("--max-concurrent", limits.max_concurrent,
        "Requests that run at once, over all workers; new tenant: 1", 1, 64);
  limit("--max-blocks", limits.max_blocks, "KV blocks over all leases; new tenant: 1024", 1,
        1 << 20);
  limit("--reserved-blocks", limits.reserved_blocks,
        "KV blocks kept for a guaranteed tenant, in whole extents; new tenant: 0", 0, 1 << 20);
  limit("--weight", limits.weight, "Share of a worker's time while tenants compete; new tenant: 1",
        1, 1000);
  admit
      .add_option("--tier", values.tier,
                  "Tier under memory pressure: scavengers give way to the reserves of guaranteed "
                  "tenants; new tenant: standard")
      ->check(CLI::IsMember({"guaranteed", "standard", "scavenger"}));
  limit("--ttl-ms", limits.ttl_ms, "Lifetime of a lease without renewal; new tenant: 10000", 100,
        86'400'000);
  limit(
      "--max-lifetime-ms", limits.max_lifetime_ms,
      "Longest lifetime with renewals, of later leases; new tenant: no limit; never removed later",
      100, 1'000'000'000'000);
  limit("--rebinds-per-minute", limits.rebinds_per_minute,
        "Revoked leases that may be replaced per minute; new tenant: 600", 1, 6'000'000);
  limit("--rebind-burst", limits.rebind_burst,
        "Revoked leases that may be replaced at once; new tenant: 256", 1, 1 << 20);
  wire::RateLimits& rates = limits.rates;
  limit(
      "--tokens-per-minute", rates.tokens_per_minute,
      "Computed prompt tokens and emitted tokens per minute, over all workers, and of one request "
      "at most; each worker also keeps what the tenant left there, up to a minute's; new tenant: "
      "no limit",
      1, 10'000'000);
  limit("--requests-per-minute", rates.requests_per_minute,
        "Requests that start per minute, over all workers; each choice of an answer counts; new "
        "tenant: no limit",
        1, 10'000'000);
  limit("--tokens-per-day", rates.tokens_per_day,
        "Computed prompt tokens and emitted tokens per day of UTC, over all workers; requests that "
        "run at the limit end normally; new tenant: no limit",
        1, 1'000'000'000'000);
  limit("--max-adapters", limits.max_adapters,
        "Adapters of its own that may be loaded at once; the same one on two workers counts once; "
        "new tenant: 0",
        0, wire::kMaxAdaptersPerOwner);
  admit
      .add_option("--max-adapter-bytes", values.max_adapter_bytes,
                  "Memory of its adapters over all workers, for example 1GiB; new tenant: 0")
      ->check(checked(parse_size));
  limit("--uid", limits.uid,
        "User id that may act for the tenant; new tenant: any; changed later, never removed", 0,
        ~std::uint32_t{0});
}

void add_tenant(CLI::App& verb, TenantValues& values) {
  add_name(verb, "tenant", values.tenant, "Name of the tenant")->required();
}

void add_tenants(Commands& commands) {
  const auto values = std::make_shared<TenantValues>();
  CLI::App* noun = commands.add_noun(
      {"tenants", "Tenants with limits, usage and drain",
       "brokerctl tenants\nbrokerctl tenants --watch --interval-ms 500 -o json", "tenant"},
      [] { return Show::Tenants; })[0];
  auto* admit = commands.add_verb(
      *noun,
      {"admit",
       "Create a tenant, or change the given limits of an existing one; workers hear it at once, "
       "and no running request ends",
       "brokerctl tenants admit alice --max-concurrent 4 --max-blocks 4096\nbrokerctl tenants "
       "admit batch --tier scavenger"},
      [&commands, values]() -> Result<Verb> {
        wire::TenantAdmit message = values->admit;
        message.request_id = TRY(commands.request_id());
        message.tenant = TRY(TenantId::parse(values->tenant));
        if (!values->max_adapter_bytes.empty())
          message.max_adapter_bytes = TRY(parse_size(values->max_adapter_bytes));
        for (const auto tier :
             {wire::Tier::Guaranteed, wire::Tier::Standard, wire::Tier::Scavenger}) {
          if (wire::name(tier) == values->tier) message.tier = tier;
        }
        return message;
      });
  add_tenant(*admit, *values);
  add_limits(*admit, *values);
  auto* remove = commands.add_verb(
      *noun,
      {"remove",
       "Forget a tenant: later calls for it get UnknownTenant; refused while it has live leases",
       "brokerctl tenants remove alice --revoke"},
      [&commands, values]() -> Result<Verb> {
        RequestId id = TRY(commands.request_id());
        return wire::TenantRemove{.tenant = TRY(TenantId::parse(values->tenant)),
                                  .revoke = values->revokes,
                                  .request_id = std::move(id)};
      });
  add_tenant(*remove, *values);
  remove->add_flag("--revoke", values->revokes, "Revoke its live leases (policy_changed)");
  for (CLI::App* verb : {admit, remove}) commands.add_request_id(*verb);
}

/// Sets the extent or the region that `text` names: "extent:5", "region:3"; a bare number is an
/// extent.
Result<void> name_memory(const std::string& text, wire::QuarantineRelease& release) {
  const auto colon = text.find(':');
  const std::string kind = colon == std::string::npos ? "extent" : text.substr(0, colon);
  const std::string digits = text.substr(colon == std::string::npos ? 0 : colon + 1);
  std::uint64_t id = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  const bool whole = read.ec == std::errc() && read.ptr == digits.data() + digits.size();
  if (!whole || (kind != "extent" && kind != "region")) {
    return fail(Errc::BadRequest,
                fmt::format("'{}' is not a memory id; write extent:5 or region:3", text));
  }
  if (kind == "extent") release.extent = ExtentId{id};
  if (kind == "region") release.region = RegionId{id};
  return {};
}

void add_quarantine(Commands& commands) {
  struct Values {
    std::string memory, reason;
  };
  const auto values = std::make_shared<Values>();
  CLI::App* noun = commands.add_noun(
      {"quarantine", "Memory whose teardown is unproven", "brokerctl quarantine", "quarantine"},
      [] { return Show::Quarantine; })[0];
  auto* release = commands.add_verb(
      *noun,
      {"release", "Clear quarantined memory and make it free",
       "brokerctl quarantine release extent:5 --reason \"worker w0 was replaced\""},
      [&commands, values]() -> Result<Verb> {
        wire::QuarantineRelease message{.reason = values->reason};
        TRY(name_memory(values->memory, message));
        message.request_id = TRY(commands.request_id());
        return message;
      });
  release->add_option("memory", values->memory, "Memory as listed, e.g. extent:5 or region:3")
      ->required();
  add_sentence(*release, "--reason", values->reason, "Reason for the record, 1 to 200 bytes")
      ->required();
  commands.add_request_id(*release);
}

void add_prefix(Commands& commands) {
  CLI::App* noun = commands.add_noun(
      {"prefix", "Published texts with lease, name and worker", "brokerctl prefix", "prefix"},
      [] { return Show::Prefixes; })[0];
  const auto publish = std::make_shared<PublishPrefix>();
  const auto adapter = std::make_shared<std::string>();
  auto* verb = commands.add_verb(
      *noun,
      {"publish",
       "Compute a text once for the prompts of all tenants that begin with it; `brokerctl revoke "
       "LEASE` ends it",
       "brokerctl prefix publish --file rules.txt --worker w1 --name rules\n"
       "brokerctl prefix publish --file rules.txt --worker w1 --adapter tone"},
      [&commands, publish, adapter]() -> Result<Verb> {
        publish->message.adapter = TRY(parse_optional<AdapterName>(*adapter));
        publish->message.request_id = TRY(commands.request_id());
        return *publish;
      });
  verb->add_option("--file", publish->file,
                   "File with the UTF-8 text that prompts start with; - reads stdin")
      ->required();
  add_name(*verb, "--worker", publish->message.worker, "Worker whose tenants share the text")
      ->required();
  add_name(*verb, "--name", publish->message.name, "Name shown in lists");
  add_name(*verb, "--adapter", *adapter,
           "Shared adapter that computes the text, for requests with its name as their model");
  commands.add_request_id(*verb);
}

}  // namespace

void add_nouns(Commands& commands) {
  add_leases(commands);
  commands.add_noun(
      {"extents", "Extents of memory with state and lease", "brokerctl extents", "extent"},
      [] { return Show::Extents; });
  add_workers(commands);
  add_requests(commands);
  add_actions(commands);
  add_tenants(commands);
  add_quarantine(commands);
  add_prefix(commands);
  add_adapters(commands);
  add_key_nouns(commands);
  add_audit(commands);
}

}  // namespace leasehold::brokerctl
