/// The options of `prefix publish`, and the text that it names.
#pragma once

#include <string>

#include "tools/brokerctl/arguments.hpp"

namespace CLI {
class App;
}

namespace leasehold::brokerctl {

/// Lifetime: outlives the parse, which stores the values here.
class PrefixArguments {
 public:
  /// Returns the verb, for options that it shares with others.
  CLI::App* add_publish(CLI::App& noun);

  /// After the parse.
  PublishPrefix publish(RequestId request_id) const;

 private:
  std::string file_, worker_, name_;
};

/// Reads a whole file, or standard input for "-". Errors: those of common/text_file.hpp; BadRequest
/// for a text that is empty or not UTF-8.
Result<std::string> read_prefix_text(const std::string& file);

}  // namespace leasehold::brokerctl
