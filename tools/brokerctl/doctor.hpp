/// `brokerctl doctor`: finds what prevents Leasehold from running on this machine. Pure.
#pragma once

#include <string>
#include <vector>

#include "tools/brokerctl/arguments/arguments.hpp"
#include "tools/brokerctl/machine_facts.hpp"

namespace leasehold::brokerctl {

/// Wrong: something does not work, or is not safe. Note: something works, but not as well as it
/// could.
enum class Grade { Ok, Note, Wrong };

struct Finding {
  std::string check;  ///< "kernel"
  Grade grade = Grade::Ok;
  std::string found;
  std::string next = {};  ///< A command that fixes the problem or shows more; empty for Ok.
};

/// One finding for each check, in a fixed order.
std::vector<Finding> examine(const MachineFacts& facts);

/// Returns the findings as a table and as a JSON document. The exit code is 1 if anything is wrong.
PrintText report(const std::vector<Finding>& findings);

}  // namespace leasehold::brokerctl
