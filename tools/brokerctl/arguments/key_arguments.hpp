/// The verbs of `keys`.
#pragma once

#include <string>

#include "tools/brokerctl/arguments/arguments.hpp"

namespace CLI {
class App;
}

namespace leasehold::brokerctl {

/// Lifetime: must outlive the parse, which stores the values in this object.
class KeyArguments {
 public:
  void add_verbs(CLI::App& noun);

  /// Returns the verb after the parse of `keys VERB`. Errors: BadRequest for a malformed name.
  Result<Verb> verb(const std::string& verb) const;

 private:
  std::string tenant_, key_;
};

}  // namespace leasehold::brokerctl
