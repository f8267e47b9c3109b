#include "tools/cell/admin/show.hpp"

#include <fmt/format.h>

#include "common/errc.hpp"
#include "tools/cell/admin/views.hpp"
#include "tools/cell/decide/host_key.hpp"
#include "tools/cell/decide/host_parts.hpp"

namespace leasehold::cell {
namespace {

using nlohmann::json;

constexpr std::string_view kNoConfig = "config is not set, so the default terms apply";

json json_of(const Share& share) {
  return {{"concurrent", share.concurrent},
          {"blocks", share.blocks},
          {"reserved", share.reserved},
          {"tokens_per_minute", share.tokens_per_minute}};
}

json json_of(const PartOwner& owner) {
  return {{"host", owner.host.value}, {"incarnation", owner.incarnation.value}};
}

std::vector<std::string> cells_of(const Share& share) {
  return {std::to_string(share.concurrent), std::to_string(share.blocks),
          std::to_string(share.reserved), std::to_string(share.tokens_per_minute)};
}

const std::vector<cli::Column> kShareColumns{
    {"REQUESTS", true}, {"BLOCKS", true}, {"RESERVED", true}, {"TOKENS/MIN", true}};

cli::Table share_table(std::vector<cli::Column> columns) {
  columns.insert(columns.end(), kShareColumns.begin(), kShareColumns.end());
  return {.columns = std::move(columns), .rows = {}};
}

void add_row(cli::Table& table, std::vector<std::string> cells, const Share& share) {
  for (std::string& cell : cells_of(share)) cells.push_back(std::move(cell));
  table.rows.push_back(std::move(cells));
}

/// The record, or nothing after a note about it.
template <class Record>
std::optional<Record> noted(Result<Record> record, Answer& answer) {
  if (record) return *std::move(record);
  answer.notes.push_back(record.error().detail);
  return std::nullopt;
}

Result<CellConfig> terms_in(const std::optional<etcd::KeyValue>& config) {
  return config ? read_config(config->key, config->value) : CellConfig();
}

std::string state_of(const HostRecord& host) {
  return host.is_draining ? "draining" : "member";
}

std::string utc(std::int64_t unix_ms) {
  return cli::utc_text(unix_ms / 1000);
}

std::string limit_text(const std::optional<std::uint32_t>& limit) {
  return limit ? std::to_string(*limit) : "none";
}

}  // namespace

Result<std::optional<etcd::KeyValue>> read_one(const Calls& calls, const std::string& key) {
  auto found = TRY(calls.list(etcd::KeyRange::one(key)));
  if (found.entries.empty()) return std::nullopt;
  return std::move(found.entries.front());
}

Result<CellConfig> read_terms(const Calls& calls) {
  return terms_in(TRY(read_one(calls, calls.keys.config())));
}

Result<TenantView> read_view(const Calls& calls, const TenantId& tenant) {
  const auto reply = TRY(calls.commit(ledger_read(calls.keys, tenant)));
  TenantView view = TRY(view_of(reply));
  const etcd::Transaction members = members_read(calls.keys, view);
  if (!members.success.empty()) view.members = members_in(calls.keys, TRY(calls.commit(members)));
  return view;
}

std::unexpected<Error> unknown_tenant(const TenantId& tenant) {
  return fail(Errc::UnknownTenant,
              fmt::format("the cell has no tenant {}; see `brokerctl cell tenants`", tenant.value));
}

cli::Table keys_table(const std::vector<std::pair<ApiKeyId, CellKey>>& keys, std::int64_t unix_ms) {
  cli::Table table{.columns = {{"KEY"},
                               {"TENANT"},
                               {"NAME"},
                               {"EXPIRES"},
                               {"CREATED", false, true},
                               {"CONCURRENT", true, true},
                               {"TOKENS/MIN", true, true},
                               {"REQUESTS/MIN", true, true}},
                   .rows = {}};
  for (const auto& [id, key] : keys) {
    table.rows.push_back({id.value, key.tenant.value, cli::or_dash(key.name),
                          key.expires_unix_ms ? utc(*key.expires_unix_ms) : "never",
                          key.created_unix_ms > 0 ? utc(key.created_unix_ms) : "-",
                          limit_text(key.limits.max_concurrent),
                          limit_text(key.limits.rates.tokens_per_minute),
                          limit_text(key.limits.rates.requests_per_minute)});
    if (is_expired(key, unix_ms)) table.rows.back()[3] += ", expired";
  }
  return table;
}

json json_of(const ApiKeyId& id, const CellKey& key) {
  json document{{"key", id.value}, {"tenant", key.tenant.value}, {"name", key.name}};
  const auto add = [&](const char* field, const auto& value) {
    if (value) document[field] = *value;
  };
  if (key.created_unix_ms > 0) document["created_unix_ms"] = key.created_unix_ms;
  add("expires_unix_ms", key.expires_unix_ms);
  add("max_concurrent", key.limits.max_concurrent);
  add("tokens_per_minute", key.limits.rates.tokens_per_minute);
  add("requests_per_minute", key.limits.rates.requests_per_minute);
  return document;
}

Result<Answer> show_status(const Calls& calls) {
  const auto config = TRY(read_one(calls, calls.keys.config()));
  const CellConfig terms = TRY(terms_in(config));
  const std::size_t hosts = TRY(calls.list(calls.keys.hosts())).entries.size();
  const std::size_t tenants = TRY(calls.list(calls.keys.tenants())).entries.size();
  const std::size_t keys = TRY(calls.list(calls.keys.keys())).entries.size();
  Answer answer{
      .table = {.columns = {{"HOSTS", true},
                            {"TENANTS", true},
                            {"KEYS", true},
                            {"TTL MS", true},
                            {"SLACK MS", true}},
                .rows = {{std::to_string(hosts), std::to_string(tenants), std::to_string(keys),
                          std::to_string(terms.ttl_ms), std::to_string(terms.slack_ms)}}},
      .notes = {},
      .document = {{"hosts", hosts},
                   {"tenants", tenants},
                   {"keys", keys},
                   {"ttl_ms", terms.ttl_ms},
                   {"slack_ms", terms.slack_ms}}};
  if (!config) answer.notes.emplace_back(kNoConfig);
  return answer;
}

Result<Answer> show_hosts(const Calls& calls) {
  const auto listed = TRY(calls.list(calls.keys.hosts()));
  const AllParts parts = parts_in(TRY(calls.list(calls.keys.ledgers())).entries);
  Answer answer{.table = {.columns = {{"HOST"},
                                      {"STATE"},
                                      {"INCARNATION", true},
                                      {"TTL MS", true},
                                      {"TENANTS", true},
                                      {"REQUESTS", true},
                                      {"FREE BLOCKS", true},
                                      {"DOORS"}},
                          .rows = {}},
                .notes = {},
                .document = {{"items", json::array()}}};
  for (const Error& problem : parts.problems) answer.notes.push_back(problem.detail);
  for (const etcd::KeyValue& entry : listed.entries) {
    const auto host = calls.keys.host_in(entry.key);
    const auto record = host ? noted(read_host(entry.key, entry.value), answer) : std::nullopt;
    if (!record) continue;
    const HostParts has = parts.of({*host, entry.created});
    answer.table.rows.push_back({host->value, state_of(*record),
                                 std::to_string(entry.created.value),
                                 std::to_string(record->ttl_ms), std::to_string(has.tenants),
                                 std::to_string(has.requests), std::to_string(record->free_blocks),
                                 cli::or_dash(fmt::format("{}", fmt::join(record->doors, " ")))});
    answer.document["items"].push_back({{"host", host->value},
                                        {"state", state_of(*record)},
                                        {"incarnation", entry.created.value},
                                        {"ttl_ms", record->ttl_ms},
                                        {"tenants", has.tenants},
                                        {"requests", has.requests},
                                        {"free_blocks", record->free_blocks},
                                        {"doors", record->doors}});
  }
  return answer;
}

Result<Answer> show_tenants(const Calls& calls) {
  const auto listed = TRY(calls.list(calls.keys.tenants()));
  Answer answer{
      .table = share_table({{"TENANT"}}), .notes = {}, .document = {{"items", json::array()}}};
  for (const etcd::KeyValue& entry : listed.entries) {
    const auto tenant = calls.keys.tenant_in(entry.key);
    const auto policy = tenant ? noted(read_policy(entry.key, entry.value), answer) : std::nullopt;
    if (!policy) continue;
    add_row(answer.table, {tenant->value}, policy->limits);
    answer.document["items"].push_back({{"tenant", tenant->value},
                                        {"limits", json_of(policy->limits)},
                                        {"max_adapters", policy->adapters.count},
                                        {"max_adapter_bytes", policy->adapters.bytes}});
  }
  return answer;
}

Result<Answer> show_keys(const Calls& calls, const std::optional<TenantId>& tenant) {
  if (tenant && !TRY(read_one(calls, calls.keys.tenant(*tenant)))) return unknown_tenant(*tenant);
  const auto listed = TRY(calls.list(calls.keys.keys()));
  Answer answer{.table = {}, .notes = {}, .document = {{"items", json::array()}}};
  std::vector<std::pair<ApiKeyId, CellKey>> keys;
  for (const etcd::KeyValue& entry : listed.entries) {
    const auto id = calls.keys.api_key_in(entry.key);
    const auto key = id ? noted(read_key(entry.key, entry.value), answer) : std::nullopt;
    if (!key || (tenant && key->tenant != *tenant)) continue;
    keys.emplace_back(*id, *key);
    json item = json_of(*id, *key);
    item["expired"] = is_expired(*key, calls.unix_ms);
    answer.document["items"].push_back(std::move(item));
  }
  answer.table = keys_table(keys, calls.unix_ms);
  return answer;
}

Result<Answer> show_ledger(const Calls& calls, const TenantId& tenant) {
  const TenantView view = TRY(read_view(calls, tenant));
  if (view.policy_modified.value == 0) return unknown_tenant(tenant);
  Answer answer{.table = share_table({{"HOST"}, {"STATE"}, {"INCARNATION", true}}),
                .notes = {},
                .document = {{"tenant", tenant.value},
                             {"limits", json_of(view.policy.limits)},
                             {"parts", json::array()}}};
  for (const Part& part : view.ledger.parts) {
    const bool is_counted = counts(part.owner, view.members);
    const bool is_applied = part.as_of >= view.policy_modified;
    const std::string state = !is_counted ? "void" : is_applied ? "applied" : "behind";
    add_row(answer.table,
            {part.owner.host.value, state, std::to_string(part.owner.incarnation.value)},
            part.share);
    json item{{"host", part.owner.host.value},
              {"state", state},
              {"incarnation", part.owner.incarnation.value},
              {"share", json_of(part.share)},
              {"as_of", part.as_of.value}};
    if (part.instead_of) item["instead_of"] = json_of(*part.instead_of);
    answer.document["parts"].push_back(std::move(item));
    if (is_counted && part.instead_of && counts(*part.instead_of, view.members))
      answer.notes.push_back(fmt::format(
          "texts of {} have moved to {}; the parts of both count once, as the larger one",
          name_of(*part.instead_of), name_of(part.owner)));
  }
  add_row(answer.table, {"all", "-", "-"}, counting_sum(view.ledger, view.members));
  add_row(answer.table, {"limits", "-", "-"}, view.policy.limits);
  return answer;
}

Result<Answer> examine(const Calls& calls) {
  Answer found;
  if (const auto terms = read_terms(calls); !terms) {
    if (terms.error().code != Errc::BadRequest) return std::unexpected(terms.error());
    found.notes.push_back(terms.error().detail);
  }
  for (const auto& shown :
       {TRY(show_hosts(calls)), TRY(show_tenants(calls)), TRY(show_keys(calls))})
    found.notes.insert(found.notes.end(), shown.notes.begin(), shown.notes.end());
  const auto tenants = TRY(calls.list(calls.keys.tenants()));
  for (const etcd::KeyValue& entry : tenants.entries) {
    const auto tenant = calls.keys.tenant_in(entry.key);
    if (!tenant) continue;
    const auto view = read_view(calls, *tenant);
    if (!view && view.error().code != Errc::BadRequest) return std::unexpected(view.error());
    if (!view) {
      found.notes.push_back(view.error().detail);
      continue;
    }
    const Share sum = counting_sum(view->ledger, view->members);
    if (!sum.fits(view->policy.limits))
      found.notes.push_back(fmt::format(
          "tenant {}: its parts are {}, above its limits of {}; hosts "
          "lower them, see `brokerctl cell ledger {}`",
          tenant->value, to_string(sum), to_string(view->policy.limits), tenant->value));
  }
  found.exit_code = found.notes.empty() ? 0 : 1;
  found.document = {{"problems", found.notes}};
  found.table = {.columns = {{"PROBLEMS", true}}, .rows = {{std::to_string(found.notes.size())}}};
  return found;
}

}  // namespace leasehold::cell
