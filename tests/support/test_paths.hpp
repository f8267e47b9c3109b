/// Where tests find what they need: programs just built, the tree, test data beside it.
///
/// The only place that knows these directories, so no other object depends on where the tree lies.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace leasehold {

/// Root of the tree.
std::string source_dir();

/// Where the programs are.
std::string program_dir();

inline std::string program_path(const std::string& name) {
  return program_dir() + "/" + name;
}

/// The model that is in the tree.
inline std::string bundled_model_path() {
  return source_dir() + "/tools/models/leasehold-stories-q8_0.gguf";
}

/// A path under LEASEHOLD_TEST_DATA (default: `shared` beside the tree), or else under tests/data,
/// which has some of the same files; empty when there is none.
std::string test_data_path(const std::string& relative);

/// True as soon as `holds` is; false when it has not become so in a minute. For what another
/// process does in its own time.
bool eventually(const std::function<bool()>& holds);

/// Every thread of the process stands, stopped by a signal: SIGSTOP takes hold of each in its own
/// time.
bool is_stopped(pid_t pid);

}  // namespace leasehold
