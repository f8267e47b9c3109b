/// The options of `worker replace`.
#pragma once

#include <string>

#include "tools/brokerctl/arguments/arguments.hpp"

namespace CLI {
class App;
}

namespace leasehold::brokerctl {

/// Lifetime: must outlive the parse, which stores the values in this object.
class WorkerArguments {
 public:
  /// Returns the subcommand, so that the caller can add options shared with other verbs.
  CLI::App* add_replace(CLI::App& noun);

  /// Returns the verb after the parse.
  ReplaceWorker replace(RequestId request_id) const;

 private:
  ReplaceWorker replace_;
};

}  // namespace leasehold::brokerctl
