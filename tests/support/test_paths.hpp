/// Paths that tests need: built programs, the source tree, test data.
///
/// Only this library contains these paths, so other objects do not depend on the tree's location.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace leasehold {

/// Root of the tree.
std::string source_dir();

/// Directory of the built programs.
std::string program_dir();

inline std::string program_path(const std::string& name) {
  return program_dir() + "/" + name;
}

/// The bundled model, in tools/models.
inline std::string bundled_model_path() {
  return source_dir() + "/tools/models/leasehold-stories-q8_0.gguf";
}

/// A path under LEASEHOLD_TEST_DATA (default: `shared` beside the tree), else under tests/data,
/// which has some of the same files; empty when neither has it.
std::string test_data_path(const std::string& relative);

/// The content of a file; empty when it cannot be read.
std::string file_bytes(const std::string& path);

/// True as soon as `holds` returns true; false when it does not within a minute. For actions of
/// other processes.
bool eventually(const std::function<bool()>& holds);

/// True when a signal has stopped every thread of the process: SIGSTOP stops each at its own time.
bool is_stopped(pid_t pid);

}  // namespace leasehold
