/// Fails the running test with one message for each finding.
#pragma once

#include <catch2/catch.hpp>

#include "tests/tidy/rules.hpp"

namespace leasehold::tidy {

inline void check_none(const Findings& findings) {
  for (const Finding& finding : findings)
    FAIL_CHECK(finding.path << ":" << finding.line << ": " << finding.what);
  CHECK(findings.empty());
}

}  // namespace leasehold::tidy
