#include "tools/brokerctl/arguments/key_arguments.hpp"

#include <CLI/CLI.hpp>

#include "common/cli/command_line.hpp"
#include "common/random.hpp"

namespace leasehold::brokerctl {

void KeyArguments::add_verbs(CLI::App& noun) {
  CLI::App* create = noun.add_subcommand(
      "create", "Create an API key for HTTP clients of a tenant; it is shown once");
  create->group("Verbs");
  create->add_option("--tenant", tenant_, "Tenant for which the key acts")
      ->required()
      ->check(check_name);
  CLI::App* revoke = noun.add_subcommand("revoke", "Revoke a key; its requests end at once");
  revoke->group("Verbs");
  revoke->add_option("key", key_, "Id of the key, from `brokerctl keys`")
      ->required()
      ->check(check_name);
}

Result<Verb> KeyArguments::verb(const std::string& verb) const {
  if (verb == "create") return CreateKey{.tenant = TRY(TenantId::parse(tenant_))};
  if (verb == "revoke") {
    return wire::KeyRevoke{.key = TRY(ApiKeyId::parse(key_)), .request_id = {mint_request_id()}};
  }
  return Show::Keys;
}

}  // namespace leasehold::brokerctl
