#include "tests/checks/soak/hostile/honest_tenants.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace leasehold::soak {
namespace {

/// A lease is revoked only when its text has this many tokens and lacks this many, so that a
/// request is running.
constexpr std::size_t kTokensAround = 20;

}  // namespace

HonestTenants::HonestTenants(const HostileSettings& settings, const ProgramStarter& programs,
                             const Users& users)
    : settings_(&settings), programs_(&programs), users_(&users) {
  for (std::uint32_t i = 0; i < settings.honest; ++i) {
    tenants_.push_back({.name = fmt::format("honest-{}", i),
                        .prompt = fmt::format("Once upon a time there were {} friends", i + 2)});
  }
}

std::vector<std::string> HonestTenants::names() const {
  std::vector<std::string> names;
  for (const Tenant& tenant : tenants_) names.push_back(tenant.name);
  return names;
}

Result<void> HonestTenants::start_missing() {
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    if (!tenants_[i].process) TRY(start(i));
  }
  return {};
}

Result<void> HonestTenants::start(std::size_t index) {
  Tenant& tenant = tenants_[index];
  tenant.lines = {};
  tenant.record = {.name = tenant.name};
  Child process = TRY(programs_->start_tenant(
      tenant.name, tenant.prompt,
      {.arguments = {"--temperature", "0.8", "--seed", std::to_string(settings_->seed + index),
                     "--max-tokens", std::to_string(settings_->max_tokens), "--ignore-eos",
                     "--rebind"},
       .uid = user(index)}));
  tenant.process.emplace(std::move(process));
  return {};
}

std::vector<int> HonestTenants::outputs() const {
  std::vector<int> outputs;
  for (const Tenant& tenant : tenants_) {
    if (tenant.process) outputs.push_back(tenant.process->output().get());
  }
  return outputs;
}

Result<void> HonestTenants::read(std::vector<TenantInstance>& texts) {
  for (Tenant& tenant : tenants_) {
    if (!tenant.process) continue;
    tenant.record.gone =
        TRY(demo::read_available(tenant.process->output(), tenant.lines, tenant.record));
    if (!tenant.record.gone) continue;
    tenant.process.reset();
    const bool has_end = tenant.record.completed || tenant.record.failed;
    if (!has_end) tenant.record.failed = "no typed end";
    texts.push_back({.tenant = tenant.name,
                     .record = std::move(tenant.record),
                     .undisturbed = tenant.undisturbed});
  }
  return {};
}

bool HonestTenants::any_running() const {
  return std::ranges::any_of(tenants_, [](const auto& tenant) { return bool(tenant.process); });
}

void HonestTenants::keep_undisturbed(const std::vector<TenantInstance>& texts) {
  for (Tenant& tenant : tenants_) {
    const auto found = std::ranges::find(texts, tenant.name, &TenantInstance::tenant);
    if (found != texts.end()) tenant.undisturbed = found->record.tokens;
  }
}

std::vector<LeaseId> HonestTenants::leases_mid_text() const {
  std::vector<LeaseId> leases;
  for (const Tenant& tenant : tenants_) {
    const auto& record = tenant.record;
    const bool is_mid_text =
        tenant.process && !record.leases.empty() && record.tokens.size() >= kTokensAround &&
        record.tokens.size() + kTokensAround <= settings_->max_tokens &&
        record.leases.size() == record.revocations.size() + 1 && !record.reported.empty() &&
        record.reported.back().event == "submitted";
    if (is_mid_text) leases.push_back(record.leases.back());
  }
  return leases;
}

}  // namespace leasehold::soak
