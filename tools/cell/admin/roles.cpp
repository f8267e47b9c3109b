#include "tools/cell/admin/roles.hpp"

#include <fmt/format.h>

namespace leasehold::cell {
namespace {

Grant reads(etcd::KeyRange range) {
  return {.may_write = false, .range = std::move(range)};
}

Grant writes(etcd::KeyRange range) {
  return {.may_write = true, .range = std::move(range)};
}

std::string role_name(const CellName& cell, const std::string& of) {
  return fmt::format("leasehold-{}-{}", cell.value, of);
}

std::string command(const EtcdRole& role, const Grant& grant) {
  return fmt::format("etcdctl role grant-permission {} {} {}{}{}\n", role.name,
                     grant.may_write ? "readwrite" : "read", grant.range.first,
                     grant.range.end.empty() ? "" : " ", grant.range.end);
}

}  // namespace

EtcdRole host_role(const CellName& cell, const HostName& host) {
  const CellKeys keys(cell);
  using etcd::KeyRange;
  return {.name = role_name(cell, "host-" + host.value),
          .grants = {reads(KeyRange::one(keys.config())), reads(keys.hosts()),
                     writes(KeyRange::one(keys.host(host))),
                     reads(KeyRange::one(keys.wanted(host))), reads(keys.tenants()),
                     reads(keys.keys()), writes(keys.ledgers()), writes(keys.mails())}};
}

EtcdRole gateway_role(const CellName& cell) {
  const CellKeys keys(cell);
  return {.name = role_name(cell, "gateway"),
          .grants = {reads(etcd::KeyRange::one(keys.config())), writes(keys.hosts())}};
}

EtcdRole monitor_role(const CellName& cell) {
  const CellKeys keys(cell);
  return {.name = role_name(cell, "monitor"),
          .grants = {reads(etcd::KeyRange::one(keys.config())), reads(keys.hosts()),
                     reads(keys.ledgers())}};
}

EtcdRole operator_role(const CellName& cell) {
  return {.name = role_name(cell, "operator"), .grants = {writes(CellKeys(cell).all())}};
}

std::string etcdctl_script(const std::vector<EtcdRole>& roles) {
  std::string script =
      "# Roles and users of etcd for a cell of Leasehold. Before it, write a password for each "
      "user\n"
      "# into a file of mode 0600, here called NAME.password. After it, enable authentication "
      "once:\n"
      "#   etcdctl user add root --interactive=false <root.password\n"
      "#   etcdctl user grant-role root root\n"
      "#   etcdctl auth enable\n";
  for (const EtcdRole& role : roles) {
    script += fmt::format("etcdctl role add {}\n", role.name);
    for (const Grant& grant : role.grants) script += command(role, grant);
    script += fmt::format("etcdctl user add {0} --interactive=false <{0}.password\n", role.name);
    script += fmt::format("etcdctl user grant-role {0} {0}\n", role.name);
  }
  return script;
}

nlohmann::json json_of(const std::vector<EtcdRole>& roles) {
  nlohmann::json items = nlohmann::json::array();
  for (const EtcdRole& role : roles) {
    nlohmann::json grants = nlohmann::json::array();
    for (const Grant& grant : role.grants) {
      grants.push_back({{"permission", grant.may_write ? "readwrite" : "read"},
                        {"key", grant.range.first},
                        {"range_end", grant.range.end}});
    }
    items.push_back({{"role", role.name}, {"grants", std::move(grants)}});
  }
  return {{"items", std::move(items)}};
}

}  // namespace leasehold::cell
