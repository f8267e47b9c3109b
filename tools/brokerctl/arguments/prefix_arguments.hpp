/// The options of `prefix publish`, and the text in the file that they name.
#pragma once

#include <string>

#include "tools/brokerctl/arguments/arguments.hpp"

namespace CLI {
class App;
}

namespace leasehold::brokerctl {

/// Lifetime: must outlive the parse, which stores the values in this object.
class PrefixArguments {
 public:
  /// Returns the subcommand, so that the caller can add options shared with other verbs.
  CLI::App* add_publish(CLI::App& noun);

  /// Returns the verb after the parse.
  PublishPrefix publish(RequestId request_id) const;

 private:
  std::string file_, worker_, name_;
};

/// Reads a whole file, or standard input for "-". Errors: those of common/machine/text_file.hpp;
/// BadRequest for a text that is empty or not UTF-8.
Result<std::string> read_prefix_text(const std::string& file);

}  // namespace leasehold::brokerctl
