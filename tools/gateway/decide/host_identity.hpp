/// Finds models that hosts serve under one name and compute differently, so that an operator learns
/// of it before a text has to move. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/control/tokens/text_identity.hpp"
#include "tools/gateway/decide/host_table.hpp"

namespace leasehold::gateway {

/// What a host names as its identity: "sha256:…/int8/f16/5;context=4096".
struct IdentityParts {
  Result<TextIdentity> computation;
  std::string_view limits;  ///< What follows the semicolon; it decides where a text ends.
};

IdentityParts parts_of(std::string_view identity);

/// An identity of a model, and the first host that serves the model with it.
struct ServedIdentity {
  std::string identity;
  HostId host;
};

/// The identities of each model, by its name: those of the hosts in the list that are not Silent,
/// in the order of the hosts. Identities that are not known are left out.
using ServedIdentities = std::map<std::string, std::vector<ServedIdentity>>;
ServedIdentities served_identities(const HostTable& hosts, TimePoint now);

/// How many models have more than one identity.
std::size_t count_ambiguous(const ServedIdentities& models);

/// One sentence for each identity beyond the first one of a model: which hosts differ, and in what.
std::vector<std::string> identity_differences(const HostTable& hosts,
                                              const ServedIdentities& models);

}  // namespace leasehold::gateway
