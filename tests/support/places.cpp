#include "tests/support/places.hpp"

#include <poll.h>

#include <cstdlib>
#include <filesystem>

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
  const std::filesystem::path path = base / relative;
  return std::filesystem::exists(path) ? path.string() : std::string();
}

bool eventually(const std::function<bool()>& holds) {
  for (int tries = 0; tries < 12'000; ++tries) {
    if (holds()) return true;
    ::poll(nullptr, 0, 5);
  }
  return false;
}

}  // namespace leasehold
