/// The log of the process, kept in memory for a test.
#pragma once

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

namespace leasehold::testing {

/// Captures what is logged during its lifetime, without time and level. Threads: any may log.
class CapturedLog {
 public:
  CapturedLog() {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", std::move(sink)));
    spdlog::set_pattern("%v");
  }
  ~CapturedLog() { spdlog::set_default_logger(before_); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  /// Call these while no other thread logs.
  std::string text() const { return text_.str(); }
  bool has(const std::string& part) const { return text().contains(part); }
  std::size_t lines() const {
    const std::string all = text();
    return static_cast<std::size_t>(std::ranges::count(all, '\n'));
  }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

}  // namespace leasehold::testing
