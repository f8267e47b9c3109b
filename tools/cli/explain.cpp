#include "tools/cli/explain.hpp"

#include <nlohmann/json.hpp>

#include "common/cli/command_line.hpp"
#include "common/cli/print_error.hpp"
#include "tools/cli/json_text.hpp"

namespace leasehold::cli {

namespace {

std::string error_line(std::string_view code, std::string_view detail, std::string_view next,
                       int exit_code, bool retryable) {
  const nlohmann::json line{{"error",
                             {{"code", code},
                              {"detail", detail},
                              {"next", next},
                              {"exit_code", exit_code},
                              {"retryable", retryable}}}};
  return json_text(line);
}

}  // namespace

std::string error_json(const Error& error) {
  return error_json(error, error_hint(error));
}

std::string error_json(const Error& error, std::string_view next) {
  return error_line(name(error.code), error.detail, next, exit_code(error.code),
                    is_retryable(error.code));
}

std::string interrupted_json(const Error& error) {
  return error_line(name(error.code), error.detail,
                    "see the present state with `brokerctl leases` or `brokerctl workers`",
                    kExitInterrupted, false);
}

std::string usage_json(std::string_view text) {
  return error_line(name(Errc::BadRequest), text, error_hint(Errc::BadRequest), kExitUsage, false);
}

}  // namespace leasehold::cli
