/// A batch of many lines that a worker runs beside a measurement.
///
/// Threads: one. Every call blocks until the worker has answered.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.hpp"

namespace leasehold::bench {

class BatchLoad {
 public:
  /// Uploads a file with this number of lines. `http_path`: the Unix socket of the HTTP server of a
  /// worker with --batch-dir. Errors: BadRequest with the worker's answer; ConnectionLost.
  static Result<BatchLoad> create(std::string http_path, std::string key, std::uint32_t lines);

  /// Creates a batch of the file, and returns once its first lines run.
  Result<void> begin();
  /// Cancels it, and returns once it has ended. Returns the number of lines with a result.
  Result<std::uint32_t> end();

 private:
  BatchLoad(std::string http_path, std::string key)
      : http_path_(std::move(http_path)), key_(std::move(key)) {}
  Result<std::string> ask(const std::string& method, const std::string& path,
                          const std::string& content_type = "", const std::string& body = "") const;

  std::string http_path_;
  std::string key_;
  std::string file_;
  std::string batch_;
};

}  // namespace leasehold::bench
