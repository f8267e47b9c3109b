/// The options of `events` and `watch`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/brokerctl/arguments/arguments.hpp"

namespace CLI {
class App;
}

namespace leasehold::brokerctl {

/// Lifetime: must outlive the parse, which stores the values in this object.
class EventArguments {
 public:
  void add_events(CLI::App& verb);
  void add_watch(CLI::App& verb);

  /// Return the verb after the parse. Errors: BadRequest for a malformed lease or tenant.
  Result<Verb> events() const;
  Result<Verb> watch() const;

 private:
  void add_filters(CLI::App& verb, const std::string& limit_help);
  Result<ListEvents> filtered() const;

  std::string lease_, tenant_;
  std::optional<std::uint64_t> after_;
  ListEvents list_;
  wire::StepWatch step_watch_;
  bool steps_ = false;
};

}  // namespace leasehold::brokerctl
