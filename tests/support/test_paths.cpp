#include "tests/support/test_paths.hpp"

#include <poll.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace leasehold {

std::string source_dir() {
  return LEASEHOLD_SOURCE_DIR;
}

std::string program_dir() {
  return LEASEHOLD_BIN_DIR;
}

std::string test_data_path(const std::string& relative) {
  const char* root = std::getenv("LEASEHOLD_TEST_DATA");
  const std::filesystem::path base = root != nullptr ? root : source_dir() + "/../shared";
  for (const std::filesystem::path& folder :
       {base, std::filesystem::path(source_dir() + "/tests/data")})
    if (std::filesystem::exists(folder / relative)) return (folder / relative).string();
  return {};
}

std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool eventually(const std::function<bool()>& holds) {
  for (int tries = 0; tries < 12'000; ++tries) {
    if (holds()) return true;
    ::poll(nullptr, 0, 5);
  }
  return false;
}

bool is_stopped(pid_t pid) {
  std::error_code gone;
  std::filesystem::directory_iterator thread("/proc/" + std::to_string(pid) + "/task", gone);
  bool all_stopped = !gone;
  for (; all_stopped && thread != std::filesystem::directory_iterator(); thread.increment(gone)) {
    const std::string stat = file_bytes(thread->path() / "stat");
    const auto state = stat.rfind(") ");  // a name may contain anything
    all_stopped = !gone && state != std::string::npos && stat[state + 2] == 'T';
  }
  return all_stopped && !gone;
}

}  // namespace leasehold
