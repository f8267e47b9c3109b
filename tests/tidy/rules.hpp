/// What the tree promises about itself. Each rule returns where it is broken; rules_test.cpp
/// shows each one a violation it must find.
#pragma once

#include <string>
#include <vector>

#include "tests/tidy/source_tree.hpp"

namespace leasehold::tidy {

struct Finding {
  std::string path;
  std::size_t line = 0;  ///< From 1.
  std::string what;
};

using Findings = std::vector<Finding>;

/// The launch door: no kernel, copy or clear outside kernels/cuda/launcher*.
Findings device_calls_outside_launcher(const Sources& sources);

/// The address inside a `Leased` is taken by the permit and by the class itself, nowhere else.
Findings handles_opened_outside_gate(const Sources& sources);

/// Permits are held where units run: kernels/, the sequence record, the engine, ipc/ and tests.
Findings permits_outside_units(const Sources& sources);

/// Plain mappings show their bytes without a permit, so only ipc/ (tables, lines) makes them.
Findings plain_mappings_outside_ipc(const Sources& sources);

/// common <- ipc <- kernels <- worker, broker; tools use all, tests use all, nobody uses tests.
Findings layering_violations(const Sources& sources);

/// 400 lines is where a file has become two.
Findings files_too_long(const Sources& sources);

/// Work left for later is done or dropped, not marked.
Findings todo_markers(const Sources& sources);

/// A fault point nobody reaches is a test that cannot fail.
Findings unreached_fault_sites(const Sources& sources);

/// A launch site no backend or engine names would never show up in an error or an event.
Findings unused_launch_sites(const Sources& sources);

/// TRY is the one macro.
Findings macros_other_than_try(const Sources& sources);

/// gcc 12 leaks the members before a TRY that leaves a braced initialiser, so only the first may be
/// one.
Findings try_in_braces(const Sources& sources);

/// fmt::print throws when a stream takes nothing, and the program aborts: common/print_error.hpp.
Findings throwing_prints(const Sources& sources);

/// A test that sleeps is slow on a fast machine and wrong on a slow one.
Findings sleeps_in_tests(const Sources& sources);

}  // namespace leasehold::tidy
