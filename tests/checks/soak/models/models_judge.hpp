/// Checks the history of a soak with two models. Pure.
///
/// A check without samples fails, because it proves nothing.
#pragma once

#include <vector>

#include "tests/checks/demo/checks.hpp"
#include "tests/checks/soak/models/models_history.hpp"

namespace leasehold::soak {

std::vector<demo::Check> judge_models(const ModelsHistory& history);

/// The actions, the texts by how they ended, and a line per check.
std::string models_text(const ModelsHistory& history, const std::vector<demo::Check>& checks);

}  // namespace leasehold::soak
