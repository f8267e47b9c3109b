// `brokerctl cell`: asks etcd about a cell of hosts, and changes it.
#include "common/cli/command_line.hpp"
#include "common/cli/parse_check.hpp"
#include "common/cli/size_option.hpp"
#include "common/unix_time.hpp"
#include "ipc/control/messages/limits.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "tools/brokerctl/arguments/key_options.hpp"
#include "tools/cell/admin/blocking_etcd.hpp"
#include "tools/cell/admin/change.hpp"
#include "tools/cell/admin/roles.hpp"
#include "tools/cell/admin/show.hpp"
#include "tools/cell/config/etcd_options.hpp"
#include "tools/cli/json_text.hpp"

namespace leasehold::brokerctl {
namespace {

/// A change is sent once, so a slow member is waited for.
constexpr std::chrono::milliseconds kCallTimeout{5'000};

/// The values of all options of `cell`.
struct CellValues {
  std::string config = "/etc/leasehold/cell.toml";
  std::string tenant, host, key, cell, max_adapter_bytes;
  std::vector<std::string> hosts;
  KeyOptions key_options;
  std::int64_t timeout_ms = 120'000;
  bool wait = false;
  bool is_stopped = false;
  cell::Limits limits;

  cell::Wait waits() const {
    return wait ? cell::Wait(std::chrono::milliseconds(timeout_ms)) : std::nullopt;
  }
};
using Ask = std::function<Result<cell::Answer>(const cell::Calls& calls, const CellValues& values)>;

Result<cell::Answer> ask_etcd(const CellValues& values, const Ask& ask,
                              const std::function<bool(Duration)>& wait,
                              const std::function<void(const std::string&)>& progress) {
  cell::CellAddress address = TRY(cell::read_cell_file(values.config));
  address.etcd.call_timeout = kCallTimeout;
  cell::BlockingEtcd etcd(address.etcd);
  const SystemClock clock;
  const cell::Calls calls{
      .keys = cell::CellKeys(address.cell),
      .list = [&etcd](const etcd::KeyRange& range) { return etcd.list(range); },
      .commit = [&etcd](const etcd::Transaction& transaction) { return etcd.commit(transaction); },
      .wait = wait,
      .progress = progress,
      .clock = &clock,
      .unix_ms = unix_time_ms()};
  return ask(calls, values);
}

/// Adds the commands below `cell`.
class CellCommands {
 public:
  CellCommands(Commands& commands, CLI::App& cell) : commands_(commands), cell_(cell) {
    cell.add_option("--config", values_->config,
                    "File that names etcd and the cell, with the keys of leasehold-cell")
        ->capture_default_str();
  }

  CellValues& values() { return *values_; }
  CLI::App& cell() { return cell_; }

  CLI::App& add(CLI::App& parent, const CommandText& text, Ask ask) {
    return add_question(parent, text, std::move(ask), false);
  }
  /// A list whose first column is a name.
  CLI::App& add_list(CLI::App& parent, const CommandText& text, Ask ask) {
    return add_question(parent, text, std::move(ask), true);
  }

  void add_tenant(CLI::App& verb) {
    add_name(verb, "tenant", values_->tenant, "Name of the tenant")->required();
  }
  void add_host(CLI::App& verb) {
    add_name(verb, "host", values_->host, "Name of the host")->required();
  }
  void add_wait(CLI::App& verb) {
    auto* wait =
        verb.add_flag("--wait", values_->wait,
                      "Wait until every host has applied it or has stopped, and say which");
    add_number_option(verb, "--timeout-ms", values_->timeout_ms,
                      "With --wait: longest time to wait", 1, 86'400'000)
        ->needs(wait);
  }

 private:
  CLI::App& add_question(CLI::App& parent, const CommandText& text, Ask ask, bool lists_names) {
    return *commands_.add_verb(
        parent, text, [values = values_, ask = std::move(ask), lists_names]() -> Result<Verb> {
          return AskCell{.ask =
                             [values, ask](const auto& wait, const auto& progress) {
                               return ask_etcd(*values, ask, wait, progress);
                             },
                         .config = values->config,
                         .lists_names = lists_names};
        });
  }

  Commands& commands_;
  CLI::App& cell_;
  std::shared_ptr<CellValues> values_ = std::make_shared<CellValues>();
};

void add_limit(CLI::App& verb, const char* option, std::optional<std::uint32_t>& value,
               const char* help, Between<std::uint32_t> range) {
  verb.add_option(option, value, help)->check(CLI::Range(range.low, range.high));
}

Result<cell::Answer> list_tenants(const cell::Calls& calls, const CellValues&) {
  return cell::show_tenants(calls);
}

void add_tenants(CellCommands& all) {
  CLI::App& noun =
      all.add_list(all.cell(), {"tenants", "Tenants of the cell, with their limits over all hosts"},
                   list_tenants);
  noun.require_subcommand(0, 1);
  all.add_list(noun, {"list", "Tenants of the cell, with their limits over all hosts"},
               list_tenants);
  CLI::App& admit =
      all.add(noun,
              {"admit", "Create a tenant of the cell, or change its limits",
               "brokerctl cell tenants admit alice --max-concurrent 8 --max-blocks 4096"},
              [](const auto& calls, const CellValues& values) -> Result<cell::Answer> {
                cell::Limits limits = values.limits;
                if (!values.max_adapter_bytes.empty())
                  limits.adapter_bytes = TRY(parse_size(values.max_adapter_bytes));
                return cell::admit_tenant(calls, {values.tenant}, limits, values.waits());
              });
  all.add_tenant(admit);
  cell::Limits& limits = all.values().limits;
  // More than one host may run: the bounds of one broker hold for each host.
  constexpr Between<std::uint32_t> kMany{1, 1u << 30};
  add_limit(admit, "--max-concurrent", limits.concurrent,
            "Requests that run at once on all hosts together; new tenant: 1", kMany);
  add_limit(admit, "--max-blocks", limits.blocks,
            "KV blocks on all hosts together; new tenant: 1024", kMany);
  add_limit(admit, "--reserved-blocks", limits.reserved,
            "KV blocks kept for the tenant on all hosts together; new tenant: 0", {0, 1u << 30});
  add_limit(admit, "--tokens-per-minute", limits.tokens_per_minute,
            "Computed prompt tokens and emitted tokens per minute; new tenant: the most",
            wire::kPerMinute);
  add_limit(admit, "--max-adapters", limits.adapters,
            "Adapters of its own that each host may load at once; new tenant: 0", wire::kAdapters);
  admit
      .add_option("--max-adapter-bytes", all.values().max_adapter_bytes,
                  "Memory of its adapters on each host, for example 1GiB; new tenant: 0")
      ->check(checked(parse_size));
  all.add_wait(admit);
  CLI::App& remove =
      all.add(noun,
              {"remove",
               "Set the limits of a tenant to zero; its requests end on every host. The same "
               "command again has the same result",
               "brokerctl cell tenants remove alice --wait"},
              [](const auto& calls, const CellValues& values) {
                return cell::remove_tenant(calls, {values.tenant}, values.waits());
              });
  all.add_tenant(remove);
  all.add_wait(remove);
}

cell::KeyChange change_of(const KeyValues& given, std::int64_t unix_ms) {
  cell::KeyChange change{.name = given.name,
                         .expires_unix_ms = given.expires_unix_ms,
                         .never_expires = given.never_expires,
                         .limits = given.limits,
                         .removes = given.removes};
  if (given.expires_in_ms) change.expires_unix_ms = unix_ms + *given.expires_in_ms;
  return change;
}

Result<cell::Answer> list_keys(const cell::Calls& calls, const CellValues& values) {
  return cell::show_keys(calls, TRY(parse_optional<TenantId>(values.tenant)));
}

Result<cell::Answer> create_key(const cell::Calls& calls, const CellValues& values) {
  const KeyValues given = TRY(parse_key_options(values.key_options));
  return cell::create_key(calls, {values.tenant}, change_of(given, calls.unix_ms), mint_api_key());
}

Result<cell::Answer> update_key(const cell::Calls& calls, const CellValues& values) {
  const KeyValues given = TRY(parse_key_changes(values.key_options));
  return cell::update_key(calls, {values.key}, change_of(given, calls.unix_ms), values.waits());
}

void add_keys(CellCommands& all) {
  CLI::App& noun =
      all.add_list(all.cell(),
                   {"keys", "API keys of the cell's tenants",
                    "brokerctl cell keys\nbrokerctl cell keys list --tenant alice -o wide"},
                   list_keys);
  noun.require_subcommand(0, 1);
  CLI::App& list = all.add_list(noun, {"list", "API keys of the cell's tenants"}, list_keys);
  for (CLI::App* command : {&noun, &list})
    add_name(*command, "--tenant", all.values().tenant, "List the keys of this tenant only");
  KeyOptions& options = all.values().key_options;
  CLI::App& create =
      all.add(noun,
              {"create",
               "Create an API key that every host of the cell accepts; it is shown once. The "
               "limits of the tenant hold as well",
               "brokerctl cell keys create --tenant alice --name ci --expires-in 30d\nbrokerctl "
               "cell keys create --tenant alice --max-concurrent 2"},
              create_key);
  add_name(create, "--tenant", all.values().tenant, "Tenant for which the key acts")->required();
  add_key_options(create, options, KeyKeeper::Cell);
  CLI::App& update =
      all.add(noun,
              {"update",
               "Change name, expiry or limits of a key on every host. An expired key is valid "
               "again with a later expiry",
               "brokerctl cell keys update 0011223344556677 --expires-in 30d --wait"},
              update_key);
  add_key_options(update, options, KeyKeeper::Cell);
  add_no_expiry(update, options);
  CLI::App& revoke = all.add(noun,
                             {"revoke",
                              "Revoke a key on every host; its requests end. The same command "
                              "again has the same result",
                              "brokerctl cell keys revoke 0011223344556677 --wait"},
                             [](const auto& calls, const CellValues& values) {
                               return cell::revoke_key(calls, {values.key}, values.waits());
                             });
  for (CLI::App* verb : {&update, &revoke}) {
    add_name(*verb, "key", all.values().key, "Id of the key, from `brokerctl cell keys`")
        ->required();
    all.add_wait(*verb);
  }
}

void add_hosts(CellCommands& all) {
  all.add_list(all.cell(), {"hosts", "Hosts that are members of the cell"},
               [](const auto& calls, const CellValues&) { return cell::show_hosts(calls); });
  all.add_host(all.add(all.cell(),
                       {"drain",
                        "Empty a host: from its next beat on its workers take no new requests, "
                        "and gateways move its texts; what runs has 30 s",
                        "brokerctl cell drain gpu1"},
                       [](const auto& calls, const CellValues& values) {
                         return cell::drain_host(calls, {values.host}, true);
                       }));
  all.add_host(all.add(all.cell(), {"undrain", "Let a host that drains take requests again"},
                       [](const auto& calls, const CellValues& values) {
                         return cell::drain_host(calls, {values.host}, false);
                       }));
  CLI::App& expire = all.add(all.cell(),
                             {"expire",
                              "End the membership of a host that is stopped, so that its parts are "
                              "free at once",
                              "brokerctl cell expire gpu1 --confirm-stopped"},
                             [](const auto& calls, const CellValues& values) {
                               return cell::expire_host(calls, {values.host});
                             });
  all.add_host(expire);
  expire
      .add_flag("--confirm-stopped", all.values().is_stopped,
                "No process of Leasehold runs on the host: the limits hold only if this is true")
      ->required();
}

PrintText printed_roles(const CellValues& values) {
  const CellName name{values.cell};
  std::vector<cell::EtcdRole> roles;
  for (const std::string& host : values.hosts) roles.push_back(cell::host_role(name, {host}));
  if (roles.empty())
    roles = {cell::operator_role(name), cell::gateway_role(name), cell::monitor_role(name)};
  return {.text = cell::etcdctl_script(roles),
          .json = cli::json_text(cell::json_of(roles), 2) + '\n'};
}

void add_roles(Commands& commands, CLI::App& cell) {
  const auto values = std::make_shared<CellValues>();
  CLI::App* roles = commands.add_verb(
      cell,
      {"roles",
       "Print the commands of etcdctl that give users of etcd what they need and no more: of the "
       "agents of these hosts; without a host, of operators and of gateways. Needs no etcd",
       "brokerctl cell roles --cell c gpu1 gpu2\nbrokerctl cell roles --cell c"},
      [values]() -> Result<Verb> { return printed_roles(*values); });
  add_name(*roles, "--cell", values->cell, "Name of the cell")->required();
  roles->add_option("host", values->hosts, "Names of hosts")->check(check_name);
}

}  // namespace

void add_cell_commands(Commands& commands) {
  CLI::App* cell = commands.add_group(
      {"cell", "Query and change a cell of hosts on etcd; needs etcd, but no broker",
       "brokerctl cell hosts\nbrokerctl cell tenants admit alice --max-concurrent 8\nbrokerctl "
       "cell "
       "keys revoke 0011223344556677 --wait"});
  CellCommands all(commands, *cell);
  all.add(*cell, {"status", "Terms of the cell, and how many hosts, tenants and keys it has"},
          [](const auto& calls, const CellValues&) { return cell::show_status(calls); });
  add_roles(commands, *cell);
  add_hosts(all);
  add_tenants(all);
  add_keys(all);
  all.add_tenant(all.add(
      *cell,
      {"ledger", "Which host has which part of a tenant's limits", "brokerctl cell ledger alice"},
      [](const auto& calls, const CellValues& values) {
        return cell::show_ledger(calls, {values.tenant});
      }));
  all.add(*cell, {"doctor", "Check every record of the cell; exit code 1 if one is wrong"},
          [](const auto& calls, const CellValues&) { return cell::examine(calls); });
}

}  // namespace leasehold::brokerctl
