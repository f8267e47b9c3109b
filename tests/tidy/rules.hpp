/// Rules of the source tree. Each rule returns its violations; rules_test.cpp plants violations
/// that each rule must find.
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

/// Only kernels/cuda/launcher* launches kernels, and copies or clears device memory.
Findings device_calls_outside_launcher(const Sources& sources);

/// Only `Leased` itself, the permit and the mapping read the address inside a `Leased`.
Findings handles_opened_outside_gate(const Sources& sources);

/// Only code that runs units uses permits: kernels/, ipc/, the parts of Engine and tests.
Findings permits_outside_units(const Sources& sources);

/// A plain mapping gives access to its bytes without a permit, so broker/, kernels/model/ and
/// worker/ make none. kernels/model/gguf/ may map model files.
Findings plain_mappings_outside_ipc(const Sources& sources);

/// Includes follow the layers common <- ipc <- kernels <- model <- worker, and ipc <- broker. Tools
/// include no room of worker or broker, except `tokenize`, which runs the worker's tokenizer. Tests
/// may include every room; no room includes tests.
Findings layering_violations(const Sources& sources);

/// Tools link no library of worker or broker, with the same exception. `cmake_lists` are the
/// CMakeLists.txt of the tree.
Findings tools_linking_rooms(const Sources& cmake_lists);

/// A file has at most 400 lines.
Findings files_too_long(const Sources& sources);

/// A folder of the product, without those below it, has at most 40 sources: more are several rooms.
Findings rooms_too_full(const Sources& sources);

/// The tree has no TODO markers: work is finished or dropped.
Findings todo_markers(const Sources& sources);

/// Every fault site occurs in the code. A test of a missing one could not fail.
Findings unreached_fault_sites(const Sources& sources);

/// Every launch site occurs in kernels/ or worker/. Others would never appear in an error or event.
Findings unused_launch_sites(const Sources& sources);

/// TRY is the only macro.
Findings macros_other_than_try(const Sources& sources);

/// A TRY that leaves an expression leaks what was made before it: with gcc 12 the earlier members
/// of a braced initialiser, with any compiler the memory of a `new`.
Findings leaking_tries(const Sources& sources);

/// Programs do not use fmt::print: it throws when a write fails, and the program aborts
/// (common/cli/print_error.hpp).
Findings throwing_prints(const Sources& sources);

/// A test that sleeps is slow on a fast machine and wrong on a slow one.
Findings sleeps_in_tests(const Sources& sources);

}  // namespace leasehold::tidy
