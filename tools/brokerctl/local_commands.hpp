/// The commands that need no broker: explain, completion, man, doctor, plan.
#pragma once

#include <optional>
#include <string>

#include "tools/brokerctl/arguments/arguments.hpp"
#include "tools/brokerctl/plan.hpp"

namespace leasehold::brokerctl {

class LocalCommands {
 public:
  /// Adds the commands to `app`. This object must outlive the parse.
  void add(CLI::App& app);

  /// Returns the verb of `command`; nothing for a command that needs the broker. Errors: BadRequest
  /// for a word that is not an error code.
  Result<std::optional<Verb>> verb(const CLI::App& app, const std::string& command) const;

 private:
  void add_plan(CLI::App& app);

  std::string code_;
  std::string shell_;
  std::string state_dir_ = "/var/lib/leasehold";
  PlanOptions plan_;
};

}  // namespace leasehold::brokerctl
