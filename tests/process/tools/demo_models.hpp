/// The demo, run to its end on one model.
#pragma once

#include <string>

namespace leasehold::testing {

/// Fails the test unless every promise was kept.
void check_demo(const std::string& model_path);

}  // namespace leasehold::testing
