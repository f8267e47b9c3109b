// `brokerctl cell`: asks etcd about a cell of hosts, and changes it.
#include "common/random.hpp"
#include "ipc/control/messages/limits.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "tools/brokerctl/arguments/commands.hpp"
#include "tools/cell/admin/blocking_etcd.hpp"
#include "tools/cell/admin/change.hpp"
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
  std::string tenant, host, key, name;
  std::int64_t timeout_ms = 120'000;
  bool wait = false;
  bool is_stopped = false;
  cell::Limits limits;

  cell::Wait waits() const {
    return wait ? cell::Wait(std::chrono::milliseconds(timeout_ms)) : std::nullopt;
  }
};
using Ask = std::function<Result<cell::Answer>(const cell::Calls& calls, const CellValues& values)>;

PrintText printed(const cell::Answer& answer) {
  std::string text = cli::render(answer.table);
  for (const std::string& note : answer.notes) text += note + '\n';
  return {.text = std::move(text),
          .json = cli::json_text(answer.document, 2) + '\n',
          .exit_code = answer.exit_code};
}

Result<PrintText> ask_etcd(const CellValues& values, const Ask& ask,
                           const std::function<bool(Duration)>& wait) {
  cell::CellAddress address = TRY(cell::read_cell_file(values.config));
  address.etcd.call_timeout = kCallTimeout;
  cell::BlockingEtcd etcd(address.etcd);
  const SystemClock clock;
  const cell::Calls calls{
      .keys = cell::CellKeys(address.cell),
      .list = [&etcd](const etcd::KeyRange& range) { return etcd.list(range); },
      .commit = [&etcd](const etcd::Transaction& transaction) { return etcd.commit(transaction); },
      .wait = wait,
      .clock = &clock};
  return printed(TRY(ask(calls, values)));
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
    return *commands_.add_verb(
        parent, text, [values = values_, ask = std::move(ask)]() -> Result<Verb> {
          return AskCell{.ask = [values, ask](const std::function<bool(Duration)>& wait) {
            return ask_etcd(*values, ask, wait);
          }};
        });
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
  Commands& commands_;
  CLI::App& cell_;
  std::shared_ptr<CellValues> values_ = std::make_shared<CellValues>();
};

void add_limit(CLI::App& verb, const char* option, std::optional<std::uint32_t>& value,
               const char* help, Between<std::uint32_t> range) {
  verb.add_option(option, value, help)->check(CLI::Range(range.low, range.high));
}

void add_tenants(CellCommands& all) {
  CLI::App& noun =
      all.add(all.cell(),
              {"tenants",
               "Tenants of the cell, with their limits over all "
               "hosts"},
              [](const auto& calls, const CellValues&) { return cell::show_tenants(calls); });
  noun.require_subcommand(0, 1);
  CLI::App& admit =
      all.add(noun,
              {"admit", "Create a tenant of the cell, or change its limits",
               "brokerctl cell tenants admit alice --max-concurrent 8 --max-blocks 4096"},
              [](const auto& calls, const CellValues& values) {
                return cell::admit_tenant(calls, {values.tenant}, values.limits, values.waits());
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
  all.add_wait(admit);
  CLI::App& remove =
      all.add(noun,
              {"remove", "Set the limits of a tenant to zero; its requests end on every host",
               "brokerctl cell tenants remove alice --wait"},
              [](const auto& calls, const CellValues& values) {
                return cell::remove_tenant(calls, {values.tenant}, values.waits());
              });
  all.add_tenant(remove);
  all.add_wait(remove);
}

void add_keys(CellCommands& all) {
  CLI::App& noun =
      all.add(all.cell(), {"keys", "API keys of the cell's tenants"},
              [](const auto& calls, const CellValues&) { return cell::show_keys(calls); });
  noun.require_subcommand(0, 1);
  CLI::App& create =
      all.add(noun,
              {"create", "Create an API key that every host of the cell accepts; it is shown once",
               "brokerctl cell keys create --tenant alice --name ci"},
              [](const auto& calls, const CellValues& values) {
                return cell::create_key(calls, {values.tenant}, values.name, mint_api_key());
              });
  add_name(create, "--tenant", all.values().tenant, "Tenant for which the key acts")->required();
  add_name(create, "--name", all.values().name, "Name shown in lists, such as ci");
  CLI::App& revoke = all.add(noun,
                             {"revoke", "Revoke a key on every host; its requests end",
                              "brokerctl cell keys revoke 0011223344556677 --wait"},
                             [](const auto& calls, const CellValues& values) {
                               return cell::revoke_key(calls, {values.key}, values.waits());
                             });
  add_name(revoke, "key", all.values().key, "Id of the key, from `brokerctl cell keys`")
      ->required();
  all.add_wait(revoke);
}

void add_hosts(CellCommands& all) {
  all.add(all.cell(), {"hosts", "Hosts that are members of the cell"},
          [](const auto& calls, const CellValues&) { return cell::show_hosts(calls); });
  all.add_host(
      all.add(all.cell(),
              {"drain",
               "Drain every worker of a host at its next beat: no new requests, and 30 s for "
               "those that run",
               "brokerctl cell drain gpu1"},
              [](const auto& calls, const CellValues& values) {
                return cell::drain_host(calls, {values.host}, true);
              }));
  all.add_host(all.add(all.cell(), {"undrain", "Give a host requests again"},
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
