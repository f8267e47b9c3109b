/// The options of `worker replace`.
#pragma once

#include <string>

#include "tools/brokerctl/arguments.hpp"

namespace CLI {
class App;
}

namespace leasehold::brokerctl {

/// Lifetime: outlives the parse, which stores the values here.
class WorkerArguments {
 public:
  /// Returns the verb, for options that it shares with others.
  CLI::App* add_replace(CLI::App& noun);

  /// After the parse.
  ReplaceWorker replace(RequestId request_id) const;

 private:
  ReplaceWorker replace_;
};

}  // namespace leasehold::brokerctl
