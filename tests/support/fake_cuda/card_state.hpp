/// A fake card that several processes share: a directory for FAKE_CUDA_STATE, in memory if
/// possible, deleted by the destructor.
///
/// Lifetime: longer than every process that uses the card. Threads: one.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "common/expects.hpp"

namespace leasehold::testing {

class CardState {
 public:
  CardState() {
    const char* const parent = std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp";
    path_ = std::string(parent) + "/leasehold-card-XXXXXX";
    ensures(::mkdtemp(path_.data()) != nullptr, "mkdtemp creates a directory for the fake card");
  }
  CardState(const CardState&) = delete;
  CardState& operator=(const CardState&) = delete;
  ~CardState() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace leasehold::testing
