#include "common/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <string>

namespace leasehold {

void set_up_log(std::string_view program, std::string_view level) {
  auto logger = spdlog::stderr_color_mt(std::string(program));
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%f %l %n %v");
  auto parsed = spdlog::level::from_str(std::string(level));
  if (parsed == spdlog::level::off) parsed = spdlog::level::info;
  logger->set_level(parsed);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace leasehold
