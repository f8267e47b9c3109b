/// The commands that need no broker: explain, completion, man.
#pragma once

#include <optional>
#include <string>

#include "tools/brokerctl/arguments.hpp"

namespace leasehold::brokerctl {

class LocalCommands {
 public:
  /// Adds them to `app`. This object outlives the parse.
  void add(CLI::App& app);

  /// What `command` prints; nothing for a command of the broker. Errors: BadRequest for a word that
  /// is not an error code.
  Result<std::optional<PrintText>> text(const CLI::App& app, const std::string& command) const;

 private:
  std::string code_;
  std::string shell_;
};

}  // namespace leasehold::brokerctl
