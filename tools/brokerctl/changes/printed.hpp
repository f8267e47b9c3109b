/// The result of a verb that changes state.
#pragma once

#include <nlohmann/json.hpp>

#include "ipc/control/messages/common.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::brokerctl {

/// The result of a verb, for programs and for people.
struct Printed {
  wire::Json document;
  cli::Table table;
};

}  // namespace leasehold::brokerctl
