#include "tools/gateway/decide/host_identity.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/utf8.hpp"

namespace leasehold::gateway {
namespace {

std::string limits_text(std::string_view limits) {
  return limits.empty() ? "not named" : printable_excerpt(limits.substr(1));
}

std::string difference_of(std::string_view first, std::string_view other) {
  const auto [wanted, wanted_limits] = parts_of(first);
  const auto [found, found_limits] = parts_of(other);
  if (!wanted || !found) {
    return fmt::format("its identity is {} and not {}", printable_excerpt(other),
                       printable_excerpt(first));
  }
  const std::string parts = difference(*wanted, *found);
  if (wanted_limits == found_limits) return parts;
  return fmt::format("{}{}the limit is {} and not {}", parts, parts.empty() ? "" : ", ",
                     limits_text(found_limits), limits_text(wanted_limits));
}

void add(std::vector<ServedIdentity>& known, const std::string& identity, HostId host) {
  const bool is_known =
      std::ranges::find(known, identity, &ServedIdentity::identity) != known.end();
  if (!is_known && !identity.empty()) known.push_back({identity, host});
}

}  // namespace

IdentityParts parts_of(std::string_view identity) {
  const std::size_t end = std::min(identity.find(';'), identity.size());
  return {TextIdentity::parse(identity.substr(0, end)), identity.substr(end)};
}

ServedIdentities served_identities(const HostTable& hosts, TimePoint now) {
  ServedIdentities models;
  for (const HostId host : hosts.ids()) {
    if (!hosts.is_listed(host) || hosts.state(host, now) == HostState::Silent) continue;
    for (const ServedModel& model : hosts.report(host)->models)
      add(models[model.id], model.identity, host);
  }
  return models;
}

std::size_t count_ambiguous(const ServedIdentities& models) {
  return static_cast<std::size_t>(
      std::ranges::count_if(models, [](const auto& model) { return model.second.size() > 1; }));
}

std::vector<std::string> identity_differences(const HostTable& hosts,
                                              const ServedIdentities& models) {
  std::vector<std::string> differences;
  for (const auto& [model, identities] : models) {
    for (std::size_t i = 1; i < identities.size(); ++i) {
      const ServedIdentity& first = identities.front();
      const ServedIdentity& other = identities[i];
      differences.push_back(fmt::format(
          "host {} computes the model '{}' otherwise than host {}: {}; no text moves between them, "
          "so start both with the same model file and options",
          hosts.address(other.host), printable_excerpt(model), hosts.address(first.host),
          difference_of(first.identity, other.identity)));
    }
  }
  return differences;
}

}  // namespace leasehold::gateway
