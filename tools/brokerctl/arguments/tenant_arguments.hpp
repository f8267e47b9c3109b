/// The options of `tenants admit` and `tenants remove`.
#pragma once

#include <array>
#include <string>

#include "tools/brokerctl/arguments/arguments.hpp"

namespace CLI {
class App;
}

namespace leasehold::brokerctl {

/// Lifetime: must outlive the parse, which stores the values in this object.
class TenantArguments {
 public:
  /// Returns the subcommands, so that the caller can add options shared with other verbs.
  std::array<CLI::App*, 2> add_verbs(CLI::App& noun);

  /// Returns the verb after the parse. Errors: BadRequest for a malformed name.
  Result<Verb> verb(const std::string& verb, RequestId request_id) const;

 private:
  std::string tenant_, tier_;
  wire::TenantAdmit admit_;
  bool revokes_ = false;
};

}  // namespace leasehold::brokerctl
