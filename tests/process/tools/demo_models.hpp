/// Runs the demo on one model.
#pragma once

#include <string>

namespace leasehold::testing {

/// Fails the test unless the demo kept every promise.
void check_demo(const std::string& model_path);

}  // namespace leasehold::testing
