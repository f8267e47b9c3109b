#include "common/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <string>

namespace leasehold {

namespace {

spdlog::level::level_enum parse_level(std::string_view level) {
  const auto parsed = spdlog::level::from_str(std::string(level));
  return parsed == spdlog::level::off ? spdlog::level::info : parsed;
}

}  // namespace

void set_up_log(std::string_view program, std::string_view level) {
  auto logger = spdlog::stderr_color_mt(std::string(program));
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%f %l %n %v");
  logger->set_level(parse_level(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

void set_log_level(std::string_view level) {
  spdlog::default_logger()->set_level(parse_level(level));
}

}  // namespace leasehold
